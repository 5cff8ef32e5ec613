"""What one snapshot of a store answers: the graph, searches, notes, vectors, history and trash."""

from collections.abc import Callable, Collection, Iterator
from typing import Any, Literal, Protocol

from polymnia.model import (
    Author,
    Change,
    ChangeQuery,
    ChangeSize,
    Counts,
    EmbeddingModel,
    Entity,
    Erasure,
    Mark,
    Match,
    Neighbours,
    Note,
    NoteHit,
    NoteQuery,
    NoteScope,
    Passage,
    PassageKey,
    PassageKind,
    PastFact,
    Perspective,
    Relation,
    RelationKey,
    Rows,
    Traces,
    TrashItem,
    TypeCount,
    Within,
    WordCounts,
)
from polymnia.search.fulltext import TextQuery
from polymnia.stores.contract.tables import TableRow

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


class NoteReader(Protocol):
    """Reads of living notes, and of the sessions that conversations use.

    The empty member is this server itself, for clients that never leave. `join_session` and
    `leave_sessions` write, so they need a Writer.
    """

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

    def has_any(self) -> bool:
        """Return True if the vault has a note."""

    def containing(self, folded: str) -> list[Note]:
        """Return the vault notes whose key or content contains the case-folded text.

        They come without their embeddings.
        """

    def search(self, query: NoteQuery) -> list[NoteHit]:
        """Return the notes of the query's scope that answer it, best first, without embeddings."""

    def join_session(self, member: str, scope: NoteScope, at: int) -> None:
        """Record that a conversation uses the session."""

    def has_joined(self, member: str, *, unused_since: int | None = None) -> bool:
        """Return True if the conversation uses a session, or one not used since that time."""

    def leave_sessions(self, member: str, *, unused_since: int | None = None) -> None:
        """Record that a conversation left its sessions, or those not used since that time."""

    def abandoned_sessions(self) -> list[NoteScope]:
        """Return the sessions that no conversation on a running server uses."""


def find_note(notes: NoteReader, scope: NoteScope, key: str) -> Note | None:
    """Return the note with that key."""
    found = notes.notes(scope, key=key)
    return found[0] if found else None


class VectorReader(Protocol):
    """Vectors of passages, as little-endian float32.

    A vector is made from a passage's text in one perspective by one model. A passage's text never
    changes under its id, so a vector never becomes stale. Perspectives with the same document
    template share their vectors. A method with a `perspective` raises BadInput if there is none of
    that name.
    """

    def perspectives(self) -> list[Perspective]:
        """Return the perspectives, oldest first. The first is TEXT."""

    def models(self) -> list[EmbeddingModel]:
        """Return the models with vectors, oldest first."""

    def nearest(
        self,
        model: int,
        vector: bytes,
        k: int,
        within: Within | None = None,
        *,
        perspective: str = TEXT,
    ) -> dict[int, float]:
        """Return the ids of the k nearest living passages with their cosines, best first."""

    def vectors(
        self, model: int, passages: Collection[int], *, perspective: str = TEXT
    ) -> dict[int, bytes]:
        """Return the vectors of those of the passages that have one."""

    def means(self, model: int, *, perspective: str = TEXT) -> dict[str, bytes]:
        """Return the mean of the vectors of each entity's facts, by name.

        Entities without a vector are missing.
        A store that compares vectors in memory needs numpy for it.
        """

    def pending(
        self,
        model: int,
        limit: int,
        *,
        above: int = 0,
        below: int | None = None,
        perspective: str = TEXT,
    ) -> list[tuple[int, str]]:
        """Return the living passages without a vector, newest first, with the text to embed.

        Only passages with above < id < below. `search.templates.render_document` makes the text.
        """

    def last_passage(self) -> int:
        """Return an id that no passage of this snapshot exceeds. Later passages have higher ids."""

    def coverage(self, model: int, *, perspective: str = TEXT) -> tuple[int, int]:
        """Return how many living passages have a vector of the model, and how many should."""


class HistoryReader(Protocol):
    """Changes in commit order, and the state at any time."""

    def changes(self, query: ChangeQuery) -> list[Change]:
        """Return the changes that the query selects, newest first.

        Purged rows are missing from them.
        """

    def change_heads(self, query: ChangeQuery) -> list[Change]:
        """Return the changes that the query selects, newest first, without their rows.

        The change of an import may have thousands of rows.
        """

    def change_sizes(self, changes: Collection[int]) -> dict[int, ChangeSize]:
        """Return how many rows these changes ended and created, without reading them."""

    def all_names(self, names: Collection[str]) -> set[str]:
        """Return these names and every other name of the entities that have or had one of them."""

    def actors(self) -> list[str]:
        """Return everyone who made a change, in alphabetical order."""

    def authors(self, passages: Collection[PassageKey]) -> dict[PassageKey, Author]:
        """Return who first wrote the living passages with these keys.

        That is the author of a card's entity, or of a fact's or note's text. If the first
        version of a text was purged, it is the author of the oldest version that is left.
        """

    def state_at(self, time: int, names: Collection[str] | None = None) -> Rows:
        """Return everything that lived at that time, or the named entities and their relations.

        Raise BadInput for a time whose rows were purged.
        """

    def state_before(self, change: int, names: Collection[str] | None = None) -> Rows:
        """Return the same for the moment before a change. Raise BadInput if that was purged."""

    def latest_time(self) -> int:
        """Return the latest time that a change has, which may be ahead of the clock; 0 for none."""

    def mark(self, name: str) -> Mark | None:
        """Return the point of history that was last marked with that name."""

    def set_mark(self, name: str, mark: Mark) -> None:
        """Mark a point of history, in place of the last one with that name.

        This needs a Writer and is not a change.
        """


class Reader(GraphReader, SearchReader, Protocol):
    """One snapshot of a store."""

    def together(self, *questions: Callable[[], Any]) -> list[Any]:
        """Return what the functions return. They read, and none needs what another one returns.

        A store on a server asks what all of them read first in one round trip, then what they read
        next. They may read other open snapshots, too.
        """

    @property
    def notes(self) -> NoteReader:
        """The notes, with `capabilities.notes`."""

    @property
    def vectors(self) -> VectorReader:
        """The vectors, with `capabilities.vectors`."""

    @property
    def history(self) -> HistoryReader:
        """The history, with `capabilities.history`."""

    def trash(self) -> list[TrashItem]:
        """Return what was deleted and can be restored, with `capabilities.trash`.

        Entities come first, then single facts, relations and notes, each the latest first.
        """

    def past_facts(self, name: str) -> list[PastFact]:
        """Return every version of every fact of an entity, with `capabilities.trash`.

        If no living entity has the name, of those that had it when they were deleted.
        """

    def find_moved(self, moved: Collection[tuple[str, int]]) -> Erasure:
        """Return facts with these texts and times that a move took to another workspace.

        Entities that moved as a whole are included, those that live are not.
        """

    def find_traces(self, erasure: Erasure) -> Traces:
        """Return the rows that an erasure replaces, with `capabilities.trash`."""

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
