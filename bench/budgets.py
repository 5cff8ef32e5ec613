"""The budgets: what the design promises, and whether this run met it."""

from collections.abc import Callable, Iterator
from dataclasses import dataclass

from bench.figures import MEGABYTES, Figures, number, ratio
from bench.install import Install
from bench.rows import (
    BARE_COMMIT,
    CREATE_HUNDRED,
    DIRECT_READ,
    IMPORT,
    NEIGHBOURS,
    ON_DISK_RATIO,
    PAST_READ,
    PATH,
    POINT_READ,
    POINT_WRITE,
    PROBE,
    RESIDENT,
    SEARCH,
    START,
    START_AND_READ,
)
from bench.servers import GRAPH, JSONL, LOG, NPM, OURS, SQLITE

EMPTY = 0
SMALL = 1_000
LARGE = 100_000
MILLION = 1_000_000
# From one size to the next, times may grow this much.
GROWTH = ((SMALL, LARGE, 2.0), (LARGE, MILLION, 2.5))
IMPORTED = 50_000


@dataclass(frozen=True, slots=True)
class Verdict:
    """One budget; `met` is None if this run did not measure it."""

    what: str
    budget: str
    measured: str
    met: bool | None


Budget = Callable[[Figures], Iterator[Verdict]]


def judge(figures: Figures) -> tuple[Verdict, ...]:
    """Return the verdicts of all budgets."""
    return tuple(verdict for budget in BUDGETS for verdict in budget(figures))


def judge_install(install: Install) -> tuple[Verdict, ...]:
    """Return the verdicts on the base install."""
    return (
        at_most("base install, packages", install.packages, 18, " packages"),
        at_most("base install, size", MEGABYTES.show(install.size), 40, " MB"),
    )


def empty_start(figures: Figures) -> Iterator[Verdict]:
    """Judge `initialize` on an empty store, beside the npm server."""
    for server in OURS:
        mine = figures.raw(START.key, server, EMPTY)
        times = ratio(mine, figures.raw(START.key, NPM, EMPTY))
        yield at_most(f"initialize, empty, {server}", times, 0.28, "x npm")


def point_reads(figures: Figures) -> Iterator[Verdict]:
    """Judge point reads at 1k, beside the npm server."""
    for server in OURS:
        mine = figures.raw(POINT_READ.key, server, SMALL)
        times = ratio(mine, figures.raw(POINT_READ.key, NPM, SMALL))
        yield at_most(f"point read, 1k, {server}", times, 0.05, "x npm")


def point_writes(figures: Figures) -> Iterator[Verdict]:
    """Judge a durable point write, beside a bare commit measured alternately."""
    for size in figures.sizes():
        write = figures.raw(POINT_WRITE.key, SQLITE, size)
        commit = figures.raw(BARE_COMMIT.key, PROBE, size)
        yield at_most(
            f"point write, {short(size)}, sqlite", ratio(write, commit), 3.0, "x a bare commit"
        )


def growth(figures: Figures) -> Iterator[Verdict]:
    """Judge how times grow with the size."""
    rows = [(SQLITE, row) for row in (POINT_READ, POINT_WRITE, SEARCH)]
    rows += [(GRAPH, row) for row in (NEIGHBOURS, PATH)]
    for small, large, limit in GROWTH:
        for server, row in rows:
            what = f"{row.title}, growth {short(small)} -> {short(large)}, {server}"
            times = ratio(figures.raw(row.key, server, large), figures.raw(row.key, server, small))
            yield at_most(what, times, limit, "x")


def bulk_writes(figures: Figures) -> Iterator[Verdict]:
    """Judge the entities per second when a hundred come in one call."""
    for size in figures.sizes():
        what, budget = f"create x100, {short(size)}, sqlite", ">= 5,000 entities/s"
        seconds = figures.raw(CREATE_HUNDRED.key, SQLITE, size)
        if seconds is None:
            yield unmeasured(what, budget)
            continue
        rate = CREATE_HUNDRED.unit.show(seconds)
        yield Verdict(what, budget, f"{number(rate)} entities/s", rate >= 5000)


def bulk_imports(figures: Figures) -> Iterator[Verdict]:
    """Judge the import of each size, per 50,000 entities.

    A small one is mostly the start of the process.
    """
    for size in [size for size in figures.sizes() if size >= IMPORTED] or [LARGE]:
        seconds = ratio(figures.raw(IMPORT.key, SQLITE, size), size / IMPORTED)
        yield at_most(
            f"import of {short(size)}, per 50k entities, sqlite", seconds, 5, " s of processor time"
        )


def store_size(figures: Figures) -> Iterator[Verdict]:
    """Judge the size of the largest stores; a small one is mostly empty pages."""
    for size in [size for size in figures.sizes() if size >= LARGE] or [LARGE]:
        times = figures.raw(ON_DISK_RATIO.key, SQLITE, size)
        yield at_most(f"size on disk, {short(size)}, sqlite", times, 3.5, "x JSON lines")


def past_reads(figures: Figures) -> Iterator[Verdict]:
    """Judge a read of the past, beside the same read of the present."""
    for size in figures.sizes():
        past = figures.raw(PAST_READ.key, SQLITE, size)
        times = ratio(past, figures.raw(DIRECT_READ.key, SQLITE, size))
        yield at_most(
            f"as_of read of one entity, {short(size)}, sqlite", times, 1.5, "x the point read"
        )


def loaded_start(figures: Figures) -> Iterator[Verdict]:
    """Judge the start with 100,000 entities."""
    mine = figures.raw(START.key, SQLITE, LARGE)
    times = ratio(mine, figures.raw(START.key, SQLITE, EMPTY))
    yield at_most(f"start, {short(LARGE)}, sqlite", times, 1.2, "x empty")
    for server in (JSONL, LOG):
        seconds = figures.raw(START_AND_READ.key, server, LARGE)
        yield at_most(f"start to first read, {short(LARGE)}, {server}", seconds, 2.5, " s")


def empty_memory(figures: Figures) -> Iterator[Verdict]:
    """Judge the resident memory on an empty store."""
    for server in OURS:
        size = figures.raw(RESIDENT.key, server, EMPTY)
        shown = None if size is None else RESIDENT.unit.show(size)
        yield at_most(f"resident memory, empty, {server}", shown, 40, " MB")


def at_most(what: str, value: float | None, limit: float, unit: str) -> Verdict:
    """Return the verdict on a number that must not exceed a limit."""
    budget = f"<= {limit:g}{unit}"
    if value is None:
        return unmeasured(what, budget)
    return Verdict(what, budget, f"{number(value)}{unit}", value <= limit)


def unmeasured(what: str, budget: str) -> Verdict:
    """Return the verdict for a run that did not measure this."""
    return Verdict(what, budget, "not measured", None)


def short(size: int) -> str:
    """Return a size in few characters: 1k, 100k, 1M."""
    if size % MILLION == 0:
        return f"{size // MILLION}M"
    return f"{size // 1000}k" if size % 1000 == 0 else str(size)


BUDGETS: tuple[Budget, ...] = (
    empty_start,
    point_reads,
    point_writes,
    growth,
    bulk_writes,
    bulk_imports,
    store_size,
    past_reads,
    loaded_start,
    empty_memory,
)
