"""`polymnia doctor`: check a store, report problems and what to do about them; salvage a damaged binary log."""

import argparse
from typing import TYPE_CHECKING

from polymnia.app import configure_logging, opened
from polymnia.cli.common import add_store_arguments, add_workspace_argument, require_store
from polymnia.errors import StoreError
from polymnia.model import VAULT
from polymnia.settings import Settings
from polymnia.stores import store_kind
from polymnia.stores.open import check_directory, salvage

if TYPE_CHECKING:
    from polymnia.cli.common import Subparsers


def add_parser(commands: "Subparsers") -> argparse.ArgumentParser:
    parser = commands.add_parser("doctor", help="check a memory, and say what is wrong and what to do")
    parser.add_argument(
        "--salvage",
        metavar="FILE",
        nargs="?",
        const="",
        help="write what can be read of a damaged binary log to FILE (default: beside it, ending in .salvaged.mcpmem)",
    )
    add_store_arguments(parser)
    add_workspace_argument(parser)
    return parser


def run(settings: Settings, options: argparse.Namespace) -> int:
    """Return 0 if the store is sound, 1 if something is wrong with it."""
    if options.salvage is not None:
        return _salvage(settings.store, options.salvage)
    configure_logging("error")
    require_store(settings.store)
    print(f"store: {settings.store}")
    kind, path = store_kind(settings.store)
    if kind == "directory" and not settings.workspace:
        return _check_all(settings, path)
    return _check(settings, settings.workspace)


def _check_all(settings: Settings, directory: str) -> int:
    """Check every active workspace, and whether files and registry agree."""
    problems, names = check_directory(directory)
    for problem in problems:
        print(f"problem: {problem}")
    results = []
    for name in names:
        print(f"workspace: {name}")
        results.append(_check(settings, name))
    return 1 if problems or any(results) else 0


def _check(settings: Settings, workspace: str) -> int:
    try:
        with opened(settings.store, workspace) as store:
            problems = store.check()
            with store.reading() as read:
                counts = read.counts()
                notes = read.notes.count(VAULT, ()) if store.capabilities.notes else 0
    except StoreError as exc:
        print(f"cannot be read: {exc}")
        print(_advice_if_unreadable(settings.store))
        return 1
    vault = f", {notes} vault notes" if notes else ""
    print(f"holds: {counts.entities} entities, {counts.observations} observations, {counts.relations} relations{vault}")
    for problem in problems:
        print(f"problem: {problem}")
    print(_advice(settings.store) if problems else "sound: no problems found")
    return 1 if problems else 0


def _salvage(store: str, target: str) -> int:
    new, counts, gaps = salvage(store, target)
    for start, end in gaps:
        print(f"not readable: {end - start} bytes at byte {start}")
    print(f"{new}: {counts.entities} entities, {counts.observations} observations, {counts.relations} relations")
    print(f"What to do: inspect it with `polymnia export --store {new}`; {store_kind(store)[1]} is unchanged.")
    return 0


def _advice_if_unreadable(store: str) -> str:
    if store_kind(store)[0] == "binlog":
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
    return (
        "What to do: stop every server that uses it and copy the file. Then save what can be read with "
        f"`polymnia export --store {store} -o saved.jsonl` and load it into a new store with "
        "`polymnia import saved.jsonl --store new.db`."
    )
