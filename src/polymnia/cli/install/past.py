"""`polymnia install --import`: what other programs have left on this machine."""

import argparse
import shlex
import sys
from pathlib import Path

from msgspec import to_builtins

from polymnia.cli.common import Progress, ask, print_json
from polymnia.clients.connect import store_options
from polymnia.clients.takeover import ACTOR, PastSource, find_past_sources, take_over, undo_takeover
from polymnia.search.terms import count_noun
from polymnia.settings import Settings, client_roots


def import_past(settings: Settings, options: argparse.Namespace) -> None:
    """Import what other programs have left, count it, or take it back. Raise BadInput."""
    if options.undo:
        undone = undo_takeover(settings, by=ACTOR)
        if options.json:
            print_json(undone)
            return
        for name, count in undone.facts.items():
            print(f"removed {count_noun(count, 'fact')} from {name}")
        if undone.conflicts:
            print(f"kept {count_noun(undone.conflicts, 'row')} that others have changed since")
        return
    sources = find_past_sources(client_roots(), Path.cwd())
    if not options.json:
        _print_sources(sources)
    _import(settings, sources, dry_run=options.dry_run, as_json=options.json)


def _import(settings: Settings, sources: list[PastSource], *, dry_run: bool, as_json: bool) -> None:
    progress = Progress("files")
    try:
        receipt = take_over(settings, sources, Path.cwd(), dry_run=dry_run, progress=progress)
    except KeyboardInterrupt:
        raise KeyboardInterrupt(
            "interrupted: run the same command again to continue, or add --undo"
        ) from None
    finally:
        progress.end()
    if as_json:
        print_json({"dry_run": dry_run, **to_builtins(receipt)})
    else:
        verb = "would import" if dry_run else "imported"
        entities, facts = (
            count_noun(receipt.entities, "new entity"),
            count_noun(receipt.facts, "fact"),
        )
        print(f"{verb} {entities} with {facts}")
        for name, count in receipt.by_workspace.items():
            print(f"  {name}: {count_noun(count, 'fact')}")
        if receipt.known_files:
            print(f"{count_noun(receipt.known_files, 'file')} were imported before")
        if receipt.secrets:
            print("left out what may contain a key or a password")
        for failure in receipt.failures:
            print(f"skipped {failure}", file=sys.stderr)
        if receipt.facts and not dry_run:
            print("to take it back: polymnia install --import --undo")


def offer_import(settings: Settings, options: argparse.Namespace) -> None:
    """Say what could be imported, and import it if the user agrees."""
    sources = find_past_sources(client_roots(), Path.cwd())
    if not sources:
        return
    _print_sources(sources)
    if sys.stdin.isatty() and ask("Import them now?"):
        _import(settings, sources, dry_run=False, as_json=False)
        return
    command = shlex.join(["polymnia", "install", "--import", *server_options(settings, options)])
    print(f"to store them: {command}   # --dry-run counts first")


def server_options(settings: Settings, options: argparse.Namespace) -> list[str]:
    """Return the options of `serve` that the user gave, with paths that hold in every directory."""
    given = ["--dialect", options.dialect] if options.dialect else []
    if options.store or options.data_dir:
        given += store_options(settings.store)
    return [*given, "--workspace", options.workspace] if options.workspace else given


def _print_sources(sources: list[PastSource]) -> None:
    for source in sources:
        files = count_noun(len(source.files), "file")
        size = f"{source.size / 1e6:,.1f} MB"
        if source.size < 100_000:
            size = f"{source.size / 1e3:.1f} kB"
        print(f"found {source.title}: {files} ({size}) in {source.path}")
