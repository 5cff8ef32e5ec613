"""Where a database keeps what the web interface stores beside a workspace."""

from contextlib import AbstractContextManager
from typing import Protocol

from msgspec import Struct


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
