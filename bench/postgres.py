"""PostgreSQL: `python -m bench.postgres` measures reads and writes beside the bare driver, growth,
servers and vectors.

Without --postgres, a server with fsync is started for the run (tests/postgres.py).
"""

import argparse
import sys
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack, closing, contextmanager
from hashlib import sha256
from random import Random
from statistics import median
from time import perf_counter

import psycopg

from bench.figures import number
from bench.machine import describe_machine
from bench.postgres_servers import measure_servers, report_servers
from bench.postgres_vectors import K, measure_vectors, report_vectors
from bench.report import machine_line
from bench.rounds import Limits, take_rounds
from polymnia.engine.graph import entities, relations
from polymnia.engine.memory import Memory
from polymnia.engine.recall import search
from polymnia.engine.workspaces import Workspaces, open_workspaces
from polymnia.model import EntityDraft, PassageKind, Relation
from polymnia.search.fulltext import TextQuery
from tests.postgres import new_database, running_server

ME = "bench"
# Observations in the smaller and in the larger database, and over how many workspaces they are
# spread.
SIZES = (10_000, 1_000_000)
WORKSPACES = 1_000
OBSERVATIONS = 3
BARE = ("SELECT 1", "one-row commit")
KINDS: tuple[PassageKind, ...] = ("fact",)
# The numbers of vectors in the workspaces of another database. From 30,000 on they get an index.
VECTORS = (1_000, 29_000, 40_000)
READ_BUDGET, WRITE_BUDGET, GROWTH_BUDGET, SERVERS_BUDGET, RECALL_BUDGET = 3.5, 4.0, 2.0, 1.6, 0.98
_WORDS = [
    f"{first}{second}{third}" for first in "bdfgklmn" for second in "aeiou" for third in "prstvz"
]

Sampler = Callable[[], float]


class Database:
    """A filled database, and what is measured on it."""

    def __init__(self, url: str, facts: int, workspaces: int) -> None:
        self.url = url
        self.size = facts
        self._count = workspaces
        self._entities = max(facts // OBSERVATIONS // workspaces, 2)
        self._workspaces: Workspaces = open_workspaces(url)
        self._random = Random(facts)
        self._new = 0
        for place in range(workspaces):
            self._workspaces.create(f"w{place}")
            self._fill(self._workspaces.memory(f"w{place}"), place)
        self._bare = psycopg.connect(url, autocommit=True, prepare_threshold=0)
        for statement in (
            "CREATE TABLE tally (value bigint)",
            "INSERT INTO tally VALUES (0)",
            "VACUUM ANALYZE",
        ):
            self._bare.execute(statement)

    def rows(self) -> dict[str, Sampler]:
        """Return what is measured, by name."""
        return {
            "SELECT 1": self.select,
            "point read": self.read,
            "one-row commit": self.commit,
            "point write": self.write,
            "one-hit word search": self.find_word,
            "one-hit substring search": self.find_substring,
            "neighbours": self.neighbours,
        }

    def select(self) -> float:
        """Return the seconds of the least that a read can cost."""
        began = perf_counter()
        self._bare.execute("SELECT 1").fetchall()
        return perf_counter() - began

    def commit(self) -> float:
        """Return the seconds of the least that a durable write can cost."""
        began = perf_counter()
        self._bare.execute("UPDATE tally SET value = value + 1")
        return perf_counter() - began

    def read(self) -> float:
        """Return the seconds of one entity with its observations and relations."""
        memory, _, number = self._any()
        began = perf_counter()
        found = entities.open_named(memory, [f"entity {number}"])
        seconds = perf_counter() - began
        assert len(found.entities) == 1
        return seconds

    def write(self) -> float:
        """Return the seconds of one new entity with three observations."""
        memory, _, _ = self._any()
        self._new += 1
        draft = EntityDraft(
            f"new {self._new}", "thing", tuple([_text(self._random) for _ in range(OBSERVATIONS)])
        )
        began = perf_counter()
        entities.create(memory, [draft], by=ME)
        return perf_counter() - began

    def find_word(self) -> float:
        """Return the seconds of a search for a word that one observation of the workspace has."""
        memory, place, number = self._any()
        began = perf_counter()
        with memory.reading() as read:
            found = read.match(TextQuery((_unique(place, number),)), KINDS)
        seconds = perf_counter() - began
        assert len(found) == 1
        return seconds

    def find_substring(self) -> float:
        """Return the seconds of a search for a part of that word."""
        memory, place, number = self._any()
        began = perf_counter()
        found = search.containing(memory, _unique(place, number)[1:])
        seconds = perf_counter() - began
        assert len(found.entities) == 1
        return seconds

    def neighbours(self) -> float:
        """Return the seconds of the relations of one entity."""
        memory, _, number = self._any()
        began = perf_counter()
        with memory.reading() as read:
            read.relations([f"entity {number}"])
        return perf_counter() - began

    def close(self) -> None:
        """Close all connections."""
        self._bare.close()
        self._workspaces.close()

    def _any(self) -> tuple[Memory, int, int]:
        place = self._random.randrange(self._count)
        return self._workspaces.memory(f"w{place}"), place, self._random.randrange(self._entities)

    def _fill(self, memory: Memory, place: int) -> None:
        numbers = range(self._entities)
        drafts = [
            EntityDraft(f"entity {number}", "thing", self._texts(place, number))
            for number in numbers
        ]
        entities.create(memory, drafts, by=ME)
        links = [
            Relation(f"entity {number}", f"entity {(number + 1) % self._entities}", "next")
            for number in numbers
        ]
        relations.create(memory, links, by=ME)

    def _texts(self, place: int, number: int) -> tuple[str, ...]:
        first = f"{_unique(place, number)} {_text(self._random)}"
        return (first, *[_text(self._random) for _ in range(OBSERVATIONS - 1)])


def main(arguments: Sequence[str] | None = None) -> int:
    """Measure and print a table. Return 1 if a budget is missed."""
    options = _parser().parse_args(arguments)
    machine = describe_machine()
    limits = Limits(least=5, most=2000, seconds=options.seconds)
    with ExitStack() as stack:
        server = options.postgres or stack.enter_context(running_server(fsync=True)).url
        databases = [
            stack.enter_context(_filled(server, size, min(options.workspaces, size // 6)))
            for size in options.sizes
        ]
        # All sizes in the same rounds, so that a busy machine slows all alike.
        rows = {
            (database.size, title): row
            for database in databases
            for title, row in database.rows().items()
        }
        samples = take_rounds(rows, limits)
        servers = measure_servers(databases[-1].url, "w0", options.seconds)
        searches = measure_vectors(stack.enter_context(new_database(server)), options.vectors)
    print(f"\n{machine_line(machine)}\n")
    verdicts = [
        *_report(samples, sorted(database.size for database in databases)),
        _at_least(
            "two servers with a client each beside one", report_servers(servers), SERVERS_BUDGET
        ),
        _at_least(f"recall@{K} of vectors", report_vectors(searches), RECALL_BUDGET),
    ]
    for text, _ in verdicts:
        print(text)
    return 0 if all(met for _, met in verdicts) else 1


@contextmanager
def _filled(server: str, size: int, workspaces: int) -> Iterator[Database]:
    began = perf_counter()
    with new_database(server) as url, closing(Database(url, size, workspaces)) as database:
        print(
            f"{size:,} observations in {workspaces:,} workspaces: "
            f"filled in {perf_counter() - began:.0f} s",
            flush=True,
        )
        yield database


def _report(
    samples: dict[tuple[int, str], list[float]], sizes: list[int]
) -> list[tuple[str, bool]]:
    """Print the times of calls. Return the verdicts on them."""
    figures = {key: median(each) for key, each in samples.items()}
    titles = list(dict.fromkeys(title for _, title in samples))
    growth = {title: figures[sizes[-1], title] / figures[sizes[0], title] for title in titles}
    columns = " | ".join(f"{size:,} observations" for size in sizes)
    print(f"| ms, median (least) | {columns} | most / fewest |")
    print(f"|---|{'---|' * (len(sizes) + 1)}")
    for title in titles:
        shown = [
            f"{number(figures[size, title] * 1e3)} ({number(min(samples[size, title]) * 1e3)})"
            for size in sizes
        ]
        print(f"| {title} | {' | '.join(shown)} | {growth[title]:.2f} |")
    return [*_beside_bare(samples, sizes), *_growth(growth)]


def _beside_bare(
    samples: dict[tuple[int, str], list[float]], sizes: list[int]
) -> Iterator[tuple[str, bool]]:
    """Yield verdicts on reads and writes, by medians and by the least of all samples."""
    for title, bare, budget in (
        ("point read", "SELECT 1", READ_BUDGET),
        ("point write", "one-row commit", WRITE_BUDGET),
    ):
        for name, of in (("median", median), ("least", min)):
            ratio = max(of(samples[size, title]) / of(samples[size, bare]) for size in sizes)
            yield _at_most(f"{title} beside {bare}, {name}", ratio, budget)


def _growth(growth: dict[str, float]) -> Iterator[tuple[str, bool]]:
    """Yield verdicts on everything that is not the bare driver."""
    for title, ratio in growth.items():
        if title not in BARE:
            yield _at_most(f"growth of {title}", ratio, GROWTH_BUDGET)


def _at_most(text: str, ratio: float, budget: float) -> tuple[str, bool]:
    return _verdict(text, ratio, budget, ratio <= budget)


def _at_least(text: str, ratio: float, budget: float) -> tuple[str, bool]:
    return _verdict(text, ratio, budget, ratio >= budget)


def _verdict(text: str, ratio: float, budget: float, met: bool) -> tuple[str, bool]:
    return f"{text}: {ratio:.2f} (budget {budget}): {'met' if met else 'missed'}", met


def _unique(place: int, number: int) -> str:
    """Return a word that only one observation has."""
    digits = sha256(f"{place} {number}".encode()).digest()[:10]
    return "".join([chr(ord("a") + digit % 26) for digit in digits]) + "x"


def _text(random: Random) -> str:
    return " ".join(random.choices(_WORDS, k=8))


def _parser() -> argparse.ArgumentParser:
    new = argparse.ArgumentParser(prog="python -m bench.postgres", description=__doc__)
    new.add_argument(
        "--sizes", type=_sizes, default=SIZES, metavar="N,N", help="numbers of observations"
    )
    new.add_argument(
        "--vectors", type=_sizes, default=VECTORS, metavar="N,N", help="numbers of vectors"
    )
    new.add_argument("--workspaces", type=int, default=WORKSPACES, help="(default: %(default)s)")
    new.add_argument(
        "--seconds", type=float, default=3.0, help="time for each figure (default: %(default)s)"
    )
    new.add_argument(
        "--postgres", metavar="URL", help="a superuser's URL of a server with pgvector"
    )
    return new


def _sizes(text: str) -> tuple[int, ...]:
    return tuple(sorted({int(part) for part in text.split(",")}))


if __name__ == "__main__":
    sys.exit(main())
