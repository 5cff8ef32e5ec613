"""Notes: texts under a key, kept for one session or for everyone in the vault."""

from msgspec import Struct


class NoteScope(Struct, frozen=True, omit_defaults=True):
    """Where a note lives: in one session of one principal or, without a session, in the vault."""

    session: str = ""
    owner: str = ""


VAULT = NoteScope()


class Note(Struct, frozen=True, omit_defaults=True):
    """A text under a key, unique in its scope. The embedding is float32, or empty."""

    key: str
    content: str
    tags: tuple[str, ...] = ()
    scope: NoteScope = VAULT
    embedding: bytes = b""
    created_at: int = 0
    updated_at: int = 0


class NoteHit(Struct, frozen=True):
    """A note that a search found. The relevance is between 0 and 1; 1 means an exact match."""

    note: Note
    relevance: float


class NoteQuery(Struct, frozen=True, kw_only=True):
    """A search over the notes of one scope. The vector is little-endian float32, or empty."""

    text: str
    scope: NoteScope = VAULT
    tags: tuple[str, ...] = ()
    vector: bytes = b""
    limit: int = 10
