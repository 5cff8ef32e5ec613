"""Notes in SQLite: read them, search them by words and vectors, and know which sessions are in use."""

from collections.abc import Callable, Collection
from functools import partial

import apsw
from msgspec.structs import replace

from polymnia.disk.lock import ServerLock
from polymnia.errors import StoreError
from polymnia.model import VAULT, Note, NoteHit, NoteQuery, NoteScope
from polymnia.search.embedding import cosine, length, unpack_vector
from polymnia.search.expression import Expression, alternatives, wants_everything
from polymnia.search.matching import is_exact, matches
from polymnia.search.relevance import EXACT, Scores, best, blend, word_relevance
from polymnia.stores.sqlite.match import render
from polymnia.stores.sqlite.rows import as_json, run, run_many, unpack_note
from polymnia.stores.sqlite.search import match_notes, notes_containing
from polymnia.stores.sqlite.vectors import SqliteVectorReader
from polymnia.stores.sqlite.write import client_model, note_texts, word_row

_LAST_CHARACTER = "\U0010ffff"
# What queries call the columns of the words index.
_COLUMNS = {"key": "name", "content": "content", "tags": "labels"}
# The nearest notes may all have been matched by words, so as many more are asked for by vector, up to this number.
_MAX_NEARER = 1_000


class SqliteNotes:
    """The notes in the file, as the connection's transaction sees them."""

    def __init__(self, connection: apsw.Connection, vectors: SqliteVectorReader) -> None:
        self._connection = connection
        self._vectors = vectors

    def find(self, scope: NoteScope, key: str) -> Note | None:
        if scope == VAULT:
            rows = run(self._connection, "note_keyed", key)
        else:
            rows = run(self._connection, "session_note_keyed", scope.owner, scope.session, key)
        return replace(unpack_note(rows[0]), scope=scope) if rows else None

    def page(self, scope: NoteScope, offset: int, limit: int | None) -> list[Note]:
        if scope != VAULT:
            notes = [replace(each, embedding=b"") for _, each in self._session(scope)]
            return notes[offset:] if limit is None else notes[offset : offset + limit]
        rows = run(self._connection, "notes_page", -1 if limit is None else limit, offset)
        return [unpack_note(row) for row in rows]

    def like(self, scope: NoteScope, *, key: str | None, tags: Collection[str], before: int | None) -> list[Note]:
        if scope == VAULT and key is None:
            rows = run(self._connection, "notes_like", as_json(dict.fromkeys(tags)), before)
            return [unpack_note(row) for row in rows]
        found = [each for _, each in self._session(scope)] if key is None else [self.find(scope, key)]
        return [
            each
            for each in found
            if each and set(tags) <= set(each.tags) and (before is None or each.created_at < before)
        ]

    def keys(self, scope: NoteScope, prefix: str) -> list[str]:
        if scope != VAULT:
            return sorted([each.key for _, each in self._session(scope) if each.key.startswith(prefix)])
        return [key for (key,) in run(self._connection, "note_keys", prefix, prefix + _LAST_CHARACTER)]

    def count(self, scope: NoteScope, tags: Collection[str]) -> int:
        if scope != VAULT:
            return len([each for _, each in self._session(scope) if set(tags) <= set(each.tags)])
        if tags:
            return len(self._ids_with_tags(tags))
        return int(run(self._connection, "count_notes")[0][0])

    def containing(self, folded: str) -> list[Note]:
        return [note for _, note in self._by_id(notes_containing(self._connection, folded))]

    def search(self, query: NoteQuery) -> list[NoteHit]:
        if query.scope == VAULT:
            scores = self._search_vault(query)
            notes = dict(self._by_id(scores))
        else:
            notes = dict(self._session(query.scope))
            scores = self._search_session(query, notes)
        return [NoteHit(notes[number], score) for number, score in scores.items() if number in notes]

    def _search_vault(self, query: NoteQuery) -> Scores:
        allowed = self._ids_with_tags(query.tags) if query.tags else None
        if wants_everything(query.text) and not query.vector:
            newest = [row[0] for row in run(self._connection, "newest_notes", query.limit)]
            return _rank(dict.fromkeys(newest if allowed is None else allowed, 0.0), set(), allowed, query.limit)
        exact = {row[0] for row in run(self._connection, "notes_exactly", query.text)}
        words = word_relevance(_allow(_first_found(query.text, partial(match_notes, self._connection)), allowed))
        cosines = self._cosines(query, words, allowed) if query.vector else {}
        return _rank(blend(words, cosines), exact, allowed, query.limit)

    def _search_session(self, query: NoteQuery, notes: dict[int, Note]) -> Scores:
        """Search all notes of a session: there are few, and what others keep must not show in the scores."""
        allowed = {number for number, each in notes.items() if set(query.tags) <= set(each.tags)}
        if wants_everything(query.text) and not query.vector:
            return _rank(dict.fromkeys(allowed, 0.0), set(), allowed, query.limit)
        exact = {number for number, each in notes.items() if query.text in (each.key, each.content)}
        words = word_relevance(_allow(self._match_session(query.text, notes), allowed))
        cosines = _allow(_compare(query.vector, notes), allowed) if query.vector else {}
        return _rank(blend(words, cosines), exact, allowed, query.limit)

    def _match_session(self, text: str, notes: dict[int, Note]) -> Scores:
        run(self._connection, "create_session_words")
        rows = [word_row(note_texts(number, note)) for number, note in notes.items()]
        run_many(self._connection, "fill_session_words", rows)
        try:
            return _first_found(text, partial(self._match_session_words, notes))
        finally:
            run(self._connection, "clear_session_words")

    def _match_session_words(self, notes: dict[int, Note], expression: Expression) -> Scores:
        found: Scores = dict(run(self._connection, "match_session_words", render(expression)))
        if is_exact(expression):
            return found
        return {number: score for number, score in found.items() if matches(expression, _columns(notes[number]))}

    def _cosines(self, query: NoteQuery, matched: Scores, allowed: set[int] | None) -> Scores:
        """Return the cosines of the matched notes and of the nearest others, for vectors that clients supplied."""
        model = run(self._connection, "model_of", client_model(len(query.vector) // 4))
        if not model:
            return {}
        number = model[0][0]
        nearest = self._vectors.nearest_of(number, query.vector, query.limit + min(len(matched), _MAX_NEARER), allowed)
        return nearest | self._vectors.nearest_of(number, query.vector, len(matched), matched)

    def _session(self, scope: NoteScope) -> list[tuple[int, Note]]:
        rows = run(self._connection, "session_notes", scope.owner, scope.session)
        return [(row[0], replace(unpack_note(row), scope=scope)) for row in rows]

    def _ids_with_tags(self, tags: Collection[str]) -> set[int]:
        """Return the ids of the vault notes that have all of the tags."""
        return {row[0] for row in run(self._connection, "notes_tagged", as_json(dict.fromkeys(tags)))}

    def _by_id(self, ids: Collection[int]) -> list[tuple[int, Note]]:
        return [(row[0], unpack_note(row)) for row in run(self._connection, "notes_by_id", as_json(ids))]


class SqliteSessions:
    """Which conversations use which sessions, as the connection's transaction sees it."""

    def __init__(self, connection: apsw.Connection, server_lock: ServerLock) -> None:
        self._connection = connection
        self._server = server_lock

    def join(self, member: str, scope: NoteScope, at: int) -> None:
        try:
            server = self._server.acquire()
        except OSError as exc:
            raise StoreError(f"cannot keep a session: {exc}; check the permissions of the store's directory") from exc
        run(self._connection, "join_session", member or server, scope.owner, scope.session, server, at)

    def has_joined(self, member: str, *, unused_since: int | None = None) -> bool:
        return bool(run(self._connection, "has_joined", member or self._server.name, unused_since)[0][0])

    def leave(self, member: str, *, unused_since: int | None = None) -> None:
        run(self._connection, "leave_sessions", member or self._server.name, unused_since)
        for server in self._dead():
            run(self._connection, "remove_server", server)

    def abandoned(self) -> list[NoteScope]:
        dead = self._dead()
        rows = run(self._connection, "session_members")
        used = {(owner, session) for server, owner, session in rows if server not in dead}
        known = {(owner, session) for _, owner, session in rows} | set(run(self._connection, "sessions"))
        return [NoteScope(session, owner) for owner, session in sorted(known - used)]

    def _dead(self) -> set[str]:
        servers = {server for server, *_ in run(self._connection, "session_members")}
        return {server for server in servers if not self._server.is_running(server)}


def _first_found(text: str, match: Callable[[Expression], Scores]) -> Scores:
    """Return the BM25 scores of the notes that match the text as a query, or all of its words, or any of them."""
    return next((found for expression in alternatives(text, _COLUMNS) if (found := match(expression))), {})


def _columns(note: Note) -> dict[str, str]:
    return {"name": note.key, "labels": " ".join(note.tags), "content": note.content}


def _rank(scores: Scores, exact: set[int], allowed: set[int] | None, limit: int) -> Scores:
    """Return the best notes, exact matches first."""
    first = {number for number in exact if allowed is None or number in allowed}
    others = {number: score for number, score in scores.items() if number not in first}
    return dict([*best(dict.fromkeys(first, EXACT), limit), *best(others, limit)][:limit])


def _allow(scores: Scores, allowed: set[int] | None) -> Scores:
    return scores if allowed is None else {number: score for number, score in scores.items() if number in allowed}


def _compare(vector: bytes, notes: dict[int, Note]) -> Scores:
    """Return the cosines of the notes with an embedding of the same length."""
    own, norm = unpack_vector(vector), length(vector)
    return {
        number: cosine(own, norm, each.embedding, length(each.embedding))
        for number, each in notes.items()
        if len(each.embedding) == len(vector)
    }
