"""Verbs on notes: commit, search, prune, read, and delete those of sessions that ended.

A note is a text under a key.
"""

from collections.abc import Collection, Sequence
from typing import TYPE_CHECKING

from msgspec import Struct
from msgspec.structs import replace

from polymnia.engine.memory import Memory, Transaction
from polymnia.errors import USE_A_DATABASE, BadInput, NotSupported, TextChanged
from polymnia.model import (
    VAULT,
    Entity,
    Match,
    Note,
    NoteHit,
    NoteQuery,
    NoteScope,
    PassageKind,
    Rows,
)
from polymnia.search.fulltext import first_matches, wants_everything
from polymnia.search.relevance import MAX_INEXACT
from polymnia.stores.clock import now_us
from polymnia.stores.contract import Reader, find_note

if TYPE_CHECKING:
    from polymnia.stores.contract import NoteReader

# The names of a passage's columns in queries.
_COLUMNS = {"key": "name", "content": "content", "tags": "labels"}
_MAX_MATCHES = 1_000
# The facts of an entity that are shown as one note.
_MAX_FACTS = 10


class NoteHits(Struct, frozen=True):
    """What a search found, and how many notes it searched."""

    hits: list[NoteHit]
    searched: int


def commit(memory: Memory, note: Note, *, by: str, member: str = "") -> Note:
    """Store a note and return it as stored.

    A note with the same key is replaced; its creation time stays. `member` is the conversation that
    a session's note belongs to. A note that comes without an embedding keeps the former one unless
    its content changes. Raise BadInput, NotSupported.
    """
    if not note.key:
        raise BadInput("key: must not be empty")
    with memory.writing("commit_memory", by) as transaction:
        notes = notes_of(memory, transaction.read)
        known = find_note(notes, note.scope, note.key)
        stored = _update(note, known, transaction.time())
        if note.scope != VAULT:
            transaction.read.notes.join_session(member, note.scope, transaction.time())
        transaction.apply(before=Rows(notes=(known,) if known else ()), after=Rows(notes=(stored,)))
    return stored


def rewrite(memory: Memory, key: str, content: str, *, expected: str, by: str) -> int:
    """Give a note of the vault another content; return the change, 0 if it has that content.

    Raise TextChanged if the content is not the expected one, BadInput for a blank one,
    NotSupported.
    """
    if not content.strip():
        raise BadInput(f"the new content of the note {key} is blank; forget removes a note")
    with memory.writing("commit_memory", by) as transaction:
        known = find_note(notes_of(memory, transaction.read), VAULT, key)
        if known is None or known.content != expected:
            raise TextChanged(f"the note {key}", known.content if known else None)
        if content != expected:
            stored = _update(
                replace(known, content=content, embedding=b""), known, transaction.time()
            )
            transaction.apply(before=Rows(notes=(known,)), after=Rows(notes=(stored,)))
    return transaction.change.id if transaction.change else 0


def search(memory: Memory, query: NoteQuery, scopes: Sequence[NoteScope]) -> NoteHits:
    """Return the best hits in all of the scopes, best first.

    Among equals, earlier scopes come first.
    """
    with memory.reading() as reader:
        notes = notes_of(memory, reader)
        hits = [hit for scope in scopes for hit in notes.search(replace(query, scope=scope))]
        searched = sum(_count_searched(reader, scope, query.tags) for scope in scopes)
    hits.sort(key=lambda hit: -hit.relevance)
    return NoteHits(hits[: query.limit], searched)


def _count_searched(reader: Reader, scope: NoteScope, tags: Collection[str]) -> int:
    if scope == VAULT and not tags:
        return reader.counts().notes
    return len(reader.notes.notes(scope, tags=tags))


def search_facts(memory: Memory, query: NoteQuery) -> NoteHits:
    """Return the entities that match the text, best first, as notes: the name and matching facts.

    An entity that matches only by its name, type or summary has its summary, or its first
    facts.
    """
    with memory.reading() as reader:
        matches = _match_facts(reader, query.text)
        names = list(dict.fromkeys(match.entity for match in matches))[: query.limit]
        known = {entity.name: entity for entity in reader.entities(names)} if names else {}
        shown = [match for match in matches if match.entity in known]
        texts = {
            passage.id: passage.text for passage in reader.passages([item.id for item in shown])
        }
        searched = reader.counts().entities
    hits = []
    for name, entity in known.items():
        own = [match for match in shown if match.entity == name]
        facts = [texts[match.id] for match in own if match.kind == "fact" and match.id in texts]
        hits.append(NoteHit(_as_note(entity, facts), MAX_INEXACT * own[0].score / matches[0].score))
    hits.sort(key=lambda hit: -hit.relevance)
    return NoteHits(hits, searched)


def prune(
    memory: Memory,
    scopes: Collection[NoteScope],
    *,
    by: str,
    key: str | None = None,
    tags: Collection[str] = (),
    before: int | None = None,
) -> int:
    """Delete the notes with the key, all of the tags and a creation time before `before`.

    Return how many.
    """
    with memory.writing("prune_memory", by) as transaction:
        notes = notes_of(memory, transaction.read)
        deleted = [
            note
            for scope in scopes
            for note in notes.notes(scope, key=key, tags=tags, before=before)
        ]
        transaction.apply(before=Rows(notes=tuple(deleted)))
    return len(deleted)


def read(memory: Memory, scope: NoteScope, key: str) -> Note | None:
    """Return the note with that key."""
    with memory.reading() as reader:
        return find_note(notes_of(memory, reader), scope, key)


def read_many(memory: Memory, scope: NoteScope, keys: Sequence[str]) -> list[Note]:
    """Return the notes with these keys, in this order, without those that do not exist."""
    found = []
    with memory.reading() as reader:
        notes = notes_of(memory, reader)
        for key in keys:
            note = find_note(notes, scope, key)
            if note is not None:
                found.append(note)
    return found


def in_vault(memory: Memory, key: str) -> Note | None:
    """Return the vault's note with that key; None also if the store cannot hold notes."""
    with memory.reading() as reader:
        return find_note(reader.notes, VAULT, key) if memory.store.capabilities.notes else None


def vault_notes(memory: Memory) -> list[Note]:
    """Return the vault's notes with their embeddings, oldest first; none without notes."""
    if not memory.store.capabilities.notes:
        return []
    with memory.reading() as reader:
        return reader.notes.notes(VAULT)


def count_notes(memory: Memory) -> int:
    """Return how many notes the vault has."""
    if not memory.store.capabilities.notes:
        return 0
    with memory.reading() as reader:
        return reader.counts().notes


def page(
    memory: Memory, scope: NoteScope, *, offset: int = 0, limit: int | None = None
) -> list[Note]:
    """Return a page of a scope's notes, oldest first."""
    with memory.reading() as reader:
        return notes_of(memory, reader).notes(scope, offset=offset, limit=limit)


def listing(memory: Memory, *, prefix: str = "", tags: Collection[str] = ()) -> list[Note]:
    """Return the vault's notes whose keys start with the prefix and that have all of the tags."""
    with memory.reading() as reader:
        return notes_of(memory, reader).notes(VAULT, prefix=prefix, tags=tags)


def keys(memory: Memory, scope: NoteScope, prefix: str) -> list[str]:
    """Return the keys of a scope that start with the prefix."""
    with memory.reading() as reader:
        found = notes_of(memory, reader).notes(scope, prefix=prefix)
    return sorted(note.key for note in found)


def require(memory: Memory) -> None:
    """Raise NotSupported if the store cannot hold notes."""
    if not memory.store.capabilities.notes:
        raise NotSupported(f"{memory.store.url} cannot hold notes; {USE_A_DATABASE}")


def notes_of(memory: Memory, reader: Reader) -> "NoteReader":
    """Return the notes behind a reader. Raise NotSupported if the store cannot hold notes."""
    require(memory)
    return reader.notes


def _match_facts(reader: Reader, text: str) -> list[Match]:
    if wants_everything(text):
        return []
    kinds: tuple[PassageKind, ...] = ("entity", "fact")
    return list(
        first_matches(text, _COLUMNS, lambda query: reader.match(query, kinds, _MAX_MATCHES))
    )


def _as_note(entity: Entity, facts: Sequence[str]) -> Note:
    shown = facts or ([entity.summary] if entity.summary else entity.texts)
    return Note(entity.name, "\n".join(shown[:_MAX_FACTS]), entity.tags)


def _update(note: Note, known: Note | None, at: int) -> Note:
    """Return the note with its times, and with the former embedding if that still fits."""
    created_at = known.created_at if known else note.created_at or at
    embedding = note.embedding
    if known and not embedding and note.content == known.content:
        embedding = known.embedding
    return replace(note, embedding=embedding, created_at=created_at, updated_at=at)


# Clients without a connection name their session in each request. It ends when no client has used
# it for a day.
UNUSED_LIFETIME_US = 24 * 3600 * 1_000_000


def leave_session(memory: Memory, member: str, *, by: str, keep: bool = False) -> None:
    """End a conversation.

    Delete the notes of sessions that no other conversation uses, unless they are persistent.
    """
    require(memory)
    with memory.reading() as read:
        if not read.notes.has_joined(member):
            return
    with memory.writing("end_session", by) as transaction:
        transaction.read.notes.leave_sessions(member)
        if not keep:
            _delete_abandoned(transaction)


def sweep_sessions(memory: Memory, *, by: str) -> None:
    """Delete the notes that sessions of killed servers left behind."""
    require(memory)
    with memory.reading() as read:
        if not read.notes.abandoned_sessions():
            return
    with memory.writing("end_session", by) as transaction:
        transaction.read.notes.leave_sessions("", unused_since=0)
        _delete_abandoned(transaction)


def expire_sessions(memory: Memory, *, by: str) -> None:
    """Delete the notes of sessions that clients named themselves and have not used for a day."""
    require(memory)
    long_ago = now_us() - UNUSED_LIFETIME_US
    with memory.reading() as read:
        if not read.notes.has_joined("", unused_since=long_ago):
            return
    with memory.writing("end_session", by) as transaction:
        transaction.read.notes.leave_sessions("", unused_since=long_ago)
        _delete_abandoned(transaction)


def _delete_abandoned(transaction: Transaction) -> None:
    read = transaction.read
    notes = [note for scope in read.notes.abandoned_sessions() for note in read.notes.notes(scope)]
    transaction.apply(before=Rows(notes=tuple(notes)))
