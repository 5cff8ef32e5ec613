"""Writing to SQLite: a change becomes rows here, its own row in the change log included."""

from collections.abc import Iterable, Iterator

import apsw
from msgspec import json

from polymnia.model import Change, Entity, Noted, Rows
from polymnia.search.words import derived
from polymnia.stores.sqlite.layout import ORDINAL_BITS, ORDINALS, Row, as_json, run, run_many
from polymnia.stores.sqlite.search import padded


def apply_change(connection: apsw.Connection, change: Change) -> None:
    """Turn the change into rows, inside the transaction that is open."""
    before, after = change.before, change.after
    ids = _row_ids(connection, before, after)
    stays = {entity.name for entity in before.entities} & {entity.name for entity in after.entities}
    _delete_entities(connection, [ids[each.name] for each in before.entities if each.name not in stays], change.at)
    _delete_notes(connection, before.notes, ids, change.at)
    _delete_relations(connection, before, change.at)
    _update_entities(connection, [each for each in after.entities if each.name in stays], ids)
    _insert_entities(connection, [each for each in after.entities if each.name not in stays])
    _insert_notes(connection, after.notes, ids)
    _touch(connection, before.notes + after.notes, ids, change.at)
    _insert_relations(connection, after)
    _log(connection, change)


def _row_ids(connection: apsw.Connection, before: Rows, after: Rows) -> dict[str, int]:
    names = {entity.name for entity in before.entities}
    names |= {noted.entity for noted in before.notes + after.notes}
    return dict(run(connection, "entity_ids", as_json(names))) if names else {}


def _delete_entities(connection: apsw.Connection, ids: list[int], at: int) -> None:
    for entity in ids:
        first = entity << ORDINAL_BITS
        living = run(connection, "observations_of", first, first | ORDINALS)
        _forget(connection, [first, *[row[0] for row in living]])
        run(connection, "delete_observations_of", at, first, first | ORDINALS)
        run(connection, "delete_entity", at, entity)


def _delete_notes(connection: apsw.Connection, notes: Iterable[Noted], ids: dict[str, int], at: int) -> None:
    rows = [row_id for row_id, *_ in _note_rows(notes, ids)]
    run_many(connection, "delete_observation", [(at, row_id) for row_id in rows])
    _forget(connection, rows)


def _forget(connection: apsw.Connection, rows: Iterable[int]) -> None:
    """Take rows out of both indexes."""
    bindings = [(row_id,) for row_id in rows]
    run_many(connection, "delete_trigrams", bindings)
    run_many(connection, "delete_words", bindings)


def _delete_relations(connection: apsw.Connection, rows: Rows, at: int) -> None:
    run_many(connection, "delete_relation", [(at, *relation.key) for relation in rows.relations])


def _update_entities(connection: apsw.Connection, entities: Iterable[Entity], ids: dict[str, int]) -> None:
    for entity in entities:
        row_id = ids[entity.name]
        about = (entity.summary, entity.summary_at, as_json(entity.tags), entity.updated_at)
        run(connection, "update_entity", entity.type, *about, row_id)
        _forget(connection, [row_id << ORDINAL_BITS])
        run(connection, "insert_trigrams", row_id << ORDINAL_BITS, padded(entity.name, entity.type))
        run(connection, "insert_words", *_entity_words(row_id << ORDINAL_BITS, entity))


def _insert_entities(connection: apsw.Connection, entities: list[Entity]) -> None:
    if not entities:
        return
    first: int = run(connection, "last_entity")[0][0] + 1
    numbered = list(enumerate(entities, first))
    run_many(connection, "insert_entity", [_entity_row(row_id, entity) for row_id, entity in numbered])
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
    # In the order of row ids: the indexes would write a segment of their own for every step back.
    run_many(connection, "insert_trigrams", _trigram_rows(notes))
    run_many(connection, "insert_words", _word_rows(notes))


def _entity_row(row_id: int, entity: Entity) -> Row:
    about = (entity.summary, entity.summary_at, as_json(entity.tags) if entity.tags else "[]")
    times = (entity.next_ordinal, entity.created_at, entity.updated_at)
    return (row_id, entity.id, entity.name, entity.type, *about, *times)


def _trigram_rows(numbered: Iterable[tuple[int, Entity]]) -> Iterator[Row]:
    for base, entity in numbered:
        yield base, padded(entity.name, entity.type)
        for each in entity.observations:
            yield base | each.ordinal, padded(each.text)


def _word_rows(numbered: Iterable[tuple[int, Entity]]) -> Iterator[Row]:
    for base, entity in numbered:
        yield _entity_words(base, entity)
        for each in entity.observations:
            yield _observation_words(base | each.ordinal, each.text)


def _entity_words(row_id: int, entity: Entity) -> Row:
    return row_id, entity.name, entity.type, None, derived(f"{entity.name} {entity.type}") or None


def _observation_words(row_id: int, text: str) -> Row:
    return row_id, None, None, text, derived(text) or None


def _insert_notes(connection: apsw.Connection, notes: Iterable[Noted], ids: dict[str, int]) -> None:
    rows = sorted(_note_rows(notes, ids))
    run_many(connection, "insert_observation", rows)
    run_many(connection, "insert_trigrams", [(row_id, padded(text)) for row_id, text, *_ in rows])
    run_many(connection, "insert_words", [_observation_words(row_id, text) for row_id, text, *_ in rows])


def _touch(connection: apsw.Connection, notes: Iterable[Noted], ids: dict[str, int], at: int) -> None:
    rows = [(at, max(each.ordinal for each in noted.observations) + 1, ids[noted.entity]) for noted in notes]
    run_many(connection, "touch_entity", rows)


def _note_rows(notes: Iterable[Noted], ids: dict[str, int]) -> list[tuple[int, str, int, int]]:
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
