"""The head of the write-ahead log's index: memory that all processes share and that every commit changes.

SQLite itself compares it at the start of every read transaction to learn whether anything was committed since the last
(https://sqlite.org/walformat.html, "The WAL-Index Header"). Looking at it here takes no lock and no call into SQLite.
"""

import sys
from typing import Protocol

import apsw

from polymnia.stores.sqlite.layout import run

# The head is there twice; while somebody writes it, the copies differ.
_COPY = 48
# Where, in each copy, commits are counted.
_COMMITS = slice(8, 12)
# SQLite maps the index in pieces of this size, and asks for the first one in just this way.
_PIECE = 32768
# xShmMap among the file's methods: after their version and the twelve that every file has.
_SHM_MAP = 13
_HAS_SHM_MAP = 2


class Head(Protocol):
    """Both copies as they are at the moment they are asked for."""

    def tobytes(self) -> bytes:
        """All of it."""


def head_of(connection: apsw.Connection) -> Head:
    """The head for the file of this connection; it must not be looked at once the connection is closed.

    Raises apsw.Error where there is none.
    """
    import ctypes  # needed only by servers that are asked a lot

    run(connection, "count_tables")  # the index is there once something was read
    file, piece = ctypes.c_void_p(), ctypes.c_void_p()
    connection.file_control("main", apsw.SQLITE_FCNTL_FILE_POINTER, ctypes.addressof(file))
    methods = ctypes.c_void_p.from_address(file.value or 0).value or 0
    if connection.pragma("journal_mode") != "wal" or ctypes.c_int.from_address(methods).value < _HAS_SHM_MAP:
        raise apsw.Error("it has no write-ahead log in shared memory")
    shm_map = ctypes.c_void_p.from_address(methods + _SHM_MAP * ctypes.sizeof(ctypes.c_void_p)).value or 0
    number = ctypes.c_int
    call = ctypes.CFUNCTYPE(number, ctypes.c_void_p, number, number, number, ctypes.c_void_p)(shm_map)
    if call(file, 0, _PIECE, 0, ctypes.addressof(piece)) or piece.value is None:
        raise apsw.Error("the index of its write-ahead log cannot be seen")
    return memoryview((ctypes.c_char * (2 * _COPY)).from_address(piece.value))


def is_next(before: bytes, after: bytes) -> bool:
    """Whether one commit, and nothing else, lies between two looks at the head."""
    is_whole = after[:_COPY] == after[_COPY:]
    return is_whole and (_commits(after) - _commits(before)) % (1 << 32) == 1


def _commits(head: bytes) -> int:
    return int.from_bytes(head[_COMMITS], sys.byteorder)
