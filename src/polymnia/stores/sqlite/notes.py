"""Notes in SQLite: rows become values here, and it is known which sessions are in use."""

from collections.abc import Collection, Iterable

import apsw
from msgspec import DecodeError, json

from polymnia.disk.lock import ServerLock
from polymnia.errors import StoreError
from polymnia.model import VAULT, Note, NoteHit, NoteScope
from polymnia.stores.base import NoteQuery
from polymnia.stores.sqlite.layout import Row, as_json, run
from polymnia.stores.sqlite.note_search import ranked, tagged
from polymnia.stores.sqlite.note_vectors import VaultVectors
from polymnia.stores.sqlite.search import notes_containing

_LAST_CHARACTER = "\U0010ffff"


class NoteKeeping:
    """What a store remembers for its notes from one transaction to the next."""

    def __init__(self, path: str | None) -> None:
        self.vectors = VaultVectors()
        self.presence = ServerLock(path)


class SqliteNotes:
    """The notes in the file, as the connection's transaction sees them."""

    def __init__(self, connection: apsw.Connection, keeping: NoteKeeping) -> None:
        self._connection = connection
        self._vectors = keeping.vectors
        self._presence = keeping.presence

    def find(self, scope: NoteScope, key: str) -> Note | None:
        rows = run(self._connection, "note_keyed", scope.owner, scope.session, key)
        return _note(rows[0]) if rows else None

    def page(self, scope: NoteScope, offset: int, limit: int | None) -> list[Note]:
        bound = -1 if limit is None else limit
        return [_note(row) for row in run(self._connection, "notes_page", scope.owner, scope.session, bound, offset)]

    def like(self, scope: NoteScope, *, key: str | None, tags: Collection[str], before: int | None) -> list[Note]:
        wanted = as_json(dict.fromkeys(tags))
        rows = run(self._connection, "notes_like", scope.owner, scope.session, key, wanted, before)
        return [_note(row) for row in rows]

    def keys(self, scope: NoteScope, prefix: str) -> list[str]:
        end = prefix + _LAST_CHARACTER
        return [key for (key,) in run(self._connection, "note_keys", scope.owner, scope.session, prefix, end)]

    def count(self, scope: NoteScope, tags: Collection[str]) -> int:
        if tags:
            return len(tagged(self._connection, scope, tags))
        rows = run(self._connection, "count_notes", scope.owner, scope.session)
        return int(rows[0][0]) if rows else 0

    def containing(self, folded: str) -> list[Note]:
        found = notes_containing(self._connection, folded)
        return [_note(row[1:]) for row in self._by_id(sorted(found), VAULT)]

    def search(self, query: NoteQuery) -> list[NoteHit]:
        found = ranked(self._connection, query, self._vectors)
        rows = self._by_id([note for note, _ in found], query.scope)
        notes: dict[int, Note] = {row[0]: _note(row[1:]) for row in rows}
        # The vectors may be of a later moment than this transaction, and have notes that it does not see.
        return [NoteHit(notes[note], relevance) for note, relevance in found if note in notes]

    def _by_id(self, notes: Iterable[int], scope: NoteScope) -> list[Row]:
        return run(self._connection, "notes_by_id", as_json(notes), scope.owner, scope.session)

    def attend(self, seat: str, scope: NoteScope, at: int) -> None:
        try:
            server = self._presence.acquire()
        except OSError as exc:
            raise StoreError(f"no session can be kept: {exc}; check the store's directory") from exc
        run(self._connection, "attend", seat or server, scope.owner, scope.session, server, at)

    def attends(self, seat: str, *, unused_since: int | None = None) -> bool:
        return bool(run(self._connection, "attends", seat or self._presence.name, unused_since)[0][0])

    def leave(self, seat: str, *, unused_since: int | None = None) -> None:
        run(self._connection, "leave", seat or self._presence.name, unused_since)
        for server in self._dead():
            run(self._connection, "leave_server", server)

    def abandoned(self) -> list[NoteScope]:
        dead = self._dead()
        rows = run(self._connection, "attended")
        used = {(owner, session) for server, owner, session in rows if server not in dead}
        known = {(owner, session) for _, owner, session in rows} | set(run(self._connection, "sessions"))
        return [NoteScope(session, owner) for owner, session in sorted(known - used)]

    def _dead(self) -> set[str]:
        servers = {server for server, *_ in run(self._connection, "attended")}
        return {server for server in servers if not self._presence.is_running(server)}


def _note(row: Row) -> Note:
    key, content, tags, owner, session, created_at, updated_at, vector = row
    parsed = () if tags == "[]" else _tags(tags)
    return Note(key, content, parsed, NoteScope(session, owner), vector, created_at, updated_at)


def _tags(spelled: str) -> tuple[str, ...]:
    try:
        return json.decode(spelled, type=tuple[str, ...])
    except DecodeError as exc:
        raise apsw.CorruptError(f"tags are not a JSON array: {exc}") from exc
