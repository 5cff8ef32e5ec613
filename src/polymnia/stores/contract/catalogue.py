"""A catalogue: the workspaces that one place holds, each with a store of its own."""

from typing import Protocol

from polymnia.model import Status, Workspace
from polymnia.stores.contract.store import Store


class Catalogue(Protocol):
    """The workspaces of a data directory or a database. Safe for several threads and several processes."""

    def find(self, name: str) -> Workspace:
        """Return the workspace with that name, whatever its status. Raise WorkspaceNotFound."""

    def listed(self, status: Status | None = None) -> list[Workspace]:
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

    def open(self, name: str) -> Store:
        """Open the store of an active workspace. Raise WorkspaceNotFound, WorkspaceArchived, StoreError."""

    def is_current(self, store: Store) -> bool:
        """Return False if the workspace was archived, restored or deleted since the store was opened."""

    def close_store(self, store: Store) -> None:
        """Close a store that `open` returned, without harm to a successor at the same place."""

    def check(self) -> list[str]:
        """Return where the catalogue and its stores disagree, one sentence each."""

    def close(self) -> None:
        """Release files and locks."""
