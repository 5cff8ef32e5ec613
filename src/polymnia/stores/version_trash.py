"""Trash of a store whose rows are versions: what was deleted and can be restored, and what a purge removes.

Every such store has the named queries that are run here, with the same parameters and columns.
"""

from collections import defaultdict

from polymnia.model import ObservationSet, PurgeCounts, Relation, Rows, TrashItem
from polymnia.stores.version_history import Row, VersionRows, last_updates, unpack_observation

# Deleted relations by a name they touched and the change that ended them.
Ended = defaultdict[tuple[str, int], list[Relation]]


class VersionTrash:
    """The deleted rows that were not restored."""

    def __init__(self, rows: VersionRows) -> None:
        self._rows = rows

    def items(self) -> list[TrashItem]:
        deleted = self._rows.run("trashed_relations")
        ended: Ended = defaultdict(list)
        for _, source, target, kind, created_at, change, _ in deleted:
            for name in {source, target}:
                ended[name, change].append(Relation(source, target, kind, created_at))
        entities = [self._entity(row, ended) for row in self._rows.run("trashed_cards")]
        with_entity = {relation.key for item in entities for relation in item.rows.relations}
        relations = [_relation(row) for row in deleted if row[1:4] not in with_entity]
        observations = [self._observation(row) for row in self._rows.run("trashed_observations")]
        notes = [self._note(row) for row in self._rows.run("trashed_notes")]
        return [*entities, *observations, *relations, *notes]

    def _entity(self, row: Row, ended: Ended) -> TrashItem:
        """Return a deleted entity with the observations and relations that were deleted with it."""
        change, deleted_at = row[10:]
        observations = self._rows.run("ended_with", row[0], change)
        entity = self._rows.unpack_entity(
            row[:10], tuple([unpack_observation(*one[1:]) for one in observations])
        )
        relations = tuple(ended.get((entity.name, change), ()))
        return TrashItem(entity.id, deleted_at, Rows(entities=(entity,), relations=relations))

    def _observation(self, row: Row) -> TrashItem:
        ordinal, text, created_at, valid_at, source, deleted_at, uid, name, owner_ended = row
        observation = unpack_observation(ordinal, text, created_at, valid_at, source)
        rows = Rows(observations=(ObservationSet(name, (observation,)),))
        owner = self._rows.unpack_uid(uid)
        return TrashItem(
            f"{owner}/{ordinal}", deleted_at, rows, owner=owner, owner_gone=owner_ended is not None
        )

    def _note(self, row: Row) -> TrashItem:
        return TrashItem(f"note/{row[0]}", row[7], Rows(notes=(self._rows.unpack_note(row[:7]),)))


def purge(rows: VersionRows, before: int) -> PurgeCounts:
    """Delete the rows that ended before that time, inside the open transaction."""
    ((change,),) = rows.run("last_change_before", before)
    _settle_updates(rows, change)
    cards = rows.run("purge_cards", change)
    observations = rows.run("purge_observations", change)
    relations = rows.run("purge_relations", change)
    notes = rows.run("purge_notes", change)
    entities = rows.run("purge_entities") if cards or observations else []
    if entities:
        rows.run("purge_updates")
    if cards or observations or relations or notes:
        rows.run("delete_vectors_of", [passage for (passage,) in (*cards, *observations, *notes)])
        rows.run("record_purge", change)
    return PurgeCounts(len(entities), len(observations), len(relations), len(notes))


def _settle_updates(rows: VersionRows, change: int) -> None:
    """Record when entities were last updated as of a change, before the rows that show it are purged."""
    entities = [entity for (entity,) in rows.run("entities_to_purge", change)]
    cards = rows.run("cards_until", change, entities)
    updates = last_updates(rows, change, cards, rows.run("observations_until", change, entities))
    rows.run("forget_updates", list(updates), change)
    rows.run("settle_updates", list(updates), list(updates.values()), change)


def _relation(row: Row) -> TrashItem:
    number, source, target, kind, created_at, _, deleted_at = row
    return TrashItem(
        f"relation/{number}",
        deleted_at,
        Rows(relations=(Relation(source, target, kind, created_at),)),
    )
