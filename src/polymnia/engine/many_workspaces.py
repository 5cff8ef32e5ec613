"""The workspaces of a data directory, a few of them open at a time."""

import weakref
from collections import OrderedDict
from collections.abc import Callable
from functools import partial
from threading import RLock

from polymnia.engine.memory import Memory
from polymnia.engine.trash import Retention
from polymnia.engine.workspaces import Listener
from polymnia.errors import WorkspaceArchived
from polymnia.model import Change, Workspace
from polymnia.stores.projects.catalogue import Catalogue
from polymnia.stores.sqlite.store import SqliteStore

# A store holds a handful of file handles; processes are commonly allowed a thousand.
_MOST_OPEN = 32


class ManyWorkspaces:
    """Memories by name. One that is not used for long is let go of, when the last call that has it is over."""

    sole: str | None = None
    # The first call to a workspace opens its file.
    short_reads = False

    def __init__(self, catalogue: Catalogue, *, most_open: int = _MOST_OPEN, trash_days: int = 0) -> None:
        self._catalogue = catalogue
        self._most_open = most_open
        self._retention = Retention(trash_days)
        self._open: OrderedDict[str, tuple[SqliteStore, Memory]] = OrderedDict()
        self._listeners: list[Listener] = []
        self._lock = RLock()
        self.find = catalogue.find
        self.listed = catalogue.listed
        self.create = catalogue.create
        self.restore = catalogue.restore
        self.describe = catalogue.describe

    def memory(self, name: str) -> Memory:
        """Raises WorkspaceNotFound, WorkspaceArchived, StoreError."""
        found = self._catalogue.find(name)
        if found.status != "active":
            raise WorkspaceArchived(name)
        unused: list[Memory] = []  # let go of after the lock is: closing may take a trip to the disk
        with self._lock:
            known = self._open.get(found.id)
            if known is not None and known[0].in_place:
                self._open.move_to_end(found.id)
                return known[1]
            return self._opened(found, unused)

    def on_change(self, listener: Listener) -> None:
        with self._lock:
            self._listeners.append(listener)

    def follow(self, listener: Listener, wanted: Callable[[], bool]) -> None:
        """Changes that other processes make in a directory are not told: its files come and go."""

    def tidy(self) -> bool:
        with self._lock:
            gone = [project for project, (store, _) in self._open.items() if not store.in_place]
            moved = [self._open.pop(project) for project in gone]
            memories = [memory for _, memory in self._open.values()]
        del moved  # outside the lock
        for memory in memories:
            self._retention.apply(memory)
        more = [memory.store.tidy() for memory in memories]  # all of them, whatever the first says
        return any(more)

    def archive(self, name: str) -> Workspace:
        return self._put_away(self._catalogue.archive, name)

    def delete(self, name: str) -> Workspace:
        return self._put_away(self._catalogue.delete, name)

    def rename(self, name: str, new: str) -> Workspace:
        return self._put_away(lambda old: self._catalogue.rename(old, new), name)

    def close(self) -> None:
        with self._lock:
            self._open.clear()
        self._catalogue.close()

    def _opened(self, found: Workspace, unused: list[Memory]) -> Memory:
        store = self._catalogue.open(found.name)
        memory = Memory(store)
        memory.on_change(partial(self._tell, found.name))
        # Calls hold the memory while they run: it goes, and its files with it, when nobody has it any more.
        weakref.finalize(memory, self._catalogue.let_go, store)
        self._open[found.id] = (store, memory)
        self._open.move_to_end(found.id)
        while len(self._open) > self._most_open:
            unused.append(self._open.popitem(last=False)[1][1])
        return memory

    def _put_away(self, change: Callable[[str], Workspace], name: str) -> Workspace:
        changed = change(name)
        with self._lock:
            self._open.pop(changed.id, None)
        return changed

    def _tell(self, workspace: str, change: Change) -> None:
        for listener in self._listeners:
            listener(workspace, change)
