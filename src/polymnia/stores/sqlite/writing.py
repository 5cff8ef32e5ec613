"""Writing to SQLite: a change becomes rows here, its own row in the change log included."""

from collections.abc import Iterable, Iterator

import apsw
from msgspec import json

from polymnia.model import Change, Entity, ObservationSet, Rows
from polymnia.stores.sqlite.indexing import IndexedTexts, forget, index_soon
from polymnia.stores.sqlite.layout import ORDINAL_BITS, ORDINALS, Row, as_json, run, run_many


def apply_change(connection: apsw.Connection, change: Change) -> None:
    """Turn the change into rows, inside the transaction that is open."""
    before, after = change.before, change.after
    ids = _row_ids(connection, before, after)
    stays = {entity.name for entity in before.entities} & {entity.name for entity in after.entities}
    _delete_entities(connection, [ids[each.name] for each in before.entities if each.name not in stays], change.at)
    _delete_notes(connection, before.observations, ids, change.at)
    _delete_relations(connection, before, change.at)
    _update_entities(connection, [each for each in after.entities if each.name in stays], ids)
    fresh = [each for each in after.entities if each.name not in stays]
    buried = _buried_ids(connection, fresh)
    _unbury_entities(connection, [(buried[each.id], each) for each in fresh if each.id in buried])
    _insert_entities(connection, [each for each in fresh if each.id not in buried])
    _insert_notes(connection, after.observations, ids)
    _touch(connection, before.observations + after.observations, ids, change.at)
    _insert_relations(connection, after)
    if before.notes or after.notes:
        from polymnia.stores.sqlite.note_writing import apply_notes, without_session_texts  # few servers keep notes

        apply_notes(connection, before.notes, after.notes, change.at)
        change = without_session_texts(change)
    _log(connection, change)


def _row_ids(connection: apsw.Connection, before: Rows, after: Rows) -> dict[str, int]:
    names = {entity.name for entity in before.entities}
    names |= {noted.entity for noted in before.observations + after.observations}
    return dict(run(connection, "entity_ids", as_json(names))) if names else {}


def _buried_ids(connection: apsw.Connection, entities: list[Entity]) -> dict[str, int]:
    """The rows of those that are deleted and come back now."""
    return dict(run(connection, "buried_ids", as_json([each.id for each in entities]))) if entities else {}


def _delete_entities(connection: apsw.Connection, ids: list[int], at: int) -> None:
    for entity in ids:
        first = entity << ORDINAL_BITS
        living = run(connection, "observations_of", first, first | ORDINALS)
        forget(connection, [first, *[row[0] for row in living]])
        run(connection, "delete_observations_of", at, first, first | ORDINALS)
        run(connection, "delete_entity", at, entity)


def _delete_notes(connection: apsw.Connection, notes: Iterable[ObservationSet], ids: dict[str, int], at: int) -> None:
    rows = [row_id for row_id, *_ in _note_rows(notes, ids)]
    run_many(connection, "delete_observation", [(at, row_id) for row_id in rows])
    forget(connection, rows)


def _delete_relations(connection: apsw.Connection, rows: Rows, at: int) -> None:
    run_many(connection, "delete_relation", [(at, *relation.key) for relation in rows.relations])


def _update_entities(connection: apsw.Connection, entities: Iterable[Entity], ids: dict[str, int]) -> None:
    for entity in entities:
        row_id = ids[entity.name]
        about = (entity.summary, entity.summary_at, as_json(entity.tags), entity.updated_at)
        run(connection, "update_entity", entity.type, *about, row_id)
        forget(connection, [row_id << ORDINAL_BITS])
        index_soon(connection, [IndexedTexts(row_id << ORDINAL_BITS, entity.name, entity.type, None)])


def _unbury_entities(connection: apsw.Connection, numbered: list[tuple[int, Entity]]) -> None:
    """Entities that come back to their old rows, so that what else lies deleted of them still belongs to them."""
    for row_id, entity in numbered:
        _, _, *about = _entity_row(row_id, entity)
        run(connection, "unbury_entity", *about, row_id)
    _insert_observations(connection, numbered)


def _insert_entities(connection: apsw.Connection, entities: list[Entity]) -> None:
    if not entities:
        return
    first: int = run(connection, "last_entity")[0][0] + 1
    numbered = list(enumerate(entities, first))
    run_many(connection, "insert_entity", [_entity_row(row_id, entity) for row_id, entity in numbered])
    _insert_observations(connection, numbered)


def _insert_observations(connection: apsw.Connection, numbered: list[tuple[int, Entity]]) -> None:
    """The observations of new entities, and what both are found by."""
    notes = [(row_id << ORDINAL_BITS, entity) for row_id, entity in numbered]
    run_many(
        connection,
        "insert_observation",
        [
            (base | each.ordinal, each.text, each.created_at, each.valid_at)
            for base, entity in notes
            for each in entity.observations
        ],
    )
    index_soon(connection, list(_texts(notes)))


def _entity_row(row_id: int, entity: Entity) -> Row:
    about = (entity.summary, entity.summary_at, as_json(entity.tags) if entity.tags else "[]")
    times = (entity.next_ordinal, entity.created_at, entity.updated_at)
    return (row_id, entity.id, entity.name, entity.type, *about, *times)


def _texts(numbered: Iterable[tuple[int, Entity]]) -> Iterator[IndexedTexts]:
    for base, entity in numbered:
        yield IndexedTexts(base, entity.name, entity.type, None)
        for each in entity.observations:
            yield IndexedTexts(base | each.ordinal, None, None, each.text)


def _insert_notes(connection: apsw.Connection, notes: Iterable[ObservationSet], ids: dict[str, int]) -> None:
    rows = sorted(_note_rows(notes, ids))
    run_many(connection, "insert_observation", rows)
    index_soon(connection, [IndexedTexts(row_id, None, None, text) for row_id, text, *_ in rows])


def _touch(connection: apsw.Connection, notes: Iterable[ObservationSet], ids: dict[str, int], at: int) -> None:
    rows = [(at, max(each.ordinal for each in noted.observations) + 1, ids[noted.entity]) for noted in notes]
    run_many(connection, "touch_entity", rows)


def _note_rows(notes: Iterable[ObservationSet], ids: dict[str, int]) -> list[tuple[int, str, int, int]]:
    return [
        (ids[noted.entity] << ORDINAL_BITS | each.ordinal, each.text, each.created_at, each.valid_at)
        for noted in notes
        for each in noted.observations
    ]


def _insert_relations(connection: apsw.Connection, rows: Rows) -> None:
    run_many(connection, "insert_relation", [(*each.key, each.created_at) for each in rows.relations])


def _log(connection: apsw.Connection, change: Change) -> None:
    before, after = json.encode(change.before).decode(), json.encode(change.after).decode()
    run(connection, "insert_change", change.at, change.actor, change.operation, before, after)
