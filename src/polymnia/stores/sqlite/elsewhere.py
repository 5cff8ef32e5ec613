"""Changes that other processes make: the change log as it grows, without what this process has written itself."""

from collections.abc import Callable
from threading import Lock

from polymnia.model import Change

# Changes read at once, so that a large import elsewhere is told in steps.
_MOST_AT_ONCE = 100

Read = Callable[[int, int], list[Change]]


class Elsewhere:
    """Which rows of the change log are of this process, kept for those who follow the others'."""

    def __init__(self) -> None:
        self._lock = Lock()
        self._pending: set[int] = set()
        self._followed: list[Follow] = []

    def begin(self, number: int) -> None:
        """A change of ours has that number, and is about to be seen by others."""
        with self._lock:
            self._pending.add(number)

    def end(self, number: int, *, kept: bool) -> None:
        """It is in the log for good, or was taken back: then the number may become somebody else's."""
        with self._lock:
            self._pending.discard(number)
            for each in self._followed if kept else ():
                each.own.add(number)

    def follow(self, since: int, read: Read) -> "Follow":
        """What gives the others' changes after that number."""
        follow = Follow(since, read, self._sort, self._leave)
        with self._lock:
            self._followed.append(follow)
        return follow

    def _sort(self, follow: "Follow", found: list[Change]) -> list[Change]:
        news = []
        with self._lock:
            for change in found:
                if change.id in self._pending:
                    break  # ours or, if it is taken back, another's: soon it will be known
                if change.id not in follow.own:
                    news.append(change)
                follow.own.discard(change.id)
                follow.since = change.id
        return news

    def _leave(self, follow: "Follow") -> None:
        with self._lock:
            self._followed.remove(follow)


class Follow:
    """One reader of the others' changes."""

    def __init__(
        self,
        since: int,
        read: Read,
        sort: "Callable[[Follow, list[Change]], list[Change]]",
        leave: "Callable[[Follow], None]",
    ) -> None:
        self.since = since
        self.own: set[int] = set()
        self._read = read
        self._sort = sort
        self._leave = leave

    def news(self) -> list[Change]:
        """The changes that others have made since it was last asked, oldest first. Raises StoreError."""
        return self._sort(self, self._read(self.since, _MOST_AT_ONCE))

    def close(self) -> None:
        """No more is wanted."""
        self._leave(self)
