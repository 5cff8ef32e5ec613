"""The catalogue of a data directory: its projects, and what becomes of their files.

A change to a file and to its row in the registry cannot be one step, so each change says in the registry first what
it is about to do. One lock file is held for the whole of it: an intent found by whoever holds the lock is that of a
process that died, and is finished if the file had passed the point of no return, else taken back.
"""

import logging
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager, suppress
from pathlib import Path
from uuid import uuid4

from polymnia.disk.errors import map_os_errors
from polymnia.disk.lock import file_lock
from polymnia.errors import (
    BadInput,
    PolymniaError,
    StoreBusy,
    StoreDamaged,
    StoreError,
    StoreForeign,
    WorkspaceArchived,
    WorkspaceNotFound,
)
from polymnia.model import Status, Workspace
from polymnia.stores.contract import Store
from polymnia.stores.projects import files
from polymnia.stores.projects.adoption import adopt
from polymnia.stores.projects.names import check_name, same_name
from polymnia.stores.projects.registry import Intent, Operation, Registry
from polymnia.stores.sqlite.store import SqliteStore

logger = logging.getLogger(__name__)

REGISTRY = "_meta.db"
_ACTIVE, _ARCHIVE = "projects", "archive"


class DirectoryCatalogue:
    """The projects of one directory. Safe to use from several threads and several processes."""

    def __init__(self, directory: str) -> None:
        self.directory = Path(directory)
        self._registry_path = self.directory / REGISTRY
        self._registry = Registry(self._registry_path)
        if self._registry.intents():
            with self._changing():
                pass  # what others left is put right on the way in

    def find(self, name: str) -> Workspace:
        """The project of that name. Raises WorkspaceNotFound."""
        found = self._registry.find(name)
        if found is None:
            raise WorkspaceNotFound(name, f"`polymnia workspace create {name} --store {self.directory}/` makes it")
        return found

    def listed(self, status: Status | None = None) -> list[Workspace]:
        """The projects of a status, or all, by name."""
        return self._registry.listed(status)

    def create(self, name: str, description: str = "") -> Workspace:
        """A new project with its file. Raises BadInput when the name cannot be one, or is taken."""
        check_name(name)
        with self._changing():
            self._refuse_taken(name)
            project = str(uuid4())
            with self._intending(project, "create"):
                SqliteStore(str(self._home(project))).close()
                self._registry.add(project, name, description, f"{_ACTIVE}/{project}.db")
        return self.find(name)

    def archive(self, name: str) -> Workspace:
        """Put a project away: nobody can use it until it is restored. Raises WorkspaceNotFound, WorkspaceArchived."""
        with self._changing():
            project = self._active(name).id
            path, away = self._path(project), self._away(project)
            _refuse_in_the_way(away)
            _made_ours(path).close()
            with self._intending(project, "archive"):
                files.seal(path)
                files.move(path, away)
                self._registry.settle(project, "archived", f"{_ARCHIVE}/{project}.db")
        return self.find(name)

    def restore(self, name: str) -> Workspace:
        """Bring an archived project back. Raises WorkspaceNotFound, BadInput when it is not archived."""
        with self._changing():
            found = self.find(name)
            if found.status != "archived":
                raise BadInput(f"{name} is not archived; there is nothing to restore")
            _refuse_in_the_way(self._home(found.id))
            with self._intending(found.id, "restore"):
                self._bring_back(found.id)
        return self.find(name)

    def delete(self, name: str) -> Workspace:
        """Take a project away for good, archived or not; gives what it was. Raises WorkspaceNotFound."""
        with self._changing():
            found = self.find(name)
            path = self._path(found.id)
            with self._intending(found.id, "delete"):
                if found.status == "active" and path.is_file():
                    with suppress(StoreDamaged):  # what cannot be read can still be taken away
                        files.seal(path)
                self._take_away(found.id)
        return found

    def rename(self, name: str, new: str) -> Workspace:
        """Give a project another name. Raises WorkspaceNotFound, BadInput when the name cannot be one, or is taken."""
        check_name(new)
        with self._changing():
            found = self.find(name)
            self._refuse_taken(new, beside=found.id)
            self._registry.rename(found.id, new)
        return self.find(new)

    def describe(self, name: str, description: str) -> Workspace:
        """Say something else about a project. Raises WorkspaceNotFound."""
        self._registry.describe(self.find(name).id, description)
        return self.find(name)

    def open(self, name: str) -> SqliteStore:
        """The store of an active project; close it with `close_store`.

        Raises WorkspaceNotFound, WorkspaceArchived, StoreError.
        """
        path = self._path(self._active(name).id)
        if not path.is_file():
            with self._changing():  # somebody may have died while moving it
                path = self._path(self._active(name).id)
        if not path.is_file():
            raise StoreError(f"the file of {name} is missing; it should be {path}")
        try:
            return SqliteStore(str(path), create=False)
        except StoreForeign:
            with self._changing():
                return _made_ours(path)

    def is_current(self, store: Store) -> bool:
        return isinstance(store, SqliteStore) and store.in_place

    def close_store(self, store: Store) -> None:
        """Close a store. One whose file was moved meanwhile must not remove the logs of its successor."""
        assert isinstance(store, SqliteStore)  # `open` returns no others
        try:
            with file_lock(self._registry_path, timeout=0):
                if store.in_place:
                    store.close()
                else:
                    store.abandon()
        except (StoreBusy, OSError):
            store.abandon()

    def check(self) -> list[str]:
        """Where files and registry do not agree, a sentence each."""
        listed = self._registry.listed(None)
        paths = {each.name: self._path(each.id) for each in listed}
        found = [f"the file of {name} is missing: {path}" for name, path in paths.items() if not path.is_file()]
        known = {*paths.values()}
        for part in (_ACTIVE, _ARCHIVE):
            strays = sorted({path.resolve() for path in (self.directory / part).glob("*.db")} - known)
            found += [f"{path} belongs to no workspace" for path in strays]
        return found

    def close(self) -> None:
        self._registry.close()

    def _active(self, name: str) -> Workspace:
        found = self.find(name)
        if found.status != "active":
            raise WorkspaceArchived(name)
        return found

    @contextmanager
    def _changing(self) -> Iterator[None]:
        """Nobody else changes anything meanwhile, and what the dead left is put right."""
        with ExitStack() as stack:
            with map_os_errors(f"{self._registry_path}.lock"):
                stack.enter_context(file_lock(self._registry_path))
            for intent in self._registry.intents():
                self._inherit(intent)
            yield

    def _inherit(self, intent: Intent) -> None:
        """Put right what a dead process left; what cannot be is left to the next, and the others go on."""
        logger.warning("to %s project %s was begun and not finished", intent.operation, intent.project)
        try:
            self._put_right(intent)
        except StoreError as exc:
            logger.error("project %s is not put right: %s", intent.project, exc)

    @contextmanager
    def _intending(self, project: str, operation: Operation) -> Iterator[None]:
        """A change to a project's file that happens whole or not at all."""
        self._registry.intend(project, operation)
        try:
            yield
        except PolymniaError:
            with suppress(StoreError):  # then the next who comes does it
                self._put_right(Intent(project, operation))
            raise

    def _put_right(self, intent: Intent) -> None:
        """Finish what had passed the point of no return, take back the rest."""
        project = intent.project
        home, away = self._home(project), self._away(project)
        if intent.operation == "create":
            files.discard(home)
        elif intent.operation == "archive" and away.is_file():
            files.drop_logs(self._path(project))
            self._registry.settle(project, "archived", f"{_ARCHIVE}/{project}.db")
        elif intent.operation == "restore" and home.is_file():
            self._settle_back(project)
        elif intent.operation == "delete" and not self._path(project).is_file():
            self._take_away(project)
        elif intent.operation == "restore":
            files.discard(_part(home))
        elif self._path(project).is_file():
            files.unseal(self._path(project))
        self._registry.forget(project)

    def _bring_back(self, project: str) -> None:
        home = self._home(project)
        files.fold_log_in(self._path(project))
        files.copy(self._path(project), _part(home))
        files.unseal(_part(home))
        files.put(_part(home), home)
        self._settle_back(project)

    def _settle_back(self, project: str) -> None:
        """The project's own file is in its place: the one it was copied from goes."""
        if (old := self._path(project)) != self._home(project):
            files.discard(old)
        self._registry.settle(project, "active", f"{_ACTIVE}/{project}.db")

    def _take_away(self, project: str) -> None:
        files.discard(self._path(project))
        for path in (self._home(project), self._away(project)):
            files.discard(path)
        self._registry.remove(project)

    def _refuse_taken(self, name: str, *, beside: str | None = None) -> None:
        for other in self._registry.listed(None):
            if other.id != beside and same_name(other.name, name):
                state = "" if other.status == "active" else " (archived)"
                raise BadInput(f"there is a project {other.name} already{state}; choose another name")

    def _path(self, project: str) -> Path:
        """Where the registry says the file is."""
        said = self._registry.path(project)
        path = (self.directory / said).resolve() if said else self._home(project)
        if not path.is_relative_to(self.directory.resolve()):
            raise StoreError(f"{self._registry_path} names a file outside its directory ({said}); it was not touched")
        return path

    def _home(self, project: str) -> Path:
        return (self.directory / _ACTIVE / f"{project}.db").resolve()

    def _away(self, project: str) -> Path:
        return (self.directory / _ARCHIVE / f"{project}.db").resolve()


def _made_ours(path: Path) -> SqliteStore:
    """The store in that file; what an earlier program wrote is taken over first."""
    try:
        return SqliteStore(str(path), create=False)
    except StoreForeign:
        adopt(path)
        return SqliteStore(str(path), create=False)


def _refuse_in_the_way(path: Path) -> None:
    """A file where one will be put would be taken for it after a crash."""
    if path.exists():
        raise StoreError(f"{path} is in the way and no project's; move it elsewhere, nothing was changed")


def _part(path: Path) -> Path:
    """Where a copy is made before it is put in its place."""
    return path.with_name(f"{path.name}.part")
