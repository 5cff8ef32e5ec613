"""`polymnia doctor`: check a store and say what to do about its problems; salvage a damaged one."""

import argparse
from typing import TYPE_CHECKING

from polymnia.app import configure_logging, opened
from polymnia.cli.common import add_store_arguments, add_workspace_argument, require_store
from polymnia.errors import StoreDamaged, StoreError
from polymnia.model import VAULT, Counts
from polymnia.settings import Settings
from polymnia.stores import check_catalogue, rebuild_catalogue, store_kind
from polymnia.stores.open import salvage

if TYPE_CHECKING:
    from polymnia.cli.common import Subparsers

_ADVICE_DIRECTORY = (
    "What to do: restore a missing or empty file from a backup. For a damaged one, stop every server and run "
    "`polymnia doctor --salvage --store FILE`. For a lost registry, run `polymnia doctor --rebuild`."
)


def add_parser(commands: "Subparsers") -> argparse.ArgumentParser:
    parser = commands.add_parser("doctor", help="check a memory, and say what is wrong and what to do")
    parser.add_argument(
        "--salvage",
        metavar="FILE",
        nargs="?",
        const="",
        help="write what can be read of a damaged .mcpmem or .db file to FILE (default: beside it, named .salvaged)",
    )
    parser.add_argument("--rebuild", action="store_true", help="write a new registry for a data directory that lost it")
    add_store_arguments(parser)
    add_workspace_argument(parser)
    return parser


def run(settings: Settings, options: argparse.Namespace) -> int:
    """Return 0 if the store is sound, 1 if something is wrong with it."""
    if options.salvage is not None:
        return _salvage(settings.store, options.salvage)
    if options.rebuild:
        return _rebuild(settings.store)
    configure_logging("error")
    require_store(settings.store)
    print(f"store: {settings.store}")
    if store_kind(settings.store)[0] == "directory" and not settings.workspace:
        return _check_all(settings.store)
    return _check(settings, settings.workspace)


def _check_all(store: str) -> int:
    """Check every workspace, archived or not, and whether files and registry agree."""
    reports = check_catalogue(store)
    for each in reports:
        if each.name:
            print(f"workspace: {each.name}")
        if each.counts is not None:
            _print_counts(each.counts, each.notes)
        for problem in each.problems:
            print(f"problem: {problem}")
        if each.name and not each.problems:
            print("sound: no problems found")
    if any(each.problems for each in reports):
        print(_ADVICE_DIRECTORY)
        return 1
    return 0


def _check(settings: Settings, workspace: str) -> int:
    try:
        with opened(settings.store, workspace, read_only=True) as store:
            problems = store.check()
            with store.reading() as read:
                counts = read.counts()
                notes = read.notes.count(VAULT, ()) if store.capabilities.notes else 0
    except StoreError as exc:
        print(f"cannot be read: {exc}")
        if isinstance(exc, StoreDamaged):
            print(_advice_if_damaged(settings.store))
        return 1
    _print_counts(counts, notes)
    for problem in problems:
        print(f"problem: {problem}")
    print(_advice(settings.store) if problems else "sound: no problems found")
    return 1 if problems else 0


def _print_counts(counts: Counts, notes: int) -> None:
    vault = f", {notes} vault notes" if notes else ""
    print(f"holds: {counts.entities} entities, {counts.observations} observations, {counts.relations} relations{vault}")


def _rebuild(store: str) -> int:
    for each in rebuild_catalogue(store):
        print(f"{each.status}: {each.name}")
    print(f"What to do: start every server on {store} again; `polymnia workspace rename` changes a name.")
    return 0


def _salvage(store: str, target: str) -> int:
    new, counts, gaps = salvage(store, target)
    for gap in gaps:
        print(f"not readable: {gap}")
    print(f"{new}: {counts.entities} entities, {counts.observations} observations, {counts.relations} relations")
    print(f"What to do: inspect it with `polymnia export --store {new}`; {store_kind(store)[1]} is unchanged.")
    return 0


def _advice_if_damaged(store: str) -> str:
    if store_kind(store)[0] in ("binlog", "sqlite"):
        return (
            f"What to do: stop every server that uses it, then run `polymnia doctor --salvage --store {store}`. It "
            "writes what can be read to a new file and does not change this one."
        )
    return "What to do: copy the file, then restore a backup, or export the data from another copy."


def _advice(store: str) -> str:
    kind, path = store_kind(store)
    if kind == "binlog":
        return (
            "What to do: nothing. A write was not finished, and no client was told that it had succeeded; the next "
            f"write moves what is there of it to {store_kind(store)[1]}.torn."
        )
    if kind == "jsonl":
        return (
            "What to do: correct these lines in an editor, or ignore them. Everything else is loaded, and the next "
            f"write moves them to {path}.rejected."
        )
    return _advice_if_damaged(store)
