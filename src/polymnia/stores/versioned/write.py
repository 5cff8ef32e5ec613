"""Apply a change: end rows and create rows. The indexes follow in the same transaction."""

from collections.abc import Iterable, Sequence

from polymnia.errors import BadInput
from polymnia.model import (
    MAX_ORDINAL,
    VAULT,
    Change,
    Entity,
    Fact,
    Note,
)
from polymnia.stores.versioned.port import DatabasePort, IndexedText, Row
from polymnia.stores.versioned.rows import NewCard, NewFact, NewNote, SessionNoteRow

# The url of the models that stand for the clients' own vectors.
CLIENT_MODEL = "client"
# The row id and the living card of each entity, by name.
Identities = dict[str, tuple[int, int]]


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


class ChangeWriter:
    """One change while it is applied: its id, the last row id, and the passages it creates.

    `identities` are those of entities that the transaction has read already.
    """

    def __init__(self, port: DatabasePort, change: Change, identities: Identities) -> None:
        last = port.last_change()
        self._port = port
        self._change = change
        self._identities = dict(identities)
        self._id = last.id + 1
        self._row = last.row
        self._texts: list[IndexedText] = []

    def run(self) -> int:
        """Turn the change into rows inside the open transaction; return its id."""
        port, before, after = self._port, self._change.before, self._change.after
        kept = {entity.id for entity in before.entities} & {entity.id for entity in after.entities}

        # Read the entities that the change names, and those that come back from the trash.
        names = {entity.name for entity in before.entities}
        names |= {part.entity for part in before.facts + after.facts}
        unread = names - self._identities.keys()
        if unread:
            for name, number, card in port.run("entity_ids", unread):
                self._identities[name] = (number, card)
        numbers: dict[str, int] = {}  # the row ids of the entities that exist, by id
        for entity in before.entities:
            if entity.id in kept:
                numbers[entity.id] = self._identities[entity.name][0]
        others = []
        for entity in after.entities:
            # One that this change creates has a new id: nothing to look for.
            is_created = entity.created_at == self._change.at
            if entity.id not in kept and not is_created:
                others.append(entity.id)
        for uid, number, living_name in port.find_identities(others) if others else ():
            if living_name is not None:
                raise BadInput(
                    f"the id {uid} belongs to the entity {living_name}; an id cannot be used twice"
                )
            numbers[uid] = number

        # End rows.
        cards: list[Row] = []
        whole: list[Row] = []
        single: list[Row] = []
        for entity in before.entities:
            number, card = self._identities[entity.name]
            cards.append((card,))
            if entity.id not in kept:
                whole.append((number,))
        for part in before.facts:
            for fact in part.facts:
                successor = self._change.successors.get((part.entity, fact.ordinal))
                single.append((self._identities[part.entity][0], fact.ordinal, successor))
        port.write_rows("end_cards", cards, self._id)
        port.write_rows("end_observations_of", whole, self._id)
        port.write_rows("end_observations", single, self._id)
        port.write_rows("end_relations", [link.key for link in before.relations], self._id)
        renamed = [(numbers[uid],) for uid in self._change.renamed]
        port.write_rows("delete_named_vectors", renamed)

        # Create rows. Ids of facts are in the order in which they were written, across entities.
        self._create_entities(after.entities, numbers, kept)
        written = []
        for part in after.facts:
            written += [(self._identities[part.entity][0], fact) for fact in part.facts]
        written.sort(key=lambda pair: pair[1].created_at)
        facts = [self._new_fact(number, fact) for number, fact in written]
        port.write_rows("insert_observations", facts, self._id)
        updates = []
        for part in before.facts + after.facts:
            next_ordinal = max(fact.ordinal for fact in part.facts) + 1
            updates.append((self._identities[part.entity][0], next_ordinal, self._change.at))
        port.write_rows("update_entities", updates, self._id)
        if self._change.touched:
            touched = (self._change.touched, self._change.at, self._id)
            port.write("touch_entities", *touched)
            port.write("insert_touches", *touched)
        links = [(self._next_row(), *link.key, link.created_at) for link in after.relations]
        port.write_rows("insert_relations", links, self._id)
        self._write_notes(before.notes, after.notes)
        if before:
            port.unindex_ended(self._id)
        port.index(self._texts)
        port.record(self._change, self._id, self._row)
        return self._id

    def _create_entities(
        self, entities: Sequence[Entity], numbers: dict[str, int], kept: set[str]
    ) -> None:
        """Create cards, and identities and facts of entities that are new or come back."""
        created: list[Row] = []
        updated: list[Row] = []
        own_times: list[Row] = []
        cards: list[NewCard] = []
        facts: list[NewFact] = []
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
            cards.append(
                NewCard(
                    id=card,
                    entity=number,
                    name=entity.name,
                    type=entity.type,
                    summary=entity.summary,
                    summary_at=entity.summary_at or None,
                    tags=self._port.pack_tags(entity.tags),
                    created_at=entity.created_at,
                    aliases=self._port.pack_tags(entity.aliases),
                    due=entity.due or None,
                    status=entity.status or None,
                    expires=entity.expires or None,
                )
            )
            text = card_text(card, entity.name, entity.type, entity.tags, entity.summary)
            self._texts.append(text)
            if entity.id not in kept:
                facts += [self._new_fact(number, fact) for fact in entity.facts]
        self._port.write_rows("insert_entities", created, self._id)
        self._port.write_rows("update_entities", updated, self._id)
        self._port.write_rows("insert_updates", own_times, self._id)
        self._port.write_rows("insert_cards", cards, self._id)
        self._port.write_rows("insert_observations", facts, self._id)

    def _new_fact(self, entity: int, fact: Fact) -> NewFact:
        if not 0 < fact.ordinal <= MAX_ORDINAL:
            raise BadInput(
                f"an entity cannot have more than {MAX_ORDINAL} facts; create another entity"
            )
        row = self._next_row()
        self._texts.append(fact_text(row, fact.text))
        return NewFact(
            id=row,
            entity=entity,
            ordinal=fact.ordinal,
            text=fact.text,
            created_at=fact.created_at,
            valid_at=fact.valid_at or None,
            source=fact.source or None,
            expires=fact.expires or None,
            author=fact.author or None,
        )

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
        session_notes: list[SessionNoteRow] = []
        notes: list[NewNote] = []
        tagged: list[Row] = []
        vectors: list[tuple[int, bytes]] = []
        for note in after:
            row = self._next_row()
            tags = self._port.pack_tags(note.tags)
            if note.scope != VAULT:
                session_notes.append(
                    SessionNoteRow(
                        id=row,
                        owner=note.scope.owner,
                        session=note.scope.session,
                        key=note.key,
                        text=note.content,
                        tags=tags,
                        embedding=note.embedding or None,
                        created_at=note.created_at,
                        updated_at=note.updated_at,
                    )
                )
                continue
            times = (note.created_at, note.updated_at)
            notes.append(NewNote(row, note.key, note.content, tags, *times))
            if note.tags:
                tagged.append((row,))
            if note.embedding:
                vectors.append((row, note.embedding))
            self._texts.append(note_text(row, note.key, note.content, note.tags))
        self._port.write_rows("upsert_session_notes", session_notes)
        self._port.write_rows("insert_notes", notes, self._id)
        self._port.write_rows("insert_note_tags", tagged)
        for row, vector in vectors:
            identity = client_model(len(vector) // 4)
            self._port.vectors.put_client_vector(identity, row, vector)

    def _next_row(self) -> int:
        self._row += 1
        return self._row
