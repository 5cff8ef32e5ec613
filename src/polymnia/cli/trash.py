"""`polymnia trash`: list what was deleted, restore it, or purge it."""

import argparse
from typing import TYPE_CHECKING

from polymnia.app import open_workspace_store
from polymnia.cli.common import (
    add_json_argument,
    add_store_arguments,
    add_workspace_argument,
    print_json,
    print_result,
    print_table,
    printable,
    require_store,
    show_elapsed_time,
)
from polymnia.dialects.times import iso_time
from polymnia.engine import trash
from polymnia.engine.memory import Memory
from polymnia.errors import BadInput
from polymnia.model import TrashItem
from polymnia.search.text import count_noun
from polymnia.settings import Settings

if TYPE_CHECKING:
    from polymnia.cli.common import Subparsers


def add_parser(commands: "Subparsers") -> argparse.ArgumentParser:
    parser = commands.add_parser("trash", help="list, restore and purge deleted memories")
    actions = parser.add_subparsers(
        dest="action", metavar="ACTION", required=True, prog="polymnia trash"
    )
    listing = actions.add_parser("list", help="list what was deleted, latest first")
    restore = actions.add_parser("restore", help="restore something that was deleted")
    restore.add_argument(
        "what",
        metavar="ID",
        help="an id from the list, the name of an entity, or the key of a note",
    )
    purge = actions.add_parser(
        "purge", help="delete permanently what is in the trash, including its text"
    )
    purge.add_argument(
        "--older-than",
        type=float,
        metavar="DAYS",
        help="only what was deleted more than DAYS days ago (default: trash_days)",
    )
    for each in (listing, restore, purge):
        add_json_argument(each)
        add_store_arguments(each)
        add_workspace_argument(each)
    return parser


def run(settings: Settings, options: argparse.Namespace) -> int:
    """Carry out the action. Raise BadInput."""
    require_store(settings.store)
    with open_workspace_store(settings, read_only=options.action == "list") as store:
        memory = Memory(store)
        if options.action == "list":
            _list(trash.items(memory), as_json=options.json)
        elif options.action == "restore":
            _restore(memory, options.what, as_json=options.json)
        else:
            _purge(memory, options.older_than, settings.trash_days, as_json=options.json)
    return 0


def _list(items: list[TrashItem], *, as_json: bool) -> None:
    if as_json:
        print_json(
            [
                {
                    "id": each.id,
                    "kind": _kind(each),
                    "what": _title(each),
                    "deleted_at": iso_time(each.deleted_at),
                }
                for each in items
            ]
        )
        return
    times = [(iso_time(each.deleted_at) or "")[:19].replace("T", " ") for each in items]
    print_table(
        [(each.id, at, _kind(each), _title(each)) for each, at in zip(items, times, strict=True)]
    )


def _kind(item: TrashItem) -> str:
    rows = item.rows
    kinds = (
        (rows.entities, "entity"),
        (rows.observations, "observation"),
        (rows.relations, "relation"),
    )
    return next((kind for found, kind in kinds if found), "note")


def _title(item: TrashItem) -> str:
    rows = item.rows
    if rows.entities:
        (entity,) = rows.entities
        counts = (
            count_noun(len(entity.observations), "observation"),
            count_noun(len(rows.relations), "relation"),
        )
        return f"{entity.name} ({entity.type}): {', '.join(counts)}"
    if rows.observations:
        (owner,) = rows.observations
        return f"{owner.entity}: {owner.observations[0].text}"
    if rows.notes:
        (note,) = rows.notes
        return f"{note.key}: {note.content}"
    (relation,) = rows.relations
    return f"{relation.source} -{relation.type}-> {relation.target}"


def _restore(memory: Memory, what: str, *, as_json: bool) -> None:
    back = trash.restore(memory, what, by="polymnia trash")
    names = [entity.name for entity in back.entities] + [
        owner.entity for owner in back.observations
    ]
    names += [note.key for note in back.notes]
    restored = printable(f"restored {', '.join(names) or what}")
    said = (
        f"{restored}, with {count_noun(len(back.relations), 'relation')}"
        if back.entities
        else restored
    )
    print_result(
        said, {"restored": names or [what], "relations": len(back.relations)}, as_json=as_json
    )


def _purge(memory: Memory, older_than: float | None, trash_days: int, *, as_json: bool) -> None:
    if older_than is None and not trash_days:
        raise BadInput(
            "purge needs an age: use --older-than DAYS (0 purges everything), or set trash_days"
        )
    with show_elapsed_time("purging"):
        gone = trash.purge(memory, days=trash_days if older_than is None else older_than)
    told = [count_noun(gone.entities, "entity"), count_noun(gone.observations, "observation")]
    told += [count_noun(gone.relations, "relation")]
    told += [count_noun(gone.notes, "note")] if gone.notes else []
    print_result(f"purged: {', '.join(told)}", gone, as_json=as_json)
