"""Tenants of one PostgreSQL.

`python -m bench.postgres_tenants` measures neighbours, row-level security and statistics.

Each pair is measured in the same rounds. Without --postgres, a server is started for the run
(tests/postgres.py).
"""

import argparse
import sys
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import ExitStack, closing, contextmanager
from random import Random
from secrets import token_hex
from time import perf_counter
from typing import Protocol
from urllib.parse import urlsplit

import psycopg
from psycopg import sql

from bench.figures import number
from bench.machine import describe_machine
from bench.report import machine_line
from bench.rounds import Limits, take_rounds
from polymnia.engine.graph import entities
from polymnia.engine.memory import Memory
from polymnia.engine.recall import search
from polymnia.engine.recall.passages import recall
from polymnia.model import EntityDraft
from polymnia.stores import open_store
from polymnia.stores.postgres.catalogue import migrate_schema
from polymnia.stores.postgres.store import PostgresStore
from tests.postgres import new_database, running_server

ME = "bench"
PARTS = ("neighbour", "security", "statistics")
SMALL, LARGE = 1_000, 20_000
NEIGHBOUR_BUDGET, SECURITY_BUDGET, STATISTICS_BUDGET = 1.5, 1.5, 2.0
_BATCH = 5_000
_COMMON = ("common", "ordinary", "usual")
_WORDS = [f"{one}{two}{three}" for one in "bdfgklmn" for two in "aeiou" for three in "prstvz"]
# As after a bulk load that nothing has analyzed, and after one into tables that were analyzed when
# they were empty.
_FORGET_STATISTICS = (
    "DELETE FROM pg_statistic WHERE starelid IN "
    "(SELECT oid FROM pg_class WHERE relnamespace = 'polymnia'::regnamespace)",
    "UPDATE pg_class SET reltuples = {tuples}, relpages = 0 "
    "WHERE relnamespace = 'polymnia'::regnamespace AND relkind = 'r'",
)
_STOP_AUTOVACUUM = """
DO $$
DECLARE held regclass;
BEGIN
    FOR held IN
        SELECT oid FROM pg_class
        WHERE relnamespace = 'polymnia'::regnamespace AND relkind = 'r'
    LOOP
        EXECUTE format('ALTER TABLE %s SET (autovacuum_enabled = off)', held);
    END LOOP;
END
$$
"""

Sampler = Callable[[], float]


class Measured(Protocol):
    """Something whose calls are timed."""

    def rows(self) -> dict[str, Sampler]:
        """Return what is measured, by name: each call returns its seconds."""


class Tenant:
    """A workspace, and the calls that are measured on it."""

    def __init__(self, url: str, entity_count: int = 0) -> None:
        self._store = open_store(url)
        self._memory = Memory(self._store)
        self._random = Random(url.partition("workspace=")[2])
        self._count = entity_count
        self._new = 0

    def fill(self, entity_count: int) -> "Tenant":
        """Add entities with an observation each; every second observation has the common words."""
        for start in range(0, entity_count, _BATCH):
            numbers = range(start, min(start + _BATCH, entity_count))
            entities.create(self._memory, [self._draft(at) for at in numbers], by=ME)
        self._count = entity_count
        return self

    def keep_statistics(self) -> "Tenant":
        """Let the writes that are measured not update the statistics of the planner."""
        assert isinstance(self._store, PostgresStore)
        self._store.analyze_after = sys.maxsize
        return self

    def rows(self) -> dict[str, Sampler]:
        """Return what is measured, by name."""
        return {
            "open": lambda: _timed(lambda: entities.open_named(self._memory, [self._any_name()])),
            "write": lambda: _timed(self._write),
            "recall of a rare word": lambda: _timed(
                lambda: recall(self._memory, f"unique{self._random.randrange(self._count)}x")
            ),
            "recall of five words": lambda: _timed(
                lambda: recall(self._memory, " ".join(self._random.sample(_WORDS, 5)))
            ),
            "recall of two common words": lambda: _timed(
                lambda: recall(self._memory, " ".join(_COMMON[:2]))
            ),
            "substring": lambda: _timed(
                lambda: search.containing(
                    self._memory, f"nique{self._random.randrange(self._count)}x"
                )
            ),
        }

    def close(self) -> None:
        """Close the store."""
        self._store.close()

    def _draft(self, at: int) -> EntityDraft:
        words = self._random.choices(_WORDS, k=6)
        common = _COMMON if at % 2 else ()
        text = " ".join([f"unique{at}x", *common, *words])
        return EntityDraft(f"entity {at}", "thing", (text,))

    def _write(self) -> None:
        self._new += 1
        name = f"new {self._new} {token_hex(4)}"
        entities.create(self._memory, [EntityDraft(name, "thing", ("one", "two", "three"))], by=ME)

    def _any_name(self) -> str:
        return f"entity {self._random.randrange(self._count)}"


def main(arguments: Sequence[str] | None = None) -> int:
    """Measure and print tables. Return 1 if a budget is missed."""
    options = _parser().parse_args(arguments)
    print(machine_line(describe_machine()))
    limits = limit(options.seconds)
    met = True
    with ExitStack() as stack:
        server = options.postgres or stack.enter_context(running_server(fsync=True)).url
        if "neighbour" in options.only:
            with _neighbours(server, options.large) as pair:
                met &= compare(pair, limits, NEIGHBOUR_BUDGET)
        if "security" in options.only:
            with _security(server, options.large) as pair:
                met &= compare(pair, limits, SECURITY_BUDGET)
        if "statistics" in options.only:
            for title, tuples in (("missing statistics", -1), ("statistics of empty tables", 0)):
                with _statistics(server, options.large, title, tuples) as pair:
                    met &= compare(pair, limits, STATISTICS_BUDGET)
    return 0 if met else 1


@contextmanager
def _neighbours(server: str, large: int) -> Iterator[dict[str, Tenant]]:
    """Yield a small workspace alone in its database, and one in the partition of a large one."""
    with new_database(server) as quiet, new_database(server) as busy, ExitStack() as stack:
        alone = stack.enter_context(closing(Tenant(f"{quiet}?workspace=small").fill(SMALL)))
        stack.enter_context(closing(Tenant(f"{busy}?workspace=large").fill(large)))
        name = _partition_neighbour(busy, "large")
        beside = stack.enter_context(closing(Tenant(f"{busy}?workspace={name}").fill(SMALL)))
        yield {"alone": alone, f"beside {large:,}": beside}


def _partition_neighbour(url: str, name: str) -> str:
    """Return the name of a new workspace whose words are in the same partition."""
    same = (
        "SELECT satisfies_hash_partition('polymnia.words'::regclass, 32, r, workspace_id) "
        "FROM polymnia.catalogue CROSS JOIN generate_series(0, 31) AS r WHERE name = %s ORDER BY r"
    )
    with psycopg.connect(url) as connection:
        wanted = connection.execute(same, [name]).fetchall()
        for at in range(1_000):
            open_store(f"{url}?workspace=small-{at}").close()
            if connection.execute(same, [f"small-{at}"]).fetchall() == wanted:
                return f"small-{at}"
            connection.commit()
    raise RuntimeError("no workspace shares the partition")


@contextmanager
def _security(server: str, size: int) -> Iterator[dict[str, Tenant]]:
    """Yield the same workspace in two databases, without and with row-level security, for an
    ordinary role.
    """
    role, password = f"bench_{token_hex(4)}", token_hex(8)
    with ExitStack() as stack:
        admin = stack.enter_context(psycopg.connect(server, autocommit=True))
        create = sql.SQL("CREATE ROLE {} LOGIN PASSWORD {}")
        admin.execute(create.format(sql.Identifier(role), password))
        stack.callback(admin.execute, sql.SQL("DROP ROLE {}").format(sql.Identifier(role)))
        tenants = {}
        for switch in ("off", "on"):
            owner = stack.enter_context(new_database(server))
            migrate_schema(owner, grant_to=role)
            open_store(f"{owner}?row_security={switch}").close()
            parts = urlsplit(owner)
            netloc = f"{role}:{password}@{parts.netloc.rpartition('@')[2]}"
            url = parts._replace(netloc=netloc, query="workspace=one").geturl()
            tenants[f"security {switch}"] = stack.enter_context(closing(Tenant(url).fill(size)))
        yield tenants


@contextmanager
def _statistics(server: str, size: int, title: str, tuples: int) -> Iterator[dict[str, Tenant]]:
    """Yield the same workspace in two databases, with good statistics and without."""
    with ExitStack() as stack:
        tenants = {}
        for state in ("good statistics", title):
            url = stack.enter_context(new_database(server))
            Tenant(f"{url}?workspace=one").fill(size).close()
            with psycopg.connect(url, autocommit=True) as connection:
                connection.execute(_STOP_AUTOVACUUM)
                connection.execute("VACUUM ANALYZE")
                if state == title:
                    for statement in _FORGET_STATISTICS:
                        connection.execute(statement.format(tuples=tuples))
            tenant = Tenant(f"{url}?workspace=one", size).keep_statistics()
            tenants[state] = stack.enter_context(closing(tenant))
        yield tenants


def limit(seconds: float) -> Limits:
    """Return limits with many short turns: a recall is many waits for the server, and the least of
    a few says only how busy the machine was.
    """
    return Limits(least=20, most=400, seconds=seconds, rounds=40)


def compare(pair: Mapping[str, Measured], limits: Limits, budget: float) -> bool:
    """Print the least time of each call on both, and return True if no ratio exceeds the budget."""
    rows = {
        (title, call): row for title, tenant in pair.items() for call, row in tenant.rows().items()
    }
    samples = take_rounds(rows, limits)
    first, second = pair
    print(f"\n| ms, least | {first} | {second} | ratio |\n|---|---|---|---|")
    worst = 0.0
    for call in dict.fromkeys(call for _, call in rows):
        base, other = min(samples[first, call]), min(samples[second, call])
        worst = max(worst, other / base)
        print(f"| {call} | {number(base * 1e3)} | {number(other * 1e3)} | {other / base:.2f} |")
    verdict = "met" if worst <= budget else "missed"
    print(f"worst ratio {worst:.2f} (budget {budget}): {verdict}", flush=True)
    return worst <= budget


def _timed(call: Callable[[], object]) -> float:
    began = perf_counter()
    call()
    return perf_counter() - began


def _parser() -> argparse.ArgumentParser:
    new = argparse.ArgumentParser(prog="python -m bench.postgres_tenants", description=__doc__)
    new.add_argument("--large", type=int, default=LARGE, help="entities (default: %(default)s)")
    new.add_argument(
        "--only", nargs="+", choices=PARTS, default=PARTS, help="what to measure (default: all)"
    )
    new.add_argument("--seconds", type=float, default=6.0, help="time for each figure")
    new.add_argument("--postgres", metavar="URL", help="a superuser's URL of a server")
    return new


if __name__ == "__main__":
    sys.exit(main())
