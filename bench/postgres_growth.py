"""Growth of one workspace: `python -m bench.postgres_growth` compares 10,000 entities with more.

Each entity has an observation of seven to ten words. Without --postgres, a server is started for
the run (tests/postgres.py). With it, the databases `growth_N` stay there, and the next run uses
them again: a million entities take ten minutes.
"""

import argparse
import sys
from collections.abc import Iterator, Sequence
from contextlib import ExitStack, closing, contextmanager
from urllib.parse import urlsplit

import psycopg
from psycopg import sql

from bench.figures import number
from bench.machine import describe_machine
from bench.postgres_tenants import Tenant, limit
from bench.report import machine_line
from bench.rounds import take_rounds
from tests.postgres import new_database, running_server

SIZES = (10_000, 100_000)
BUDGET = 2.5
# Substrings are looked up by three letters at a time, and all observations have some of these in
# common: the search grows with them.
_WITHOUT_BUDGET = "substring"


def main(arguments: Sequence[str] | None = None) -> int:
    """Measure and print a table. Return 1 if a call grows beyond the budget."""
    options = _parser().parse_args(arguments)
    print(machine_line(describe_machine()))
    with ExitStack() as stack:
        tenants = {}
        server = options.postgres or stack.enter_context(running_server(fsync=True)).url
        for size in options.sizes:
            if options.postgres:
                tenant = _open_kept(server, size)
            else:
                tenant = stack.enter_context(_open_new(server, size))
            tenants[size] = stack.enter_context(closing(tenant))
        rows = {
            (size, call): row
            for size, tenant in tenants.items()
            for call, row in tenant.rows().items()
        }
        samples = take_rounds(rows, limit(options.seconds))
    return 0 if _report(samples, options.sizes) else 1


@contextmanager
def _open_new(server: str, size: int) -> Iterator[Tenant]:
    """Yield a workspace of this size in a database that is dropped afterwards."""
    with new_database(server) as url:
        yield _fill(url, size)


def _open_kept(server: str, size: int) -> Tenant:
    """Return the workspace of this size. Fill a database for it if there is none yet."""
    name = f"growth_{size}"
    url = urlsplit(server)._replace(path=f"/{name}").geturl()
    with psycopg.connect(server, autocommit=True) as admin:
        if admin.execute("SELECT 1 FROM pg_database WHERE datname = %s", [name]).fetchone():
            return Tenant(f"{url}?workspace=one", size)
        admin.execute(sql.SQL("CREATE DATABASE {}").format(sql.Identifier(name)))
    return _fill(url, size)


def _fill(url: str, size: int) -> Tenant:
    tenant = Tenant(f"{url}?workspace=one").fill(size)
    with psycopg.connect(url, autocommit=True) as connection:
        connection.execute("VACUUM ANALYZE")
    print(f"{size:,} entities: filled", flush=True)
    return tenant


def _report(samples: dict[tuple[int, str], list[float]], sizes: Sequence[int]) -> bool:
    """Print the least time of each call. Return True if none grows beyond the budget."""
    columns = " | ".join(f"{size:,} entities" for size in sizes)
    print(f"\n| ms, least | {columns} | growth |\n|---|{'---|' * (len(sizes) + 1)}")
    worst = 0.0
    for call in dict.fromkeys(call for _, call in samples):
        least = [min(samples[size, call]) for size in sizes]
        growth = least[-1] / least[0]
        if call != _WITHOUT_BUDGET:
            worst = max(worst, growth)
        times = " | ".join(number(seconds * 1e3) for seconds in least)
        print(f"| {call} | {times} | {growth:.2f} |")
    verdict = "met" if worst <= BUDGET else "missed"
    print(f"worst growth without {_WITHOUT_BUDGET} {worst:.2f} (budget {BUDGET}): {verdict}")
    return worst <= BUDGET


def _parser() -> argparse.ArgumentParser:
    new = argparse.ArgumentParser(prog="python -m bench.postgres_growth", description=__doc__)
    new.add_argument("--sizes", type=_sizes, default=SIZES, metavar="N,N", help="entities")
    new.add_argument("--seconds", type=float, default=6.0, help="time for each figure")
    new.add_argument("--postgres", metavar="URL", help="a superuser's URL of a server")
    return new


def _sizes(text: str) -> tuple[int, ...]:
    return tuple(sorted({int(part) for part in text.split(",")}))


if __name__ == "__main__":
    sys.exit(main())
