"""What a memory takes in PostgreSQL.

`python -m bench.postgres_size` fills a database and prints its size by table.

Each entity has three facts of eight words. Sizes are also given for a million facts.
"""

import argparse
from collections.abc import Sequence
from contextlib import closing

import psycopg

from bench.postgres import Database
from tests.postgres import new_database, running_server

FACTS = 30_000
WORKSPACES = 10
_SIZES = """
SELECT coalesce(p.inhparent, c.oid)::regclass::text,
    sum(pg_table_size(c.oid)), sum(pg_indexes_size(c.oid))
FROM pg_class AS c LEFT JOIN pg_inherits AS p ON p.inhrelid = c.oid
WHERE c.relnamespace = 'polymnia'::regnamespace AND c.relkind = 'r'
GROUP BY 1 ORDER BY sum(pg_total_relation_size(c.oid)) DESC
"""


def main(arguments: Sequence[str] | None = None) -> int:
    """Print the sizes as a table."""
    parser = argparse.ArgumentParser(prog="python -m bench.postgres_size", description=__doc__)
    parser.add_argument("--facts", type=int, default=FACTS, metavar="N")
    options = parser.parse_args(arguments)
    with (
        running_server() as server,
        new_database(server.url) as url,
        closing(Database(url, options.facts, WORKSPACES)),
    ):
        rows = _read_sizes(url)
    print(f"{options.facts:,} facts in {WORKSPACES} workspaces\n")
    print("| table | rows, MB | indexes, MB | MB for a million facts |")
    print("|---|---|---|---|")
    for name, table, indexes in rows:
        million = (table + indexes) * 1_000_000 / options.facts
        if million >= 1e6:
            print(f"| `{name}` | {table / 1e6:.1f} | {indexes / 1e6:.1f} | {million / 1e6:,.0f} |")
    total = sum(table + indexes for _, table, indexes in rows)
    million = total * 1_000_000 / options.facts
    print(f"| all | | {total / 1e6:.1f} | {million / 1e6:,.0f} |")
    return 0


def _read_sizes(url: str) -> list[tuple[str, int, int]]:
    with psycopg.connect(url, options="-c search_path=polymnia") as connection:
        rows = connection.execute(_SIZES).fetchall()
    return [(str(name), int(table), int(indexes)) for name, table, indexes in rows]


if __name__ == "__main__":
    raise SystemExit(main())
