"""The memories a server has, by name: a namespace each, with its own graph."""

from collections.abc import Callable
from functools import partial
from threading import Lock
from typing import Protocol

from polymnia.engine.follower import Follower
from polymnia.engine.memory import Memory
from polymnia.engine.trash import Retention
from polymnia.errors import BadInput, WorkspaceNotFound
from polymnia.model import Change, Status, Workspace

# What the only workspace of a store is called unless somebody says otherwise.
DEFAULT = "default"

Listener = Callable[[str, Change], None]


class Workspaces(Protocol):
    """Where a client's memory comes from. Safe to use from several threads."""

    @property
    def sole(self) -> str | None:
        """The name of the only workspace there can be; None where there can be many."""

    def memory(self, name: str) -> Memory:
        """The memory of the workspace of that name. Raises WorkspaceNotFound, WorkspaceArchived."""

    @property
    def short_reads(self) -> bool:
        """Whether a read of a few names never waits."""

    def on_change(self, listener: Listener) -> None:
        """Call the listener with the workspace's name after every durable change made through these memories."""

    def follow(self, listener: Listener, wanted: Callable[[], bool]) -> None:
        """Call the listener, from a thread, after changes that other processes make, until they are not wanted."""

    def tidy(self) -> bool:
        """A short piece of housekeeping; True while there is more to do."""

    def find(self, name: str) -> Workspace:
        """The workspace of that name, whatever its status. Raises WorkspaceNotFound."""

    def listed(self, status: Status | None = None) -> list[Workspace]:
        """The workspaces of a status, or all, by name."""

    def create(self, name: str, description: str = "") -> Workspace:
        """A new workspace. Raises BadInput when the name cannot be one or is taken."""

    def archive(self, name: str) -> Workspace:
        """Put a workspace away, all it holds kept. Raises WorkspaceNotFound, WorkspaceArchived."""

    def restore(self, name: str) -> Workspace:
        """Bring an archived workspace back. Raises WorkspaceNotFound, BadInput when it is not archived."""

    def delete(self, name: str) -> Workspace:
        """Take a workspace and all it holds away for good; gives what it was. Raises WorkspaceNotFound."""

    def rename(self, name: str, new: str) -> Workspace:
        """Give a workspace another name. Raises WorkspaceNotFound, BadInput when the name cannot be one or is taken."""

    def describe(self, name: str, description: str) -> Workspace:
        """Say something else about a workspace. Raises WorkspaceNotFound."""

    def close(self) -> None:
        """Let go of files and locks."""


class OneWorkspace:
    """A store that holds one workspace, under the name it was given."""

    def __init__(self, memory: Memory, name: str = DEFAULT, *, trash_days: int = 0) -> None:
        self.name = name
        self.short_reads = memory.store.short_reads
        self.sole: str | None = name
        self._memory = memory
        self._lock = Lock()
        self._followers: dict[Listener, Follower] = {}
        self._retention = Retention(trash_days)

    def memory(self, name: str) -> Memory:
        if name != self.name:
            raise WorkspaceNotFound(name, f"the only one here is {self.name}")
        return self._memory

    def on_change(self, listener: Listener) -> None:
        self._memory.on_change(lambda change: listener(self.name, change))

    def follow(self, listener: Listener, wanted: Callable[[], bool]) -> None:
        with self._lock:
            if listener not in self._followers:
                tell = partial(listener, self.name)
                self._followers[listener] = Follower(self._memory.store, tell, wanted)
        self._followers[listener].start()

    def tidy(self) -> bool:
        self._retention.apply(self._memory)
        return self._memory.store.tidy()

    def find(self, name: str) -> Workspace:
        self.memory(name)
        # The one workspace of a store is as old as the store, which does not know; its id is the same everywhere.
        return Workspace(id=_ONLY, name=self.name)

    def listed(self, status: Status | None = None) -> list[Workspace]:
        return [] if status == "archived" else [self.find(self.name)]

    def create(self, name: str, description: str = "") -> Workspace:
        raise self._refusal()

    def archive(self, name: str) -> Workspace:
        raise self._refusal()

    def restore(self, name: str) -> Workspace:
        raise self._refusal()

    def delete(self, name: str) -> Workspace:
        raise self._refusal()

    def rename(self, name: str, new: str) -> Workspace:
        raise self._refusal()

    def describe(self, name: str, description: str) -> Workspace:
        raise self._refusal()

    def close(self) -> None:
        self._memory.close()
        self._memory.store.close()

    def _refusal(self) -> BadInput:
        return BadInput(
            f"this store holds one workspace, {self.name}: for several, the server has to run on a data directory"
        )


_ONLY = "00000000-0000-4000-8000-000000000000"
