"""The trash in SQLite: what was deleted and can be restored, and removing it so that no text remains."""

from collections import defaultdict

import apsw

from polymnia.model import ObservationSet, PurgeCounts, Relation, Rows, TrashItem
from polymnia.stores.sqlite.history import last_updates
from polymnia.stores.sqlite.rows import (
    Row,
    as_json,
    run,
    run_many,
    unpack_entity,
    unpack_note,
    unpack_observation,
    unpack_uid,
)

# Pages per step of a full merge, so that other writers get their turn.
_MERGE_PAGES = 200

# Deleted relations by a name they touched and the change that ended them.
Ended = defaultdict[tuple[str, int], list[Relation]]


class SqliteTrash:
    """The trash as the connection's transaction sees it."""

    def __init__(self, connection: apsw.Connection) -> None:
        self._connection = connection

    def items(self) -> list[TrashItem]:
        rows = run(self._connection, "trashed_relations")
        ended: Ended = defaultdict(list)
        for _, source, target, kind, created_at, change, _ in rows:
            for name in {source, target}:
                ended[name, change].append(Relation(source, target, kind, created_at))
        entities = [self._entity(row, ended) for row in run(self._connection, "trashed_cards")]
        with_entity = {relation.key for item in entities for relation in item.rows.relations}
        relations = [_relation(row) for row in rows if row[1:4] not in with_entity]
        observations = [_observation(row) for row in run(self._connection, "trashed_observations")]
        notes = [_note(row) for row in run(self._connection, "trashed_notes")]
        return [*entities, *observations, *relations, *notes]

    def _entity(self, row: Row, ended: Ended) -> TrashItem:
        """Return a deleted entity with the observations and relations that were deleted with it."""
        change, deleted_at = row[10:]
        observations = run(self._connection, "ended_with", row[0], change)
        entity = unpack_entity(row[:10], tuple([unpack_observation(*one[1:]) for one in observations]))
        relations = tuple(ended.get((entity.name, change), ()))
        return TrashItem(entity.id, deleted_at, Rows(entities=(entity,), relations=relations))


def purge(connection: apsw.Connection, before: int) -> PurgeCounts:
    """Delete the rows that ended before that time, inside the open transaction."""
    ((change,),) = run(connection, "last_change_before", before)
    _settle_updates(connection, change)
    cards = run(connection, "purge_cards", change)
    observations = run(connection, "purge_observations", change)
    relations = run(connection, "purge_relations", change)
    notes = run(connection, "purge_notes", change)
    entities = run(connection, "purge_entities") if cards or observations else []
    if entities:
        run(connection, "purge_updates")
    if cards or observations or relations or notes:
        run_many(connection, "delete_vectors_of", [*cards, *observations, *notes])
        run(connection, "record_purge", change)
    return PurgeCounts(len(entities), len(observations), len(relations), len(notes))


def _settle_updates(connection: apsw.Connection, change: int) -> None:
    """Record when entities were last updated as of a change, before the rows that tell it are purged."""
    entities = as_json([entity for (entity,) in run(connection, "entities_to_purge", change)])
    cards = run(connection, "cards_until", change, entities)
    updates = last_updates(connection, change, cards, run(connection, "observations_until", change, entities))
    run_many(connection, "forget_updates", [(entity, change) for entity in updates])
    run_many(connection, "insert_update", [(entity, change, at) for entity, at in updates.items()])


def merge_indexes(connection: apsw.Connection, *, start: bool) -> bool:
    """Do one step of a full merge of the text indexes; return True while there is more to do.

    Until then the words of deleted rows remain in old segments.
    """
    words = _merge(connection, "merge_words", start=start)
    trigrams = _merge(connection, "merge_trigrams", start=start)
    return words or trigrams


def _merge(connection: apsw.Connection, query: str, *, start: bool) -> bool:
    before = connection.total_changes()
    run(connection, query, -_MERGE_PAGES if start else _MERGE_PAGES)
    return start or connection.total_changes() - before > 1  # one change is the command itself


def _relation(row: Row) -> TrashItem:
    number, source, target, kind, created_at, _, deleted_at = row
    return TrashItem(f"relation/{number}", deleted_at, Rows(relations=(Relation(source, target, kind, created_at),)))


def _observation(row: Row) -> TrashItem:
    ordinal, text, created_at, valid_at, source, deleted_at, uid, name, owner_ended = row
    observation = unpack_observation(ordinal, text, created_at, valid_at, source)
    rows = Rows(observations=(ObservationSet(name, (observation,)),))
    owner = unpack_uid(uid)
    return TrashItem(f"{owner}/{ordinal}", deleted_at, rows, owner=owner, owner_gone=owner_ended is not None)


def _note(row: Row) -> TrashItem:
    return TrashItem(f"note/{row[0]}", row[7], Rows(notes=(unpack_note(row[:7]),)))
