"""The handle every verb takes: a store, and those who want to hear of its changes."""

from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager
from time import time_ns
from typing import TYPE_CHECKING

from polymnia.model import Change, Rows
from polymnia.stores.base import Reader, Store, VectorTable, Writer

if TYPE_CHECKING:
    from polymnia.engine.semantics import Semantics

Listener = Callable[[Change], None]


class Memory:
    """One workspace's memory, as the engine sees it."""

    def __init__(self, store: Store) -> None:
        self.store = store
        self._listeners: list[Listener] = []
        self._semantics: Semantics | None = None
        self._begin: Callable[[VectorTable], Semantics] | None = None
        self._with_vectors: bool | None = None

    def reading(self) -> AbstractContextManager[Reader]:
        """A consistent view for the length of the block."""
        return self.store.reading()

    @contextmanager
    def writing(self, operation: str, by: str) -> Iterator["Transaction"]:
        """One write: durable, then told to the listeners, when the block ends."""
        with self.store.writing() as writer:
            transaction = Transaction(writer, operation, by)
            yield transaction
        if transaction.change is not None:
            for listener in self._listeners:
                listener(transaction.change)

    def on_change(self, listener: Listener) -> None:
        """Call the listener after every durable change made through this handle."""
        self._listeners.append(listener)

    def search_by_meaning(self, begin: "Callable[[VectorTable], Semantics]") -> None:
        """Let it be searched by meaning, if its store keeps vectors; `begin` is called when that is first needed."""
        if self.store.vectors is not None:
            self._begin = begin
            self.on_change(self._keep_embedded)

    @property
    def semantics(self) -> "Semantics | None":
        """The model and vectors to search by; None when there are none."""
        if self._semantics is None and self._begin is not None and self.store.vectors is not None:
            self._semantics = self._begin(self.store.vectors)
        return self._semantics

    def close(self) -> None:
        """End what works for it in the background."""
        self._begin = None
        if self._semantics is not None:
            self._semantics.close()

    def _keep_embedded(self, change: Change) -> None:
        """A memory that was never searched by meaning is left alone."""
        if self._semantics is None and not self._has_vectors():
            return
        if self.semantics is not None:
            self.semantics.wake()

    def _has_vectors(self) -> bool:
        if self._with_vectors is None:
            self._with_vectors = self.store.vectors is not None and bool(self.store.vectors.models())
        return self._with_vectors


class Transaction:
    """What a verb reads and the one change it makes."""

    def __init__(self, writer: Writer, operation: str, by: str) -> None:
        self.read: Reader = writer
        self.at = time_ns() // 1000
        self.change: Change | None = None
        self._writer = writer
        self._operation = operation
        self._by = by

    def apply(self, *, before: Rows | None = None, after: Rows | None = None) -> None:
        """Write the rows as one change; a change of nothing is no change."""
        change = Change(self._operation, self._by, self.at, before or Rows(), after or Rows())
        if change.before or change.after:
            self._writer.apply(change)
            self.change = change
