"""From a store's URL to the store: the ending decides, and the driver is imported only then."""

import os
from collections.abc import Iterable
from pathlib import Path

from polymnia.errors import BadInput, SettingsError, StoreError
from polymnia.model import Counts, Graph
from polymnia.stores.contract import Catalogue, Store

_SQLITE = (".db", ".sqlite", ".sqlite3")
_JSONL = (".jsonl", ".json")
_BINLOG = (".mcpmem", ".bin")


def open_store(url: str, *, read_only: bool = False) -> Store:
    """The store behind a URL: `memory:`, or a path whose ending or scheme tells its kind.

    A read-only one is left as it is, to the last byte; what is not there is not made.
    Raises SettingsError for a kind it does not know or that holds many, StoreError when the store cannot be opened.
    """
    kind, path = store_kind(url)
    if kind == "directory":
        raise SettingsError(f"{path} is a directory of workspaces; name one of them with --workspace")
    if read_only and not is_in_memory(kind, path) and not Path(path).exists():
        raise StoreError(f"there is no memory at {path}; start without --read-only to begin one")
    if kind == "memory":
        from polymnia.stores.memory import MemoryStore

        return MemoryStore()
    if kind == "sqlite":
        from polymnia.stores.sqlite.store import SqliteStore

        return SqliteStore(path, read_only=read_only)
    if kind == "binlog":
        from polymnia.stores.files.binlog import BinlogStore

        return BinlogStore(path, read_only=read_only)
    from polymnia.stores.files.jsonl import JsonlStore

    return JsonlStore(path, read_only=read_only)


def open_catalogue(url: str, *, read_only: bool = False) -> Catalogue | None:
    """Open the catalogue behind a URL; None if the URL names a single store. Raise SettingsError, StoreError."""
    kind, path = store_kind(url)
    if kind != "directory":
        return None
    from polymnia.stores.projects.catalogue import DirectoryCatalogue

    return DirectoryCatalogue(path)


def adopt_legacy(form: str, url: str) -> None:
    """Convert what another program left where the store at the URL is, or will be. Raise StoreError.

    `form` is what it may have left: `json-file`, a memory.json beside a new memory.jsonl; or `memories-table`, a SQLite
    file with a table of notes. Anything else is left alone.
    """
    kind, path = store_kind(url)
    if form == "json-file" and kind == "jsonl":
        from polymnia.stores.files.jsonl import adopt_legacy as adopt_json_file

        adopt_json_file(Path(path))
    elif form == "memories-table" and kind == "sqlite" and Path(path).is_file():
        from polymnia.stores.sqlite.adopt import adopt_memories

        adopt_memories(path)


def check_directory(path: str) -> tuple[list[str], list[str]]:
    """Return the problems of a data directory, one sentence each, and the names of its active workspaces."""
    catalogue = open_catalogue(f"directory:{path}")
    assert catalogue is not None
    try:
        return catalogue.check(), [each.name for each in catalogue.listed("active")]
    finally:
        catalogue.close()


def salvage(url: str, target: str = "") -> tuple[Path, Counts, list[tuple[int, int]]]:
    """Write what can be read of a damaged binary log to a new one.

    Return the new file, what it holds, and the unreadable byte ranges. Raise BadInput for any other store.
    """
    kind, path = store_kind(url)
    if kind != "binlog":
        raise BadInput(f"--salvage works only on binary logs (.mcpmem, .bin), not on {url}")
    from polymnia.stores.files.binlog_forms import salvage as salvage_log

    new = Path(target or f"{path}.salvaged.mcpmem")
    counts, gaps = salvage_log(Path(path), new)
    return new, counts, gaps


def encode_json_lines(graph: Graph) -> Iterable[bytes]:
    """Return the graph as JSON lines, the format of the `.jsonl` store."""
    from polymnia.stores.files.jsonl_lines import encode_lines

    return encode_lines(graph.entities, graph.relations)


def is_in_memory(kind: str, path: str) -> bool:
    """Whether the store lasts only as long as the process."""
    return kind == "memory" or path == ":memory:"


def store_kind(url: str) -> tuple[str, str]:
    """What kind of store a URL means, and the path in it. Raises SettingsError."""
    scheme, colon, path = url.partition(":")
    if colon and scheme in ("memory", "sqlite", "jsonl", "binlog", "directory"):
        return scheme, path
    if url.endswith(("/", os.sep)) or Path(url).is_dir():
        return "directory", url
    ending = Path(url).suffix.lower()
    if url == ":memory:" or ending in _SQLITE:
        return "sqlite", url
    if ending in _JSONL:
        return "jsonl", url
    if ending in _BINLOG:
        return "binlog", url
    raise SettingsError(
        f"{url!r} is not a store this version knows; use a path ending in .db, .sqlite, .jsonl or .mcpmem, a directory "
        "(ending in / if it is to be made), or `memory:`"
    )
