"""Check a data directory without changing anything, and rebuild its registry when that is lost."""

import logging
import shutil
from collections import Counter
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path
from uuid import uuid4

import apsw
from msgspec import Struct
from msgspec.structs import replace

from polymnia.disk.files import fsync_directory, map_os_errors
from polymnia.disk.lock import file_lock
from polymnia.errors import BadInput, StoreError, StoreForeign, StoreSealed
from polymnia.model import Counts, Status, Workspace
from polymnia.search.terms import fold
from polymnia.stores.directory import files
from polymnia.stores.directory.adoption import is_adoptable
from polymnia.stores.directory.catalogue import ACTIVE, ARCHIVE, workspace_files
from polymnia.stores.directory.registry import COPY, REGISTRY, Registry, read_copy
from polymnia.stores.names import check_name
from polymnia.stores.sqlite.connection import SEALED_ID, Row, connect, map_errors
from polymnia.stores.sqlite.store import SqliteStore

logger = logging.getLogger(__name__)


class WorkspaceReport(Struct, frozen=True):
    """What a check found in one workspace, or, without a name, in the directory itself.

    `counts` is None if the file cannot be read, or was not converted from an earlier program yet.
    """

    name: str
    problems: tuple[str, ...]
    counts: Counts | None = None
    notes: int = 0
    latest_time: int = 0  # of a change


def check_directory(directory: Path) -> list[WorkspaceReport]:
    """Check the registry and every workspace, archived or not, and change nothing."""
    try:
        rows, pending = _read_registry(directory)
        problems: list[str] = []
    except StoreError as exc:
        rows, pending, problems = [], set(), [str(exc)]
    reports = [_check_row(directory, row, pending) for row in rows]
    known = {(directory / row[2]).resolve() for row in rows if isinstance(row[2], str)}
    for path in workspace_files(directory):
        if path.resolve() not in known and path.stem not in pending:
            problems.append(f"{path} belongs to no workspace")
            is_archived = path.parent.name == ARCHIVE
            reports.append(_check_file(path.name, path, archived=is_archived))
    names = Counter(fold(str(row[1])) for row in rows)
    for name, count in names.items():
        if count > 1:
            problems.append(f"{count} workspaces are called {name}")
    return [WorkspaceReport("", tuple(problems)), *reports]


def rebuild_registry(directory: Path) -> list[Workspace]:
    """Write a new registry from the workspaces' files and, for their names, the registry's copy.

    A damaged registry is kept as `.damaged`. Stop all servers first. Raise BadInput if the registry
    can be read, StoreError.
    """
    registry = directory / REGISTRY
    with map_os_errors(str(registry)), file_lock(registry):
        try:
            _read_registry(directory)
        except StoreError:
            pass
        else:
            raise BadInput(f"{registry} can be read: there is nothing to rebuild")
        part = directory / f"{REGISTRY}.part"
        shutil.rmtree(part, ignore_errors=True)
        recovered = list(_recover_workspaces(directory))
        with closing(Registry(part)) as new:
            for workspace, path in recovered:
                new.add(workspace, path)
        for ending in ("", "-wal", "-shm"):
            old = registry.with_name(f"{REGISTRY}{ending}")
            if old.exists():
                old.replace(registry.with_name(f"{REGISTRY}.damaged{ending}"))
        (part / REGISTRY).replace(registry)
        fsync_directory(directory)
        shutil.rmtree(part)
    return [workspace for workspace, _ in recovered]


def _read_registry(directory: Path) -> tuple[list[Row], set[str]]:
    """Return the rows of the registry, and the workspaces with unfinished changes."""
    registry = directory / REGISTRY
    if not registry.is_file() or not registry.stat().st_size:
        raise StoreError(
            f"{registry} is missing or empty; `polymnia doctor --rebuild` writes a new one"
        )
    with closing(Registry(directory, read_only=True)) as opened:
        return opened.rows(), {intent.workspace for intent in opened.intents()}


def _check_row(directory: Path, row: Row, pending: set[str]) -> WorkspaceReport:
    identifier, name, location, status = row
    title = str(name)
    if not all(isinstance(value, str) for value in (identifier, name, location)):
        return WorkspaceReport(title, (f"its row in {REGISTRY} is damaged: {row!r}",))
    if status not in ("active", "archived"):
        return WorkspaceReport(title, (f"its row in {REGISTRY} has the status {status!r}",))
    path = (directory / str(location)).resolve()
    if not path.is_relative_to(directory.resolve()):
        problem = f"its row in {REGISTRY} names a file outside the directory: {location}"
        return WorkspaceReport(title, (problem,))
    is_pending = identifier in pending
    if is_pending and not path.is_file():
        # It is being moved, or the next server completes the move.
        return WorkspaceReport(title, ())
    # A file that is about to be moved may be sealed already.
    return _check_file(title, path, archived=is_pending or status == "archived")


def _check_file(name: str, path: Path, *, archived: bool) -> WorkspaceReport:
    if not path.is_file():
        return WorkspaceReport(name, (f"its file is missing: {path}",))
    if not path.stat().st_size:
        return WorkspaceReport(name, (f"its file is empty: {path}",))
    try:
        store = SqliteStore(str(path), create=False, read_only=True, allow_archived=archived)
        with closing(store), store.reading() as read:
            counts = read.counts()
            latest_time = read.history.latest_time()
            return WorkspaceReport(name, tuple(store.check()), counts, counts.notes, latest_time)
    except StoreForeign as exc:
        # A file of another program that can be converted is not a problem.
        problems = [str(exc)]
        try:
            with map_errors(str(path)), closing(connect(str(path), read_only=True)) as connection:
                if is_adoptable(connection):
                    rows = connection.execute("PRAGMA integrity_check").fetchall()
                    problems = [f"{path}: {problem}" for (problem,) in rows if problem != "ok"]
        except StoreError as error:
            problems = [str(error)]
        return WorkspaceReport(name, tuple(problems))
    except StoreSealed:
        return WorkspaceReport(name, (f"its file is sealed although it is in use: {path}",))
    except StoreError as exc:
        return WorkspaceReport(name, (str(exc),))


def _recover_workspaces(directory: Path) -> Iterator[tuple[Workspace, str]]:
    """Return a workspace for each file, with the path of the file in the directory."""
    copied = {workspace.id: workspace for workspace in read_copy(directory / COPY) or []}
    taken = {fold(workspace.name) for workspace in copied.values()}
    seen: set[str] = set()
    for path in workspace_files(directory):
        if path.stem in seen or not path.stat().st_size:
            logger.warning("%s is left out: it is empty, or an active workspace has its id", path)
            continue
        seen.add(path.stem)
        if path.parent.name == ACTIVE:
            # Undo an archiving that did not end. A damaged file stays as it is.
            try:
                with (
                    map_errors(str(path)),
                    closing(
                        apsw.Connection(str(path), flags=apsw.SQLITE_OPEN_READONLY)
                    ) as connection,
                ):
                    mark = connection.pragma("application_id")
                if mark == SEALED_ID:
                    files.unseal(path)
            except StoreError as exc:
                logger.warning("%s is listed although it cannot be read: %s", path, exc)
        workspace = copied.get(path.stem) or Workspace(path.stem, _new_name(path.stem, taken))
        status: Status = "active" if path.parent.name == ACTIVE else "archived"
        yield replace(workspace, status=status), f"{path.parent.name}/{path.name}"


def _new_name(workspace: str, taken: set[str]) -> str:
    """Return a name for a workspace whose own name is lost."""
    name = f"recovered-{workspace.partition('-')[0]}"
    try:
        check_name(name)
    except BadInput:
        name = "recovered"
    while fold(name) in taken:
        name = f"{name[:80]}-{uuid4().hex[:4]}"
    taken.add(fold(name))
    return name
