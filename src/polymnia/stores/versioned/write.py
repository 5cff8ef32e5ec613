"""Apply a change: end rows and create rows. The indexes follow in the same transaction."""

from collections.abc import Iterable, Sequence

from polymnia.errors import BadInput
from polymnia.model import (
    MAX_ORDINAL,
    VAULT,
    Change,
    Entity,
    Fact,
    FactSet,
    Note,
    Relation,
    Rows,
)
from polymnia.stores.versioned.port import DatabasePort, IndexedText, Row

# The url of the models that stand for the clients' own vectors.
CLIENT_MODEL = "client"
# The row id and the living card of each entity, by name.
Identities = dict[str, tuple[int, int]]


def apply_change(port: DatabasePort, change: Change, identities: Identities) -> int:
    """Turn the change into rows inside the open transaction; return its id.

    `identities` are those of entities that the transaction has read already.
    """
    return _ChangeWriter(port, change, identities).run()


def client_model(dimension: int) -> str:
    """Return the identity of the model that stands for clients' vectors of that dimension."""
    return f"{CLIENT_MODEL}/{dimension}"


def card_text(
    number: int, name: str, kind: str, tags: Iterable[str], summary: str | None
) -> IndexedText:
    """Return the card of an entity for the indexes."""
    return IndexedText(number, name, (kind, *tags), summary, f"{name}\n{kind}")


def fact_text(number: int, text: str) -> IndexedText:
    """Return a fact for the indexes."""
    return IndexedText(number, None, (), text, text)


def note_text(number: int, key: str, text: str, tags: Iterable[str]) -> IndexedText:
    """Return a note for the indexes."""
    return IndexedText(number, key, tuple(tags), text, f"{key}\n{text}")


class _ChangeWriter:
    """One change while it is applied: its id, the last row id, and the passages it creates."""

    def __init__(self, port: DatabasePort, change: Change, identities: Identities) -> None:
        last = port.last_change()
        self._port = port
        self._change = change
        self._identities = dict(identities)
        self._id = last.id + 1
        self._row = last.row
        self._texts: list[IndexedText] = []

    def run(self) -> int:
        before, after = self._change.before, self._change.after
        kept = {entity.id for entity in before.entities} & {entity.id for entity in after.entities}
        restored = self._read_identities(before, after, kept)
        self._end(before, kept)
        entities = dict(restored)  # the row ids of the entities that exist, by id
        for entity in before.entities:
            if entity.id in kept:
                entities[entity.id] = self._identities[entity.name][0]
        renamed = [(entities[uid],) for uid in self._change.renamed]
        self._port.write_rows("delete_named_vectors", renamed)
        self._create_entities(after.entities, entities, kept)
        self._create_facts(after.facts)
        self._touch(before.facts + after.facts)
        self._create_relations(after.relations)
        self._write_notes(before.notes, after.notes)
        if before:
            self._port.unindex_ended(self._id)
        self._port.index(self._texts)
        self._port.record(self._change, self._id, self._row)
        return self._id

    def _read_identities(self, before: Rows, after: Rows, kept: set[str]) -> dict[str, int]:
        """Read the entities that the change names. Return those that come back from the trash."""
        names = {entity.name for entity in before.entities}
        names |= {part.entity for part in before.facts + after.facts}
        unread = names - self._identities.keys()
        if unread:
            for name, entity, card in self._port.run("entity_ids", unread):
                self._identities[name] = (entity, card)
        new_ids = [entity.id for entity in after.entities if entity.id not in kept]
        restored = {}
        for uid, entity, name in self._port.find_identities(new_ids) if new_ids else ():
            if name is not None:
                raise BadInput(
                    f"the id {uid} belongs to the entity {name}; an id cannot be used twice"
                )
            restored[uid] = entity
        return restored

    def _end(self, before: Rows, kept: set[str]) -> None:
        cards: list[Row] = []
        whole: list[Row] = []
        for entity in before.entities:
            number, card = self._identities[entity.name]
            cards.append((card,))
            if entity.id not in kept:
                whole.append((number,))
        single = [
            (self._identities[part.entity][0], fact.ordinal)
            for part in before.facts
            for fact in part.facts
        ]
        self._port.write_rows("end_cards", cards, self._id)
        self._port.write_rows("end_observations_of", whole, self._id)
        self._port.write_rows("end_observations", single, self._id)
        relations = [relation.key for relation in before.relations]
        self._port.write_rows("end_relations", relations, self._id)

    def _create_entities(
        self, entities: Sequence[Entity], numbers: dict[str, int], kept: set[str]
    ) -> None:
        """Create cards, and identities and facts of entities that are new or come back."""
        created: list[Row] = []
        updated: list[Row] = []
        own_times: list[Row] = []
        cards: list[Row] = []
        facts: list[Row] = []
        for entity in entities:
            card = self._next_row()
            number = numbers.get(entity.id, card)
            times = (entity.next_ordinal, entity.updated_at)
            if number == card:
                created.append((number, self._port.pack_uid(entity.id), *times))
            else:
                updated.append((number, *times))
            if entity.updated_at != self._change.at:
                own_times.append((number, entity.updated_at))
            cards.append(self._card(card, number, entity))
            if entity.id not in kept:
                facts += [self._fact(number, one) for one in entity.facts]
        self._port.write_rows("insert_entities", created, self._id)
        self._port.write_rows("update_entities", updated, self._id)
        self._port.write_rows("insert_updates", own_times, self._id)
        self._port.write_rows("insert_cards", cards, self._id)
        self._port.write_rows("insert_observations", facts, self._id)

    def _card(self, card: int, number: int, entity: Entity) -> Row:
        self._texts.append(card_text(card, entity.name, entity.type, entity.tags, entity.summary))
        tags = self._port.pack_tags(entity.tags)
        about = (entity.summary, entity.summary_at or None, tags, entity.created_at)
        aliases = self._port.pack_tags(entity.aliases)
        plan = (entity.due or None, entity.status or None, entity.expires or None)
        return (card, number, entity.name, entity.type, *about, aliases, *plan)

    def _fact(self, entity: int, fact: Fact) -> Row:
        if not 0 < fact.ordinal <= MAX_ORDINAL:
            raise BadInput(
                f"an entity cannot have more than {MAX_ORDINAL} observations; create another entity"
            )
        row = self._next_row()
        self._texts.append(fact_text(row, fact.text))
        about = (fact.created_at, fact.valid_at or None, fact.source or None)
        more = (fact.expires or None, fact.author or None)
        return (row, entity, fact.ordinal, fact.text, *about, *more)

    def _create_facts(self, parts: Iterable[FactSet]) -> None:
        written = [
            (self._identities[part.entity][0], fact) for part in parts for fact in part.facts
        ]
        # Ids are in the order in which facts were written, across entities.
        written.sort(key=lambda pair: pair[1].created_at)
        rows = [self._fact(entity, fact) for entity, fact in written]
        self._port.write_rows("insert_observations", rows, self._id)

    def _touch(self, parts: Iterable[FactSet]) -> None:
        rows = []
        for part in parts:
            next_ordinal = max(fact.ordinal for fact in part.facts) + 1
            rows.append((self._identities[part.entity][0], next_ordinal, self._change.at))
        self._port.write_rows("update_entities", rows, self._id)
        if self._change.touched:
            touched = (self._change.touched, self._change.at, self._id)
            self._port.write("touch_entities", *touched)
            self._port.write("insert_touches", *touched)

    def _create_relations(self, relations: Iterable[Relation]) -> None:
        rows = [(self._next_row(), *relation.key, relation.created_at) for relation in relations]
        self._port.write_rows("insert_relations", rows, self._id)

    def _write_notes(self, before: Sequence[Note], after: Sequence[Note]) -> None:
        ended = [(note.key,) for note in before if note.scope == VAULT]
        self._port.write_rows("delete_note_tags", ended)
        self._port.write_rows("end_notes", ended, self._id)
        replaced = {(note.scope, note.key) for note in after}
        deleted = [
            (note.scope.owner, note.scope.session, note.key)
            for note in before
            if note.scope != VAULT and (note.scope, note.key) not in replaced
        ]
        self._port.write_rows("delete_session_notes", deleted)
        rows = [self._session_row(note) for note in after if note.scope != VAULT]
        self._port.write_rows("upsert_session_notes", rows)
        self._create_notes([note for note in after if note.scope == VAULT])

    def _create_notes(self, notes: Sequence[Note]) -> None:
        rows: list[Row] = []
        tagged: list[Row] = []
        for note in notes:
            row = self._next_row()
            tags = self._port.pack_tags(note.tags)
            rows.append((row, note.key, note.content, tags, note.created_at, note.updated_at))
            if note.tags:
                tagged.append((row,))
            self._texts.append(note_text(row, note.key, note.content, note.tags))
        self._port.write_rows("insert_notes", rows, self._id)
        self._port.write_rows("insert_note_tags", tagged)
        for note, (row, *_) in zip(notes, rows, strict=True):
            if note.embedding:
                identity = client_model(len(note.embedding) // 4)
                self._port.vectors.put_client_vector(identity, row, note.embedding)

    def _session_row(self, note: Note) -> Row:
        scope = (note.scope.owner, note.scope.session)
        tags = self._port.pack_tags(note.tags)
        times = (note.created_at, note.updated_at)
        return (
            self._next_row(),
            *scope,
            note.key,
            note.content,
            tags,
            note.embedding or None,
            *times,
        )

    def _next_row(self) -> int:
        self._row += 1
        return self._row
