"""`polymnia perspective`: list, set and remove the perspectives in which a workspace is embedded."""

import argparse
from typing import TYPE_CHECKING

from msgspec import to_builtins

from polymnia.app import open_workspace_memory
from polymnia.cli.common import (
    add_embedder_argument,
    add_json_argument,
    add_store_arguments,
    add_workspace_argument,
    print_json,
    print_result,
    print_table,
    printable,
    require_store,
)
from polymnia.engine import perspectives
from polymnia.engine.memory import Memory
from polymnia.engine.perspectives import PerspectiveCoverage
from polymnia.settings import Settings

if TYPE_CHECKING:
    from polymnia.cli.common import Subparsers

_REST = "a running server embeds the rest in the background; `polymnia index` does it now"


def add_parser(commands: "Subparsers") -> argparse.ArgumentParser:
    parser = commands.add_parser(
        "perspective", help="list, set and remove the perspectives in which a memory is embedded"
    )
    actions = parser.add_subparsers(
        dest="action", metavar="ACTION", required=True, prog="polymnia perspective"
    )
    listing = actions.add_parser(
        "list", help="list the perspectives, and how much of the memory is embedded in each"
    )
    setting = actions.add_parser("set", help="add a perspective, or change its templates")
    setting.add_argument("name", metavar="NAME")
    setting.add_argument(
        "--document",
        metavar="TEMPLATE",
        help="what is embedded of an observation: {text}, and perhaps {name}, {type} and {date} (default: {text})",
    )
    setting.add_argument(
        "--query",
        metavar="TEMPLATE",
        help="what is embedded of a question: {query} (default: {query})",
    )
    removal = actions.add_parser("remove", help="remove a perspective and its vectors")
    removal.add_argument("name", metavar="NAME")
    for each in (listing, setting, removal):
        add_json_argument(each)
        add_embedder_argument(each)
        add_store_arguments(each)
        add_workspace_argument(each)
    return parser


def run(settings: Settings, options: argparse.Namespace) -> int:
    """Carry out the action. Raise BadInput."""
    require_store(settings.store)
    with open_workspace_memory(settings, read_only=options.action == "list") as memory:
        if options.action == "list":
            _print(perspectives.find_all(memory), as_json=options.json)
        else:
            said = _change(memory, options)
            print_result(
                printable(said),
                {"action": options.action, "name": options.name},
                as_json=options.json,
            )
    return 0


def _change(memory: Memory, options: argparse.Namespace) -> str:
    """Change a perspective and return what was done."""
    name = options.name
    if options.action == "remove":
        perspectives.remove(memory, name)
        return f"removed {name}"
    perspectives.store(memory, name, document=options.document, query=options.query)
    (found,) = [each for each in perspectives.find_all(memory) if each.perspective.name == name]
    missing = found.total - found.embedded
    return (
        f"set {name}: {missing} of {found.total} still need vectors; {_REST}"
        if missing
        else f"set {name}"
    )


def _print(found: list[PerspectiveCoverage], *, as_json: bool) -> None:
    if as_json:
        print_json(
            [
                {**to_builtins(each.perspective), "embedded": each.embedded, "total": each.total}
                for each in found
            ]
        )
        return
    print_table(
        [
            (
                each.perspective.name,
                f"{each.embedded}/{each.total}",
                each.perspective.document,
                each.perspective.query,
            )
            for each in found
        ]
    )
