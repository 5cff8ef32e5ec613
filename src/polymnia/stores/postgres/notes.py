"""Search notes in PostgreSQL, by tsvectors and by vectors, and tell which servers run."""

from collections.abc import Collection
from functools import partial

from polymnia.model import Note
from polymnia.search.expression import Expression
from polymnia.search.matching import is_exact, matches
from polymnia.search.relevance import Scores
from polymnia.stores.postgres.database import WorkspaceConnection
from polymnia.stores.postgres.match import PassageWords, phrases_of, score, translate
from polymnia.stores.postgres.presence import ServerPresence
from polymnia.stores.postgres.rows import run
from polymnia.stores.postgres.search import EQUAL_WEIGHTS, idf, match_notes, notes_containing
from polymnia.stores.postgres.vectors import PostgresVectorReader
from polymnia.stores.postgres.words import word_vector
from polymnia.stores.postgres.write import client_model
from polymnia.stores.version_notes import columns_of_note, first_found


class PostgresNoteSearch:
    """The notes of a workspace, as the connection's transaction sees them."""

    def __init__(self, connection: WorkspaceConnection, vectors: PostgresVectorReader) -> None:
        self._connection = connection
        self._vectors = vectors

    def containing(self, folded: str) -> set[int]:
        return notes_containing(self._connection, folded)

    def match(self, expression: Expression) -> Scores:
        return match_notes(self._connection, expression)

    def match_session(self, notes: dict[int, Note], text: str) -> Scores:
        return first_found(text, partial(_score, notes))

    def nearest(self, vector: bytes, k: int, allowed: Collection[int] | None) -> Scores:
        model = run(self._connection, "model_of", client_model(len(vector) // 4))
        return self._vectors.nearest_of(model[0][0], vector, k, allowed) if model else {}


def _score(notes: dict[int, Note], expression: Expression) -> Scores:
    """Return the BM25 scores of the notes that match, among these notes alone."""
    query = translate(expression)
    if query is None:
        return {}
    texts = {number: columns_of_note(note) for number, note in notes.items()}
    words = {number: PassageWords(each) for number, each in texts.items()}
    lengths = {
        number: word_vector(note.key, note.tags, note.content).length
        for number, note in notes.items()
    }
    rarities = {
        phrase: idf(
            len(notes), len([each for each in words.values() if each.count(phrase, EQUAL_WEIGHTS)])
        )
        for phrase in phrases_of(query)
    }
    average = sum(lengths.values()) / max(len(notes), 1)
    counts = {number: each.count(query, EQUAL_WEIGHTS) for number, each in words.items()}
    return {
        number: -score(found, rarities, lengths[number], average)
        for number, found in counts.items()
        if found and (is_exact(expression) or matches(expression, texts[number]))
    }


class PostgresServers:
    """The servers that run, as the connection's transaction sees them."""

    def __init__(self, connection: WorkspaceConnection, presence: ServerPresence) -> None:
        self._connection = connection
        self._presence = presence
        self.name = presence.name
        self.acquire = presence.acquire

    def is_running(self, name: str) -> bool:
        return self._presence.is_running(self._connection, name)
