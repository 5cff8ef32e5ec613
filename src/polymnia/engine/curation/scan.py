"""Read a whole memory in pages, with progress reports and a chance to stop."""

from collections.abc import Callable, Iterator

from polymnia.model import Entity
from polymnia.stores.contract import Reader

# Entities read at once.
PAGE_SIZE = 1_000

# Called with how much is done, the total if it is known, and a description of the work.
Progress = Callable[[float, float | None, str | None], None]
# Raises an error to stop the work.
Check = Callable[[], None]


def ignore_progress(done: float, total: float | None, message: str | None) -> None:
    """Drop a progress report."""


def never_stop() -> None:
    """Let the work continue."""


def part_of(progress: Progress, first: float, last: float) -> Progress:
    """Return a progress report for one part of a longer work, which takes it from `first` to `last` percent."""

    def report(done: float, total: float | None, message: str | None) -> None:
        progress(first + (last - first) * done / total if total else last, 100, message)

    return report


def scan(read: Reader, message: str, *, progress: Progress, check: Check) -> Iterator[Entity]:
    """Yield every entity with its observations, in order of creation, without holding all of them in memory."""
    total = read.counts().entities
    for offset in range(0, total, PAGE_SIZE):
        check()
        yield from read.page(None, offset, PAGE_SIZE)
        progress(min(offset + PAGE_SIZE, total), total, message)
