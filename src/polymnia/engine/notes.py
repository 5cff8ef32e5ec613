"""Verbs on notes: commit, search, prune, read; texts by key, for one session or in the vault for all."""

from collections.abc import Collection, Sequence

from msgspec import Struct
from msgspec.structs import replace

from polymnia.engine.memory import Memory
from polymnia.errors import BadInput, NotSupported
from polymnia.model import VAULT, Note, NoteHit, NoteQuery, NoteScope, Rows
from polymnia.stores.contract import NoteReader, Reader


class Found(Struct, frozen=True):
    """What a search found, and how many notes its filters left to look at."""

    hits: list[NoteHit]
    searched: int


def commit(memory: Memory, note: Note, *, by: str, member: str = "") -> Note:
    """The note as it is now kept; one with its key is replaced and stays as old as it was.

    The member is the conversation that a session's note belongs to. Without an embedding the note keeps the one it had,
    unless its content changes. Raises BadInput, NotSupported.
    """
    if not note.key:
        raise BadInput("key: must not be empty")
    with memory.writing("commit_memory", by) as transaction:
        notes = notes_of(memory, transaction.read)
        known = notes.find(note.scope, note.key)
        kept = _kept(note, known, transaction.at)
        if note.scope != VAULT:
            transaction.read.sessions.join(member, note.scope, transaction.at)
        transaction.apply(before=Rows(notes=(known,) if known else ()), after=Rows(notes=(kept,)))
    return kept


def search(memory: Memory, query: NoteQuery, scopes: Sequence[NoteScope]) -> Found:
    """The best of what the query finds in the scopes, best first; among equals the first scope comes first."""
    with memory.reading() as reader:
        notes = notes_of(memory, reader)
        hits = [hit for scope in scopes for hit in notes.search(replace(query, scope=scope))]
        searched = sum(notes.count(scope, query.tags) for scope in scopes)
    hits.sort(key=lambda hit: -hit.relevance)
    return Found(hits[: query.limit], searched)


def prune(
    memory: Memory,
    scopes: Collection[NoteScope],
    *,
    by: str,
    key: str | None = None,
    tags: Collection[str] = (),
    before: int | None = None,
) -> int:
    """How many notes were deleted: those of the scopes that have the key and all tags and are older than `before`."""
    with memory.writing("prune_memory", by) as transaction:
        notes = notes_of(memory, transaction.read)
        doomed = [note for scope in scopes for note in notes.like(scope, key=key, tags=tags, before=before)]
        transaction.apply(before=Rows(notes=tuple(doomed)))
    return len(doomed)


def read(memory: Memory, scope: NoteScope, key: str) -> Note | None:
    """The note with that key."""
    with memory.reading() as reader:
        return notes_of(memory, reader).find(scope, key)


def in_vault(memory: Memory, key: str) -> Note | None:
    """The vault's note with that key; None as well where the store holds no notes."""
    with memory.reading() as reader:
        return reader.notes.find(VAULT, key) if memory.store.capabilities.notes else None


def page(memory: Memory, scope: NoteScope, *, offset: int = 0, limit: int | None = None) -> list[Note]:
    """A stretch of a scope's notes, oldest first."""
    with memory.reading() as reader:
        return notes_of(memory, reader).page(scope, offset, limit)


def keys(memory: Memory, scope: NoteScope, prefix: str) -> list[str]:
    """The keys of a scope that start so."""
    with memory.reading() as reader:
        return notes_of(memory, reader).keys(scope, prefix)


def require(memory: Memory) -> None:
    """Raises NotSupported when the memory's store holds none."""
    with memory.reading() as reader:
        notes_of(memory, reader)


def notes_of(memory: Memory, reader: Reader) -> NoteReader:
    """Return the notes behind a reader. Raise NotSupported if the store holds none."""
    if not memory.store.capabilities.notes:
        raise NotSupported(f"{memory.store.url} cannot hold notes; use a SQLite store: a path ending in .db")
    return reader.notes


def _kept(note: Note, known: Note | None, at: int) -> Note:
    created_at = known.created_at if known else note.created_at or at
    embedding = note.embedding
    if known and not embedding and note.content == known.content:
        embedding = known.embedding
    return replace(note, embedding=embedding, created_at=created_at, updated_at=at)
