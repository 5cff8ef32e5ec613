"""Notes of a store whose rows are versions, and the sessions that are in use.

Every such store has the named queries that are run here, with the same parameters and columns.
"""

from collections.abc import Callable, Collection
from functools import partial

from msgspec.structs import replace

from polymnia.model import VAULT, Note, NoteHit, NoteQuery, NoteScope
from polymnia.search.embedding import cosine, length, unpack_vector
from polymnia.search.expression import Expression, alternatives, wants_everything
from polymnia.search.relevance import EXACT, Scores, best, blend, word_relevance
from polymnia.stores.versioned.port import DatabasePort
from polymnia.stores.versioned.rows import unpack_note
from polymnia.stores.versioned.write import client_model

_LAST_CHARACTER = "\U0010ffff"
# The names of the columns of the words index in queries.
_COLUMNS = {"key": "name", "content": "content", "tags": "labels"}
# The nearest notes may all have matched by words already, so the vector search asks for as many
# more, up to this number.
_MAX_NEARER = 1_000


class VersionNotes:
    """The notes in versioned rows."""

    def __init__(self, port: DatabasePort) -> None:
        self._port = port

    def notes(
        self,
        scope: NoteScope,
        *,
        key: str | None = None,
        prefix: str = "",
        tags: Collection[str] = (),
        before: int | None = None,
        offset: int = 0,
        limit: int | None = None,
    ) -> list[Note]:
        if scope == VAULT and key is None:
            keys = (prefix, prefix + _LAST_CHARACTER) if prefix else (None, None)
            rows = self._port.run("notes_listed", dict.fromkeys(tags), before, *keys, limit, offset)
            return [unpack_note(self._port, row) for row in rows]
        if scope == VAULT:
            notes = [unpack_note(self._port, row) for row in self._port.run("note_keyed", key)]
        else:
            notes = [note for _, note in self._session(scope) if key in (None, note.key)]
        selected = []
        for note in notes:
            is_early = before is None or note.created_at < before
            if is_early and note.key.startswith(prefix) and set(tags) <= set(note.tags):
                selected.append(note)
        return selected[offset:] if limit is None else selected[offset : offset + limit]

    def containing(self, folded: str) -> list[Note]:
        return [note for _, note in self._by_id(self._port.words.notes_containing(folded))]

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

    def join_session(self, member: str, scope: NoteScope, at: int) -> None:
        server = self._port.server.acquire()
        self._port.write("join_session", member or server, scope.owner, scope.session, server, at)

    def has_joined(self, member: str, *, unused_since: int | None = None) -> bool:
        return bool(
            self._port.run("has_joined", member or self._port.server.name, unused_since)[0][0]
        )

    def leave_sessions(self, member: str, *, unused_since: int | None = None) -> None:
        self._port.write("leave_sessions", member or self._port.server.name, unused_since)
        for server in self._dead_servers():
            self._port.write("remove_server", server)

    def abandoned_sessions(self) -> list[NoteScope]:
        dead = self._dead_servers()
        rows = self._port.run("session_members")
        used = {(owner, session) for server, owner, session in rows if server not in dead}
        known = {(owner, session) for _, owner, session in rows} | set(self._port.run("sessions"))
        return [NoteScope(session, owner) for owner, session in sorted(known - used)]

    def _search_vault(self, query: NoteQuery) -> Scores:
        allowed = self._ids_with_tags(query.tags) if query.tags else None
        if wants_everything(query.text) and not query.vector:
            newest = [row[0] for row in self._port.run("newest_notes", query.limit)]
            return _rank(
                dict.fromkeys(newest if allowed is None else allowed, 0.0),
                set(),
                allowed,
                query.limit,
            )
        exact = {row[0] for row in self._port.run("notes_exactly", query.text)}
        words = word_relevance(
            _allow(first_found(query.text, self._port.words.match_notes), allowed)
        )
        cosines = self._cosines(query, words, allowed) if query.vector else {}
        return _rank(blend(words, cosines), exact, allowed, query.limit)

    def _search_session(self, query: NoteQuery, notes: dict[int, Note]) -> Scores:
        """Search all notes of a session.

        There are few, and notes of others must not influence the scores.
        """
        allowed = {number for number, each in notes.items() if set(query.tags) <= set(each.tags)}
        if wants_everything(query.text) and not query.vector:
            return _rank(dict.fromkeys(allowed, 0.0), set(), allowed, query.limit)
        exact = {number for number, each in notes.items() if query.text in (each.key, each.content)}
        words = word_relevance(
            _allow(first_found(query.text, partial(self._port.words.match_session, notes)), allowed)
        )
        cosines = _allow(_compare(query.vector, notes), allowed) if query.vector else {}
        return _rank(blend(words, cosines), exact, allowed, query.limit)

    def _cosines(self, query: NoteQuery, matched: Scores, allowed: set[int] | None) -> Scores:
        """Return the cosines of the matched notes and of the nearest others.

        The vectors are those that clients supplied.
        """
        model = self._port.run("model_of", client_model(len(query.vector) // 4))
        if not model:
            return {}
        nearest = partial(self._port.vectors.nearest_notes, model[0][0], query.vector)
        more = min(len(matched), _MAX_NEARER)
        return nearest(query.limit + more, allowed) | nearest(len(matched), matched)

    def _session(self, scope: NoteScope) -> list[tuple[int, Note]]:
        rows = self._port.run("session_notes", scope.owner, scope.session)
        return [(row[0], replace(unpack_note(self._port, row), scope=scope)) for row in rows]

    def _ids_with_tags(self, tags: Collection[str]) -> set[int]:
        """Return the ids of the vault notes that have all of the tags."""
        return {row[0] for row in self._port.run("notes_tagged", dict.fromkeys(tags))}

    def _by_id(self, ids: Collection[int]) -> list[tuple[int, Note]]:
        return [
            (row[0], unpack_note(self._port, row)) for row in self._port.run("notes_by_id", ids)
        ]

    def _dead_servers(self) -> set[str]:
        servers = {server for server, *_ in self._port.run("session_members")}
        return {server for server in servers if not self._port.server.is_running(server)}


def first_found(text: str, match: Callable[[Expression], Scores]) -> Scores:
    """Return the BM25 scores of the notes that match the text as a query.

    If none does, of those with all of its words; else of those with any of them.
    """
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
