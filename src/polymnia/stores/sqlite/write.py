"""Write to SQLite: a change ends rows and creates rows, and the text indexes follow in the same transaction."""

from collections.abc import Collection, Iterable, Sequence

import apsw

from polymnia.errors import BadInput
from polymnia.model import (
    MAX_ORDINAL,
    VAULT,
    Change,
    Entity,
    Note,
    Observation,
    ObservationSet,
    Relation,
    Rows,
)
from polymnia.search.terms import parts_of
from polymnia.search.text import fold
from polymnia.stores.sqlite.rows import (
    Row,
    as_json,
    find_identities,
    pack_tags,
    pack_uid,
    run,
    run_many,
)

CLIENT_MODEL = "client"
# Two characters more, so that every character of a text starts a trigram.
_TRIGRAM_END = "\n\n"


class TextRows:
    """Rows for the text indexes: of the words of passages, and of their texts for substring search.

    Add them by ascending id: the indexes write a segment for every step back.
    """

    def __init__(self) -> None:
        self.words: list[Row] = []
        self.trigrams: list[Row] = []

    def add_card(
        self, number: int, name: str, kind: str, tags: Iterable[str], summary: str | None
    ) -> None:
        self._add(number, name, " ".join((kind, *tags)), summary, f"{name}\n{kind}")

    def add_observation(self, number: int, text: str) -> None:
        self.words.append((number, None, None, text, parts_of(text) or None))
        self.trigrams.append((number, fold(text) + _TRIGRAM_END))

    def add_note(self, number: int, key: str, text: str, tags: Iterable[str]) -> None:
        self._add(number, key, " ".join(tags), text, f"{key}\n{text}")

    def _add(
        self, number: int, name: str, labels: str, content: str | None, characters: str
    ) -> None:
        whole = " ".join([text for text in (name, labels, content) if text])
        self.words.append((number, name, labels or None, content, parts_of(whole) or None))
        self.trigrams.append((number, fold(characters) + _TRIGRAM_END))


def apply_change(connection: apsw.Connection, change: Change, server: str) -> int:
    """Turn the change into rows inside the open transaction; return its id."""
    return _ChangeWriter(connection, change).run(server)


class _ChangeWriter:
    """One change while it is applied: its id, the next row id, and what enters and leaves the indexes."""

    def __init__(self, connection: apsw.Connection, change: Change) -> None:
        self._connection = connection
        self._change = change
        last = run(connection, "last_change")
        self._id: int = last[0][0] + 1 if last else 1
        self._row: int = last[0][2] if last else 0
        self._added = TextRows()
        self._removed: list[int] = []
        self._own_updates: list[Row] = []

    def run(self, server: str) -> int:
        before, after = self._change.before, self._change.after
        known = self._known_entities(before, after)
        kept = {each.id for each in before.entities} & {each.id for each in after.entities}
        self._end_entities(known, before.entities, kept)
        self._end_observations(known, before.observations)
        run_many(
            self._connection, "end_relation", [(self._id, *each.key) for each in before.relations]
        )
        identities = {each.id: known[each.name][0] for each in before.entities if each.id in kept}
        run_many(
            self._connection,
            "delete_named_vectors",
            [(identities[each],) for each in self._change.renamed],
        )
        self._create_entities(after.entities, identities)
        self._create_observations(known, after.observations)
        self._touch(known, before.observations + after.observations)
        touched = [(self._change.at, self._id, each) for each in self._change.touched]
        run_many(self._connection, "touch_entity", touched)
        run_many(self._connection, "insert_touch", touched)
        self._create_relations(after.relations)
        if before.notes or after.notes:
            self._write_notes(before.notes, after.notes)
        unindex(self._connection, self._removed)
        index(self._connection, self._added)
        self._record(server)
        return self._id

    def _known_entities(self, before: Rows, after: Rows) -> dict[str, tuple[int, int]]:
        """Return the identity and the living card of every entity that the change names."""
        names = {each.name for each in before.entities}
        names |= {each.entity for each in before.observations + after.observations}
        rows = run(self._connection, "entity_ids", as_json(names)) if names else []
        return {name: (entity, card) for name, entity, card in rows}

    def _end_entities(
        self, known: dict[str, tuple[int, int]], entities: Iterable[Entity], kept: set[str]
    ) -> None:
        for each in entities:
            entity, card = known[each.name]
            run(self._connection, "end_card", self._id, card)
            self._removed.append(card)
            if each.id not in kept:
                self._removed += [
                    row for (row,) in run(self._connection, "end_observations_of", self._id, entity)
                ]

    def _end_observations(
        self, known: dict[str, tuple[int, int]], sets: Iterable[ObservationSet]
    ) -> None:
        for each in sets:
            entity = known[each.entity][0]
            for observation in each.observations:
                ended = run(
                    self._connection, "end_observation", self._id, entity, observation.ordinal
                )
                self._removed += [row for (row,) in ended]

    def _create_entities(self, entities: Sequence[Entity], kept: dict[str, int]) -> None:
        """Create cards, and identities and observations for entities that are new or restored."""
        new = [] if self._change.new_ids else [each for each in entities if each.id not in kept]
        identities = {**kept, **self._former_identities(new)}
        cards: list[Row] = []
        created: list[Row] = []
        observations: list[Row] = []
        for each in entities:
            card = self._next_row()
            entity = identities.get(each.id)
            if entity is None:
                entity = card
                created.append(
                    (entity, pack_uid(each.id), each.next_ordinal, each.updated_at, self._id)
                )
            else:
                run(
                    self._connection,
                    "update_entity",
                    each.next_ordinal,
                    each.updated_at,
                    self._id,
                    entity,
                )
            cards.append(self._card(card, entity, each))
            if each.id not in kept:
                observations += [self._observation(entity, one) for one in each.observations]
        run_many(self._connection, "insert_entity", created)
        run_many(self._connection, "insert_update", self._own_updates)
        run_many(self._connection, "insert_card", cards)
        run_many(self._connection, "insert_observation", observations)

    def _former_identities(self, entities: Sequence[Entity]) -> dict[str, int]:
        """Return the identities of deleted entities that are restored."""
        found = find_identities(self._connection, [each.id for each in entities])
        for uid, _, name in found:
            if name is not None:
                raise BadInput(
                    f"the id {uid} belongs to the entity {name}; an id cannot be used twice"
                )
        return {uid: entity for uid, entity, _ in found}

    def _card(self, card: int, entity: int, value: Entity) -> Row:
        self._added.add_card(card, value.name, value.type, value.tags, value.summary)
        about = (value.summary, value.summary_at or None, pack_tags(value.tags), value.created_at)
        if value.updated_at != self._change.at:
            self._own_updates.append((entity, self._id, value.updated_at))
        return (card, entity, value.name, value.type, *about, self._id)

    def _observation(self, entity: int, value: Observation) -> Row:
        ordinal, text = value.ordinal, value.text
        if not 0 < ordinal <= MAX_ORDINAL:
            raise BadInput(
                f"an entity cannot have more than {MAX_ORDINAL} observations; create another entity"
            )
        row = self._next_row()
        self._added.add_observation(row, text)
        return (
            row,
            entity,
            ordinal,
            text,
            value.created_at,
            value.valid_at or None,
            value.source or None,
            self._id,
        )

    def _create_observations(
        self, known: dict[str, tuple[int, int]], sets: Iterable[ObservationSet]
    ) -> None:
        """Create observations in the order they were written, whatever the entity: their ids keep that order."""
        written = [(known[each.entity][0], one) for each in sets for one in each.observations]
        written.sort(key=lambda pair: pair[1].created_at)
        rows = [self._observation(entity, one) for entity, one in written]
        run_many(self._connection, "insert_observation", rows)

    def _touch(self, known: dict[str, tuple[int, int]], sets: Iterable[ObservationSet]) -> None:
        rows = [
            (
                max(one.ordinal for one in each.observations) + 1,
                self._change.at,
                self._id,
                known[each.entity][0],
            )
            for each in sets
        ]
        run_many(self._connection, "update_entity", rows)

    def _create_relations(self, relations: Iterable[Relation]) -> None:
        rows = [(self._next_row(), *each.key, each.created_at, self._id) for each in relations]
        run_many(self._connection, "insert_relation", rows)

    def _write_notes(self, before: Sequence[Note], after: Sequence[Note]) -> None:
        for note in before:
            if note.scope == VAULT:
                self._end_note(note)
        replaced = {(each.scope, each.key) for each in after}
        gone = [
            each
            for each in before
            if each.scope != VAULT and (each.scope, each.key) not in replaced
        ]
        run_many(
            self._connection,
            "delete_session_note",
            [(each.scope.owner, each.scope.session, each.key) for each in gone],
        )
        for note in after:
            if note.scope == VAULT:
                self._create_note(note)
            else:
                run(self._connection, "upsert_session_note", *_session_row(note))

    def _end_note(self, note: Note) -> None:
        ended = [row for (row,) in run(self._connection, "end_note", self._id, note.key)]
        self._removed += ended
        tags = [(tag, row) for row in ended for tag in dict.fromkeys(note.tags)]
        run_many(self._connection, "delete_note_tag", tags)

    def _create_note(self, note: Note) -> None:
        row = self._next_row()
        times = (note.created_at, note.updated_at)
        run(
            self._connection,
            "insert_note",
            row,
            note.key,
            note.content,
            pack_tags(note.tags),
            *times,
            self._id,
        )
        run_many(
            self._connection, "insert_note_tag", [(tag, row) for tag in dict.fromkeys(note.tags)]
        )
        self._added.add_note(row, note.key, note.content, note.tags)
        if note.embedding:
            put_client_vector(self._connection, row, note.embedding)

    def _record(self, server: str) -> None:
        change = self._change
        rows = run(self._connection, "actor_id", change.actor, server)
        if not rows:
            run(self._connection, "insert_actor", change.actor, server)
            rows = run(self._connection, "actor_id", change.actor, server)
        run(
            self._connection,
            "insert_change",
            self._id,
            change.at,
            rows[0][0],
            change.operation,
            self._row,
        )

    def _next_row(self) -> int:
        self._row += 1
        return self._row


def put_client_vector(connection: apsw.Connection, passage: int, vector: bytes) -> None:
    """Store a vector that a client supplied, unchanged."""
    dimension = len(vector) // 4
    identity = client_model(dimension)
    if not run(connection, "model_of", identity):
        run(connection, "insert_model", identity, CLIENT_MODEL, dimension)
    run(
        connection, "insert_vector", passage, 1, run(connection, "model_of", identity)[0][0], vector
    )


def client_model(dimension: int) -> str:
    """Return the identity of the model that stands for the clients' own vectors of that dimension."""
    return f"{CLIENT_MODEL}/{dimension}"


def index(connection: apsw.Connection, texts: TextRows) -> None:
    """Add passages to the text indexes."""
    run_many(connection, "insert_trigrams", texts.trigrams)
    run_many(connection, "insert_words", texts.words)


def unindex(connection: apsw.Connection, passages: Collection[int]) -> None:
    """Remove passages from the text indexes."""
    rows = [(passage,) for passage in passages]
    run_many(connection, "delete_trigrams", rows)
    run_many(connection, "delete_words", rows)


def _session_row(note: Note) -> Row:
    scope = (note.scope.owner, note.scope.session)
    times = (note.created_at, note.updated_at)
    return (*scope, note.key, note.content, pack_tags(note.tags), note.embedding or None, *times)
