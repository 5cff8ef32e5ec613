"""`polymnia doctor`: check a store and say what to do about its problems; salvage a damaged one."""

import argparse
import logging
from collections.abc import Iterator
from contextlib import closing

from msgspec.structs import replace

from polymnia.auth.authenticator import tokens_of
from polymnia.cli.common import (
    Subparsers,
    add_memory_arguments,
    describe_counts,
    print_json,
    printable,
    show_work,
)
from polymnia.engine.health import Findings, cannot_read, check_all, check_one
from polymnia.errors import StoreError
from polymnia.search.terms import count_noun
from polymnia.settings import Settings, default_store
from polymnia.stores import rebuild_catalogue, store_kind
from polymnia.stores.open import salvage, store_exists
from polymnia.workspace_choice import open_workspace, require_store


def add_doctor(commands: Subparsers) -> None:
    parser = commands.add_parser(
        "doctor", help="check a memory, and say what is wrong and what to do"
    )
    parser.add_argument(
        "--salvage",
        metavar="FILE",
        nargs="?",
        const="",
        help="write what can be read of a damaged .mcpmem or .db file to FILE "
        "(default: beside it, named .salvaged)",
    )
    parser.add_argument(
        "--rebuild",
        action="store_true",
        help="write a new registry for a data directory that lost it",
    )
    add_memory_arguments(parser)


def run_doctor(settings: Settings, options: argparse.Namespace) -> int:
    """Return 0 if the store is sound, 1 if something is wrong with it."""
    if options.salvage is not None:
        new, counts, gaps = salvage(settings.store, options.salvage)
        if options.json:
            print_json({"file": str(new), "counts": counts, "not_readable": gaps})
            return 0
        for gap in gaps:
            print(printable(f"not readable: {gap}"))
        print(f"{new}: {describe_counts(counts)}")
        _, damaged_file = store_kind(settings.store)
        advice = f"What to do: inspect it with `polymnia export --store {new}`"
        print(f"{advice}; {damaged_file} is unchanged.")
        return 0
    if options.rebuild:
        workspaces = rebuild_catalogue(settings.store)
        if options.json:
            print_json(
                [{"name": workspace.name, "status": workspace.status} for workspace in workspaces]
            )
            return 0
        for workspace in workspaces:
            print(printable(f"{workspace.status}: {workspace.name}"))
        print(
            f"What to do: start every server on {settings.store} again; "
            "`polymnia workspace rename` changes a name."
        )
        return 0
    if settings.store == default_store() and not store_exists(settings.store):
        if options.json:
            print_json(Findings(store=settings.store, sound=True))
        else:
            print(f"store: {settings.store}\nsound: nothing is stored yet")
        return 0
    require_store(settings.store)
    # Log no warnings meanwhile: the report says the same.
    logger = logging.getLogger("polymnia")
    level = logger.level
    logger.setLevel(logging.ERROR)
    try:
        with show_work("checking the store"):
            found = _check(settings)
    finally:
        logger.setLevel(level)
    if options.json:
        print_json(found)
    else:
        print("\n".join(printable(line) for line in _lines(found)))
    return 0 if found.sound else 1


def _check(settings: Settings) -> Findings:
    """Check the store, or one workspace of it."""
    if store_kind(settings.store)[0] in ("directory", "postgres") and not settings.workspace:
        return replace(check_all(settings.store), remarks=_token_remarks(settings))
    try:
        with open_workspace(settings, read_only=True) as workspace:
            return check_one(workspace.memory.store, settings.store)
    except StoreError as exc:
        return cannot_read(settings.store, exc)


def _token_remarks(settings: Settings) -> tuple[str, ...]:
    """Say which tokens see what others store in `personal`: those of earlier versions do."""
    try:
        tokens = tokens_of(settings.store, settings.tokens, read_only=True)
        if tokens is None:
            return ()
        with closing(tokens):
            active = [token for token in tokens.all("token") if tokens.state(token) == "active"]
    except StoreError as exc:
        return (f"the tokens cannot be read: {exc}",)
    names = [token.name for token in active if token.workspaces is None and token.can != "admin"]
    if not names:
        return ()
    return (
        f"these tokens may use every workspace, and share the one called personal: "
        f"{', '.join(names)}; `polymnia token assign NAME --workspace WORKSPACE` gives a token "
        "a workspace of its own, and those that you name",
    )


def _lines(found: Findings) -> Iterator[str]:
    yield f"store: {found.store}"
    if found.error:
        # Other commands end this error with the advice to run this one.
        yield f"cannot be read: {found.error.partition('; run `polymnia doctor --store')[0]}"
    for finding in found.findings:
        if finding.workspace:
            yield f"workspace: {finding.workspace}"
        if finding.counts is not None:
            notes = f", {count_noun(finding.notes, 'vault note')}" if finding.notes else ""
            yield f"holds: {describe_counts(finding.counts)}{notes}"
        yield from (f"problem: {problem}" for problem in finding.problems)
        yield from (f"remark: {remark}" for remark in finding.remarks)
        if not finding.problems and (finding.workspace or finding.counts is not None):
            yield "sound: no problems found"
    yield from (f"remark: {remark}" for remark in found.remarks)
    if found.advice:
        yield found.advice
