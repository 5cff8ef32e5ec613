"""Open the store that a URL names. Its scheme or suffix is its kind; only that is imported."""

import os
import re
from collections.abc import Collection, Iterable, Iterator
from contextlib import closing, contextmanager, suppress
from pathlib import Path
from typing import TYPE_CHECKING, Any

from polymnia.disk.files import map_os_errors
from polymnia.errors import BadInput, SettingsError, StoreError
from polymnia.model import Counts, Graph, Workspace
from polymnia.stores.contract import Catalogue, Store, TokenStore, WebStateStore

if TYPE_CHECKING:
    from polymnia.stores.directory.repair import WorkspaceReport
    from polymnia.stores.postgres.schema import SchemaChange

_SQLITE = (".db", ".sqlite", ".sqlite3")
_JSONL = (".jsonl", ".json")
_BINLOG = (".mcpmem", ".bin")


def open_store(url: str, *, read_only: bool = False) -> Store:
    """Open the store behind a URL: `memory:`, `postgresql://…`, or a path with a known suffix.

    A read-only store changes nothing on disk and creates no file. Raise SettingsError for an
    unknown kind or a data directory, StoreError if the store cannot be opened.
    """
    kind, path = store_kind(url)
    if kind == "directory":
        raise SettingsError(
            f"{path} is a directory of workspaces; name one of them with --workspace"
        )
    if kind == "postgres":
        with _postgres():
            from polymnia.stores.postgres.catalogue import open_workspace
        return open_workspace(url, read_only=read_only)
    if read_only and not is_in_memory(kind, path) and not Path(path).exists():
        raise StoreError(f"there is no memory at {path}; start without --read-only to create one")
    if kind == "sqlite":
        from polymnia.stores.sqlite.store import SqliteStore

        return SqliteStore(path, read_only=read_only)
    from polymnia.stores.files.store import FileStore

    if kind == "binlog":
        from polymnia.stores.files.binlog import BinlogFile

        return FileStore(path, BinlogFile(path), read_only=read_only)
    from polymnia.stores.files.jsonl import JsonlFile

    return FileStore(path, JsonlFile(path), read_only=read_only)


def open_catalogue(url: str, *, read_only: bool = False) -> Catalogue | None:
    """Open the catalogue behind a URL; None for a single store. Raise SettingsError, StoreError."""
    kind, path = store_kind(url)
    if kind == "postgres":
        with _postgres():
            from polymnia.stores.postgres import catalogue
        return catalogue.open_catalogue(url, read_only=read_only)
    if kind != "directory":
        return None
    from polymnia.stores.directory.catalogue import DirectoryCatalogue

    return DirectoryCatalogue(path, read_only=read_only)


def open_token_table(url: str, *, read_only: bool = False) -> TokenStore | None:
    """Open the tokens in the database at a URL; None for any other store. Raise StoreError."""
    if store_kind(url)[0] != "postgres":
        return None
    with _postgres():
        from polymnia.stores.postgres.tokens import open_tokens
    return open_tokens(url, read_only=read_only)


def open_web_state(url: str, *, read_only: bool = False) -> WebStateStore | None:
    """Open what the web interface keeps in the database at a URL; None for any other store.

    Raise StoreError.
    """
    if store_kind(url)[0] != "postgres":
        return None
    with _postgres():
        from polymnia.stores.postgres import web_state
    return web_state.open_web_state(url, read_only=read_only)


def migrate_schema(url: str, *, grant_to: str = "", only_check: bool = False) -> "SchemaChange":
    """Bring the tables of a database up to date. Raise SettingsError for others, StoreError."""
    if store_kind(url)[0] != "postgres":
        raise SettingsError(f"{url} is not a database: other stores are migrated when opened")
    with _postgres():
        from polymnia.stores.postgres import catalogue
    return catalogue.migrate_schema(url, grant_to=grant_to, only_check=only_check)


def database_gauges(url: str) -> dict[str, float]:
    """Return what monitoring wants to know of the database at a URL. Raise StoreError."""
    with _postgres():
        from polymnia.stores.postgres.database import open_database
        from polymnia.stores.postgres.url import parse_url
    with closing(open_database(parse_url(url))) as database:
        return database.gauges()


def wait_for_store(url: str) -> None:
    """Return when the database at a URL accepts connections; at once for any other store."""
    if store_kind(url)[0] == "postgres":
        with _postgres():
            from polymnia.stores.postgres.database import wait_for_server
        wait_for_server(url)


@contextmanager
def _postgres() -> Iterator[None]:
    """Import the PostgreSQL store in the block. Raise SettingsError if its driver is missing."""
    try:
        yield
    except ImportError as exc:
        raise SettingsError(
            "PostgreSQL needs another package: run `pip install 'polymnia[postgres]'`"
        ) from exc


def check_catalogue(url: str) -> list["WorkspaceReport"]:
    """Check the workspaces of a data directory or database. Raise SettingsError for others."""
    if store_kind(url)[0] == "postgres":
        with _postgres():
            from polymnia.stores.postgres.catalogue import check_database
        return check_database(url)
    from polymnia.stores.directory.repair import check_directory

    return check_directory(_directory(url))


def rebuild_catalogue(url: str) -> list[Workspace]:
    """Rebuild the lost registry of a data directory. Raise BadInput, SettingsError, StoreError."""
    from polymnia.stores.directory.repair import rebuild_registry

    return rebuild_registry(_directory(url))


def _directory(url: str) -> Path:
    kind, path = store_kind(url)
    if kind != "directory":
        raise SettingsError(f"{url} is not a data directory; name one, ending in /")
    return Path(path)


def adopt_legacy(form: str, url: str) -> None:
    """Convert the files of another program at or beside the path of a store. Raise StoreError.

    `form` is `json-file` for a memory.json beside a new memory.jsonl, or `memories-table` for a
    SQLite file with tables of notes. Do not touch anything else.
    """
    kind, path = store_kind(url)
    if form == "json-file" and kind == "jsonl":
        from polymnia.stores.files.jsonl import adopt_legacy as adopt_json_file

        adopt_json_file(Path(path))
    elif form == "memories-table" and kind == "sqlite" and Path(path).is_file():
        from polymnia.stores.sqlite.foreign import adopt_memories

        adopt_memories(path)


def salvage(url: str, target: str = "") -> tuple[Path, Counts, list[str]]:
    """Write everything readable of a damaged binary log or SQLite file to a new one.

    Return the new file, what it holds, and a sentence for each part that cannot be read. Raise
    BadInput for any other store.
    """
    kind, path = store_kind(url)
    if kind == "sqlite":
        from polymnia.stores.sqlite.salvage import salvage_sqlite

        new = Path(target or f"{path}.salvaged.db")
        report = salvage_sqlite(Path(path), new)
        return new, report.counts, list(report.lost)
    if kind != "binlog":
        raise BadInput(
            f"--salvage works on binary logs (.mcpmem, .bin) and SQLite files (.db), not on {url}"
        )
    from polymnia.stores.files.binlog import salvage as salvage_log

    new = Path(target or f"{path}.salvaged.mcpmem")
    counts, gaps = salvage_log(Path(path), new)
    return new, counts, [f"{end - start} bytes at byte {start}" for start, end in gaps]


def store_exists(url: str) -> bool:
    """Return True if there is a store at the URL, a database, or a store in memory."""
    kind, path = store_kind(url)
    if kind == "directory":
        return any((Path(path) / name).exists() for name in ("_meta.db", "projects", "archive"))
    return not has_files(kind, path) or Path(path).is_file()


def holds_a_store(path: str) -> bool:
    """Return True if one of our stores, other than JSON lines, is at the path."""
    if Path(path).is_dir():
        return (Path(path) / "_meta.db").exists() or any((Path(path) / "projects").glob("*.db"))
    with map_os_errors(path):
        from polymnia.stores.sqlite.foreign import is_sqlite, table_columns

        if is_sqlite(path):
            return {"changes", "cards", "observations"} <= set(table_columns(path))
    return Path(path).suffix.lower() in _BINLOG


def foreign_tables(path: str) -> dict[str, tuple[str, ...]]:
    """Return the tables of another program's SQLite file with their columns; none for other files.

    Raise StoreError if it is damaged.
    """
    from polymnia.stores.sqlite.foreign import is_sqlite, table_columns

    with map_os_errors(path):
        return table_columns(path) if is_sqlite(path) else {}


def foreign_rows(path: str, table: str) -> Iterator[dict[str, Any]]:
    """Yield the rows of a table of another program's SQLite file. Raise StoreError."""
    from polymnia.stores.sqlite.foreign import table_rows

    return table_rows(path, table)


def encode_json_lines(graph: Graph) -> Iterable[bytes]:
    """Return the graph as JSON lines, the format of the `.jsonl` store."""
    from polymnia.stores.files.jsonl import encode_lines

    return encode_lines(graph.entities, graph.relations)


def is_in_memory(kind: str, path: str) -> bool:
    """Return True if the store lasts only as long as the process."""
    return kind == "sqlite" and path == ":memory:"


def has_files(kind: str, path: str) -> bool:
    """Return True if the store is a file or a directory."""
    return kind != "postgres" and not is_in_memory(kind, path)


def hide_passwords(text: str) -> str:
    """Return a URL, or a text with URLs, with asterisks in place of the passwords of databases."""
    hidden = re.sub(r"(postgres(?:ql)?://[^:/?\s]*):\S*@", r"\1:***@", text)
    return re.sub(r"([?&](?:ssl)?password=)[^&\s]*", r"\1***", hidden)


def store_kind(url: str) -> tuple[str, str]:
    """Return the kind of store that a URL names, and its path. Raise SettingsError."""
    scheme, colon, path = url.partition(":")
    if scheme in ("postgresql", "postgres") and path.startswith("//"):
        return "postgres", url
    if url == "memory:":
        return "sqlite", ":memory:"
    if colon and scheme in ("sqlite", "jsonl", "binlog", "directory"):
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
        f"{url!r} is not a store; use a path ending in .db, .sqlite, .jsonl or .mcpmem, "
        "a directory (ending in / to create one), postgresql://…, or `memory:`"
    )


def store_gauges(url: str) -> dict[str, float]:
    """Return what monitoring wants to know of a store, by name. Raise StoreError."""
    kind, path = store_kind(url)
    if kind == "postgres":
        return database_gauges(url)
    size = file_bytes(path) if has_files(kind, path) else None
    return {} if size is None else {"store_bytes": float(size)}


def file_bytes(path: str) -> int | None:
    """Return the size of a file with its log, or of a directory's files; None if there are none."""
    sizes = []
    for file in _files_of(path):
        with suppress(OSError):  # deleted meanwhile, or not readable
            if file.is_file():
                sizes.append(file.stat().st_size)
    return sum(sizes) if sizes else None


def find_texts(url: str, texts: Collection[str], workspaces: Collection[str]) -> list[str]:
    """Return the files of a store that have one of the texts, or the tables of its database.

    Files are searched whole, tables only for the workspaces. Raise StoreError.
    """
    kind, path = store_kind(url)
    if kind == "postgres":
        with _postgres():
            from polymnia.stores.postgres import catalogue
        return catalogue.find_in_tables(url, texts, workspaces)
    places = []
    if has_files(kind, path):
        for file in filter(Path.is_file, _files_of(path)):
            content = file.read_bytes()
            if any(text.encode() in content for text in texts):
                places.append(str(file))
    return places


def _files_of(path: str) -> list[Path]:
    if Path(path).is_dir():
        return list(Path(path).rglob("*"))
    return [Path(path), Path(path + "-wal")]  # the log of a SQLite file is part of the store
