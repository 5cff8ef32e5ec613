"""`polymnia history`: who changed what, newest first."""

import argparse
from typing import TYPE_CHECKING, Any

from polymnia.app import open_workspace_store
from polymnia.cli.common import (
    add_json_argument,
    add_store_arguments,
    add_workspace_argument,
    format_time,
    print_json,
    printable,
    require_store,
)
from polymnia.dialects.times import iso_time, parse_moment
from polymnia.engine import history
from polymnia.engine.history import Difference
from polymnia.engine.memory import Memory
from polymnia.model import Change
from polymnia.settings import Settings

if TYPE_CHECKING:
    from polymnia.cli.common import Subparsers

_MAX_DIFFERENCES = 20
_MARKS = {(True, False): "+", (False, True): "-", (False, False): "~"}


def add_parser(commands: "Subparsers") -> argparse.ArgumentParser:
    parser = commands.add_parser("history", help="list changes, newest first")
    parser.add_argument(
        "name", metavar="NAME", nargs="?", help="only changes to the entity or note with that name"
    )
    parser.add_argument(
        "--actor", metavar="NAME", help="only changes of clients whose name contains this"
    )
    parser.add_argument(
        "--operation", action="append", metavar="NAME", help="only these operations (repeatable)"
    )
    parser.add_argument(
        "--since", metavar="TIME", help="only changes since then: 2026-04-27, or an age such as 7d"
    )
    parser.add_argument(
        "--before", type=int, metavar="ID", help="only changes before this one, for the next page"
    )
    parser.add_argument(
        "--limit",
        type=int,
        default=20,
        metavar="N",
        help="at most this many (default: %(default)s)",
    )
    add_json_argument(parser)
    add_store_arguments(parser)
    add_workspace_argument(parser)
    return parser


def run(settings: Settings, options: argparse.Namespace) -> int:
    """Print the changes. Return 0 if there are any, 1 if not. Raise BadInput, NotSupported."""
    require_store(settings.store)
    with open_workspace_store(settings, read_only=True) as store:
        memory = Memory(store)
        page = history.latest(
            memory,
            limit=options.limit,
            before=options.before,
            actor=options.actor,
            names=[options.name] if options.name else None,
            operations=options.operation,
            since=parse_moment(options.since, "--since") if options.since else None,
        )
        names = history.names_of(memory, options.name) if options.name else None
    told = [(change, history.differences(change, names)) for change in page.changes]
    if options.json:
        print_json({"changes": [_shape(*each) for each in told], "next": page.next})
    else:
        _print(told, page.next)
    return 0 if told else 1


def _shape(change: Change, differences: list[Difference]) -> dict[str, Any]:
    return {
        "id": change.id,
        "at": iso_time(change.at),
        "actor": change.actor,
        "operation": change.operation,
        "differences": differences,
    }


def _print(told: list[tuple[Change, list[Difference]]], older: int | None) -> None:
    for change, differences in told:
        print(
            printable(
                f"change {change.id}  {format_time(change.at)}  {change.actor}  {change.operation}"
            )
        )
        for each in differences[:_MAX_DIFFERENCES]:
            print(f"  {printable(_describe(each))}")
        if len(differences) > _MAX_DIFFERENCES:
            print(f"  … and {len(differences) - _MAX_DIFFERENCES} more")
    if not told:
        print("no such changes")
    if older is not None:
        print(f"older changes: --before {older}")


def _describe(difference: Difference) -> str:
    mark = _MARKS[difference.before is None, difference.after is None]
    what = f"{difference.what} {difference.name}" + (
        f" #{difference.ordinal}" if difference.ordinal else ""
    )
    values = [each for each in (difference.before, difference.after) if each is not None]
    return f"{mark} {what}: {' => '.join(values)}"
