"""Trash of a store whose rows are versions: what can be restored, and what a purge removes.

Every such store has the named queries that are run here, with the same parameters and columns.
"""

from collections import defaultdict

from polymnia.model import FactSet, PurgeCounts, Relation, Rows, TrashItem
from polymnia.stores.clock import now_us
from polymnia.stores.versioned.history import last_updates
from polymnia.stores.versioned.port import DatabasePort, Row
from polymnia.stores.versioned.rows import (
    ENTITY_COLUMNS,
    unpack_entity,
    unpack_fact,
    unpack_note,
)

# Deleted relations by a name they touched and the change that ended them.
Ended = defaultdict[tuple[str, int], list[Relation]]


def deleted_items(port: DatabasePort) -> list[TrashItem]:
    """Return the deleted rows that were not restored."""
    deleted = port.run("trashed_relations")
    ended: Ended = defaultdict(list)
    for _, source, target, kind, created_at, change, _ in deleted:
        for name in {source, target}:
            ended[name, change].append(Relation(source, target, kind, created_at))
    entities = [_entity(port, row, ended) for row in port.run("trashed_cards")]
    with_entity = {relation.key for item in entities for relation in item.rows.relations}
    relations = []
    for row in deleted:
        _, source, target, kind, *_ = row
        if (source, target, kind) not in with_entity:
            relations.append(_relation(row))
    facts = [_fact(port, row) for row in port.run("trashed_observations")]
    notes = [_note(port, row) for row in port.run("trashed_notes")]
    return [*entities, *facts, *relations, *notes]


def _entity(port: DatabasePort, row: Row, ended: Ended) -> TrashItem:
    """Return a deleted entity with the facts and relations that were deleted with it."""
    change, deleted_at = row[ENTITY_COLUMNS:]
    facts = []
    for _, *columns in port.run("ended_with", row[0], change):
        facts.append(unpack_fact(*columns))
    entity = unpack_entity(port, row, tuple(facts))
    relations = tuple(ended.get((entity.name, change), ()))
    return TrashItem(entity.id, deleted_at, change, Rows(entities=(entity,), relations=relations))


def _fact(port: DatabasePort, row: Row) -> TrashItem:
    *columns, deleted_at, change, uid, name, owner_until = row
    fact = unpack_fact(*columns)
    ordinal = fact.ordinal
    changed = Rows(facts=(FactSet(name, (fact,)),))
    owner = port.unpack_uid(uid)
    return TrashItem(
        f"{owner}/{ordinal}",
        deleted_at,
        change,
        changed,
        owner=owner,
        owner_gone=owner_until is not None,
    )


def _note(port: DatabasePort, row: Row) -> TrashItem:
    deleted_at, change = row[7:]
    return TrashItem(f"note/{row[0]}", deleted_at, change, Rows(notes=(unpack_note(port, row),)))


def purge(port: DatabasePort, before: int | None) -> PurgeCounts:
    """Delete the rows that ended before that time, or all, inside the open transaction."""
    if before is None:
        change = port.last_change().id
    else:
        change = _last_certainly_before(port, before)
    _settle_updates(port, change)
    cards = port.run("purge_cards", change)
    facts = port.run("purge_observations", change)
    relations = port.run("purge_relations", change)
    notes = port.run("purge_notes", change)
    entities = []
    if cards or facts:
        entities = port.run("purge_entities")
    if entities:
        port.write("purge_updates")
    if cards or facts or relations or notes:
        passages = [number for (number,) in (*cards, *facts, *notes)]
        port.write("delete_vectors_of", passages)
        port.write("record_purge", change)
    return PurgeCounts(len(entities), len(facts), len(relations), len(notes))


def _last_certainly_before(port: DatabasePort, before: int) -> int:
    """Return the last change before a time, by the times of the changes around it too.

    A clock that was behind gave changes an old time, which the changes before them disprove. The
    times that a clock was ahead prove nothing until they come.
    """
    ((last_before,),) = port.run("last_change_before", before)
    ((first_after,),) = port.run("first_change_between", before, now_us())
    if first_after is not None:
        last_before = min(last_before, first_after - 1)
    return int(last_before)


def _settle_updates(port: DatabasePort, change: int) -> None:
    """Record when entities were last updated, before the rows that show it are purged."""
    entities = [entity for (entity,) in port.run("entities_to_purge", change)]
    cards = port.run("cards_until", change, entities)
    facts = port.run("observations_until", change, entities)
    updates = last_updates(port, change, cards, facts)
    port.write("forget_updates", list(updates), change)
    port.write("settle_updates", list(updates), list(updates.values()), change)


def _relation(row: Row) -> TrashItem:
    number, source, target, kind, created_at, change, deleted_at = row
    return TrashItem(
        f"relation/{number}",
        deleted_at,
        change,
        Rows(relations=(Relation(source, target, kind, created_at),)),
    )
