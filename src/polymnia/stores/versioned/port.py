"""What a database must do for a store whose rows are versions.

Everything else is written once, over named queries that every database has with the same parameters
and columns. `queries.sql` of each database says how it runs them.
"""

from collections.abc import Callable, Collection, Iterable, Sequence
from typing import TYPE_CHECKING, Any, NamedTuple, Protocol

from polymnia.model import Change, Counts, Match, Note, PassageKind, Within, WordCounts
from polymnia.search.fulltext import TextQuery
from polymnia.search.relevance import Scores

if TYPE_CHECKING:
    from polymnia.stores.contract import GraphReader
    from polymnia.stores.paths import PathStep

Row = tuple[Any, ...]
# The id of an entity, its row id and, while it lives, its name.
Identity = tuple[str, int, str | None]


class LastChange(NamedTuple):
    """The last change: its id, its time, the last row id given out, and the last one counted."""

    id: int = 0
    at: int = 0
    row: int = 0
    counted_row: int = 0


class IndexedText(NamedTuple):
    """A passage as the indexes see it: its words by column, and the characters to search for."""

    id: int
    name: str | None
    labels: tuple[str, ...]
    content: str | None
    characters: str


class WordSearch(Protocol):
    """Searches by characters and by words. BM25 scores of notes are negative: less is better."""

    def entities_containing(self, folded: str) -> set[int]:
        """Return the row ids of entities with the text in name, type or a fact."""

    def notes_containing(self, folded: str) -> set[int]:
        """Return the ids of the vault notes whose key or text contains the folded text."""

    def passages_containing(self, folded: str, limit: int) -> list[int]:
        """Return the ids of passages that contain the folded text; of a few for an empty text."""

    def match(
        self, query: TextQuery, kinds: Collection[PassageKind], limit: int | None
    ) -> list[Match]:
        """Return the passages of these kinds that match the expression, best first."""

    def match_notes(self, query: TextQuery) -> Scores:
        """Return the vault notes that match, with their BM25 scores."""

    def match_session(self, notes: dict[int, Note], query: TextQuery) -> Scores:
        """Return those of the notes that match, with their BM25 scores among these notes alone."""

    def word_counts(self, terms: Collection[str]) -> WordCounts:
        """Return how many passages contain each term; the totals are 0 if none does.

        For a common term the number is an estimate, from the newest part of the memory.
        """

    def best_passages(
        self,
        terms: Collection[str],
        limit: int,
        within: Within | None,
        *,
        every: bool,
        newest: bool,
    ) -> list[Row]:
        """Return the best passages by BM25 with one of the terms, or every one, or the newest.

        The rows are those of PassageRow.
        """

    def best_names(self, terms: Collection[str], limit: int) -> list[str]:
        """Return names of entities that have one of the terms in their name or their labels."""


class VectorSearch(Protocol):
    """Vectors of one model and one template."""

    def nearest(
        self, model: int, template: int, vector: bytes, k: int, within: Within | None
    ) -> Scores:
        """Return the k nearest living passages with their cosines."""

    def nearest_notes(
        self, model: int, vector: bytes, k: int, allowed: Collection[int] | None
    ) -> Scores:
        """Return the k nearest of the allowed vault notes, by the vectors that clients supplied."""

    def vectors(self, model: int, template: int, passages: Collection[int]) -> dict[int, bytes]:
        """Return the vectors of those of the passages that have one."""

    def means(self, model: int, template: int) -> dict[str, bytes]:
        """Return the mean of the vectors of each entity's facts."""

    def coverage(self, model: int, template: int) -> tuple[int, int]:
        """Return how many living passages have a vector, and how many should."""

    def put(self, model: int, template: int, vectors: Sequence[tuple[int, bytes]]) -> None:
        """Add vectors of passages that live and have none."""

    def put_client_vector(self, identity: str, passage: int, vector: bytes) -> None:
        """Add the vector that a client supplied for a note, unchanged."""


class RunningServer(Protocol):
    """Tells which servers are running."""

    name: str  # of this server

    def acquire(self) -> str:
        """Show that this server runs, and return its name. Raise StoreError."""

    def is_running(self, name: str) -> bool:
        """Return True if the named server runs."""


class DatabasePort(Protocol):
    """One transaction of a database."""

    @property
    def words(self) -> WordSearch:
        """Searches by words."""

    @property
    def vectors(self) -> VectorSearch:
        """Searches by vectors."""

    @property
    def server(self) -> RunningServer:
        """This server and the others."""

    def run(self, query: str, *values: object) -> list[Row]:
        """Return the rows of a named query. A limit of None means no limit."""

    def run_together(self, *calls: tuple[Any, ...]) -> list[list[Row]]:
        """Return the rows of several queries, each with its values, in one round trip."""

    def answer_together(self, questions: Sequence[Callable[[], Any]]) -> list[Any]:
        """Return what the functions return, with as few round trips as the longest one takes."""

    def path_steps(self, read: "GraphReader", source: str, target: str) -> "Iterable[PathStep]":
        """Return the steps of a search for a shortest path."""

    def run_keyed(self, query: str, keys: Collection[Row]) -> list[Row]:
        """Return the rows of a query about keys of several columns."""

    def write(self, query: str, *values: object) -> None:
        """Run a query that returns no rows, at the latest with the commit."""

    def write_rows(self, query: str, rows: Collection[Row], *values: object) -> None:
        """Run a query for each of the rows, followed by the values."""

    def write_table(self, table: str, query: str, rows: Sequence[Row]) -> None:
        """Add rows of another store, whose ids and tags are packed."""

    def read_vector_row(self, row: Row) -> Row:
        """Return passage, template, model and vector of a row of the table of vectors."""

    def find_identities(self, ids: Collection[str]) -> list[Identity]:
        """Return the entities with these ids, living or not."""

    def counts(self) -> Counts:
        """Return how many rows live."""

    def stored_bytes(self) -> int:
        """Return the bytes of the file, or of the living facts."""

    def last_change(self) -> LastChange:
        """Return the last change before this transaction."""

    def index(self, texts: Sequence[IndexedText]) -> None:
        """Add passages to the indexes of words and characters, by ascending id."""

    def unindex_ended(self, change: int) -> None:
        """Remove the passages that a change ended from the indexes."""

    def after_erasing(self) -> None:
        """Delete, or ask for the deletion of, copies of erased texts outside their rows."""

    def record(self, change: Change, number: int, last_row: int) -> None:
        """Record a change, after all its rows."""

    def sort(self, rows: Iterable[Row]) -> list[Row]:
        """Return the rows in the order of their first columns."""

    def pack_uid(self, uid: str) -> object:
        """Return the id of an entity as it is stored."""

    def unpack_uid(self, uid: Any) -> str:
        """Return the id of an entity."""

    def pack_tags(self, tags: tuple[str, ...]) -> object:
        """Return tags as they are stored; None if there are none."""

    def unpack_tags(self, tags: Any) -> tuple[str, ...]:
        """Return stored tags."""
