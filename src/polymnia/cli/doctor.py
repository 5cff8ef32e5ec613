"""`polymnia doctor`: check a store and say what to do about its problems; salvage a damaged one."""

import argparse
from collections.abc import Iterator
from typing import TYPE_CHECKING

from msgspec import Struct

from polymnia.app import configure_logging, opened
from polymnia.cli.common import (
    add_json_argument,
    add_store_arguments,
    add_workspace_argument,
    print_json,
    printable,
    require_store,
)
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
    add_json_argument(parser)
    add_store_arguments(parser)
    add_workspace_argument(parser)
    return parser


def run(settings: Settings, options: argparse.Namespace) -> int:
    """Return 0 if the store is sound, 1 if something is wrong with it."""
    if options.salvage is not None:
        return _salvage(settings.store, options.salvage, as_json=options.json)
    if options.rebuild:
        return _rebuild(settings.store, as_json=options.json)
    configure_logging("error")
    require_store(settings.store)
    if store_kind(settings.store)[0] in ("directory", "postgres") and not settings.workspace:
        found = _check_all(settings.store)
    else:
        found = _check(settings, settings.workspace)
    if options.json:
        print_json(found)
    else:
        print("\n".join(printable(line) for line in _lines(found)))
    return 0 if found.sound else 1


class Finding(Struct, frozen=True, kw_only=True):
    """What is known of one workspace; the nameless one is the store itself."""

    workspace: str = ""
    counts: Counts | None = None
    notes: int = 0
    problems: tuple[str, ...] = ()


class Findings(Struct, frozen=True, kw_only=True):
    """What is known of a store, and what to do."""

    store: str
    sound: bool
    error: str = ""
    findings: tuple[Finding, ...] = ()
    advice: str = ""


def _check_all(store: str) -> Findings:
    """Check every workspace, archived or not, and whether files and registry agree."""
    findings = tuple(
        Finding(workspace=each.name, counts=each.counts, notes=each.notes, problems=tuple(each.problems))
        for each in check_catalogue(store)
    )
    sound = not any(each.problems for each in findings)
    return Findings(store=store, sound=sound, findings=findings, advice="" if sound else _ADVICE_DIRECTORY)


def _check(settings: Settings, workspace: str) -> Findings:
    url = settings.store
    try:
        with opened(url, workspace, read_only=True) as store:
            problems = store.check()
            with store.reading() as read:
                counts = read.counts()
                notes = read.notes.count(VAULT, ()) if store.capabilities.notes else 0
    except StoreError as exc:
        advice = _advice_if_damaged(url) if isinstance(exc, StoreDamaged) else ""
        return Findings(store=url, sound=False, error=str(exc), advice=advice)
    finding = Finding(counts=counts, notes=notes, problems=tuple(problems))
    return Findings(store=url, sound=not problems, findings=(finding,), advice=_advice(url) if problems else "")


def _lines(found: Findings) -> Iterator[str]:
    yield f"store: {found.store}"
    if found.error:
        yield f"cannot be read: {found.error}"
    for each in found.findings:
        if each.workspace:
            yield f"workspace: {each.workspace}"
        if each.counts is not None:
            yield _holds(each.counts, each.notes)
        yield from (f"problem: {problem}" for problem in each.problems)
        if not each.problems and (each.workspace or each.counts is not None):
            yield "sound: no problems found"
    if found.advice:
        yield found.advice


def _holds(counts: Counts, notes: int) -> str:
    vault = f", {notes} vault notes" if notes else ""
    return f"holds: {counts.entities} entities, {counts.observations} observations, {counts.relations} relations{vault}"


def _rebuild(store: str, *, as_json: bool) -> int:
    found = rebuild_catalogue(store)
    if as_json:
        print_json([{"name": each.name, "status": each.status} for each in found])
        return 0
    for each in found:
        print(printable(f"{each.status}: {each.name}"))
    print(f"What to do: start every server on {store} again; `polymnia workspace rename` changes a name.")
    return 0


def _salvage(store: str, target: str, *, as_json: bool) -> int:
    new, counts, gaps = salvage(store, target)
    if as_json:
        print_json({"file": str(new), "counts": counts, "not_readable": gaps})
        return 0
    for gap in gaps:
        print(printable(f"not readable: {gap}"))
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
