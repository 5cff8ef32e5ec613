"""The memories a server has, by name: a namespace each, with its own graph."""

from collections.abc import Callable
from functools import partial
from threading import Lock
from typing import Protocol

from polymnia.engine.follower import Follower
from polymnia.engine.memory import Memory
from polymnia.errors import WorkspaceNotFound
from polymnia.model import Change

# What the only workspace of a store is called unless somebody says otherwise.
DEFAULT = "default"

Listener = Callable[[str, Change], None]


class Workspaces(Protocol):
    """Where a client's memory comes from. Safe to use from several threads."""

    def memory(self, name: str) -> Memory:
        """The memory of the workspace of that name. Raises WorkspaceNotFound."""

    @property
    def short_reads(self) -> bool:
        """Whether a read of a few names never waits."""

    def on_change(self, listener: Listener) -> None:
        """Call the listener with the workspace's name after every durable change made through these memories."""

    def follow(self, listener: Listener, wanted: Callable[[], bool]) -> None:
        """Call the listener, from a thread, after changes that other processes make, until they are not wanted."""

    def tidy(self) -> bool:
        """A short piece of housekeeping; True while there is more to do."""


class OneWorkspace:
    """A store that holds one workspace, under the name it was given."""

    def __init__(self, memory: Memory, name: str = DEFAULT) -> None:
        self.name = name
        self.short_reads = memory.store.short_reads
        self._memory = memory
        self._lock = Lock()
        self._followers: dict[Listener, Follower] = {}

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
        return self._memory.store.tidy()
