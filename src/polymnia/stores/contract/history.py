"""Read what changed: changes in commit order, the state at any time, and what is in the trash."""

from collections.abc import Collection
from typing import Protocol

from polymnia.model import Change, Rows, TrashItem


class HistoryReader(Protocol):
    """The history of a store as one snapshot sees it."""

    def changes(self, since: int = 0, limit: int | None = None) -> list[Change]:
        """Return the changes with an id above `since`, oldest first. Purged rows are missing from them."""

    def at(self, time: int, names: Collection[str] | None = None) -> Rows:
        """Return everything that lived at that time, or the named entities and the relations that touched them.

        Raise BadInput for a time whose rows were purged.
        """


class ChangeFeed(Protocol):
    """The changes that other servers make, from the moment the feed was opened."""

    def read(self) -> list[Change]:
        """Return the changes since the last call, oldest first. Raise StoreError."""


class TrashReader(Protocol):
    """What was deleted and can be restored."""

    def items(self) -> list[TrashItem]:
        """Return entities, then single observations, relations and notes, each the latest first."""
