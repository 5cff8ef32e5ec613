"""A store: one workspace's memory, read in snapshots and written one change at a time.

A catalogue is many of them.
"""

from collections.abc import Callable, Mapping, Sequence
from contextlib import AbstractContextManager
from typing import Protocol

from msgspec import Struct

from polymnia.model import (
    Change,
    CosineScale,
    Counts,
    EmbeddingModel,
    Perspective,
    Status,
    Workspace,
)
from polymnia.stores.contract.reader import TEXT, Reader, Writer
from polymnia.stores.contract.tables import TableRow

# Returns the changes since its last call, oldest first. Raises StoreError.
ChangeFeed = Callable[[], list[Change]]


class Capabilities(Struct, frozen=True, kw_only=True):
    """What a store supports beyond the graph. Using the rest raises NotSupported."""

    notes: bool = False
    match: bool = False  # query expressions over an index of words
    vectors: bool = False
    history: bool = False
    trash: bool = False
    change_feed: bool = False
    tables: bool = False  # copies of its rows with all their versions
    keeps_deleted: bool = False  # a server keeps deleted rows for a while, and in its log


class Store(Protocol):
    """One workspace's memory. Safe for several threads and several processes."""

    url: str  # what `open_store` was given
    capabilities: Capabilities
    best_batch: int  # rows to write in one transaction of a large import

    @property
    def vectors(self) -> "VectorStore":
        """Writes of vectors, with `capabilities.vectors`."""

    def reading(self, *, may_lag: bool = False) -> AbstractContextManager[Reader]:
        """Open one snapshot for the block. Reads never write and never wait for a writer.

        Inside another reading of this thread it is the same snapshot, unless the thread has written
        since. With `may_lag`, a replica may answer, without the latest changes of other processes.
        """

    def writing(self) -> AbstractContextManager[Writer]:
        """Open a transaction for the block: durable when the block ends, undone when it raises."""

    def follow(self, wake: Callable[[], None] | None = None) -> ChangeFeed:
        """Open a feed of the changes that other servers make from now on.

        This needs `capabilities.change_feed`. A store that is notified of changes then calls
        `wake`, from any thread. Read the feed regularly anyway.
        """

    def write_rows(self, table: str, rows: Sequence[TableRow]) -> None:
        """Add rows of another store that follow those the table has, and index what is living.

        This is one transaction. The store has no other rows. This needs `capabilities.tables`.
        """

    def purge(self, before: int | None) -> Counts:
        """Delete all rows that ended before that time, or ever, and their texts everywhere.

        This needs `capabilities.trash`.
        """

    def remove_copies(self) -> None:
        """Write the files anew if text was erased, so that no copy is left in them.

        What a database server keeps is its own affair.
        """

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

    def set_scale(self, model: int, scale: CosineScale) -> None:
        """Store the scale of a model's cosines."""

    def remove_vectors(self, limit: int, *, model: int | None = None) -> bool:
        """Delete up to `limit` vectors that no perspective uses any more.

        Return True when there are none.
        With a model, delete all of its vectors, and the model with the last of them.
        """

    def set_perspective(self, perspective: Perspective) -> None:
        """Add a perspective or replace the one with that name.

        TEXT cannot be replaced: raise BadInput.
        A new document template starts without vectors, unless another perspective has the same.
        """

    def remove_perspective(self, name: str) -> None:
        """Remove a perspective. Raise BadInput for TEXT and if there is none of that name."""

    def put(
        self,
        model: int,
        vectors: Sequence[tuple[int, bytes]],
        *,
        perspective: str = TEXT,
        document: str | None = None,
    ) -> None:
        """Store the vectors of passages.

        Ignore passages that no longer live and those that have a vector already. Raise BadInput if
        there is no such perspective or, if `document` is given, its template has changed since.
        """

    def lease(self, name: str, seconds: float) -> bool:
        """Take or renew a named lease for this server. Return False while another server holds it.

        A lease ends with its server, however that ends. A lease of 0 seconds gives it up.
        """


class Catalogue(Protocol):
    """The workspaces of a data directory or a database.

    Safe for several threads and several processes.
    """

    max_open: int  # how many stores one process should keep open

    def find(self, name: str) -> Workspace:
        """Return the workspace with that name, of any status. Raise WorkspaceNotFound."""

    def find_all(self, status: Status | None = None) -> list[Workspace]:
        """Return the workspaces of a status, or all, by name."""

    def create(self, name: str, description: str = "") -> Workspace:
        """Create a workspace. Raise BadInput if the name is invalid or taken."""

    def update(
        self,
        name: str,
        *,
        new_name: str | None = None,
        description: str | None = None,
        status: Status | None = None,
    ) -> Workspace:
        """Rename, describe, archive or restore a workspace, and return it. None keeps what it has.

        An archived workspace keeps everything and cannot be used. Raise WorkspaceNotFound, BadInput
        if the name is invalid or taken, WorkspaceArchived if it is archived already, and BadInput
        if it is active already.
        """

    def delete(self, name: str) -> Workspace:
        """Delete a workspace and everything in it; return what it was. Raise WorkspaceNotFound."""

    def adopt(self, workspace: Workspace) -> None:
        """Give a workspace the id, description, status and times that it has in another catalogue.

        Create it if there is none of that name. Raise BadInput if the name is invalid or has
        another id.
        """

    def open(self, name: str, *, archived: bool = False) -> Store:
        """Open the store of an active workspace or, to read it only, of an archived one.

        Raise WorkspaceNotFound, WorkspaceArchived, StoreError.
        """

    def find_open(self, stores: Mapping[str, Store]) -> set[str]:
        """Return the names of the stores that `open` would open.

        A store is another one after its workspace was archived, restored, deleted or renamed.
        """

    def close(self) -> None:
        """Release files and locks."""
