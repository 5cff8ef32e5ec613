"""`polymnia backup`: copy a store to a file while servers use it."""

import argparse
from typing import TYPE_CHECKING

from polymnia.cli.common import (
    add_json_argument,
    add_store_arguments,
    print_result,
    show_elapsed_time,
)
from polymnia.settings import Settings
from polymnia.stores.backup import back_up, back_up_now

if TYPE_CHECKING:
    from polymnia.cli.common import Subparsers


def add_parser(commands: "Subparsers") -> argparse.ArgumentParser:
    parser = commands.add_parser(
        "backup", help="copy a memory to a file, even while servers use it"
    )
    parser.add_argument(
        "target",
        metavar="TARGET",
        nargs="?",
        help="the new file, or the new directory for a data directory (default: the time, in the folder of backups)",
    )
    parser.add_argument("--force", action="store_true", help="overwrite TARGET")
    add_json_argument(parser)
    add_store_arguments(parser)
    return parser


def run(settings: Settings, options: argparse.Namespace) -> int:
    """Copy the store of the settings. Raise BadInput, StoreError."""
    with show_elapsed_time("copying and checking the store"):
        if options.target is None:
            target = str(back_up_now(settings.store, settings.backups))
        else:
            target = options.target
            back_up(settings.store, target, overwrite=options.force)
    result = {"store": settings.store, "target": target}
    print_result(f"backed up {settings.store} to {target}", result, as_json=options.json)
    return 0
