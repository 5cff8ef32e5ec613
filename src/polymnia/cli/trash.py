"""`polymnia trash`: look at what was deleted, bring it back, or take it away for good."""

import argparse
import json

from polymnia.app import configure_logging, opened
from polymnia.cli.missing import refuse_missing
from polymnia.dialects.times import iso_time
from polymnia.engine import trash as verbs
from polymnia.engine.memory import Memory
from polymnia.errors import BadInput
from polymnia.model import TrashItem
from polymnia.settings import Settings


def trash(settings: Settings, options: argparse.Namespace) -> int:
    """Do what the command says. Raises BadInput."""
    configure_logging(settings.log_level)
    refuse_missing(settings.store)
    with opened(settings.store, settings.workspace) as store:
        memory = Memory(store)
        if options.action == "list":
            return _list(verbs.listed(memory), as_json=options.json)
        if options.action == "restore":
            return _restore(memory, options.what)
        return _purge(memory, options.older_than, settings.trash_days)


def _list(found: list[TrashItem], *, as_json: bool) -> int:
    if as_json:
        shown = [
            {"id": each.id, "kind": _kind(each), "what": _title(each), "deleted_at": iso_time(each.deleted_at)}
            for each in found
        ]
        print(json.dumps(shown, indent=2, ensure_ascii=False))
        return 0
    width = max([len(each.id) for each in found], default=0)
    for each in found:
        when = (iso_time(each.deleted_at) or "")[:19].replace("T", " ")
        print(f"{each.id.ljust(width)}  {when}  {_kind(each).ljust(11)}  {_title(each)}")
    return 0


def _kind(trashed: TrashItem) -> str:
    rows = trashed.rows
    return "entity" if rows.entities else "observation" if rows.observations else "relation"


def _title(trashed: TrashItem) -> str:
    rows = trashed.rows
    if rows.entities:
        (entity,) = rows.entities
        more = f"{len(entity.observations)} observations, {len(rows.relations)} relations"
        return f"{entity.name} ({entity.type}): {more}"
    if rows.observations:
        (noted,) = rows.observations
        return f"{noted.entity}: {noted.observations[0].text}"
    (relation,) = rows.relations
    return f"{relation.source} -{relation.type}-> {relation.target}"


def _restore(memory: Memory, what: str) -> int:
    back = verbs.restore(memory, what, by="polymnia trash")
    names = [entity.name for entity in back.entities] + [noted.entity for noted in back.observations]
    said = f"restored {what}" if not names else f"restored {', '.join(names)}"
    print(f"{said}, with {len(back.relations)} relations" if back.entities else said)
    return 0


def _purge(memory: Memory, older_than: float | None, trash_days: int) -> int:
    if older_than is None and not trash_days:
        raise BadInput("say how old: --older-than 30 (days; 0 is everything), or set trash_days")
    gone = verbs.purge(memory, days=trash_days if older_than is None else older_than)
    notes = f", {gone.notes} notes" if gone.notes else ""
    print(
        f"gone for good: {gone.entities} entities, {gone.observations} observations, {gone.relations} relations{notes}"
    )
    return 0
