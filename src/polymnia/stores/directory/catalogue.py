"""The catalogue of a data directory: its workspaces, and what happens to their files.

A change to a file and to its row in the registry cannot be one step, so every change first records
its intent in the registry. A lock file is held from the first step to the last. So an intent that
the holder of the lock finds was left by a process that died: it is completed if the file had passed
the point of no return, and undone otherwise.
"""

import logging
from collections.abc import Iterator, Mapping
from contextlib import ExitStack, contextmanager, suppress
from pathlib import Path
from uuid import uuid4

from msgspec.structs import replace

from polymnia.disk.files import map_os_errors
from polymnia.disk.lock import file_lock
from polymnia.errors import (
    BadInput,
    PolymniaError,
    StoreDamaged,
    StoreError,
    StoreForeign,
    StoreStopped,
    WorkspaceArchived,
    WorkspaceNotFound,
)
from polymnia.model import Status, Workspace
from polymnia.stores.contract import Store
from polymnia.stores.directory import files
from polymnia.stores.directory.registry import COPY, REGISTRY, Intent, Operation, Registry
from polymnia.stores.names import check_name, same_name
from polymnia.stores.sqlite.store import SqliteStore

logger = logging.getLogger(__name__)

ACTIVE, ARCHIVE = "projects", "archive"
# A store holds a handful of file handles, and processes are commonly limited to a thousand.
_MAX_OPEN = 32


class DirectoryCatalogue:
    """The workspaces of one directory. Safe for several threads and several processes."""

    max_open = _MAX_OPEN

    def __init__(self, directory: str, *, read_only: bool = False) -> None:
        """Open or create the directory. A read-only catalogue changes nothing. Raise StoreError."""
        self.directory = Path(directory)
        self._read_only = read_only
        path = self.directory / REGISTRY
        if not path.is_file() or not path.stat().st_size:
            if workspace_files(self.directory):
                raise StoreError(
                    f"{path} is missing or empty, but there are workspaces; "
                    f"run `polymnia doctor --rebuild --store {self.directory}/` to rebuild it"
                )
            if read_only:
                raise StoreError(
                    f"there is no memory at {self.directory}; "
                    "start without --read-only to create one"
                )
        self._registry = Registry(self.directory, read_only=read_only)
        lacks_copy = not (self.directory / COPY).exists() and bool(self._registry.find_all())
        if not read_only and (self._registry.intents() or lacks_copy):
            with self._exclusive():
                pass  # completes or undoes what others left

    def find(self, name: str) -> Workspace:
        workspace = self._registry.find(name)
        if workspace is None:
            raise WorkspaceNotFound(
                name, f"`polymnia workspace create {name} --store {self.directory}/` makes it"
            )
        return workspace

    def find_all(
        self, status: Status | None = None, *, limit: int | None = None
    ) -> list[Workspace]:
        return self._registry.find_all(status)[:limit]

    def create(self, name: str, description: str = "") -> Workspace:
        check_name(name)
        with self._exclusive():
            self._refuse_taken(name)
            new = Workspace(str(uuid4()), name, description)
            with self._record_intent(new.id, "create"):
                SqliteStore(str(self._active_path(new.id))).close()
                self._registry.add(new, f"{ACTIVE}/{new.id}.db")
            return self.find(name)

    def update(
        self,
        name: str,
        *,
        new_name: str | None = None,
        description: str | None = None,
        status: Status | None = None,
    ) -> Workspace:
        if new_name is not None:
            check_name(new_name)
        with self._exclusive():
            workspace = self.find(name)
            path, archived = self._path(workspace.id), self._archived_path(workspace.id)
            if status == "archived":
                self._find_active(name)
                _refuse_in_the_way(archived)
                _open_or_adopt(path).close()
                with self._record_intent(workspace.id, "archive"):
                    files.seal(path)
                    files.move(path, archived)
                    location = f"{ARCHIVE}/{workspace.id}.db"
                    self._registry.relocate(workspace.id, "archived", location)
            elif status == "active":
                if workspace.status != "archived":
                    raise BadInput(f"{name} is not archived: there is nothing to restore")
                _refuse_in_the_way(self._active_path(workspace.id))
                with self._record_intent(workspace.id, "restore"):
                    self._copy_back(workspace.id)
            if description is not None:
                self._registry.describe(workspace.id, description)
            if new_name is not None:
                self._refuse_taken(new_name, beside=workspace.id)
                self._registry.rename(workspace.id, new_name)
        return self.find(new_name or name)

    def delete(self, name: str) -> Workspace:
        with self._exclusive():
            workspace = self.find(name)
            path = self._path(workspace.id)
            with self._record_intent(workspace.id, "delete"):
                if workspace.status == "active" and path.is_file():
                    with suppress(StoreDamaged):  # a file that cannot be read can still be deleted
                        files.seal(path)
                self._discard(workspace.id)
        return workspace

    def adopt(self, workspace: Workspace) -> None:
        check_name(workspace.name)
        with self._exclusive():
            known = self._registry.find(workspace.name)
            if known is None:
                self._refuse_taken(workspace.name)
                _refuse_in_the_way(self._active_path(workspace.id))
                with self._record_intent(workspace.id, "create"):
                    SqliteStore(str(self._active_path(workspace.id))).close()
                    self._registry.add(
                        replace(workspace, status="active"), f"{ACTIVE}/{workspace.id}.db"
                    )
            elif known.id != workspace.id:
                self._refuse_taken(workspace.name)
        if self.find(workspace.name).status != workspace.status:
            self.update(workspace.name, status=workspace.status)
        with self._exclusive():
            self._registry.describe(workspace.id, workspace.description, workspace.updated_at)

    def open(self, name: str, *, archived: bool = False) -> SqliteStore:
        if archived and self.find(name).status == "archived":
            path = self._path(self.find(name).id)
            return SqliteStore(str(path), create=False, read_only=True, allow_archived=True)
        path = self._path(self._find_active(name).id)
        if not path.is_file() and not self._read_only:
            with self._exclusive():  # a process may have died while it moved the file
                path = self._path(self._find_active(name).id)
        if not path.is_file():
            raise StoreError(
                f"the file of {name} is missing: it should be {path}; restore it from a backup"
            )
        if not path.stat().st_size:
            raise StoreDamaged(f"the file of {name} is empty: {path}; restore it from a backup")
        try:
            return self._open_store(path)
        except StoreForeign as exc:
            if self._read_only:
                raise StoreForeign(
                    f"{path} was written by another program; "
                    "open it once without --read-only to convert it"
                ) from exc
            with self._exclusive():
                _open_or_adopt(path).close()
            return self._open_store(path)

    def _open_store(self, path: Path) -> SqliteStore:
        return SqliteStore(
            str(path),
            create=False,
            read_only=self._read_only,
            moved_under=None if self._read_only else str(self._registry.path),
        )

    def find_open(self, stores: Mapping[str, Store]) -> set[str]:
        names = set()
        for name, store in stores.items():
            with suppress(WorkspaceNotFound, WorkspaceArchived):
                path = str(self._path(self._find_active(name).id))
                if isinstance(store, SqliteStore) and store.url == path and store.is_in_place():
                    names.add(name)
        return names

    def close(self) -> None:
        self._registry.close()

    def _find_active(self, name: str) -> Workspace:
        workspace = self.find(name)
        if workspace.status != "active":
            raise WorkspaceArchived(name)
        return workspace

    @contextmanager
    def _exclusive(self) -> Iterator[None]:
        """Lock the directory, and first settle what dead processes left. Raise StoreError."""
        if self._read_only:
            raise StoreError(f"{self.directory} was opened with --read-only; nothing was changed")
        with ExitStack() as stack:
            with map_os_errors(f"{self._registry.path}.lock"):
                stack.enter_context(file_lock(self._registry.path))
            for intent in self._registry.intents():
                logger.warning(
                    "the %s of workspace %s was interrupted", intent.operation, intent.workspace
                )
                try:
                    self._recover(intent)
                except StoreError as exc:  # the next process tries again
                    logger.error("workspace %s cannot be recovered: %s", intent.workspace, exc)
            yield
            self._registry.save_copy()

    @contextmanager
    def _record_intent(self, workspace: str, operation: Operation) -> Iterator[None]:
        """Record an intent, so that the block changes a file completely or not at all."""
        self._registry.begin(workspace, operation)
        try:
            yield
        except PolymniaError as exc:
            try:
                is_complete = self._recover(Intent(workspace, operation))
            except StoreError:
                raise StoreError(
                    f"the {operation} of workspace {workspace} was interrupted ({exc}); "
                    "the next change in this directory completes or undoes it"
                ) from exc
            # After StoreStopped it is unknown what the disk has.
            if not is_complete or isinstance(exc, StoreStopped):
                raise

    def _recover(self, intent: Intent) -> bool:
        """Complete what had passed the point of no return, and undo the rest.

        Return True if it was completed.
        """
        is_complete = True
        workspace = intent.workspace
        home, archived = self._active_path(workspace), self._archived_path(workspace)
        if intent.operation == "create":
            files.discard(home)
            is_complete = False
        elif intent.operation == "archive" and archived.is_file():
            files.drop_logs(self._path(workspace))
            self._registry.relocate(workspace, "archived", f"{ARCHIVE}/{workspace}.db")
        elif intent.operation == "restore" and home.is_file():
            self._complete_restore(workspace)
        elif intent.operation == "delete" and not self._path(workspace).is_file():
            self._discard(workspace)
        elif intent.operation == "restore":
            files.discard(_part(home))
            is_complete = False
        else:
            if self._path(workspace).is_file():
                files.unseal(self._path(workspace))
            is_complete = False
        self._registry.forget(workspace)
        return is_complete

    def _copy_back(self, workspace: str) -> None:
        home = self._active_path(workspace)
        files.fold_log(self._path(workspace))
        files.copy(self._path(workspace), _part(home))
        try:
            files.unseal(_part(home))
            # Closing the copy leaves its log if that could not be brought into the file.
            files.fold_log(_part(home))
        except StoreDamaged as exc:  # name the archive: the copy is deleted now
            raise StoreDamaged(
                f"{self._path(workspace)} is damaged; restore it from a backup"
            ) from exc
        files.put(_part(home), home)
        self._complete_restore(workspace)

    def _complete_restore(self, workspace: str) -> None:
        """Delete the archived file: the copy is in place."""
        if (old := self._path(workspace)) != self._active_path(workspace):
            files.discard(old)
        self._registry.relocate(workspace, "active", f"{ACTIVE}/{workspace}.db")

    def _discard(self, workspace: str) -> None:
        for path in (
            self._path(workspace),
            self._active_path(workspace),
            self._archived_path(workspace),
        ):
            files.discard(path)
        self._registry.remove(workspace)

    def _refuse_taken(self, name: str, *, beside: str | None = None) -> None:
        for other in self._registry.find_all():
            if other.id != beside and same_name(other.name, name):
                state = "" if other.status == "active" else " (archived)"
                raise BadInput(
                    f"there is a project {other.name} already{state}; choose another name"
                )

    def _path(self, workspace: str) -> Path:
        """Return the file's registered path. Raise StoreError if it is outside the directory."""
        location = self._registry.location(workspace)
        path = self._active_path(workspace)
        if location:
            path = (self.directory / location).resolve()
        if not path.is_relative_to(self.directory.resolve()):
            raise StoreError(
                f"{self._registry.path} names a file outside its directory ({location}); "
                "it was not touched"
            )
        return path

    def _active_path(self, workspace: str) -> Path:
        return (self.directory / ACTIVE / f"{workspace}.db").resolve()

    def _archived_path(self, workspace: str) -> Path:
        return (self.directory / ARCHIVE / f"{workspace}.db").resolve()


def workspace_files(directory: Path) -> list[Path]:
    """Return the database files in a data directory, those in use first."""
    return [path for part in (ACTIVE, ARCHIVE) for path in sorted((directory / part).glob("*.db"))]


def _open_or_adopt(path: Path) -> SqliteStore:
    """Open the store in that file. A file of an earlier program is converted first."""
    try:
        return SqliteStore(str(path), create=False)
    except StoreForeign:
        from polymnia.stores.directory.adoption import adopt

        adopt(path)
        return SqliteStore(str(path), create=False)


def _refuse_in_the_way(path: Path) -> None:
    """Raise StoreError if the target of a move exists: recovery would mistake it for the file."""
    if path.exists():
        raise StoreError(
            f"{path} is in the way and belongs to no workspace: move it elsewhere; "
            "nothing was changed"
        )


def _part(path: Path) -> Path:
    """Return where a copy is made before it gets its final name."""
    return path.with_name(f"{path.name}.part")
