"""Where a database keeps what the web interface stores beside a workspace, and its logins."""

from contextlib import AbstractContextManager
from typing import Protocol

from msgspec import Struct


class WebDocument(Struct):
    """A text that the holder may change; empty at first."""

    text: str


class WebStateStore(Protocol):
    """A document for each workspace, and logins by the hash of their secret.

    All servers share them. Safe for several threads.
    """

    def read(self, workspace: str) -> str:
        """Return the document of a workspace. Raise StoreError, WorkspaceNotFound."""

    def edit(self, workspace: str) -> AbstractContextManager[WebDocument]:
        """Yield the document to change it, and store it when the block succeeds.

        Others who edit it wait. Raise StoreError, WorkspaceNotFound.
        """

    def put_session(self, digest: str, principal: str, *, idle_s: int) -> None:
        """Add a login, and delete those that were not used for some time. Raise StoreError."""

    def find_session(self, digest: str, *, idle_s: int) -> str | None:
        """Return who logged in, unless the login was not used for some time. Raise StoreError."""

    def delete_session(self, digest: str) -> None:
        """End a login. Raise StoreError."""

    def close(self) -> None:
        """Release what it holds."""
