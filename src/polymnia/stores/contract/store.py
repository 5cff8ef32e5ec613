"""A store: one workspace's memory, read in snapshots and written one change at a time.

A catalogue is many of them. A database also keeps tokens, and what the web interface stores.
"""

from collections.abc import Callable, Collection, Mapping, Sequence
from contextlib import AbstractContextManager
from pathlib import Path
from typing import TYPE_CHECKING, Protocol

from msgspec import Struct

from polymnia.model import (
    Change,
    Counts,
    Status,
    Token,
    Workspace,
)
from polymnia.stores.contract.reader import Reader, Writer
from polymnia.stores.contract.tables import TableRow

if TYPE_CHECKING:
    from polymnia.stores.versioned.vectors import VectorStore

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

    def record_reads(
        self, facts: Collection[tuple[str, int]], *, at: int, actor: str, tool: str, since: int
    ) -> None:
        """Record who read facts, by entity and number, and forget reads before `since`.

        This needs `capabilities.history`.
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


class Catalogue(Protocol):
    """The workspaces of a data directory or a database.

    Safe for several threads and several processes.
    """

    max_open: int  # how many stores one process should keep open

    def find(self, name: str) -> Workspace:
        """Return the workspace with that name, of any status. Raise WorkspaceNotFound."""

    def find_all(
        self, status: Status | None = None, *, limit: int | None = None
    ) -> list[Workspace]:
        """Return the workspaces of a status, or all, by name, or the first ones."""

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


class TokenStore(Protocol):
    """Stored tokens, in a file or a database. Safe for several threads and processes."""

    @property
    def path(self) -> Path | None:
        """The file they are in; None for a database."""

    @property
    def exist(self) -> bool:
        """True if there ever was a token, even if the last one is revoked."""

    def read(self) -> Mapping[str, Token]:
        """Return every token ever created, by id, oldest first. Raise StoreError."""

    def find(self, identifier: str, digest: str = "") -> Token | None:
        """Return the token with that id. Raise StoreError.

        A grant without that hash is read again: another server may have given out a token.
        """

    def edit(self, *identifiers: str) -> AbstractContextManager[list[Token]]:
        """Yield all tokens while no other process edits them. Store them if the block succeeds.

        With ids, at least the tokens with these ids are yielded. Raise StoreError.
        """

    def record_use(self, identifier: str) -> None:
        """Record that a token was used just now. A failure is logged, not raised."""

    def last_used(self, identifier: str) -> int | None:
        """Return when a token was last used, to the minute, as a timestamp; None if never."""

    def follow(self) -> None:
        """Notice from now on what other processes change, within a second, without being asked.

        After this, `read` and `find` do not wait for a database: an event loop may call them.
        """

    def close(self) -> None:
        """Release connections."""


class WebDocument(Struct):
    """A text that the holder may change; empty at first."""

    text: str


class WebStateStore(Protocol):
    """A document for each workspace, which all servers share. Safe for several threads."""

    def read(self, workspace: str) -> str:
        """Return the document of a workspace. Raise StoreError, WorkspaceNotFound."""

    def edit(self, workspace: str) -> AbstractContextManager[WebDocument]:
        """Yield the document to change it, and store it when the block succeeds.

        Others who edit it wait. Raise StoreError, WorkspaceNotFound.
        """

    def close(self) -> None:
        """Release what it holds."""
