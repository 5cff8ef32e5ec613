"""Search notes in SQLite, by FTS5 and by vectors, and tell which servers run."""

from collections.abc import Collection
from functools import partial

import apsw

from polymnia.disk.lock import ServerLock
from polymnia.errors import StoreError
from polymnia.model import Note
from polymnia.search.expression import Expression
from polymnia.search.matching import is_exact, matches
from polymnia.search.relevance import Scores
from polymnia.stores.sqlite.match import render
from polymnia.stores.sqlite.rows import run, run_many
from polymnia.stores.sqlite.search import match_notes, notes_containing
from polymnia.stores.sqlite.vectors import SqliteVectorReader
from polymnia.stores.sqlite.write import TextRows, client_model
from polymnia.stores.version_notes import columns_of_note, first_found


class SqliteNoteSearch:
    """The notes in the file, as the connection's transaction sees them."""

    def __init__(self, connection: apsw.Connection, vectors: SqliteVectorReader) -> None:
        self._connection = connection
        self._vectors = vectors

    def containing(self, folded: str) -> set[int]:
        return notes_containing(self._connection, folded)

    def match(self, expression: Expression) -> Scores:
        return match_notes(self._connection, expression)

    def match_session(self, notes: dict[int, Note], text: str) -> Scores:
        run(self._connection, "create_session_words")
        texts = TextRows()
        for number, note in notes.items():
            texts.add_note(number, note.key, note.content, note.tags)
        run_many(self._connection, "fill_session_words", texts.words)
        try:
            return first_found(text, partial(self._match_session_words, notes))
        finally:
            run(self._connection, "clear_session_words")

    def nearest(self, vector: bytes, k: int, allowed: Collection[int] | None) -> Scores:
        model = run(self._connection, "model_of", client_model(len(vector) // 4))
        return self._vectors.nearest_of(model[0][0], vector, k, allowed) if model else {}

    def _match_session_words(self, notes: dict[int, Note], expression: Expression) -> Scores:
        found: Scores = dict(run(self._connection, "match_session_words", render(expression)))
        if is_exact(expression):
            return found
        return {
            number: score
            for number, score in found.items()
            if matches(expression, columns_of_note(notes[number]))
        }


class SqliteServer:
    """The server lock, with its errors as ours."""

    def __init__(self, lock: ServerLock) -> None:
        self._lock = lock
        self.name = lock.name
        self.is_running = lock.is_running

    def acquire(self) -> str:
        try:
            return self._lock.acquire()
        except OSError as exc:
            raise StoreError(
                f"cannot keep a session: {exc}; check the permissions of the store's directory"
            ) from exc
