"""Samples of other programs' formats, and how to read them."""

from pathlib import Path

import apsw

from polymnia.engine.intake import Item
from polymnia.importers.base import Report
from polymnia.importers.registry import find_importer
from polymnia.importers.source import Source

SAMPLES = Path(__file__).parent / "samples"
GOLDEN = Path(__file__).parent / "golden"

# The tables as mcp-memory-service creates them, with the columns that its migrations add.
MEMORY_SERVICE_SCHEMA = """
CREATE TABLE memories (
    id INTEGER PRIMARY KEY AUTOINCREMENT, content_hash TEXT UNIQUE NOT NULL, content TEXT NOT NULL, tags TEXT,
    memory_type TEXT, metadata TEXT, created_at REAL, updated_at REAL, created_at_iso TEXT, updated_at_iso TEXT,
    deleted_at REAL DEFAULT NULL, store TEXT DEFAULT 'default', superseded_by TEXT
);
CREATE TABLE memory_graph (
    source_hash TEXT NOT NULL, target_hash TEXT NOT NULL, similarity REAL NOT NULL, connection_types TEXT NOT NULL,
    metadata TEXT, created_at REAL NOT NULL, relationship_type TEXT DEFAULT 'related',
    PRIMARY KEY (source_hash, target_hash)
);
"""
_MEMORIES = (
    ("aaaa1111bbbb", "Use ruff", "style,python", "note", 1760000000.5, None, None),
    ("cccc2222dddd", "Use black", "style", "note", 1750000000.0, None, "aaaa1111bbbb"),
    ("eeee3333ffff", "We deploy on Fridays", '["ops"]', "decision", 1760000100.0, None, None),
    ("00004444aaaa", "gone", "", "note", 1760000200.0, 1760000300.0, None),
)


def make_memory_service_file(path: Path) -> Path:
    """Write a SQLite file of mcp-memory-service: four memories, of which one is deleted and one superseded."""
    connection = apsw.Connection(str(path))
    connection.execute("PRAGMA journal_mode = WAL").fetchall()
    connection.execute(MEMORY_SERVICE_SCHEMA)
    connection.executemany(
        "INSERT INTO memories (content_hash, content, tags, memory_type, created_at, deleted_at, superseded_by) "
        "VALUES (?, ?, ?, ?, ?, ?, ?)",
        _MEMORIES,
    )
    connection.execute(
        "INSERT INTO memory_graph VALUES ('aaaa1111bbbb', 'eeee3333ffff', 0.7, '[]', NULL, 1760000400, 'causes'), "
        "('aaaa1111bbbb', '00004444aaaa', 0.7, '[]', NULL, 1760000400, 'related')"
    )
    connection.close()
    return path


def read_items(path: Path, kind: str | None = None) -> tuple[str, list[Item], Report]:
    """Return the kind that was detected, the items, and what was left out."""
    source, report = Source(str(path)), Report()
    importer = find_importer(source, kind)
    return importer.kind, list(importer.read(source, report)), report
