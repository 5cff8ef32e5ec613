"""Search notes in PostgreSQL, by tsvectors and by vectors, and tell which servers run."""

from collections.abc import Collection
from functools import partial

from polymnia.model import Note
from polymnia.search.expression import Expression
from polymnia.search.relevance import Scores
from polymnia.stores.postgres.database import WorkspaceConnection
from polymnia.stores.postgres.presence import ServerPresence
from polymnia.stores.postgres.rows import run
from polymnia.stores.postgres.search import match_notes, notes_containing, score_notes
from polymnia.stores.postgres.vectors import PostgresVectorReader
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
        texts = {number: columns_of_note(note) for number, note in notes.items()}
        return first_found(text, partial(score_notes, texts))

    def nearest(self, vector: bytes, k: int, allowed: Collection[int] | None) -> Scores:
        model = run(self._connection, "model_of", client_model(len(vector) // 4))
        return self._vectors.nearest_of(model[0][0], vector, k, allowed) if model else {}


class PostgresServers:
    """The servers that run, as the connection's transaction sees them."""

    def __init__(self, connection: WorkspaceConnection, presence: ServerPresence) -> None:
        self._connection = connection
        self._presence = presence
        self.name = presence.name
        self.acquire = presence.acquire

    def is_running(self, name: str) -> bool:
        return self._presence.is_running(self._connection, name)
