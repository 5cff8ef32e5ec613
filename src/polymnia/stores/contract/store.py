"""A store: one workspace's memory, read in snapshots and written one change at a time."""

from contextlib import AbstractContextManager
from typing import Protocol

from msgspec import Struct

from polymnia.model import Change, PurgeCounts
from polymnia.stores.contract.graph import GraphReader
from polymnia.stores.contract.history import ChangeFeed, HistoryReader, TrashReader
from polymnia.stores.contract.notes import NoteReader, Sessions
from polymnia.stores.contract.search import SearchReader
from polymnia.stores.contract.vectors import VectorReader, VectorStore


class Capabilities(Struct, frozen=True, kw_only=True):
    """What a store supports beyond the graph. Using the rest raises NotSupported."""

    notes: bool = False
    match: bool = False  # query expressions over an index of words
    vectors: bool = False
    history: bool = False
    trash: bool = False
    change_feed: bool = False


class Reader(GraphReader, SearchReader, Protocol):
    """One snapshot of a store."""

    @property
    def notes(self) -> NoteReader:
        """The notes, with `capabilities.notes`."""

    @property
    def sessions(self) -> Sessions:
        """The sessions in use, with `capabilities.notes`."""

    @property
    def vectors(self) -> VectorReader:
        """The vectors, with `capabilities.vectors`."""

    @property
    def history(self) -> HistoryReader:
        """The history, with `capabilities.history`."""

    @property
    def trash(self) -> TrashReader:
        """The trash, with `capabilities.trash`."""


class Writer(Reader, Protocol):
    """A reader that may also apply one change."""

    def clock(self) -> int:
        """Return the time for a change made now. It is later than the time of every change before."""

    def apply(self, change: Change) -> None:
        """Make the change part of the transaction, once, after everything that is read.

        An entity whose observations change is updated at the change's time.
        """


class Store(Protocol):
    """One workspace's memory. Safe for several threads and several processes."""

    @property
    def url(self) -> str:
        """What `open_store` was given."""

    @property
    def capabilities(self) -> Capabilities:
        """What the store supports."""

    @property
    def best_batch(self) -> int:
        """How many rows to write in one transaction of a large import."""

    @property
    def short_reads(self) -> bool:
        """True if a read of a few names never waits for a writer or for a file to load."""

    @property
    def vectors(self) -> VectorStore:
        """Writes of vectors, with `capabilities.vectors`."""

    def reading(self) -> AbstractContextManager[Reader]:
        """Open one snapshot for the block. Reads never write and never wait for a writer."""

    def writing(self) -> AbstractContextManager[Writer]:
        """Open a transaction for the block: durable when the block ends, undone when it raises."""

    def follow(self) -> ChangeFeed:
        """Open a feed of the changes that other servers make, with `capabilities.change_feed`."""

    def purge(self, before: int) -> PurgeCounts:
        """Delete all rows that ended before that time, and their texts everywhere, with `capabilities.trash`."""

    def check(self) -> list[str]:
        """Return everything that is wrong with the data on disk, one sentence each."""

    def compact(self) -> None:
        """Give back the space of deleted rows and optimize the indexes. It may take seconds."""

    def close(self) -> None:
        """Release files and locks. Closing twice is allowed."""
