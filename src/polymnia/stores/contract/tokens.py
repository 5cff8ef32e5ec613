"""Where tokens are stored: a file, or a table of the database that the servers share."""

from collections.abc import Mapping
from contextlib import AbstractContextManager
from pathlib import Path
from typing import Protocol

from polymnia.model import Token


class TokenStore(Protocol):
    """Stored tokens. Safe for several threads and processes."""

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
