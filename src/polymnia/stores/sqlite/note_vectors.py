"""The vault's vectors in memory, kept current from the change log: what makes searching by meaning quick.

It needs numpy, which the base install does not have; without it vectors are compared one by one.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator
from importlib.util import find_spec
from itertools import islice
from threading import Lock
from typing import TYPE_CHECKING

import apsw
from msgspec import Struct
from msgspec.json import Decoder

from polymnia.model import VAULT, NoteScope
from polymnia.search.embedding import length
from polymnia.stores.sqlite.layout import QUERIES, Row, as_json, run

if TYPE_CHECKING:
    from polymnia.stores.sqlite.blend import Floats, Vectors, Words

# More than this is not kept but read anew for every search.
_MOST_BYTES = 1 << 30
_ROWS_AT_ONCE = 2000
# Catching up with more changes than this takes longer than reading everything.
_MOST_CHANGES = 2000


class _Touched(Struct):
    key: str
    scope: NoteScope = VAULT


class _Side(Struct):
    notes: list[_Touched] = []


_side = Decoder(_Side)


class VaultVectors:
    """The vectors of one length in bytes, and which row is which note's."""

    def __init__(self) -> None:
        self.quick = find_spec("numpy") is not None
        self._lock = Lock()
        self._moment = -1
        self._purge = 0
        self._size = 0
        self._vectors: Vectors | None = None
        self._row_of: dict[str, int] = {}
        self._keys: list[str] = []

    def blended(
        self, connection: apsw.Connection, vector: bytes, matched: Words, allowed: Collection[int] | None, limit: int
    ) -> dict[int, float]:
        """The best so many by words and vectors together; `matched` are notes and what BM25 gives them."""
        from polymnia.stores.sqlite.blend import units  # with numpy: 70 MB that most servers never need

        unit = units([vector], [length(vector)])[0]
        with self._lock:
            vectors = self._brought_up(connection, len(vector))
            if vectors is not None:
                return vectors.best(unit, matched, allowed, limit)
        return _streamed(connection, unit, matched, allowed, limit)

    def _brought_up(self, connection: apsw.Connection, size: int) -> Vectors | None:
        """The vectors at the moment that the transaction sees, or later; None when they are too large to keep."""
        ((moment,),), ((purge,),) = run(connection, "last_change"), run(connection, "last_purge")
        known = size == self._size and self._moment >= 0 and purge <= self._purge
        if known and moment <= self._moment:
            return self._vectors
        touched = _touched(connection, self._moment) if known and self._vectors is not None else None
        self._moment = -1  # should this fail halfway, the next search starts anew
        if touched is None or self._vectors is None or self._vectors.used * size > _MOST_BYTES:
            self._load(connection, size)
        else:
            self._forget(self._vectors, touched)
            self._add(self._vectors, run(connection, "vectors_keyed", as_json(touched), size))
        self._moment, self._purge = moment, purge
        return self._vectors

    def _load(self, connection: apsw.Connection, size: int) -> None:
        from polymnia.stores.sqlite.blend import Vectors

        self._size, self._vectors, self._row_of, self._keys = size, None, {}, []
        ((count,),) = run(connection, "count_vault_vectors", size)
        if count * size <= _MOST_BYTES:
            self._vectors = Vectors(count, size // 4)
            for rows in _chunks(connection, size):
                self._add(self._vectors, rows)

    def _add(self, vectors: Vectors, rows: list[Row]) -> None:
        if rows:
            notes, keys, blobs, norms = (list(column) for column in zip(*rows, strict=True))
            vectors.add(notes, blobs, norms)
            self._row_of.update({key: row for row, key in enumerate(keys, len(self._keys))})
            self._keys += keys

    def _forget(self, vectors: Vectors, keys: Iterable[str]) -> None:
        for key in keys:
            row = self._row_of.pop(key, None)
            if row is None:
                continue
            vectors.remove(row)
            last = self._keys.pop()
            if last != key:
                self._keys[row] = last
                self._row_of[last] = row


def _streamed(
    connection: apsw.Connection, unit: Floats, matched: Words, allowed: Collection[int] | None, limit: int
) -> dict[int, float]:
    """The same without a matrix that is kept."""
    import numpy as np

    from polymnia.stores.sqlite import blend

    notes: list[int] = []
    parts: list[Floats] = [np.empty(0, dtype=np.float32)]
    for rows in _chunks(connection, unit.nbytes):
        notes += [row[0] for row in rows]
        parts.append(blend.cosines(blend.units([row[2] for row in rows], [row[3] for row in rows]), unit))
    return blend.best(np.array(notes, dtype=np.int64), np.concatenate(parts), matched, allowed, limit)


def _chunks(connection: apsw.Connection, size: int) -> Iterator[list[Row]]:
    rows = iter(connection.execute(QUERIES["vectors_of_scope"], (VAULT.owner, VAULT.session, size)))
    while chunk := list(islice(rows, _ROWS_AT_ONCE)):
        yield chunk


def _touched(connection: apsw.Connection, since: int) -> set[str] | None:
    """The keys of the vault's notes that were written since; None when there was too much writing to look through."""
    rows = run(connection, "changes_since", since, _MOST_CHANGES + 1)
    if len(rows) > _MOST_CHANGES:
        return None
    sides = [_side.decode(side) for row in rows for side in row[-2:]]
    return {memo.key for side in sides for memo in side.notes if memo.scope == VAULT}
