"""Notes of a store whose rows are versions: read them, search them, and know which sessions are in use.

Every such store has the named queries that are run here, with the same parameters and columns.
"""

from collections.abc import Callable, Collection
from typing import Protocol

from msgspec.structs import replace

from polymnia.model import VAULT, Note, NoteHit, NoteQuery, NoteScope
from polymnia.search.embedding import cosine, length, unpack_vector
from polymnia.search.expression import Expression, alternatives, wants_everything
from polymnia.search.relevance import EXACT, Scores, best, blend, word_relevance
from polymnia.stores.version_history import VersionRows

_LAST_CHARACTER = "\U0010ffff"
# The names of the columns of the words index in queries.
_COLUMNS = {"key": "name", "content": "content", "tags": "labels"}
# The nearest notes may all have matched by words already, so the vector search asks for as many more, up to this
# number.
_MAX_NEARER = 1_000


class NoteSearch(Protocol):
    """How a store searches notes. BM25 scores are negative: the smaller the better."""

    def containing(self, folded: str) -> set[int]:
        """Return the ids of the vault notes whose key or text contains the folded text."""

    def match(self, expression: Expression) -> Scores:
        """Return the vault notes that match, with their BM25 scores."""

    def match_session(self, notes: dict[int, Note], text: str) -> Scores:
        """Return the BM25 scores of those of the notes that `first_found` for the text."""

    def nearest(self, vector: bytes, k: int, allowed: Collection[int] | None) -> Scores:
        """Return the cosines of the k nearest of the allowed vault notes, by vectors that clients supplied."""


class RunningServer(Protocol):
    """Tells which servers are running."""

    @property
    def name(self) -> str:
        """The name of this server."""

    def acquire(self) -> str:
        """Show that this server runs, and return its name. Raise StoreError."""

    def is_running(self, name: str) -> bool:
        """Return True if the named server runs."""


class VersionNotes:
    """The notes in versioned rows."""

    def __init__(self, rows: VersionRows, search: NoteSearch) -> None:
        self._rows = rows
        self._search = search

    def find(self, scope: NoteScope, key: str) -> Note | None:
        if scope == VAULT:
            rows = self._rows.run("note_keyed", key)
        else:
            rows = self._rows.run("session_note_keyed", scope.owner, scope.session, key)
        return replace(self._rows.unpack_note(rows[0]), scope=scope) if rows else None

    def page(self, scope: NoteScope, offset: int, limit: int | None) -> list[Note]:
        if scope != VAULT:
            notes = [replace(each, embedding=b"") for _, each in self._session(scope)]
            return notes[offset:] if limit is None else notes[offset : offset + limit]
        rows = self._rows.run("notes_page", limit, offset)
        return [self._rows.unpack_note(row) for row in rows]

    def like(
        self, scope: NoteScope, *, key: str | None, tags: Collection[str], before: int | None
    ) -> list[Note]:
        if scope == VAULT and key is None:
            rows = self._rows.run("notes_like", dict.fromkeys(tags), before)
            return [self._rows.unpack_note(row) for row in rows]
        found = (
            [each for _, each in self._session(scope)] if key is None else [self.find(scope, key)]
        )
        return [
            each
            for each in found
            if each and set(tags) <= set(each.tags) and (before is None or each.created_at < before)
        ]

    def keys(self, scope: NoteScope, prefix: str) -> list[str]:
        if scope != VAULT:
            return sorted(
                [each.key for _, each in self._session(scope) if each.key.startswith(prefix)]
            )
        return [key for (key,) in self._rows.run("note_keys", prefix, prefix + _LAST_CHARACTER)]

    def count(self, scope: NoteScope, tags: Collection[str]) -> int:
        if scope != VAULT:
            return len([each for _, each in self._session(scope) if set(tags) <= set(each.tags)])
        if tags:
            return len(self._ids_with_tags(tags))
        return int(self._rows.run("count_notes")[0][0])

    def containing(self, folded: str) -> list[Note]:
        return [note for _, note in self._by_id(self._search.containing(folded))]

    def search(self, query: NoteQuery) -> list[NoteHit]:
        if query.scope == VAULT:
            scores = self._search_vault(query)
            notes = dict(self._by_id(scores))
        else:
            notes = dict(self._session(query.scope))
            scores = self._search_session(query, notes)
        return [
            NoteHit(notes[number], score) for number, score in scores.items() if number in notes
        ]

    def _search_vault(self, query: NoteQuery) -> Scores:
        allowed = self._ids_with_tags(query.tags) if query.tags else None
        if wants_everything(query.text) and not query.vector:
            newest = [row[0] for row in self._rows.run("newest_notes", query.limit)]
            return _rank(
                dict.fromkeys(newest if allowed is None else allowed, 0.0),
                set(),
                allowed,
                query.limit,
            )
        exact = {row[0] for row in self._rows.run("notes_exactly", query.text)}
        words = word_relevance(_allow(first_found(query.text, self._search.match), allowed))
        cosines = self._cosines(query, words, allowed) if query.vector else {}
        return _rank(blend(words, cosines), exact, allowed, query.limit)

    def _search_session(self, query: NoteQuery, notes: dict[int, Note]) -> Scores:
        """Search all notes of a session: there are few, and notes of others must not influence the scores."""
        allowed = {number for number, each in notes.items() if set(query.tags) <= set(each.tags)}
        if wants_everything(query.text) and not query.vector:
            return _rank(dict.fromkeys(allowed, 0.0), set(), allowed, query.limit)
        exact = {number for number, each in notes.items() if query.text in (each.key, each.content)}
        words = word_relevance(_allow(self._search.match_session(notes, query.text), allowed))
        cosines = _allow(_compare(query.vector, notes), allowed) if query.vector else {}
        return _rank(blend(words, cosines), exact, allowed, query.limit)

    def _cosines(self, query: NoteQuery, matched: Scores, allowed: set[int] | None) -> Scores:
        """Return the cosines of the matched notes and of the nearest others, for vectors that clients supplied."""
        nearest = self._search.nearest(
            query.vector, query.limit + min(len(matched), _MAX_NEARER), allowed
        )
        return nearest | self._search.nearest(query.vector, len(matched), matched)

    def _session(self, scope: NoteScope) -> list[tuple[int, Note]]:
        rows = self._rows.run("session_notes", scope.owner, scope.session)
        return [(row[0], replace(self._rows.unpack_note(row), scope=scope)) for row in rows]

    def _ids_with_tags(self, tags: Collection[str]) -> set[int]:
        """Return the ids of the vault notes that have all of the tags."""
        return {row[0] for row in self._rows.run("notes_tagged", dict.fromkeys(tags))}

    def _by_id(self, ids: Collection[int]) -> list[tuple[int, Note]]:
        return [(row[0], self._rows.unpack_note(row)) for row in self._rows.run("notes_by_id", ids)]


class VersionSessions:
    """Which conversations use which sessions."""

    def __init__(self, rows: VersionRows, server: RunningServer) -> None:
        self._rows = rows
        self._server = server

    def join(self, member: str, scope: NoteScope, at: int) -> None:
        server = self._server.acquire()
        self._rows.run("join_session", member or server, scope.owner, scope.session, server, at)

    def has_joined(self, member: str, *, unused_since: int | None = None) -> bool:
        return bool(self._rows.run("has_joined", member or self._server.name, unused_since)[0][0])

    def leave(self, member: str, *, unused_since: int | None = None) -> None:
        self._rows.run("leave_sessions", member or self._server.name, unused_since)
        for server in self._dead():
            self._rows.run("remove_server", server)

    def abandoned(self) -> list[NoteScope]:
        dead = self._dead()
        rows = self._rows.run("session_members")
        used = {(owner, session) for server, owner, session in rows if server not in dead}
        known = {(owner, session) for _, owner, session in rows} | set(self._rows.run("sessions"))
        return [NoteScope(session, owner) for owner, session in sorted(known - used)]

    def _dead(self) -> set[str]:
        servers = {server for server, *_ in self._rows.run("session_members")}
        return {server for server in servers if not self._server.is_running(server)}


def first_found(text: str, match: Callable[[Expression], Scores]) -> Scores:
    """Return the BM25 scores of the notes that match the text as a query, or all of its words, or any of them."""
    return next(
        (found for expression in alternatives(text, _COLUMNS) if (found := match(expression))), {}
    )


def columns_of_note(note: Note) -> dict[str, str]:
    """Return the texts of a note by the columns of the words index."""
    return {"name": note.key, "labels": " ".join(note.tags), "content": note.content}


def _rank(scores: Scores, exact: set[int], allowed: set[int] | None, limit: int) -> Scores:
    """Return the best notes, exact matches first."""
    first = {number for number in exact if allowed is None or number in allowed}
    others = {number: score for number, score in scores.items() if number not in first}
    return dict([*best(dict.fromkeys(first, EXACT), limit), *best(others, limit)][:limit])


def _allow(scores: Scores, allowed: set[int] | None) -> Scores:
    return (
        scores
        if allowed is None
        else {number: score for number, score in scores.items() if number in allowed}
    )


def _compare(vector: bytes, notes: dict[int, Note]) -> Scores:
    """Return the cosines of the notes with an embedding of the same length."""
    own, norm = unpack_vector(vector), length(vector)
    return {
        number: cosine(own, norm, each.embedding, length(each.embedding))
        for number, each in notes.items()
        if len(each.embedding) == len(vector)
    }
