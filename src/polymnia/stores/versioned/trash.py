"""Trash of a store whose rows are versions: what can be restored, and what a purge removes.

Every such store has the named queries that are run here, with the same parameters and columns.
"""

from collections import defaultdict
from typing import NamedTuple

from polymnia.model import Counts, FactSet, Relation, RelationKey, Rows, TrashItem
from polymnia.stores.clock import now_us
from polymnia.stores.versioned.history import last_updates
from polymnia.stores.versioned.port import DatabasePort
from polymnia.stores.versioned.rows import (
    card_versions,
    fact_versions,
    unpack_entity,
    unpack_fact,
    unpack_note,
)


def deleted_items(port: DatabasePort) -> list[TrashItem]:
    """Return the deleted rows that were not restored."""
    deleted = [_TrashedRelation(*row) for row in port.run("trashed_relations")]
    # Deleted relations by a name they touched and the change that ended them.
    ended: defaultdict[tuple[str, int], list[Relation]] = defaultdict(list)
    for row in deleted:
        for name in {row.source, row.target}:
            ended[name, row.change].append(row.relation)
    items: list[TrashItem] = []
    with_entity: set[RelationKey] = set()
    for *columns, change, deleted_at in port.run("trashed_cards"):
        facts = []
        for _, *fact_columns in port.run("ended_with", columns[0], change):
            facts.append(unpack_fact(*fact_columns))
        entity = unpack_entity(port, tuple(columns), tuple(facts))
        relations = tuple(ended.get((entity.name, change), ()))
        with_entity.update(relation.key for relation in relations)
        rows = Rows(entities=(entity,), relations=relations)
        items.append(TrashItem(entity.id, deleted_at, change, rows))
    for *columns, deleted_at, change, uid, name, owner_until in port.run("trashed_observations"):
        fact = unpack_fact(*columns)
        owner = port.unpack_uid(uid)
        item = TrashItem(
            f"{owner}/{fact.ordinal}",
            deleted_at,
            change,
            Rows(facts=(FactSet(name, (fact,)),)),
            owner=owner,
            owner_gone=owner_until is not None,
        )
        items.append(item)
    for row in deleted:
        if row.relation.key not in with_entity:
            rows = Rows(relations=(row.relation,))
            items.append(TrashItem(f"relation/{row.id}", row.deleted_at, row.change, rows))
    for *columns, deleted_at, change in port.run("trashed_notes"):
        rows = Rows(notes=(unpack_note(port, tuple(columns)),))
        items.append(TrashItem(f"note/{columns[0]}", deleted_at, change, rows))
    return items


class _TrashedRelation(NamedTuple):
    id: int
    source: str
    target: str
    type: str
    created_at: int
    change: int
    deleted_at: int

    @property
    def relation(self) -> Relation:
        return Relation(self.source, self.target, self.type, self.created_at)


def purge(port: DatabasePort, before: int | None) -> Counts:
    """Delete the rows that ended before that time, or all, inside the open transaction."""
    if before is None:
        change = port.last_change().id
    else:
        # The last change before a time, by the times of the changes around it too.
        ((last_before,),) = port.run("last_change_before", before)
        ((first_after,),) = port.run("first_change_between", before, now_us())
        if first_after is not None:
            last_before = min(last_before, first_after - 1)
        change = int(last_before)
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
    return Counts(len(entities), len(facts), len(relations), len(notes))


def _settle_updates(port: DatabasePort, change: int) -> None:
    """Record when entities were last updated, before the rows that show it are purged."""
    entities = [entity for (entity,) in port.run("entities_to_purge", change)]
    cards = card_versions(port.run("cards_until", change, entities))
    facts = fact_versions(port.run("observations_until", change, entities))
    updates = last_updates(port, change, cards, facts)
    port.write("forget_updates", list(updates), change)
    port.write("settle_updates", list(updates), list(updates.values()), change)
