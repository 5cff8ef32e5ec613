"""Notes of a store whose rows are versions, and the sessions that are in use.

Every such store has the named queries that are run here, with the same parameters and columns.
"""

from collections.abc import Callable, Collection
from functools import partial

from msgspec.structs import replace

from polymnia.model import VAULT, Note, NoteHit, NoteQuery, NoteScope
from polymnia.search.embedding import cosine, length, unpack_vector
from polymnia.search.fulltext import TextQuery, first_matches, wants_everything
from polymnia.search.relevance import EXACT, Scores, best, blend, word_relevance
from polymnia.stores.versioned.port import DatabasePort
from polymnia.stores.versioned.rows import unpack_note
from polymnia.stores.versioned.write import client_model

_LAST_CHARACTER = "\U0010ffff"
# The names of the columns of the words index in queries.
_COLUMNS = {"key": "name", "content": "content", "tags": "labels"}


class NoteReader:
    """Reads of living notes, and of the sessions that conversations use.

    The empty member is this server itself, for clients that never leave. `join_session` and
    `leave_sessions` write, so they need a Writer.
    """

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
        """Return a page of the scope's notes with their embeddings, in order of creation.

        They have the key, a key with the prefix, all of the tags, and were created before `before`.
        """
        if scope == VAULT and key is None:
            first_key = last_key = None
            if prefix:
                first_key, last_key = prefix, prefix + _LAST_CHARACTER
            rows = self._port.run(
                "notes_listed", dict.fromkeys(tags), before, first_key, last_key, limit, offset
            )
            return [unpack_note(self._port, row) for row in rows]
        if scope == VAULT:
            rows = self._port.run("note_keyed", key)
            notes = [unpack_note(self._port, row) for row in rows]
        else:
            notes = [note for _, note in self._session(scope)]
        selected = []
        for note in notes:
            has_key = key is None or note.key == key
            is_early = before is None or note.created_at < before
            has_tags = set(tags) <= set(note.tags)
            if has_key and is_early and has_tags and note.key.startswith(prefix):
                selected.append(note)
        end = None if limit is None else offset + limit
        return selected[offset:end]

    def has_any(self) -> bool:
        """Return True if the vault has a note."""
        return bool(self._port.run("any_note"))

    def containing(self, folded: str) -> list[Note]:
        """Return the vault notes whose key or content contains the case-folded text.

        They come without their embeddings.
        """
        return [note for _, note in self._by_id(self._port.words.notes_containing(folded))]

    def search(self, query: NoteQuery) -> list[NoteHit]:
        """Return the notes of the query's scope that answer it, best first, without embeddings."""
        if query.scope == VAULT:
            scores = self._search_vault(query)
            notes = dict(self._by_id(scores))
        else:
            notes = dict(self._session(query.scope))
            scores = self._search_session(query, notes)
        hits = []
        for number, score in scores.items():
            if number in notes:
                hits.append(NoteHit(notes[number], score))
        return hits

    def join_session(self, member: str, scope: NoteScope, at: int) -> None:
        """Record that a conversation uses the session."""
        server = self._port.server.acquire()
        self._port.write("join_session", member or server, scope.owner, scope.session, server, at)

    def has_joined(self, member: str, *, unused_since: int | None = None) -> bool:
        """Return True if the conversation uses a session, or one not used since that time."""
        ((has_joined,),) = self._port.run(
            "has_joined", member or self._port.server.name, unused_since
        )
        return bool(has_joined)

    def leave_sessions(self, member: str, *, unused_since: int | None = None) -> None:
        """Record that a conversation left its sessions, or those not used since that time."""
        self._port.write("leave_sessions", member or self._port.server.name, unused_since)
        for server in self._dead_servers():
            self._port.write("remove_server", server)

    def abandoned_sessions(self) -> list[NoteScope]:
        """Return the sessions that no conversation on a running server uses."""
        dead_servers = self._dead_servers()
        # Sessions with notes, and sessions that a conversation joined without writing one.
        sessions = set(self._port.run("sessions"))
        sessions_in_use = set()
        for server, owner, session in self._port.run("session_members"):
            sessions.add((owner, session))
            if server not in dead_servers:
                sessions_in_use.add((owner, session))
        return [NoteScope(session, owner) for owner, session in sorted(sessions - sessions_in_use)]

    def _search_vault(self, query: NoteQuery) -> Scores:
        allowed = None
        if query.tags:
            allowed = {row[0] for row in self._port.run("notes_tagged", dict.fromkeys(query.tags))}
        if wants_everything(query.text) and not query.vector:
            listed = allowed
            if listed is None:
                listed = {number for (number,) in self._port.run("newest_notes", query.limit)}
            return _rank(dict.fromkeys(listed, 0.0), set(), allowed, query.limit)
        exact = {number for (number,) in self._port.run("notes_exactly", query.text)}
        matches = match_first(query.text, self._port.words.match_notes)
        words = word_relevance(_allow(matches, allowed))
        cosines: Scores = {}
        if query.vector:
            cosines = self._cosines(query, words, allowed)
        return _rank(blend(words, cosines), exact, allowed, query.limit)

    def _search_session(self, query: NoteQuery, notes: dict[int, Note]) -> Scores:
        """Search all notes of a session.

        There are few, and notes of others must not influence the scores.
        """
        allowed, exact = set(), set()
        for number, note in notes.items():
            if set(query.tags) <= set(note.tags):
                allowed.add(number)
            if query.text in (note.key, note.content):
                exact.add(number)
        if wants_everything(query.text) and not query.vector:
            return _rank(dict.fromkeys(allowed, 0.0), set(), allowed, query.limit)
        matches = match_first(query.text, partial(self._port.words.match_session, notes))
        words = word_relevance(_allow(matches, allowed))
        cosines: Scores = {}
        if query.vector:
            cosines = _allow(_compare(query.vector, notes), allowed)
        return _rank(blend(words, cosines), exact, allowed, query.limit)

    def _cosines(self, query: NoteQuery, matched: Scores, allowed: set[int] | None) -> Scores:
        """Return the cosines of the matched notes and of the nearest others.

        The vectors are those that clients supplied.
        """
        dimension = len(query.vector) // 4  # float32
        models = self._port.run("model_of", client_model(dimension))
        if not models:
            return {}
        model = models[0][0]
        nearest = partial(self._port.vectors.nearest_notes, model, query.vector)
        # The nearest notes may all have matched by words already, so the vector search asks for as
        # many more, up to this number.
        more = min(len(matched), 1_000)
        return nearest(query.limit + more, allowed) | nearest(len(matched), matched)

    def _session(self, scope: NoteScope) -> list[tuple[int, Note]]:
        notes = []
        for row in self._port.run("session_notes", scope.owner, scope.session):
            note = unpack_note(self._port, row)
            notes.append((row[0], replace(note, scope=scope)))
        return notes

    def _by_id(self, ids: Collection[int]) -> list[tuple[int, Note]]:
        rows = self._port.run("notes_by_id", ids)
        return [(row[0], unpack_note(self._port, row)) for row in rows]

    def _dead_servers(self) -> set[str]:
        servers = {server for server, *_ in self._port.run("session_members")}
        return {server for server in servers if not self._port.server.is_running(server)}


def match_first(text: str, match: Callable[[TextQuery], Scores]) -> Scores:
    """Return the BM25 scores of the notes that match the text as a query, or else by its words."""
    return first_matches(text, _COLUMNS, match)


def _rank(scores: Scores, exact: set[int], allowed: set[int] | None, limit: int) -> Scores:
    """Return the best notes, exact matches first."""
    exact_scores = _allow(dict.fromkeys(exact, EXACT), allowed)
    others = {number: score for number, score in scores.items() if number not in exact_scores}
    ranked = [*best(exact_scores, limit), *best(others, limit)]
    return dict(ranked[:limit])


def _allow(scores: Scores, allowed: set[int] | None) -> Scores:
    if allowed is None:
        return scores
    return {number: score for number, score in scores.items() if number in allowed}


def _compare(vector: bytes, notes: dict[int, Note]) -> Scores:
    """Return the cosines of the notes with an embedding of the same length."""
    own, norm = unpack_vector(vector), length(vector)
    cosines = {}
    for number, note in notes.items():
        if len(note.embedding) == len(vector):
            cosines[number] = cosine(own, norm, note.embedding, length(note.embedding))
    return cosines
