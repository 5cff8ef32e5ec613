"""What one snapshot of a store answers: the graph, searches, notes, vectors, history and trash."""

from collections.abc import Callable, Collection, Iterator
from typing import TYPE_CHECKING, Any, Literal, Protocol

from polymnia.model import (
    Change,
    Counts,
    Entity,
    Match,
    Neighbours,
    Note,
    NoteScope,
    Passage,
    PassageKey,
    PassageKind,
    Relation,
    RelationKey,
    Traces,
    TypeCount,
    Within,
    WordCounts,
)
from polymnia.search.fulltext import TextQuery
from polymnia.stores.contract.tables import TableRow

if TYPE_CHECKING:
    # Only databases have notes, vectors and a history. These are written once for all of them.
    from polymnia.stores.versioned.history import HistoryReader
    from polymnia.stores.versioned.notes import NoteReader
    from polymnia.stores.versioned.vectors import VectorReader

# The perspective that embeds a passage's own text. Every store has it.
TEXT = "text"
# Facts without a source belong to one conversation if they are at most this many places and
# microseconds apart.
MAX_CONVERSATION_STEPS = 8
MAX_CONVERSATION_GAP = 3_600_000_000


class GraphReader(Protocol):
    """Reads of living rows.

    Lists are in order of creation. An outline is an entity without its facts.
    """

    def existing_names(self, names: Collection[str]) -> set[str]:
        """Return the names that are in use."""

    def entities(
        self,
        names: Collection[str] | None = None,
        *,
        kind: str | None = None,
        offset: int = 0,
        limit: int | None = None,
    ) -> list[Entity]:
        """Return the entities with these names, or a page of the entities of this type.

        None matches any.
        """

    def outlines(
        self,
        names: Collection[str] | None = None,
        *,
        ids: Collection[str] | None = None,
        kind: str | None = None,
        latest: int | None = None,
        updated_since: int = 0,
    ) -> list[Entity]:
        """Return outlines of the entities with these names or ids, or of this type.

        None matches any. With `latest`, return that many entities updated at that time or later,
        the latest first.
        """

    def aliased(self) -> list[Entity]:
        """Return outlines of the entities that have aliases."""

    def with_status(self, status: str | None = None) -> list[Entity]:
        """Return outlines of the entities with this status; None matches any."""

    def find_relations(self, keys: Collection[RelationKey]) -> dict[RelationKey, Relation]:
        """Return the relations with these keys."""

    def relations(
        self,
        touching: Collection[str] | None = None,
        *,
        source: str | None = None,
        target: str | None = None,
        kind: str | None = None,
    ) -> list[Relation]:
        """Return the relations that touch one of the names, or have this source, target and type.

        None matches any.
        """

    def find_path(self, source: str, target: str) -> list[str]:
        """Return the names on a shortest path, both ends included; none if there is no path.

        Relations lead both ways. Raise BadInput if the search gave up.
        """

    def types(self) -> list[str]:
        """Return the types of entities by name. It costs the same in a memory of any size."""

    def newest_of_type(self, kind: str, limit: int) -> list[Entity]:
        """Return the newest entities of a type, the oldest of them first."""

    def type_counts(self, of: Literal["entities", "relations"]) -> list[TypeCount]:
        """Return the types of entities or of relations, the most frequent first, then by name."""

    def counts(self) -> Counts:
        """Return the number of rows of each kind."""

    def stored_bytes(self) -> int:
        """Return how much is stored: the bytes of a SQLite file, elsewhere those of the facts."""


class SearchReader(Protocol):
    """Searches over living passages: entity cards, facts and vault notes.

    The notes of a session are never found. A term is a stemmed word as `search.terms` makes it.
    Only `containing` and `match` return what has expired.
    """

    def containing(self, folded: str, *, outlines: bool = False) -> list[Entity]:
        """Return the entities that contain the case-folded text, or their outlines.

        The text is in their name, their type or one of their facts.
        """

    def match(
        self, query: TextQuery, kinds: Collection[PassageKind], limit: int | None = None
    ) -> list[Match]:
        """Return the passages of these kinds that match the expression, best first.

        Raise NotSupported in a store without `capabilities.match`.
        """

    def word_counts(self, terms: Collection[str]) -> WordCounts:
        """Return how many passages contain each term, and the totals BM25 needs."""

    def vocabulary(self, first: str, last: str, limit: int) -> list[str]:
        """Return up to `limit` indexed terms from `first` to before `last`, in order."""

    def candidates(
        self,
        terms: Collection[str],
        limit: int,
        within: Within | None = None,
        *,
        every: bool = False,
        newest: bool = False,
    ) -> list[Passage]:
        """Return the best passages by BM25 with one of the terms, or with every one.

        With `newest`, return the newest ones instead, from the newest part of the memory: the best
        passages with very common terms would have to be chosen among most of the memory.
        """

    def names_with(self, terms: Collection[str], limit: int) -> list[str]:
        """Return names of entities that contain one of the terms, best matches first."""

    def neighbours(self, passages: Collection[Passage]) -> dict[PassageKey, Neighbours]:
        """Return the two facts before each one in its conversation, and the one after it.

        Only living ones count. The order is that of writing (of row ids), of all entities they
        belong to. For a fact with a source, the conversation is all facts with the
        same source.

        For one without, it is found among the MAX_CONVERSATION_STEPS facts without a source
        written just before it and as many just after it. They belong to it if the same client wrote
        them (the actor and server of their changes) and their time (valid time, else creation time)
        is at most MAX_CONVERSATION_GAP from its own. Stores that do not record clients assume one.
        """

    def passages(
        self, ids: Collection[int] = (), *, cards_of: Collection[str] = ()
    ) -> list[Passage]:
        """Return the living passages with these ids, and the cards of these entities, unordered."""

    def passages_containing(self, folded: str, limit: int) -> list[Passage]:
        """Return passages whose name, type, key or text contains the case-folded text."""

    def fact_counts(self, names: Collection[str]) -> dict[str, int]:
        """Return how many facts the entities with these names have."""

    def facts_between(self, start: int, end: int, limit: int) -> list[Passage]:
        """Return the newest facts with start <= time < end.

        Their time is the valid time, or else the creation time.
        """


def find_note(notes: "NoteReader", scope: NoteScope, key: str) -> Note | None:
    """Return the note with that key."""
    found = notes.notes(scope, key=key)
    return found[0] if found else None


class Reader(GraphReader, SearchReader, Protocol):
    """One snapshot of a store."""

    def together(self, *questions: Callable[[], Any]) -> list[Any]:
        """Return what the functions return. They read, and none needs what another one returns.

        A store on a server asks what all of them read first in one round trip, then what they read
        next. They may read other open snapshots, too.
        """

    @property
    def notes(self) -> "NoteReader":
        """The notes, with `capabilities.notes`."""

    @property
    def vectors(self) -> "VectorReader":
        """The vectors, with `capabilities.vectors`."""

    @property
    def history(self) -> "HistoryReader":
        """The history, with `capabilities.history`."""

    def read_rows(self, table: str) -> Iterator[TableRow]:
        """Yield all rows of a table in order, living or not, with `capabilities.tables`.

        Vectors are those of living passages, and all that clients supplied.
        """


class Writer(Reader, Protocol):
    """A reader that may also apply one change."""

    def clock(self) -> int:
        """Return the time for a change made now.

        It is later than the time of every change before.
        """

    def apply(self, change: Change) -> int:
        """Make the change part of the transaction, once, after everything that is read.

        Return the id of the change; 0 in a store without history. An entity whose facts
        change, and every touched one, is updated at the change's time.
        """

    def erase(self, traces: Traces) -> None:
        """Replace those of the rows that have ended, after the change that ends the others.

        The history then shows ERASED in their place. `Store.remove_copies` does the rest.
        """
