"""Samples of other programs' formats, and how to read them.

`python -m tests.importers.samples mem0.json` writes the golden result of a sample: read what has
changed in it before committing it.
"""

import gzip
import json
import shutil
import sys
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import apsw
from msgspec.json import decode, encode

from polymnia.engine.transfer.intake import Item
from polymnia.importers.base import Report
from polymnia.importers.registry import find_importer
from polymnia.importers.source import Source

SAMPLES = Path(__file__).parent / "samples"
GOLDEN = Path(__file__).parent / "golden"

FILES = {
    "reference.jsonl": "memory-json",
    "reference-object.json": "memory-json",
    "memory-service.json": "memory-service",
    "memory-service.db": "memory-service-db",
    "mem0.json": "mem0",
    "chatgpt.json": "chatgpt",
    "claude.json": "claude",
    "claude-code.jsonl": "claude-code",
    "codex.jsonl": "codex",
    "copilot.jsonl": "copilot",
    "gemini.jsonl": "gemini",
    "mempalace.sqlite3": "mempalace",
    "graphiti.json": "graphiti",
    "basic-memory": "basic-memory",
    "obsidian": "obsidian",
    "claude-memory": "claude-memory",
    "letta": "letta",
    "instructions": "instructions",
    # Written by the code of the programs themselves: make_samples.py.
    "made/memory-service.json": "memory-service",
    "made/memory-service.db.gz": "memory-service-db",
    "made/mem0.json": "mem0",
    "made/mempalace.sqlite3": "mempalace",
    "made/graphiti.json": "graphiti",
    "made/basic-memory": "basic-memory",
}

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
    """Write a SQLite file of mcp-memory-service.

    Four memories, of which one is deleted and one superseded.
    """
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


def plain(items: list[Item]) -> object:
    """Return the items as a golden file has them."""
    return decode(encode(items))


def golden(name: str, kind: str) -> Any:
    """Return what the sample must give."""
    return json.loads(_golden_file(name, kind).read_text("utf-8"))


def _golden_file(name: str, kind: str) -> Path:
    stem = name.replace("/", "-").split(".")[0]
    return GOLDEN / f"{stem}-{kind}.json"


def sample(name: str, directory: Path) -> Path:
    """Return a copy of the sample under a name that tells nothing."""
    path = directory / "input"
    if name.endswith(".db"):
        return make_memory_service_file(path)
    if name.endswith(".gz"):
        path.write_bytes(gzip.decompress((SAMPLES / name).read_bytes()))
        return path
    if (SAMPLES / name).is_dir():
        shutil.copytree(SAMPLES / name, path)
        return path
    path.write_bytes((SAMPLES / name).read_bytes())
    return path


if __name__ == "__main__":
    if sys.argv[1:] == [] or sys.argv[1] not in FILES:
        sys.exit(f"name a sample, one of {', '.join(FILES)}")
    with TemporaryDirectory() as directory:
        kind, items, _ = read_items(sample(sys.argv[1], Path(directory)))
    text = json.dumps(plain(items), indent=2, ensure_ascii=False)
    _golden_file(sys.argv[1], kind).write_text(f"{text}\n", "utf-8")
