"""`python -m bench.recall.common_words`: what a recall costs, by how common its words are.

The processor time is that of this process and, on PostgreSQL, of its server processes. Without
--postgres, SQLite is measured.
"""

import argparse
import os
import sys
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack, closing, contextmanager
from functools import partial
from pathlib import Path
from tempfile import TemporaryDirectory
from time import perf_counter, process_time

import psycopg

from bench.budgets import at_most
from bench.machine import describe_machine
from bench.recall.scale import ZipfText
from bench.report import machine_line
from polymnia.engine.graph import entities
from polymnia.engine.memory import Memory
from polymnia.engine.recall.passages import recall
from polymnia.model import EntityDraft
from polymnia.stores import open_store
from tests.postgres import new_database, running_server

ME = "bench"
BUDGET_MS = 150
_PER_ENTITY, _BATCH, _ROUNDS = 10, 500, 5

# The places of a question's words in the vocabulary, the most common first.
QUESTIONS = {
    "one common word": (0,),
    "two common words": (0, 1),
    "four common words": (0, 1, 2, 3),
    "a middling pair": (300, 500),
    "five words": (2, 40, 200, 900, 5_000),
    "a rare word": (19_000,),
}

Clock = Callable[[], float]


def main(arguments: Sequence[str] | None = None) -> int:
    """Measure and print. Return 1 if a question takes longer than the budget."""
    options = _parser().parse_args(arguments)
    print(machine_line(describe_machine()))
    met = True
    for size in options.passages:
        with _filled(size, in_postgres=options.postgres) as (memory, clock, words):
            for title, places in QUESTIONS.items():
                question = " ".join(words[place] for place in places)
                spent = _least_ms(partial(recall, memory, question), clock)
                verdict = at_most(f"{size:,} passages, {title}", spent, BUDGET_MS, " ms")
                print(f"{verdict.what}: {verdict.measured} ({verdict.budget})")
                met = met and bool(verdict.met)
    return 0 if met else 1


@contextmanager
def _filled(size: int, *, in_postgres: bool) -> Iterator[tuple[Memory, Clock, Sequence[str]]]:
    """Yield a memory of that many observations, a clock of processor time, and its vocabulary."""
    with ExitStack() as stack:
        if in_postgres:
            server = stack.enter_context(running_server())
            url = stack.enter_context(new_database(server.url))
        else:
            url = str(Path(stack.enter_context(TemporaryDirectory())) / "memory.db")
        text = ZipfText()
        store = stack.enter_context(closing(open_store(url)))
        memory = Memory(store)
        began = perf_counter()
        _fill(memory, text, size)
        print(f"{size:,} observations written in {perf_counter() - began:.0f} s")
        clock: Clock = process_time
        if in_postgres:
            clock = _database_clock(url)
        yield memory, clock, text.vocabulary


def _fill(memory: Memory, text: ZipfText, size: int) -> None:
    for start in range(0, size // _PER_ENTITY, _BATCH):
        drafts = []
        for number in range(start, min(start + _BATCH, size // _PER_ENTITY)):
            facts = tuple(text.make() for _ in range(_PER_ENTITY))
            drafts.append(EntityDraft(f"Entity {number}", "thing", facts))
        entities.create(memory, drafts, by=ME)


def _database_clock(url: str) -> Clock:
    """Return a clock of the processor time of this process and of the database's."""
    ticks = os.sysconf("SC_CLK_TCK")

    def read() -> float:
        with psycopg.connect(url) as connection:
            rows = connection.execute(
                "SELECT pid FROM pg_stat_activity "
                "WHERE datname = current_database() AND pid <> pg_backend_pid()"
            ).fetchall()
        total = process_time()
        for (pid,) in rows:
            fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
            total += (int(fields[11]) + int(fields[12])) / ticks
        return total

    return read


def _least_ms(call: Callable[[], object], clock: Clock) -> float:
    """Return the least milliseconds of some rounds of ten calls each: clocks tick slowly."""
    call()
    rounds = []
    for _ in range(_ROUNDS):
        began = clock()
        for _ in range(10):
            call()
        rounds.append((clock() - began) * 100)
    return min(rounds)


def _parser() -> argparse.ArgumentParser:
    new = argparse.ArgumentParser(prog="python -m bench.recall.common_words", description=__doc__)
    new.add_argument(
        "--passages",
        type=lambda text: [int(size) for size in text.split(",")],
        default=[100_000],
        metavar="N,N",
        help="numbers of observations (default: 100000)",
    )
    new.add_argument("--postgres", action="store_true", help="measure PostgreSQL, not SQLite")
    return new


if __name__ == "__main__":
    sys.exit(main())
