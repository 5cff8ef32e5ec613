"""The processor time of a call of a tool over PostgreSQL, in the server and in the database.

`python -m bench.postgres_cpu` calls the tools of the default dialect in this process, without HTTP,
on 20 small workspaces. Linux only: it reads what the database's processes have used from /proc.
Without --postgres, a server is started for the run (tests/postgres.py).
"""

import argparse
from collections.abc import Callable, Sequence
from contextlib import ExitStack
from pathlib import Path
from random import Random
from time import process_time_ns
from typing import Any

import psycopg

from bench.figures import number
from bench.machine import describe_machine
from bench.report import machine_line
from tests.growth.counting import client_of
from tests.postgres import new_database, running_server

WORKSPACES, ENTITIES, FACTS_EACH = 20, 25, 4
_WORDS = [f"{one}{two}{three}" for one in "bdfgklmn" for two in "aeiou" for three in "prstvz"]


def main(arguments: Sequence[str] | None = None) -> int:
    """Measure and print a table."""
    parser = argparse.ArgumentParser(prog="bench.postgres_cpu", description=__doc__)
    parser.add_argument("--calls", type=int, default=300, metavar="N", help="of each tool")
    parser.add_argument("--postgres", metavar="URL", help="a superuser's URL")
    options = parser.parse_args(arguments)
    random = Random(1)

    def facts(count: int) -> list[str]:
        return [" ".join(random.choices(_WORDS, k=8)) for _ in range(count)]

    with ExitStack() as stack:
        server = options.postgres or stack.enter_context(running_server()).url
        url = stack.enter_context(new_database(server))
        client = stack.enter_context(client_of("native", url))
        watch = stack.enter_context(psycopg.connect(url, autocommit=True))
        for place in range(WORKSPACES):
            client.session.server.workspaces.create(f"w{place}")
            client.session.client.workspace = f"w{place}"
            known = [{"name": f"entity {at}", "facts": facts(FACTS_EACH)} for at in range(ENTITIES)]
            client.text("remember", {"entities": known})
        watch.execute("VACUUM ANALYZE")
        tools: dict[str, Callable[[], dict[str, Any]]] = {
            "open": lambda: {"names": [f"entity {random.randrange(ENTITIES)}"]},
            "recall": lambda: {"query": f"who has {random.choice(_WORDS)}"},
            "remember": lambda: {
                "entities": [{"name": f"new {random.random()}", "facts": facts(1)}]
            },
        }
        print(f"{machine_line(describe_machine())}\n")
        print("| ms of processor time | server | database |\n|---|---|---|")
        for tool, make in tools.items():
            for measured in (False, True):  # the first calls prepare statements
                own, database = process_time_ns(), _database_ns(watch)
                for _ in range(options.calls):
                    client.session.client.workspace = f"w{random.randrange(WORKSPACES)}"
                    client.text(tool, make())
                used = (process_time_ns() - own, _database_ns(watch) - database)
                if measured:
                    figures = [number(time / 1e6 / options.calls) for time in used]
                    print(f"| {tool} | {figures[0]} | {figures[1]} |")
    return 0


def _database_ns(watch: psycopg.Connection[tuple[Any, ...]]) -> int:
    """Return the processor time of the processes that serve the other connections."""
    rows = watch.execute(
        "SELECT pid FROM pg_stat_activity "
        "WHERE datname = current_database() AND pid <> pg_backend_pid()"
    ).fetchall()
    used = 0
    for (pid,) in rows:
        used += int(Path(f"/proc/{pid}/schedstat").read_text().split()[0])
    return used


if __name__ == "__main__":
    raise SystemExit(main())
