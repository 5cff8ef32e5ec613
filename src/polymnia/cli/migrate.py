"""`polymnia migrate`: copy a whole memory to another kind of store."""

import argparse
import sys
from typing import TYPE_CHECKING

from polymnia.cli.common import add_json_argument, print_json, progress_bar, require_store
from polymnia.engine.migrate import Copy, migrate
from polymnia.errors import BadInput
from polymnia.search.text import count_noun
from polymnia.settings import Settings

if TYPE_CHECKING:
    from polymnia.cli.common import Subparsers


def add_parser(commands: "Subparsers") -> argparse.ArgumentParser:
    parser = commands.add_parser(
        "migrate",
        help="copy a whole memory to another kind of store",
        description="Copy all workspaces with their history, deleted rows, notes, perspectives and vectors, and "
        "compare each copy with its source. Run it again to continue a copy that was interrupted.",
    )
    parser.add_argument(
        "source",
        metavar="SOURCE",
        help="the store to copy: a file, a data directory or postgresql://…",
    )
    parser.add_argument(
        "target", metavar="TARGET", help="the store to fill; it is created if it does not exist"
    )
    parser.add_argument(
        "--workspace", metavar="NAME", help="copy only this one (a single store becomes `default`)"
    )
    add_json_argument(parser)
    return parser


def run(settings: Settings, options: argparse.Namespace) -> int:
    """Copy each workspace and say what was copied. Raise BadInput, StoreError."""
    require_store(options.source)
    if options.source == options.target:
        raise BadInput("source and target are the same store")
    copies: list[Copy] = []
    for copy in migrate(options.source, options.target, options.workspace, progress_bar):
        copies.append(copy)
        if not options.json:
            _print(copy)
    if options.json:
        print_json(copies)
    else:
        print(f"copied {count_noun(len(copies), 'workspace')}; every copy equals its source")
    return 0


def _print(copy: Copy) -> None:
    counts = ", ".join([f"{count:,} {table}" for table, count in copy.rows.items() if count])
    print(f"{copy.workspace}: {counts or 'empty'} (sha256 {copy.checksum[:16]})")
    if copy.left_behind:
        print(
            f"{copy.workspace}: the target cannot hold {', '.join(copy.left_behind)}",
            file=sys.stderr,
        )
