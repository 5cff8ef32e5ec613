"""A store: one workspace's memory, read in snapshots and written one change at a time. A catalogue: many of them."""

from collections.abc import Callable, Mapping, Sequence
from contextlib import AbstractContextManager
from typing import Protocol

from msgspec import Struct

from polymnia.model import Change, EmbeddingModel, Perspective, PurgeCounts, Status, Workspace
from polymnia.stores.contract.reader import TEXT, Reader, Writer
from polymnia.stores.contract.tables import TableWriter


class Capabilities(Struct, frozen=True, kw_only=True):
    """What a store supports beyond the graph. Using the rest raises NotSupported."""

    notes: bool = False
    match: bool = False  # query expressions over an index of words
    vectors: bool = False
    history: bool = False
    trash: bool = False
    change_feed: bool = False
    tables: bool = False  # copies of its rows with all their versions


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
        """True if a read under `ReadLimits.is_short` never waits, and raises ReadTooLong before it takes long."""

    @property
    def vectors(self) -> "VectorStore":
        """Writes of vectors, with `capabilities.vectors`."""

    @property
    def tables(self) -> TableWriter:
        """Writes of rows copied from another store, with `capabilities.tables`."""

    def reading(self, *, once: bool = False) -> AbstractContextManager[Reader]:
        """Open one snapshot for the block. Reads never write and never wait for a writer.

        With `once`, the block asks one question, which a server can answer and end the snapshot in one round trip.
        """

    def writing(self) -> AbstractContextManager[Writer]:
        """Open a transaction for the block: durable when the block ends, undone when it raises."""

    def follow(self, wake: Callable[[], None] | None = None) -> "ChangeFeed":
        """Open a feed of the changes that other servers make, with `capabilities.change_feed`.

        A store that is notified of changes then calls `wake`, from any thread. Read the feed regularly anyway.
        """

    def purge(self, before: int) -> PurgeCounts:
        """Delete all rows that ended before that time, and their texts everywhere, with `capabilities.trash`."""

    def check(self) -> list[str]:
        """Return everything that is wrong with the data on disk, one sentence each."""

    def compact(self) -> None:
        """Give back the space of deleted rows and optimize the indexes. It may take seconds."""

    def close(self) -> None:
        """Release files and locks. Closing twice is allowed."""


class VectorStore(Protocol):
    """Writes of vectors. Each call is one transaction; safe for several threads and processes."""

    def add_model(self, identity: str, url: str, dimension: int) -> EmbeddingModel:
        """Return the model with that identity, registered from now on."""

    def remove_model(self, model: int, limit: int) -> bool:
        """Delete up to `limit` vectors of a model, and the model with the last of them. Return True when it is gone."""

    def set_perspective(self, perspective: Perspective) -> None:
        """Add a perspective or replace the one with that name. TEXT cannot be replaced: raise BadInput.

        A new document template starts without vectors, unless another perspective has the same.
        """

    def remove_perspective(self, name: str) -> None:
        """Remove a perspective. Raise BadInput for TEXT and if there is none of that name."""

    def remove_unused(self, limit: int) -> bool:
        """Delete up to `limit` vectors that no perspective uses any more. Return True when there are none."""

    def put(
        self,
        model: int,
        vectors: Sequence[tuple[int, bytes]],
        *,
        perspective: str = TEXT,
        document: str | None = None,
    ) -> None:
        """Store the vectors of passages. Ignore passages that no longer live and those that have a vector already.

        Raise BadInput if there is no such perspective or, if `document` is given, its template has changed since.
        """

    def lease(self, name: str, seconds: float) -> bool:
        """Take or renew a named lease for this server. Return False while another server holds it."""

    def release(self, name: str) -> None:
        """Give up a lease that this server holds."""


class ChangeFeed(Protocol):
    """The changes that other servers make, from the moment the feed was opened."""

    def read(self) -> list[Change]:
        """Return the changes since the last call, oldest first. Raise StoreError."""


class Catalogue(Protocol):
    """The workspaces of a data directory or a database. Safe for several threads and several processes."""

    @property
    def max_open(self) -> int:
        """How many stores one process should keep open."""

    def find(self, name: str) -> Workspace:
        """Return the workspace with that name, whatever its status. Raise WorkspaceNotFound."""

    def find_all(self, status: Status | None = None) -> list[Workspace]:
        """Return the workspaces of a status, or all, by name."""

    def create(self, name: str, description: str = "") -> Workspace:
        """Create a workspace. Raise BadInput if the name is invalid or taken."""

    def archive(self, name: str) -> Workspace:
        """Archive a workspace: it keeps everything and cannot be used. Raise WorkspaceNotFound, WorkspaceArchived."""

    def restore(self, name: str) -> Workspace:
        """Make an archived workspace usable again. Raise WorkspaceNotFound, BadInput if it is not archived."""

    def delete(self, name: str) -> Workspace:
        """Delete a workspace and everything in it; return what it was. Raise WorkspaceNotFound."""

    def rename(self, name: str, new: str) -> Workspace:
        """Rename a workspace. Raise WorkspaceNotFound, BadInput if the name is invalid or taken."""

    def describe(self, name: str, description: str) -> Workspace:
        """Change the description of a workspace. Raise WorkspaceNotFound."""

    def adopt(self, workspace: Workspace) -> None:
        """Give a workspace the id, description, status and times that it has in another catalogue.

        Create it if there is none of that name. Raise BadInput if the name is invalid or belongs to another id.
        """

    def open(self, name: str, *, archived: bool = False) -> Store:
        """Open the store of an active workspace or, to read it only, of an archived one.

        Raise WorkspaceNotFound, WorkspaceArchived, StoreError.
        """

    def is_open(self, name: str, store: Store) -> bool:
        """Return True if the store is the one that `open` would open.

        It is not after the workspace was archived, restored, deleted or renamed.
        """

    def find_open(self, stores: Mapping[str, Store]) -> set[str]:
        """Return the names of those stores of which `is_open` is true."""

    def close_store(self, store: Store) -> None:
        """Close a store that `open` returned. A new store at the same place is not affected."""

    def check(self) -> list[str]:
        """Return where the catalogue and its stores disagree, one sentence each."""

    def close(self) -> None:
        """Release files and locks."""
