"""The budgets: what the design promises, and whether this run kept it."""

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from itertools import product

from bench.figures import MEGABYTES, MILLISECONDS, Figures, number, ratio
from bench.rows import (
    BARE_COMMIT,
    CREATE_HUNDRED,
    CREATE_ONE,
    DESCRIBE,
    FIRST_READ,
    NEIGHBOURS,
    PATH,
    POINT_READ,
    PROBE,
    RESIDENT,
    ROWS,
    SEARCH,
    START,
    START_AND_READ,
    SUBGRAPH,
    Row,
)
from bench.servers import FLOOR, GRAPH, JSONL, LOG, NPM, OURS, SQLITE

EMPTY = 0
SMALL = 1000


@dataclass(frozen=True, slots=True)
class Verdict:
    """One budget; `met` is None when this run did not measure it."""

    what: str
    budget: str
    measured: str
    met: bool | None


Budget = Callable[[Figures], Iterator[Verdict]]


def judge(figures: Figures) -> tuple[Verdict, ...]:
    """Every budget held against the figures."""
    return tuple(verdict for budget in BUDGETS for verdict in budget(figures))


def empty_start(figures: Figures) -> Iterator[Verdict]:
    """`initialize` on an empty store, beside the npm server."""
    for server in OURS:
        mine = figures.raw(START.key, server, EMPTY)
        times = ratio(mine, figures.raw(START.key, NPM, EMPTY))
        yield at_most(f"initialize, empty, {server}", times, 0.3, "x npm")


def point_reads(figures: Figures) -> Iterator[Verdict]:
    """Point reads at 1k, of new names and of any, beside the floor and the npm server."""
    for row, server in product((FIRST_READ, POINT_READ), OURS):
        mine = figures.raw(row.key, server, SMALL)
        for peer, limit in ((FLOOR, 3.0), (NPM, 0.03)):
            times = ratio(mine, figures.raw(row.key, peer, SMALL))
            yield at_most(f"{row.title}, 1k, {server}", times, limit, f"x {peer}")


def point_writes(figures: Figures) -> Iterator[Verdict]:
    """A durable point write, beside a bare commit and a point read."""
    for size in figures.sizes():
        write = figures.raw(CREATE_ONE.key, SQLITE, size)
        commit = figures.raw(BARE_COMMIT.key, PROBE, size)
        read = figures.raw(POINT_READ.key, SQLITE, size)
        what = f"create x1, {short(size)}, sqlite"
        if write is None or commit is None or read is None:
            yield unmeasured(what, "<= 2 commits + a point read")
            continue
        limit = MILLISECONDS.show(2 * commit + read)
        budget = f"<= {number(limit)} ms: 2 commits + a point read"
        shown = MILLISECONDS.show(write)
        yield Verdict(what, budget, f"{number(shown)} ms", shown <= limit)


def growth(figures: Figures) -> Iterator[Verdict]:
    """How times grow from the smallest size to the largest."""
    small, large = figures.sizes()[0], figures.sizes()[-1]
    rows = [(SQLITE, row) for row in (POINT_READ, CREATE_ONE, SEARCH)]
    rows += [(GRAPH, row) for row in (NEIGHBOURS, PATH, DESCRIBE, SUBGRAPH)]
    for server, row in rows:
        what = f"{row.title}, growth {short(small)} -> {short(large)}, {server}"
        times = ratio(figures.raw(row.key, server, large), figures.raw(row.key, server, small))
        yield at_most(what, times if small < large else None, 2.0, "x")


def bulk_writes(figures: Figures) -> Iterator[Verdict]:
    """Entities per second when a hundred come in one call."""
    for size in figures.sizes():
        what, budget = f"create x100, {short(size)}, sqlite", ">= 5,000 entities/s"
        seconds = figures.raw(CREATE_HUNDRED.key, SQLITE, size)
        if seconds is None:
            yield unmeasured(what, budget)
            continue
        rate = CREATE_HUNDRED.unit.show(seconds)
        yield Verdict(what, budget, f"{number(rate)} entities/s", rate >= 5000)


def loaded_start(figures: Figures) -> Iterator[Verdict]:
    """Starting on the largest store."""
    size = figures.sizes()[-1]
    mine = figures.raw(START.key, SQLITE, size)
    times = ratio(mine, figures.raw(START.key, SQLITE, EMPTY))
    yield at_most(f"start, {short(size)}, sqlite", times, 1.2, "x empty")
    for server in (JSONL, LOG):
        seconds = figures.raw(START_AND_READ.key, server, size)
        yield at_most(f"start to first read, {short(size)}, {server}", seconds, 2.5, " s")


def empty_memory(figures: Figures) -> Iterator[Verdict]:
    """Resident memory on an empty store."""
    for server in OURS:
        size = figures.raw(RESIDENT.key, server, EMPTY)
        shown = None if size is None else RESIDENT.unit.show(size)
        yield at_most(f"resident memory, empty, {server}", shown, 40, " MB")


def ahead_of_reference(figures: Figures) -> Iterator[Verdict]:
    """On the same file, faster than the npm server in every timed row."""
    timed = [row for row in ROWS if row.unit is not MEGABYTES]
    for size in (EMPTY, *figures.sizes()):
        what = f"every row, {short(size)}, jsonl"
        measured = {row.title: slowness(figures, row, size) for row in timed}
        known = {title: times for title, times in measured.items() if times is not None}
        if not known:
            yield unmeasured(what, "< 1x npm")
            continue
        title, worst = max(known.items(), key=lambda item: item[1])
        yield Verdict(what, "< 1x npm", f"{number(worst)}x, worst: {title}", worst < 1)


def slowness(figures: Figures, row: Row, size: int) -> float | None:
    """The time of jsonl as a multiple of npm's."""
    npm = figures.raw(row.key, NPM, size)
    return ratio(figures.raw(row.key, JSONL, size), npm)


def at_most(what: str, value: float | None, limit: float, unit: str) -> Verdict:
    """The verdict on a number that must not exceed a limit."""
    budget = f"<= {limit:g}{unit}"
    if value is None:
        return unmeasured(what, budget)
    return Verdict(what, budget, f"{number(value)}{unit}", value <= limit)


def unmeasured(what: str, budget: str) -> Verdict:
    """The verdict when the run left out what the budget is about."""
    return Verdict(what, budget, "not measured", None)


def short(size: int) -> str:
    """A size in few characters: 1k, 100k, empty."""
    if size == EMPTY:
        return "empty"
    return f"{size // 1000}k" if size % 1000 == 0 else str(size)


BUDGETS: tuple[Budget, ...] = (
    empty_start,
    point_reads,
    point_writes,
    growth,
    bulk_writes,
    loaded_start,
    empty_memory,
    ahead_of_reference,
)
