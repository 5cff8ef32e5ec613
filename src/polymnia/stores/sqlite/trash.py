"""What was deleted in SQLite: looking at it, and taking it away for good without leaving its text anywhere."""

from collections import defaultdict
from collections.abc import Iterator

import apsw
from msgspec import Struct, json
from msgspec.structs import replace

from polymnia.model import VAULT, Entity, Note, Observation, ObservationSet, PurgeCounts, Relation, Rows, TrashItem
from polymnia.stores.sqlite.layout import ORDINAL_BITS, ORDINALS, Row, run, run_many
from polymnia.stores.sqlite.rows import entity_of

# What was deleted, by a name that it has or touches and by when.
Deaths = dict[tuple[str, int], list[Relation]]


def trashed(connection: apsw.Connection) -> list[TrashItem]:
    """Everything that can be brought back: entities, then single observations, then single relations."""
    relations = [(Relation(*row[1:5]), row[0], row[5]) for row in run(connection, "trashed_relations")]
    touching: Deaths = defaultdict(list)
    for relation, _, at in relations:
        for name in {relation.source, relation.target}:
            touching[name, at].append(relation)
    entities = [_entity(connection, row, touching) for row in run(connection, "trashed_entities")]
    observations = [_observation(*row) for row in run(connection, "trashed_observations")]
    with_entity = {each.key for entity in entities for each in entity.rows.relations}
    alone = [
        TrashItem(f"relation/{number}", at, Rows(relations=(relation,)))
        for relation, number, at in relations
        if relation.key not in with_entity
    ]
    return [*entities, *observations, *alone]


def purge(connection: apsw.Connection, before: int) -> PurgeCounts:
    """Take away what was deleted before that time, in the change log too; gives how much it was.

    Of a deleted note nothing is left but what the change log has.
    """
    doomed = _Doomed.of(connection, before)
    _scrub(connection, doomed)
    for entity, *_ in doomed.entities:
        run(connection, "purge_observations_of", entity << ORDINAL_BITS, entity << ORDINAL_BITS | ORDINALS)
        run(connection, "purge_entity", entity)
    run_many(connection, "purge_observation", [row[:1] for row in doomed.observations])
    run_many(connection, "purge_relation", [row[:1] for row in doomed.relations])
    run(connection, "purge_notes", before)
    gone = PurgeCounts(len(doomed.entities), len(doomed.observations), len(doomed.relations), len(doomed.notes))
    if gone != PurgeCounts():
        run(connection, "record_purge", before)
        for index in ("optimize_trigrams", "optimize_words", "optimize_vault_words"):
            run(connection, index)
    return gone


def _entity(connection: apsw.Connection, row: Row, touching: Deaths) -> TrashItem:
    """A deleted entity, with the observations and relations that were deleted in the same moment."""
    first, deleted_at = row[0] << ORDINAL_BITS, row[10]
    found = run(connection, "trashed_with", first, first | ORDINALS, deleted_at)
    entity = entity_of(row[:10], tuple([Observation(number & ORDINALS, *rest) for number, *rest in found]))
    relations = tuple(touching.get((entity.name, deleted_at), ()))
    return TrashItem(entity.id, deleted_at, Rows(entities=(entity,), relations=relations))


def _observation(
    row_id: int, text: str, created_at: int, valid_at: int, deleted_at: int, uid: str, name: str, owner_gone: int
) -> TrashItem:
    observation = Observation(row_id & ORDINALS, text, created_at, valid_at)
    rows = Rows(observations=(ObservationSet(name, (observation,)),))
    return TrashItem(f"{uid}/{observation.ordinal}", deleted_at, rows, owner=uid, owner_gone=bool(owner_gone))


class _Doomed(Struct, frozen=True):
    """Rows that go, and how the change log calls what was in them."""

    entities: list[Row]
    observations: list[Row]
    relations: list[Row]
    notes: dict[str, int]  # of the vault: keys, and when they were deleted

    @classmethod
    def of(cls, connection: apsw.Connection, before: int) -> "_Doomed":
        return cls(
            run(connection, "doomed_entities", before),
            run(connection, "doomed_observations", before),
            run(connection, "doomed_relations", before),
            dict(run(connection, "doomed_notes", before)),
        )

    def __bool__(self) -> bool:
        return bool(self.entities or self.observations or self.relations or self.notes)


class _Censor:
    """Decides what of a change has to go. A name may have been borne by several: the time tells which one is meant."""

    def __init__(self, doomed: _Doomed) -> None:
        self._uids = {uid for _, uid, *_ in doomed.entities}
        self._ordinals = {(uid, row_id & ORDINALS) for row_id, uid, *_ in doomed.observations}
        self._relations = {(source, target, kind, at) for _, source, target, kind, at in doomed.relations}
        self._memos = doomed.notes
        # By name: from when to when, and which ordinal; 0 is all of them.
        self._notes: defaultdict[str, list[tuple[int, int, int]]] = defaultdict(list)
        for _, _, name, born, died in doomed.entities:
            self._notes[name].append((born, died, 0))
        for row_id, _, name, born, died in doomed.observations:
            self._notes[name].append((born, died or _FOREVER, row_id & ORDINALS))

    def passed(self, rows: Rows, at: int) -> Rows:
        """What may stay of one side of a change of that time."""
        entities = [self._entity(each) for each in rows.entities if each.id not in self._uids]
        notes = [noted for each in rows.observations if (noted := self._noted(each, at)).observations]
        relations = [each for each in rows.relations if (*each.key, each.created_at) not in self._relations]
        memos = [each for each in rows.notes if not self._is_gone(each, at)]
        return replace(
            rows, entities=tuple(entities), observations=tuple(notes), relations=tuple(relations), notes=tuple(memos)
        )

    def _is_gone(self, note: Note, at: int) -> bool:
        return note.scope == VAULT and at <= self._memos.get(note.key, -1)

    def _entity(self, entity: Entity) -> Entity:
        kept = [each for each in entity.observations if (entity.id, each.ordinal) not in self._ordinals]
        return entity if len(kept) == len(entity.observations) else replace(entity, observations=tuple(kept))

    def _noted(self, noted: ObservationSet, at: int) -> ObservationSet:
        gone = {ordinal for born, died, ordinal in self._notes.get(noted.entity, ()) if born <= at <= died}
        kept = [each for each in noted.observations if not gone & {0, each.ordinal}]
        return ObservationSet(noted.entity, tuple(kept))


_FOREVER = 1 << 62


def _scrub(connection: apsw.Connection, doomed: _Doomed) -> None:
    if not doomed:
        return
    run_many(connection, "rewrite_change", list(_rewritten(connection, _Censor(doomed))))


def _rewritten(connection: apsw.Connection, censor: _Censor) -> Iterator[Row]:
    for number, at, _, _, before, after in run(connection, "changes_since", 0, -1):
        states = [json.decode(state, type=Rows) for state in (before, after)]
        passed = [censor.passed(rows, at) for rows in states]
        if passed != states:
            yield (number, *[json.encode(rows).decode() for rows in passed])
