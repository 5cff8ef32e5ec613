"""`polymnia restore`: replace a store by a backup, and keep the former one."""

import argparse
from typing import TYPE_CHECKING

from polymnia.cli.common import (
    add_json_argument,
    add_store_arguments,
    print_result,
    show_elapsed_time,
)
from polymnia.settings import Settings
from polymnia.stores.backup import restore

if TYPE_CHECKING:
    from polymnia.cli.common import Subparsers


def add_parser(commands: "Subparsers") -> argparse.ArgumentParser:
    parser = commands.add_parser(
        "restore", help="replace a memory by a backup; the former one is kept"
    )
    parser.add_argument(
        "source",
        metavar="SOURCE",
        help="what `polymnia backup` wrote, or any store of the same kind",
    )
    add_json_argument(parser)
    add_store_arguments(parser)
    return parser


def run(settings: Settings, options: argparse.Namespace) -> int:
    """Replace the store of the settings. Raise BadInput, StoreError."""
    with show_elapsed_time("copying and checking the backup"):
        kept = restore(settings.store, options.source)
    said = f"restored {settings.store} from {options.source}"
    if kept is not None:
        said += f"\nthe former memory is {kept}; start running servers again"
    result = {
        "store": settings.store,
        "source": options.source,
        "kept": None if kept is None else str(kept),
    }
    print_result(said, result, as_json=options.json)
    return 0
