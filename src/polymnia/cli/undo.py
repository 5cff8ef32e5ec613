"""`polymnia undo`: take back changes as one new change."""

import argparse
from typing import TYPE_CHECKING, Any

from polymnia.app import open_workspace_store
from polymnia.cli.common import (
    add_json_argument,
    add_store_arguments,
    add_workspace_argument,
    print_json,
    printable,
    require_store,
    show_elapsed_time,
)
from polymnia.dialects.times import parse_moment
from polymnia.engine.memory import Memory
from polymnia.engine.undo import UndoReceipt, undo, undo_since
from polymnia.errors import BadInput
from polymnia.model import Rows
from polymnia.search.text import count_noun
from polymnia.settings import Settings

if TYPE_CHECKING:
    from polymnia.cli.common import Subparsers

_ACTOR = "polymnia undo"


def add_parser(commands: "Subparsers") -> argparse.ArgumentParser:
    parser = commands.add_parser("undo", help="take back changes, as one new change")
    parser.add_argument(
        "changes",
        metavar="ID",
        nargs="*",
        type=int,
        help="ids of changes; `polymnia history` has them",
    )
    parser.add_argument(
        "--since", metavar="TIME", help="all changes since then: 2026-04-27, or an age such as 7d"
    )
    parser.add_argument(
        "--actor",
        metavar="NAME",
        help="with --since: only those of clients whose name contains this",
    )
    parser.add_argument("--dry-run", action="store_true", help="only say what would change")
    parser.add_argument(
        "--skip-conflicts",
        action="store_true",
        help="undo everything except what was changed since",
    )
    add_json_argument(parser)
    add_store_arguments(parser)
    add_workspace_argument(parser)
    return parser


def run(settings: Settings, options: argparse.Namespace) -> int:
    """Undo. Return 0 if that worked or there was nothing to do, 1 if conflicts prevented it. Raise BadInput."""
    require_store(settings.store)
    if bool(options.changes) == bool(options.since):
        raise BadInput("say what to undo: ids of changes, or --since TIME")
    if options.actor and not options.since:
        raise BadInput("--actor needs --since TIME")
    # A dry run writes nothing, but opens the store for writing, as the undo itself will.
    with open_workspace_store(settings) as store, show_elapsed_time("undoing"):
        receipt = _undo(Memory(store), options)
    if options.json:
        print_json(_shape(receipt, dry_run=options.dry_run))
    else:
        _print(receipt, dry_run=options.dry_run)
    return 1 if receipt.conflicts and not receipt.change and not options.dry_run else 0


def _undo(memory: Memory, options: argparse.Namespace) -> UndoReceipt:
    how = {"by": _ACTOR, "skip_conflicts": options.skip_conflicts, "dry_run": options.dry_run}
    if options.changes:
        return undo(memory, options.changes, **how)
    return undo_since(memory, parse_moment(options.since, "--since"), actor=options.actor, **how)


def _shape(receipt: UndoReceipt, *, dry_run: bool) -> dict[str, Any]:
    return {
        "change": receipt.change or None,
        "dry_run": dry_run,
        "undone": list(receipt.undone),
        "removed": _counts(receipt.before),
        "restored": _counts(receipt.after),
        "conflicts": receipt.conflicts,
    }


def _counts(rows: Rows) -> dict[str, int]:
    sets = sum([len(each.observations) for each in rows.observations])
    return {
        "entities": len(rows.entities),
        "observations": sets + sum([len(each.observations) for each in rows.entities]),
        "relations": len(rows.relations),
        "notes": len(rows.notes),
    }


def _print(receipt: UndoReceipt, *, dry_run: bool) -> None:
    for each in receipt.conflicts:
        print(printable(f"conflict: {each.what}: {each.reason} (change {each.change})"))
    ends, brings = _tell(receipt.before), _tell(receipt.after)
    if receipt.change:
        print(f"undone as change {receipt.change}: removed {ends}, restored {brings}")
    elif dry_run:
        print(f"would remove {ends} and restore {brings}")
    elif receipt.conflicts:
        print("nothing was undone; --skip-conflicts undoes the rest")
    else:
        print("nothing to undo: everything is as it was before")


def _tell(rows: Rows) -> str:
    nouns = ("entity", "observation", "relation", "note")
    counts = zip(nouns, _counts(rows).values(), strict=True)
    return ", ".join([count_noun(count, noun) for noun, count in counts if count]) or "nothing"
