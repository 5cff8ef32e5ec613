"""`polymnia erase`: forget a person, an author or a text in every workspace of a store."""

import argparse
import hashlib
import sys
from collections.abc import Iterator
from contextlib import closing, contextmanager
from functools import partial
from typing import Any

from polymnia.cli.common import (
    Subparsers,
    add_result_arguments,
    add_workspace_argument,
    print_json,
    print_lines,
)
from polymnia.engine.facts.erase import erased_remains
from polymnia.engine.facts.person import PersonalData, PersonQuery, erase_person, find_person
from polymnia.engine.memory import Memory
from polymnia.engine.workspaces import Workspaces, open_workspaces
from polymnia.errors import BadInput, StoreError
from polymnia.search.terms import count_noun
from polymnia.search.times import iso_time
from polymnia.settings import Settings
from polymnia.stores.clock import now_us
from polymnia.stores.open import find_texts
from polymnia.workspace_choice import require_store

_BY = "polymnia erase"
# A shorter text may be part of a word that has nothing to do with it.
_MIN_SEARCHED_BYTES = 12


def add_erase(commands: Subparsers) -> None:
    parser = commands.add_parser(
        "erase",
        help="forget a person for good, in every workspace",
        description="Find what concerns a person in every workspace, in the present and the past, "
        "and erase it for good after you agreed. A search afterwards shows that nothing is left.",
    )
    add_person_arguments(parser, required=True)
    parser.add_argument("--dry-run", action="store_true", help="only say what would be erased")
    parser.add_argument("--yes", action="store_true", help="do not ask for confirmation")
    add_workspace_argument(parser)
    add_result_arguments(parser)


def add_person_arguments(parser: argparse.ArgumentParser, *, required: bool = False) -> None:
    """Add the arguments that say whose data is meant."""
    whose = parser.add_mutually_exclusive_group(required=required)
    whose.add_argument(
        "--about", metavar="NAME", default="", help="the entity NAME, and each text with this name"
    )
    whose.add_argument(
        "--by", metavar="AUTHOR", default="", help="what this client, token or user wrote"
    )
    whose.add_argument(
        "--matching", metavar="TEXT", default="", help="everything that contains TEXT"
    )


def person_query(options: argparse.Namespace) -> PersonQuery | None:
    """Return whose data is meant; None if the command is not about a person."""
    query = PersonQuery(about=options.about, by=options.by, matching=options.matching)
    return None if query == PersonQuery() else query


@contextmanager
def open_all(settings: Settings, *, read_only: bool) -> Iterator[tuple[Workspaces, list[str]]]:
    """Open the workspaces of the store, and name the chosen one or all that are active."""
    require_store(settings.store)
    with closing(open_workspaces(settings.store, read_only=read_only)) as workspaces:
        names = [settings.workspace] if settings.workspace else []
        yield workspaces, names or [found.name for found in workspaces.find_all("active")]


def run_erase(settings: Settings, options: argparse.Namespace) -> int:
    """Find, ask, erase, and look again. Raise BadInput without agreement."""
    query = person_query(options)
    if query is None:
        raise BadInput("an empty text selects nothing: name a person, an author or a text")
    found: dict[str, PersonalData] = {}
    remains: list[str] = []
    with open_all(settings, read_only=options.dry_run) as (workspaces, names):
        for name in names:
            data = find_person(workspaces.memory(name), query)
            if data:
                found[name] = data
        archived = [workspace.name for workspace in workspaces.find_all("archived")]
        if not options.json:
            print_lines([*_summary(found), *_left_to_do(archived)])
        if found and not options.dry_run:
            _confirm(options)
            for name, data in found.items():
                others = partial(_others, workspaces, names, name)
                memory = workspaces.memory(name)
                erase_person(memory, data, by=_BY, other_memories=others)
            remains = _remains(workspaces.memory(names[0]), query)
    left: list[str] = []
    if found and not options.dry_run:
        left = _look_again(settings, query, found)
    if options.json:
        print_json(_receipt(query, found, left, archived, remains, dry_run=options.dry_run))
    elif found and not options.dry_run:
        verdict = [f"still found: {place}" for place in left] or ["looked again: nothing is left"]
        print_lines([*verdict, *remains])
    return 1 if left else 0


def _others(workspaces: Workspaces, names: list[str], but: str) -> list[Memory]:
    return [workspaces.memory(name) for name in names if name != but]


def _summary(found: dict[str, PersonalData]) -> list[str]:
    """Return lines that say what there is in which workspace, with the living facts."""
    lines = []
    for name, data in found.items():
        living = [fact for fact in data.facts if fact.is_living]
        parts = [
            *([", ".join(data.entities)] if data.entities else []),
            count_noun(len(living), "fact"),
            f"{count_noun(len(data.facts) - len(living), 'earlier version')} of facts",
            count_noun(len(data.relations), "relation"),
            count_noun(len(data.notes), "note"),
        ]
        lines.append(f"{name}: {'; '.join(part for part in parts if not part.startswith('0 '))}")
        lines += [f"    {fact.entity} #{fact.ordinal}  {fact.text}" for fact in living]
    return lines or ["nothing is stored that this selects"]


def _left_to_do(archived: list[str]) -> list[str]:
    if not archived:
        return []
    return [f"archived workspaces are not searched: {', '.join(archived)}; restore them first"]


def _confirm(options: argparse.Namespace) -> None:
    if options.yes:
        return
    if options.json or not sys.stdin.isatty():
        raise BadInput("erasing cannot be undone: look at --dry-run, then add --yes to agree")
    if input("This cannot be undone. Type erase to continue: ").strip() != "erase":
        raise BadInput("nothing was erased")


def _remains(memory: Memory, query: PersonQuery) -> list[str]:
    """Free the space of erased rows. Return sentences on what the command cannot erase."""
    remains = [erased_remains(memory)]
    if memory.store.capabilities.keeps_deleted:
        try:
            memory.store.compact()
        except StoreError as exc:
            remains.append(f"{exc}.")
        remains.append(
            "VACUUM leaves bytes of deleted rows in the free space of its pages: as the owner of "
            "the tables, run VACUUM FULL on those of the schema polymnia. Let the archive of WAL "
            "expire."
        )
    if query.by:
        remains.append(f"The history still names {query.by} as the author of changes.")
    return remains


def _look_again(
    settings: Settings, query: PersonQuery, erased: dict[str, PersonalData]
) -> list[str]:
    """Return where the data is still found: in rows of any age, in indexes, or in files."""
    left = []
    kept: list[str] = []  # texts that others have too, and keep
    with open_all(settings, read_only=True) as (workspaces, names):
        for name in names:
            memory = workspaces.memory(name)
            data = find_person(memory, query)
            left += [f"{name}: {fact.entity} #{fact.ordinal}" for fact in data.facts]
            left += [f"{name}: {label}" for label in (*data.entities, *data.notes)]
            if name in erased:
                left += [f"{name}: {problem}" for problem in memory.store.check()]
            with memory.reading() as read:
                kept += [row[3] for row in read.read_rows("observations")]
                kept += [row[2] for row in read.read_rows("notes")]
    texts = set().union(*(data.texts for data in erased.values()))
    all_kept = "\n".join(kept)
    searched = [
        text for text in texts if len(text.encode()) >= _MIN_SEARCHED_BYTES and text not in all_kept
    ]
    return left + find_texts(settings.store, searched, list(erased))


def _receipt(
    query: PersonQuery,
    found: dict[str, PersonalData],
    left: list[str],
    archived: list[str],
    remains: list[str],
    *,
    dry_run: bool,
) -> dict[str, Any]:
    """Return what a company keeps as evidence: it has numbers, but none of what was erased."""
    places = []
    for name, data in found.items():
        counts = {
            "entities": len(data.entities),
            "facts": sum(fact.is_living for fact in data.facts),
            "earlier_versions": sum(not fact.is_living for fact in data.facts),
            "relations": len(data.relations),
            "notes": len(data.notes),
        }
        places.append({"workspace": name, **counts})
    kind, selected = next((kind, text) for kind, text in _fields(query) if text)
    return {
        "selected": kind,
        "sha256_of_selection": hashlib.sha256(selected.encode()).hexdigest(),
        "at": iso_time(now_us()),
        "dry_run": dry_run,
        "workspaces": places,
        "verified": None if dry_run else not left,
        "still_found": left,
        "left_to_do": [*_left_to_do(archived), *remains],
    }


def _fields(query: PersonQuery) -> tuple[tuple[str, str], ...]:
    return (("about", query.about), ("by", query.by), ("matching", query.matching))
