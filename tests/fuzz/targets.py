"""What is fuzzed: functions that take any bytes and raise nothing but errors of ours."""

import atexit
import os
from collections.abc import Callable
from contextlib import closing, suppress
from functools import cache
from pathlib import Path
from shutil import rmtree
from tempfile import mkdtemp

import apsw

from polymnia.dialects.registry import open_dialect
from polymnia.engine.graph import entities
from polymnia.engine.memory import Memory
from polymnia.engine.recall.search import full_text
from polymnia.engine.workspaces import one_workspace
from polymnia.errors import PolymniaError
from polymnia.importers.base import Report
from polymnia.importers.registry import open_source
from polymnia.importers.source import Source
from polymnia.markdown.properties import front_matter, split_file
from polymnia.mcp.server import Server
from polymnia.mcp.session import Session
from polymnia.model import EntityDraft
from polymnia.stores.files.binlog import form_of, load, salvage
from polymnia.stores.sqlite.lineage import log_fits
from polymnia.stores.sqlite.store import SqliteStore

_INTERNAL_ERROR = -32603


def read_messages(data: bytes) -> None:
    """Give lines to a session. No message may end in an internal error."""
    server = Server(open_dialect("native"), one_workspace(_filled_memory()))
    session = Session(server)
    for line in data.split(b"\n"):
        answer = session.handle(line)
        assert answer is None or answer.error_code != _INTERNAL_ERROR, answer


def import_file(data: bytes) -> None:
    """Import a file of any program. It is refused, or read to its end."""
    path = _home() / "input"
    path.write_bytes(data)
    with suppress(PolymniaError):
        report = Report()
        _, items = open_source(Source(str(path)), None, report)
        for _ in items:
            pass


def read_front_matter(data: bytes) -> None:
    """Read the properties of a Markdown file, and write those that are texts again."""
    with suppress(PolymniaError):
        properties, _ = split_file(data)
        texts = {key: value for key, value in properties.items() if isinstance(value, str)}
        front_matter(texts)


def search(data: bytes) -> None:
    """Search with an expression. SQLite must understand every query that we make of it."""
    text = data.decode("utf-8", "replace")
    with suppress(PolymniaError):
        full_text(_filled_memory(), text)


def check_log(data: bytes) -> None:
    """Ask whether a write-ahead log belongs to a file."""
    path = _home() / "memory.db"
    if not path.exists():
        SqliteStore(str(path)).close()
    path.with_name("memory.db-wal").write_bytes(data)
    with closing(apsw.Connection(str(path))) as connection, suppress(PolymniaError):
        connection.config(apsw.SQLITE_DBCONFIG_NO_CKPT_ON_CLOSE, 1)
        log_fits(str(path), connection)


def load_binary_log(data: bytes) -> None:
    """Load a binary log of any form, and rescue what can be read."""
    with suppress(PolymniaError):
        load(data, form_of(data))
    damaged, rescued = _home() / "damaged.mcpmem", _home() / "rescued.mcpmem"
    damaged.write_bytes(data)
    rescued.unlink(missing_ok=True)
    with suppress(PolymniaError):
        salvage(damaged, rescued)
        rescued_data = rescued.read_bytes()
        assert load(rescued_data, form_of(rescued_data)).fault is None


TARGETS: dict[str, Callable[[bytes], None]] = {
    "messages": read_messages,
    "importers": import_file,
    "front-matter": read_front_matter,
    "queries": search,
    "wal": check_log,
    "binlog": load_binary_log,
}


@cache
def _home() -> Path:
    """Return a directory of this process, in memory if there is such a disk."""
    parent = "/dev/shm" if os.access("/dev/shm", os.W_OK) else None
    home = Path(mkdtemp(prefix="polymnia-fuzz-", dir=parent))
    atexit.register(rmtree, home, ignore_errors=True)
    return home


@cache
def _filled_memory() -> Memory:
    """Return a memory that has something to find."""
    memory = Memory(SqliteStore(":memory:"))
    entities.create(memory, [EntityDraft("alice", "person", ("likes tea",))], by="fuzz")
    return memory
