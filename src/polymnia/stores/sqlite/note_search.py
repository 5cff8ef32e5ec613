"""Searching notes in SQLite: words by FTS5 and BM25, meaning by cosine, both blended into one relevance."""

from collections.abc import Collection

import apsw

from polymnia.model import VAULT, NoteScope
from polymnia.search.embedding import cosine, length, unpacked
from polymnia.search.expression import expressions, wants_everything
from polymnia.search.relevance import EXACT, Scores, best, blended, by_words
from polymnia.stores.base import NoteQuery
from polymnia.stores.sqlite.layout import QUERIES, Row, as_json, run
from polymnia.stores.sqlite.note_vectors import VaultVectors


def ranked(connection: apsw.Connection, query: NoteQuery, vectors: VaultVectors) -> list[tuple[int, float]]:
    """The ids of the notes that answer the query and how well, best first."""
    allowed = tagged(connection, query.scope, query.tags) if query.tags else None
    exact = _exact(connection, query, allowed)
    found = _found(connection, query, allowed, vectors)
    for note in exact:
        found.pop(note, None)
    return [*best(dict.fromkeys(exact, EXACT), query.limit), *best(found, query.limit)][: query.limit]


def tagged(connection: apsw.Connection, scope: NoteScope, tags: Collection[str]) -> set[int]:
    """The ids of the scope's notes that have all of the tags."""
    wanted = as_json(dict.fromkeys(tags))
    return {note for (note,) in run(connection, "notes_tagged", scope.owner, scope.session, wanted)}


def _exact(connection: apsw.Connection, query: NoteQuery, allowed: set[int] | None) -> list[int]:
    if wants_everything(query.text):
        return []
    rows = run(connection, "notes_exactly", query.scope.owner, query.scope.session, query.text)
    return [note for (note,) in rows if allowed is None or note in allowed]


def _found(connection: apsw.Connection, query: NoteQuery, allowed: set[int] | None, vectors: VaultVectors) -> Scores:
    if not query.vector and wants_everything(query.text):
        return _everything(connection, query, allowed)
    matched = _matched(connection, query, allowed)
    if query.vector and query.scope == VAULT and vectors.quick:
        return vectors.blended(connection, query.vector, matched, allowed, query.limit)
    words = by_words(dict(matched))
    return blended(words, _cosines(connection, query, allowed)) if query.vector else words


def _everything(connection: apsw.Connection, query: NoteQuery, allowed: set[int] | None) -> Scores:
    """Nothing to rank by: the newest."""
    if allowed is not None:
        return dict.fromkeys(allowed, 0.0)
    rows = run(connection, "note_ids", query.scope.owner, query.scope.session, query.limit)
    return {note: 0.0 for (note,) in rows}


def _matched(connection: apsw.Connection, query: NoteQuery, allowed: set[int] | None) -> list[Row]:
    for expression in expressions(query.text):
        try:
            rows = _match(connection, query, expression, allowed)
        except apsw.SQLError:  # the statement is sound, so it is the expression that is not
            continue
        return rows if allowed is None else [row for row in rows if row[0] in allowed]
    return []


def _match(connection: apsw.Connection, query: NoteQuery, expression: str, allowed: set[int] | None) -> list[Row]:
    if query.scope != VAULT:
        return _match_session(connection, query.scope, expression)
    if query.vector or allowed is not None:
        return run(connection, "match_vault_all", expression)
    return run(connection, "match_vault", expression, query.limit)


def _match_session(connection: apsw.Connection, scope: NoteScope, expression: str) -> list[Row]:
    run(connection, "make_session_words")
    run(connection, "fill_session_words", scope.owner, scope.session)
    try:
        return run(connection, "match_session", expression)
    finally:
        run(connection, "clear_session_words")


def _cosines(connection: apsw.Connection, query: NoteQuery, allowed: set[int] | None) -> dict[int, float]:
    vector, norm = unpacked(query.vector), length(query.vector)
    bindings = (query.scope.owner, query.scope.session, len(query.vector))
    # Row by row: all at once they may be larger than memory.
    return {
        note: cosine(vector, norm, other, other_norm)
        for note, _, other, other_norm in connection.execute(QUERIES["vectors_of_scope"], bindings)
        if allowed is None or note in allowed
    }
