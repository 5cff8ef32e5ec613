"""Write to PostgreSQL: a change ends and creates rows, many in one statement, all statements in one round trip."""

from collections.abc import Iterable, Sequence
from uuid import UUID

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
from polymnia.stores.postgres.connection import Row
from polymnia.stores.postgres.database import LastChange, WorkspaceConnection
from polymnia.stores.postgres.rows import columns, pack_half, pack_tags
from polymnia.stores.postgres.words import WordVector, word_vector

CLIENT_MODEL = "client"
# The identity and the living card of each entity, by name.
Identities = dict[str, tuple[int, int]]


def apply_change(
    connection: WorkspaceConnection,
    change: Change,
    last: LastChange,
    found: Identities,
    server: str,
    key: UUID,
) -> int:
    """Queue the rows of the change, which are written with the commit; return its id.

    `found` are the entities that the transaction has read already.
    """
    return _ChangeWriter(connection, change, last, found).run(server, key)


class _ChangeWriter:
    """One change while it is applied: its id, the last row id, and the passages that enter the index."""

    def __init__(
        self, connection: WorkspaceConnection, change: Change, last: LastChange, found: Identities
    ) -> None:
        self._connection = connection
        self._change = change
        self._found = found
        self._id = last.id + 1
        self._row = last.row
        self._added: list[tuple[int, WordVector]] = []

    def run(self, server: str, key: UUID) -> int:
        before, after = self._change.before, self._change.after
        kept = {each.id for each in before.entities} & {each.id for each in after.entities}
        known, former = self._read(before, after, kept)
        self._end(known, before, kept)
        identities = {
            each.id: known[each.name][0] for each in before.entities if each.id in kept
        } | former
        if renamed := self._change.renamed:
            self._connection.write("delete_named_vectors", [identities[each] for each in renamed])
        self._create_entities(after.entities, identities, kept)
        self._create_observations(known, after.observations)
        self._touch(known, before.observations + after.observations)
        if self._change.touched:
            self._connection.write(
                "touch_entities", self._change.touched, self._change.at, self._id
            )
        self._create_relations(after.relations)
        self._write_notes(before.notes, after.notes)
        if before:
            self._connection.write("unindex_ended", self._id)
        self._record(server, key, self._index())
        return self._id

    def _read(self, before: Rows, after: Rows, kept: set[str]) -> tuple[Identities, dict[str, int]]:
        """Return identity and living card of every entity that the change names, and who comes back from the trash."""
        names = {each.name for each in before.entities}
        names |= {each.entity for each in before.observations + after.observations}
        unread = names - self._found.keys()
        new = (
            []
            if self._change.new_ids
            else [each.id for each in after.entities if each.id not in kept]
        )
        if not unread and not new:
            return self._found, {}
        self._connection.send("entity_ids", unread)
        self._connection.send("entities_by_uid", new)
        known, found = self._connection.fetch()[-2:]
        for uid, _, name in found:
            if name is not None and uid not in {each.id for each in before.entities}:
                raise BadInput(
                    f"the id {uid} belongs to the entity {name}; an id cannot be used twice"
                )
        read = {name: (entity, card) for name, entity, card in known}
        return self._found | read, {uid: entity for uid, entity, _ in found}

    def _end(self, known: Identities, before: Rows, kept: set[str]) -> None:
        self._send("end_cards", [known[each.name][1] for each in before.entities])
        self._send(
            "end_observations_of",
            [known[each.name][0] for each in before.entities if each.id not in kept],
        )
        single = [
            (known[each.entity][0], one.ordinal)
            for each in before.observations
            for one in each.observations
        ]
        self._send_rows("end_observations", single)
        self._send_rows("end_relations", [each.key for each in before.relations])

    def _create_entities(
        self, entities: Sequence[Entity], identities: dict[str, int], kept: set[str]
    ) -> None:
        """Create cards, and identities and observations for entities that are new or come back."""
        cards: list[Row] = []
        created: list[Row] = []
        updated: list[Row] = []
        observations: list[Row] = []
        own_times: list[Row] = []
        for each in entities:
            card = self._next_row()
            entity = identities.get(each.id)
            if entity is None:
                entity = card
                created.append((entity, each.id, each.next_ordinal, each.updated_at, self._id))
            else:
                updated.append((entity, each.next_ordinal, each.updated_at))
            cards.append(self._card(card, entity, each))
            if each.updated_at != self._change.at:
                own_times.append((entity, each.updated_at))
            if each.id not in kept:
                observations += [self._observation(entity, one) for one in each.observations]
        self._send_rows("insert_entities", created, with_change=False)
        self._send_rows("update_entities", updated)
        self._send_rows("insert_updates", own_times)
        self._send_rows("insert_cards", cards)
        self._send_rows("insert_observations", observations)

    def _card(self, card: int, entity: int, value: Entity) -> Row:
        labels = (value.type, *value.tags)
        self._added.append((card, word_vector(value.name, labels, value.summary)))
        about = (value.summary, value.summary_at or None, pack_tags(value.tags), value.created_at)
        return (card, entity, value.name, value.type, *about)

    def _observation(self, entity: int, value: Observation) -> Row:
        if not 0 < value.ordinal <= MAX_ORDINAL:
            raise BadInput(
                f"an entity cannot have more than {MAX_ORDINAL} observations; create another entity"
            )
        row = self._next_row()
        self._added.append((row, word_vector(None, (), value.text)))
        times = (value.created_at, value.valid_at or None)
        return (row, entity, value.ordinal, value.text, *times, value.source or None)

    def _create_observations(self, known: Identities, sets: Iterable[ObservationSet]) -> None:
        """Create observations in the order they were written, whatever the entity: their ids keep that order."""
        written = [(known[each.entity][0], one) for each in sets for one in each.observations]
        written.sort(key=lambda pair: pair[1].created_at)
        self._send_rows(
            "insert_observations", [self._observation(entity, one) for entity, one in written]
        )

    def _touch(self, known: Identities, sets: Iterable[ObservationSet]) -> None:
        rows = [
            (
                known[each.entity][0],
                max(one.ordinal for one in each.observations) + 1,
                self._change.at,
            )
            for each in sets
        ]
        self._send_rows("update_entities", rows)

    def _create_relations(self, relations: Iterable[Relation]) -> None:
        self._send_rows(
            "insert_relations",
            [(self._next_row(), *each.key, each.created_at) for each in relations],
        )

    def _write_notes(self, before: Sequence[Note], after: Sequence[Note]) -> None:
        self._send("end_notes", [each.key for each in before if each.scope == VAULT])
        replaced = {(each.scope, each.key) for each in after}
        gone = [
            each
            for each in before
            if each.scope != VAULT and (each.scope, each.key) not in replaced
        ]
        keys = [(each.scope.owner, each.scope.session, each.key) for each in gone]
        self._send_rows("delete_session_notes", keys, with_change=False)
        rows = [self._session_row(each) for each in after if each.scope != VAULT]
        self._send_rows("upsert_session_notes", rows, with_change=False)
        self._create_notes([each for each in after if each.scope == VAULT])

    def _create_notes(self, notes: Sequence[Note]) -> None:
        numbered = [(self._next_row(), each) for each in notes]
        rows = [
            (row, each.key, each.content, pack_tags(each.tags), each.created_at, each.updated_at)
            for row, each in numbered
        ]
        self._send_rows("insert_notes", rows)
        if tagged := [row for row, each in numbered if each.tags]:
            self._connection.write("insert_note_tags", tagged)
        for row, each in numbered:
            self._added.append((row, word_vector(each.key, each.tags, each.content)))
            if each.embedding:
                put_client_vector(self._connection, row, each.embedding)

    def _session_row(self, note: Note) -> Row:
        about = (note.scope.owner, note.scope.session, note.key, note.content, pack_tags(note.tags))
        return (self._next_row(), *about, note.embedding or None, note.created_at, note.updated_at)

    def _index(self) -> int:
        """Index the new passages; return how many words they have."""
        rows = [(row, each.length, each.vector) for row, each in self._added]
        self._send_rows("insert_words", rows, with_change=False)
        if terms := {term for _, each in self._added for term in each.lexemes}:
            self._connection.write(
                "insert_terms", sorted(terms)
            )  # in order, so that writers never deadlock
        return sum([each.length for _, each in self._added])

    def _record(self, server: str, key: UUID, words: int) -> None:
        change = self._change
        about = (change.at, change.actor, server, change.operation)
        self._connection.write(
            "record_change", self._id, *about, self._row, key, len(self._added), words
        )

    def _send(self, query: str, values: Sequence[object]) -> None:
        if values:
            self._connection.write(query, values, self._id)

    def _send_rows(self, query: str, rows: Sequence[Row], *, with_change: bool = True) -> None:
        """Queue a query about rows, which takes each of their columns as an array, and perhaps the change."""
        if rows:
            self._connection.write(query, *columns(rows), *((self._id,) if with_change else ()))

    def _next_row(self) -> int:
        self._row += 1
        return self._row


def put_client_vector(connection: WorkspaceConnection, passage: int, vector: bytes) -> None:
    """Store a vector that a client supplied, exactly as it came."""
    dimension = len(vector) // 4
    connection.write("add_client_model", client_model(dimension), CLIENT_MODEL, dimension)
    connection.write(
        "insert_client_vector", client_model(dimension), passage, vector, pack_half(vector)
    )


def client_model(dimension: int) -> str:
    """Return the identity of the model that stands for the clients' own vectors of that dimension."""
    return f"{CLIENT_MODEL}/{dimension}"
