"""Many large workspaces: `python -m bench.postgres_large` compares 500 with 5.

Large is a workspace whose vectors have an index. Without --postgres, a server is started for the
run (tests/postgres.py).
"""

import argparse
import sys
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack, closing
from itertools import count
from random import Random
from struct import pack
from time import perf_counter

import psycopg

from bench.machine import describe_machine
from bench.postgres_tenants import compare
from bench.report import machine_line
from bench.rounds import Limits
from polymnia.engine.graph import entities
from polymnia.engine.memory import Memory
from polymnia.model import EntityDraft
from polymnia.stores import open_store
from polymnia.stores.postgres.store import PostgresStore
from tests.postgres import new_database, running_server

ME = "bench"
FEW, MANY = 5, 500
BUDGET = 1.5
DIMENSION = 384
# A workspace counts as large from so few vectors here, because only the number of indexes matters.
_INDEXED = 10
# Each sample of an insertion takes a passage.
_PASSAGES = 700
_MOST_SAMPLES = 200
_NEAREST = "SELECT * FROM polymnia.nearest_vectors(%s, %s, 1, %s::vector, 20)"


class Tenant:
    """A workspace with vectors, and passages that have none yet."""

    def __init__(self, url: str, passages: int, *, is_large: bool) -> None:
        store = open_store(url)
        assert isinstance(store, PostgresStore)
        self.store = store
        self._random = Random(0)
        texts = tuple([f"text {number}" for number in range(passages)])
        entities.create(Memory(store), [EntityDraft("one", "thing", texts)], by=ME)
        self.model = store.vectors.add_model("made", "none", DIMENSION).number
        with store.reading() as read:
            pending = [passage for passage, _ in read.vectors.pending(self.model, passages)]
        self._pending: Iterator[int] = iter(pending)
        for _ in range(_INDEXED):
            self.insert()
        if is_large:
            store.vector_indexes.indexed_from = _INDEXED // 2
            store.vector_indexes.build(self.model, 1, DIMENSION)

    def insert(self) -> int:
        """Add the vector of a passage that has none; return the passage."""
        passage = next(self._pending)
        self.store.vectors.put(self.model, [(passage, self.vector())])
        return passage

    def search(self) -> None:
        """Look for the nearest of a new vector."""
        with self.store.reading() as read:
            read.vectors.nearest(self.model, self.vector(), 20)

    def vector(self) -> bytes:
        """Return a vector at random."""
        numbers = [self._random.gauss(0, 1) for _ in range(DIMENSION)]
        return pack(f"<{DIMENSION}f", *numbers)


class LargeWorkspaces:
    """A database with some large workspaces, and the calls that are measured on it."""

    def __init__(self, url: str, large: int) -> None:
        for number in range(large - 1):
            Tenant(f"{url}?workspace=w{number}", _INDEXED, is_large=True).store.close()
        self._url = url
        self._large = Tenant(f"{url}?workspace=large", _PASSAGES, is_large=True)
        self._small = Tenant(f"{url}?workspace=small", _PASSAGES, is_large=False)
        self._numbers = count()

    def rows(self) -> dict[str, Callable[[], float]]:
        """Return what is measured, by name."""
        large, small = self._large, self._small
        return {
            "insert a vector into a large one": lambda: _timed(large.insert),
            "insert a vector into a small one": lambda: _timed(small.insert),
            "search in a large one": lambda: _timed(large.search),
            "search in a small one": lambda: _timed(small.search),
            "first search of a connection, large": lambda: self._first_search(large),
            "first search of a connection, small": lambda: self._first_search(small),
            "write to a small one": lambda: _timed(self._write),
        }

    def close(self) -> None:
        """Close the stores."""
        self._large.store.close()
        self._small.store.close()

    def _first_search(self, tenant: Tenant) -> float:
        question = str([1.0] * DIMENSION)
        values = (tenant.store.workspace, tenant.model, question)
        with psycopg.connect(self._url, options="-c search_path=polymnia,public") as connection:
            connection.execute("SELECT '[1]'::vector")  # loads the library
            return _timed(lambda: connection.execute(_NEAREST, values))

    def _write(self) -> None:
        """Add an entity and delete it: what ends loses its vectors."""
        memory, name = Memory(self._small.store), f"new {next(self._numbers)}"
        entities.create(memory, [EntityDraft(name, "thing", ("one",))], by=ME)
        entities.delete(memory, [name], by=ME)


def main(arguments: Sequence[str] | None = None) -> int:
    """Measure and print a table. Return 1 if the budget is missed."""
    parser = argparse.ArgumentParser(prog="python -m bench.postgres_large", description=__doc__)
    parser.add_argument("--many", type=int, default=MANY, help="large workspaces in the second")
    parser.add_argument("--seconds", type=float, default=3.0, help="time for each figure")
    parser.add_argument("--postgres", metavar="URL", help="a superuser's URL of a server")
    options = parser.parse_args(arguments)
    print(machine_line(describe_machine()))
    with ExitStack() as stack:
        server = options.postgres or stack.enter_context(running_server()).url
        pair = {}
        for large in (FEW, options.many):
            url = stack.enter_context(new_database(server))
            pair[f"{large} large"] = stack.enter_context(closing(LargeWorkspaces(url, large)))
        limits = Limits(least=20, most=_MOST_SAMPLES, seconds=options.seconds)
        return 0 if compare(pair, limits, BUDGET) else 1


def _timed(call: Callable[[], object]) -> float:
    began = perf_counter()
    call()
    return perf_counter() - began


if __name__ == "__main__":
    sys.exit(main())
