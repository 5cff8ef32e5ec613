"""Read notes, and know which sessions are in use."""

from collections.abc import Collection
from typing import Protocol

from polymnia.model import Note, NoteHit, NoteQuery, NoteScope


class NoteReader(Protocol):
    """Reads of living notes. Lists are in order of creation; only `find` and `like` return embeddings."""

    def find(self, scope: NoteScope, key: str) -> Note | None:
        """Return the note with that key."""

    def page(self, scope: NoteScope, offset: int, limit: int | None) -> list[Note]:
        """Return a page of the scope's notes."""

    def like(self, scope: NoteScope, *, key: str | None, tags: Collection[str], before: int | None) -> list[Note]:
        """Return the notes with the key, all of the tags, and a creation time before `before`; None matches any."""

    def keys(self, scope: NoteScope, prefix: str) -> list[str]:
        """Return the keys with that prefix, in alphabetical order."""

    def count(self, scope: NoteScope, tags: Collection[str]) -> int:
        """Return how many notes have all of the tags."""

    def containing(self, folded: str) -> list[Note]:
        """Return the vault notes whose key or content contains the text, which is already case-folded."""

    def search(self, query: NoteQuery) -> list[NoteHit]:
        """Return the notes of the query's scope that answer it, best first."""


class Sessions(Protocol):
    """Which conversations use which sessions. The empty member is this server itself, for clients that never leave.

    The writing methods need a Writer.
    """

    def join(self, member: str, scope: NoteScope, at: int) -> None:
        """Record that a conversation uses the session."""

    def has_joined(self, member: str, *, unused_since: int | None = None) -> bool:
        """Return True if the conversation uses a session, or one it has not used since that time."""

    def leave(self, member: str, *, unused_since: int | None = None) -> None:
        """Record that a conversation no longer uses its sessions, or those it has not used since that time."""

    def abandoned(self) -> list[NoteScope]:
        """Return the sessions that no conversation on a running server uses."""
