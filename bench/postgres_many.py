"""Many workspaces in one PostgreSQL.

`python -m bench.postgres_many --workspaces 100000` compares a database with that many workspaces of
100 facts each with one that has 1,000. One workspace is written by Polymnia; the others are copies
of its rows, made by SQL. Calls are measured in turns, in milliseconds.

Without --postgres, a server is started for the run (tests/postgres.py).
"""

import argparse
from collections.abc import Callable, Sequence
from contextlib import ExitStack, closing
from random import Random
from statistics import median
from time import perf_counter

import psycopg

from bench.figures import number
from bench.machine import describe_machine
from bench.report import machine_line
from polymnia.engine.facts.briefing import brief_session
from polymnia.engine.facts.remember import EntityFacts, FactDraft, remember
from polymnia.engine.graph import entities
from polymnia.engine.memory import Memory
from polymnia.engine.recall.passages import recall
from polymnia.model import EntityDraft
from polymnia.stores import open_catalogue
from polymnia.stores.contract import Catalogue
from tests.postgres import new_database, running_server

ME = "bench"
FEW, MOST_GROWTH = 1_000, 1.5
ENTITIES, FACTS_EACH = 25, 4
LISTED = 1_000
_WORDS = [f"{one}{two}{three}" for one in "bdfgklmn" for two in "aeiou" for three in "prstvz"]
# Copies are made so many at a time, each batch in a transaction.
_COPIED_AT_ONCE = 500
_TABLES = """
SELECT c.oid::regclass::text, string_agg(quote_ident(a.attname), ', ' ORDER BY a.attnum)
FROM pg_class AS c JOIN pg_attribute AS a ON a.attrelid = c.oid AND a.attnum > 1
WHERE c.relnamespace = 'polymnia'::regnamespace AND c.relkind IN ('r', 'p') AND NOT c.relispartition
    AND a.attgenerated = '' AND NOT a.attisdropped AND c.relname <> 'catalogue' AND EXISTS (
        SELECT FROM pg_attribute AS w
        WHERE w.attrelid = c.oid AND w.attnum = 1 AND w.attname = 'workspace_id')
GROUP BY c.oid
-- What foreign keys refer to comes first.
ORDER BY c.relname NOT IN ('workspaces', 'templates', 'models')
"""
_NAME_COPIES = """
INSERT INTO catalogue (uid, name, folded, description, status, created_at, updated_at)
SELECT gen_random_uuid(), 'w' || n, 'w' || n, '', 'active', 1, 1
FROM generate_series(%s::bigint, %s::bigint) AS n
RETURNING workspace_id
"""


class Crowd:
    """A database with many workspaces, and the calls that are measured in any of them."""

    def __init__(self, url: str, count: int) -> None:
        self._random = Random(count)
        self._count = count
        self._new = 0
        catalogue = open_catalogue(url)
        assert catalogue is not None
        self._catalogue: Catalogue = catalogue
        self._fill()
        with psycopg.connect(url, options="-c search_path=polymnia,public") as connection:
            self._copy(connection)
        with psycopg.connect(url, autocommit=True) as connection:
            started = perf_counter()
            connection.execute("VACUUM ANALYZE")
            self.vacuum_s = perf_counter() - started
            size = connection.execute("SELECT pg_database_size(current_database())").fetchall()
        self.bytes_each = size[0][0] / count

    def calls(self) -> dict[str, Callable[[], object]]:
        """Return the calls that are measured, by name."""
        return {
            "open": lambda: entities.open_named(self._open(), ["entity 7"]),
            "recall": lambda: recall(self._open(), f"who has {self._random.choice(_WORDS)}"),
            "remember": self._remember,
            "briefing": lambda: brief_session([("w", self._open())], by=ME, max_tokens=800),
            "create a workspace": self._create,
            f"list {LISTED} workspaces": lambda: self._catalogue.find_all(limit=LISTED),
        }

    def close(self) -> None:
        self._catalogue.close()

    def _open(self) -> Memory:
        """Return the memory of a random workspace, which this process has seldom used before."""
        return Memory(self._catalogue.open(f"w{self._random.randrange(1, self._count)}"))

    def _remember(self) -> None:
        self._new += 1
        facts = EntityFacts(name=f"new {self._new}", facts=(FactDraft("has one more"),))
        remember(self._open(), [facts], by=ME)

    def _create(self) -> None:
        self._new += 1
        self._catalogue.create(f"new-{self._new}")

    def _fill(self) -> None:
        self._catalogue.create("w0")
        with closing(self._catalogue.open("w0")) as store:
            drafts = []
            for at in range(ENTITIES):
                texts = [" ".join(self._random.choices(_WORDS, k=8)) for _ in range(FACTS_EACH)]
                drafts.append(EntityDraft(f"entity {at}", "thing", tuple(texts)))
            entities.create(Memory(store), drafts, by=ME)

    def _copy(self, connection: psycopg.Connection[tuple[object, ...]]) -> None:
        tables = connection.execute(_TABLES).fetchall()
        (source,) = connection.execute("SELECT workspace_id FROM catalogue").fetchall()
        for start in range(1, self._count, _COPIED_AT_ONCE):
            last = min(start + _COPIED_AT_ONCE, self._count) - 1
            copies = [row[0] for row in connection.execute(_NAME_COPIES, [start, last]).fetchall()]
            for table, columns in tables:
                statement = (
                    f"INSERT INTO {table} (workspace_id, {columns}) SELECT n, {columns} "
                    f"FROM {table}, unnest(%s::bigint[]) AS n WHERE workspace_id = %s"
                )
                connection.execute(statement.encode(), [copies, *source])
            connection.commit()


def main(arguments: Sequence[str] | None = None) -> int:
    """Measure and print a table. Return 1 if something takes more than 1.5 times as long."""
    parser = argparse.ArgumentParser(prog="bench.postgres_many", description=__doc__)
    parser.add_argument("--workspaces", type=int, default=100_000, metavar="N")
    parser.add_argument("--few", type=int, default=FEW, metavar="N", help="compare with so many")
    parser.add_argument("--rounds", type=int, default=40, metavar="N")
    parser.add_argument("--postgres", metavar="URL", help="a superuser's URL")
    options = parser.parse_args(arguments)
    with ExitStack() as stack:
        url = options.postgres or stack.enter_context(running_server()).url
        crowds = []
        for count in (options.few, options.workspaces):
            crowd = Crowd(stack.enter_context(new_database(url)), count)
            stack.callback(crowd.close)
            crowds.append(crowd)
        few, many = crowds
        print(f"{machine_line(describe_machine())}\n")
        print(f"| ms, median | {options.few:,} workspaces | {options.workspaces:,} | growth |")
        print("|---|---|---|---|")
        misses = 0
        for name in few.calls():
            one, other = _measure([few.calls()[name], many.calls()[name]], options.rounds)
            misses += other > MOST_GROWTH * one
            print(f"| {name} | {number(one)} | {number(other)} | {number(other / one)} |")
        kilobytes = [number(crowd.bytes_each / 1000) for crowd in crowds]
        print(f"| KB of disk, each | {' | '.join(kilobytes)} | |")
        print(f"| vacuum, s | {number(few.vacuum_s)} | {number(many.vacuum_s)} | |")
    return int(misses > 0)


def _measure(calls: Sequence[Callable[[], object]], rounds: int) -> list[float]:
    """Return the median milliseconds of each call; all are made in turns."""
    samples: list[list[float]] = [[] for _ in calls]
    for _ in range(rounds):
        for call, taken in zip(calls, samples, strict=True):
            started = perf_counter()
            call()
            taken.append(1000 * (perf_counter() - started))
    return [median(taken) for taken in samples]


if __name__ == "__main__":
    raise SystemExit(main())
