"""The handle that every verb takes: a store, its change listeners, and its search by meaning."""

from collections.abc import Callable, Collection, Iterator
from contextlib import AbstractContextManager, contextmanager
from functools import cached_property
from typing import TYPE_CHECKING

from msgspec import Struct
from msgspec.structs import replace

from polymnia.model import Change, Counts, Rows, require_storable
from polymnia.stores.contract import Reader, Store, Writer, check_cancelled

if TYPE_CHECKING:
    from polymnia.engine.curation.drafts import Drafter
    from polymnia.engine.meaning import Meaning

ChangeListener = Callable[[Change], None]


class Memory:
    """One workspace's memory, as the engine sees it. Without `meaning` it is searched by words alone."""

    def __init__(self, store: Store, meaning: "Meaning | None" = None) -> None:
        self.store = store
        self.meaning = meaning if store.capabilities.vectors else None
        self.drafter: Drafter | None = None
        self._listeners: list[ChangeListener] = []

    def reading(self, *, once: bool = False) -> AbstractContextManager[Reader]:
        """Open one snapshot for the block. With `once`, the block asks one question."""
        return self.store.reading(once=once)

    @contextmanager
    def writing(self, operation: str, by: str) -> Iterator["Transaction"]:
        """Open one write for the block. When it ends the change is durable and the listeners are called."""
        with self.store.writing() as writer:
            transaction = Transaction(writer, operation, by)
            yield transaction
        if transaction.change is not None:
            self._announce(transaction.change)

    def on_change(self, listener: ChangeListener) -> None:
        """Call the listener after every durable change made through this handle."""
        self._listeners.append(listener)

    def request_indexing(self) -> None:
        """Embed in the background what has no vector yet, if the memory is searched by meaning."""
        if self.meaning is not None:
            self.meaning.request_indexing(self)

    def use_drafter(self, drafter: "Drafter") -> None:
        """Let a chat model draft texts for the reports on this memory."""
        self.drafter = drafter

    def _announce(self, change: Change) -> None:
        self.request_indexing()
        for listener in self._listeners:
            listener(change)


class Transaction:
    """What a verb reads, and the one change it makes."""

    def __init__(self, writer: Writer, operation: str, by: str) -> None:
        self.read: Reader = writer
        self.change: Change | None = None
        self._writer = writer
        self._operation = operation
        self._by = by

    @cached_property
    def at(self) -> int:
        """The time of the change. Ask after the first read: a store on a server then answers both at once."""
        return self._writer.clock()

    def apply(
        self,
        *,
        before: Rows | None = None,
        after: Rows | None = None,
        touched: Collection[str] = (),
        new_ids: bool = False,
    ) -> None:
        """Write the rows as one change, and count the touched entities as updated. Nothing happens without rows.

        With `new_ids`, created entities have ids that were made for this change. Raise BadInput for a text that cannot
        be stored.
        """
        rows = (before or Rows(), after or Rows())
        require_storable(rows[1])
        change = Change(
            self._operation, self._by, self.at, *rows, touched=tuple(touched), new_ids=new_ids
        )
        if change.before or change.after:
            check_cancelled()  # nothing has happened so far
            self.change = replace(change, id=self._writer.apply(change))


class Statistics(Struct, frozen=True):
    """How many rows a memory has, how many distinct texts they have, and the size of those in bytes."""

    counts: Counts
    texts: int
    text_bytes: int


def statistics(memory: Memory) -> Statistics:
    """Return how much the memory holds."""
    with memory.reading() as read:
        return Statistics(read.counts(), *read.distinct_texts())
