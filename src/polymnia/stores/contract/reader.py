"""What one snapshot of a store answers: the graph, searches, notes, vectors, history and trash."""

from collections.abc import Collection
from typing import Protocol

from polymnia.model import (
    Author,
    Change,
    ChangeQuery,
    Counts,
    EmbeddingModel,
    Entity,
    EventCounts,
    Graph,
    Heading,
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
    Perspective,
    Relation,
    RelationKey,
    Rows,
    TrashItem,
    TypeCount,
    Within,
    WordCounts,
)
from polymnia.search.expression import Expression
from polymnia.stores.contract.tables import TableReader

# The perspective that embeds a passage's own text. Every store has it.
TEXT = "text"
# Observations without a source belong to one conversation up to this many places and microseconds apart.
MAX_CONVERSATION_STEPS = 8
MAX_CONVERSATION_GAP = 3_600_000_000


class GraphReader(Protocol):
    """Reads of living rows. Lists are in order of creation."""

    def known(self, names: Collection[str]) -> set[str]:
        """Return those of the names that entities have."""

    def find(self, names: Collection[str]) -> list[Entity]:
        """Return the entities with these names."""

    def names_of(self, ids: Collection[str]) -> dict[str, str]:
        """Return the names of the entities with these ids, by id."""

    def entities(self) -> list[Entity]:
        """Return every entity."""

    def linked(self, keys: Collection[RelationKey]) -> dict[RelationKey, Relation]:
        """Return the relations with these keys."""

    def touching(self, names: Collection[str]) -> list[Relation]:
        """Return the relations that start or end at one of the names."""

    def graph_of(self, names: Collection[str]) -> Graph:
        """Return the entities with these names and every relation that touches one of them."""

    def relations(self) -> list[Relation]:
        """Return every relation."""

    def page(self, kind: str | None, offset: int, limit: int | None) -> list[Entity]:
        """Return a page of the entities, or of those of one type."""

    def outlines(
        self, names: Collection[str] | None = None, kind: str | None = None
    ) -> list[Entity]:
        """Return the entities with these names and of this type, without their observations; None matches any."""

    def recent(self, since: int, limit: int) -> list[Entity]:
        """Return the entities updated at that time or later, the latest first, without their observations."""

    def relations_like(
        self, source: str | None, target: str | None, kind: str | None
    ) -> list[Relation]:
        """Return the relations with this source, target and type; None matches any."""

    def entity_types(self) -> list[TypeCount]:
        """Return the entity types, the most frequent first, then by name."""

    def relation_types(self) -> list[TypeCount]:
        """Return the relation types, the most frequent first, then by name."""

    def counts(self) -> Counts:
        """Return the number of rows of each kind."""

    def distinct_texts(self) -> tuple[int, int]:
        """Return the number of distinct texts and their total length in UTF-8 bytes."""


class SearchReader(Protocol):
    """Searches over living passages: entity cards, observations and vault notes, never the notes of a session.

    A term is a stemmed word as `search.terms` makes it.
    """

    def containing(self, folded: str) -> list[Entity]:
        """Return the entities whose name, type or an observation contains the text, which is already case-folded."""

    def headings(self, folded: str) -> list[Heading]:
        """Return the same entities without their observations, in no particular order."""

    def match(
        self, expression: Expression, kinds: Collection[PassageKind], limit: int | None = None
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
    ) -> list[Passage]:
        """Return the `limit` best passages by BM25 that contain one of the terms, or every one of them."""

    def names_with(self, terms: Collection[str], limit: int) -> list[str]:
        """Return names of entities that contain one of the terms, best matches first."""

    def neighbours(self, passages: Collection[Passage]) -> dict[PassageKey, Neighbours]:
        """Return the two living observations before each observation in its conversation, and the one after it.

        The order is that of writing (of row ids), whatever entity they belong to. For an observation with a source, the
        conversation is all observations with the same source. For one without, it is found among the
        MAX_CONVERSATION_STEPS observations without a source written just before it and as many just after it: those
        that the same client wrote (the actor and server of their changes) and whose time (valid time, else creation
        time) is at most MAX_CONVERSATION_GAP from its own. Stores that do not record clients assume one client.
        """

    def passages_by_id(self, ids: Collection[int]) -> list[Passage]:
        """Return the living passages with these ids, in no particular order."""

    def passages_containing(self, folded: str, limit: int) -> list[Passage]:
        """Return passages whose name, type, key or text contains the text, which is already case-folded."""

    def cards(self, names: Collection[str]) -> list[Passage]:
        """Return the cards of the entities with these names."""

    def observation_counts(self, names: Collection[str]) -> dict[str, int]:
        """Return how many observations the entities with these names have."""

    def between(self, start: int, end: int, limit: int) -> list[Passage]:
        """Return the newest observations with start <= time < end, by valid time or else by creation time."""


class NoteReader(Protocol):
    """Reads of living notes. Lists are in order of creation; only `find` and `like` return embeddings."""

    def find(self, scope: NoteScope, key: str) -> Note | None:
        """Return the note with that key."""

    def page(self, scope: NoteScope, offset: int, limit: int | None) -> list[Note]:
        """Return a page of the scope's notes."""

    def like(
        self, scope: NoteScope, *, key: str | None, tags: Collection[str], before: int | None
    ) -> list[Note]:
        """Return the notes with the key, all of the tags, and a creation time before `before`; None matches any."""

    def keys(self, scope: NoteScope, prefix: str) -> list[str]:
        """Return the keys with that prefix, in alphabetical order."""

    def count(self, scope: NoteScope, tags: Collection[str]) -> int:
        """Return how many notes have all of the tags."""

    def containing(self, folded: str) -> list[Note]:
        """Return the vault notes whose key or content contains the text, which is already case-folded."""

    def search(self, query: NoteQuery) -> list[NoteHit]:
        """Return the notes of the query's scope that answer it, best first."""


class Sessions(Protocol):
    """Which conversations use which sessions. The empty member is this server itself, for clients that never leave.

    The writing methods need a Writer.
    """

    def join(self, member: str, scope: NoteScope, at: int) -> None:
        """Record that a conversation uses the session."""

    def has_joined(self, member: str, *, unused_since: int | None = None) -> bool:
        """Return True if the conversation uses a session, or one it has not used since that time."""

    def leave(self, member: str, *, unused_since: int | None = None) -> None:
        """Record that a conversation no longer uses its sessions, or those it has not used since that time."""

    def abandoned(self) -> list[NoteScope]:
        """Return the sessions that no conversation on a running server uses."""


class VectorReader(Protocol):
    """Vectors of passages, as little-endian float32.

    A vector is made from a passage's text in one perspective by one model. A passage's text never changes under its id,
    so a vector never becomes stale. Perspectives with the same document template share their vectors. A method with a
    `perspective` raises BadInput if there is none of that name.
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
        """Return the mean of the vectors of each entity's observations, by name. Entities without a vector are missing.

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
        """Return living passages with above < id < below and without a vector, newest first, with the text to embed.

        `search.templates.render_document` makes the text.
        """

    def last_passage(self) -> int:
        """Return an id that no passage of this snapshot exceeds. Later passages have higher ids."""

    def coverage(self, model: int, *, perspective: str = TEXT) -> tuple[int, int]:
        """Return how many living passages have a vector of the model, and how many should."""


class HistoryReader(Protocol):
    """Changes in commit order, and the state at any time."""

    def changes(self, since: int = 0, limit: int | None = None) -> list[Change]:
        """Return the changes with an id above `since`, oldest first. Purged rows are missing from them."""

    def latest(self, query: ChangeQuery) -> list[Change]:
        """Return the changes that the query selects, newest first. Purged rows are missing from them."""

    def actors(self) -> list[str]:
        """Return everyone who made a change, in alphabetical order."""

    def authors(self, passages: Collection[PassageKey]) -> dict[PassageKey, Author]:
        """Return who first wrote the living passages with these keys: a card's entity, an observation's or note's text.

        The author of a text whose first version was purged is the one who wrote the oldest version that is left.
        """

    def at(self, time: int, names: Collection[str] | None = None) -> Rows:
        """Return everything that lived at that time, or the named entities and the relations that touched them.

        Raise BadInput for a time whose rows were purged.
        """

    def count_events(self, since: int = 0) -> EventCounts:
        """Return how much happened after the change with that id. Purged rows are not counted."""

    def mark(self, name: str) -> Mark | None:
        """Return the point of history that was last marked with that name."""

    def set_mark(self, name: str, mark: Mark) -> None:
        """Mark a point of history, in place of the last one with that name. This needs a Writer and is not a change."""


class TrashReader(Protocol):
    """What was deleted and can be restored."""

    def items(self) -> list[TrashItem]:
        """Return entities, then single observations, relations and notes, each the latest first."""


class Reader(GraphReader, SearchReader, Protocol):
    """One snapshot of a store."""

    @property
    def notes(self) -> NoteReader:
        """The notes, with `capabilities.notes`."""

    @property
    def sessions(self) -> Sessions:
        """The sessions in use, with `capabilities.notes`."""

    @property
    def vectors(self) -> VectorReader:
        """The vectors, with `capabilities.vectors`."""

    @property
    def history(self) -> HistoryReader:
        """The history, with `capabilities.history`."""

    @property
    def trash(self) -> TrashReader:
        """The trash, with `capabilities.trash`."""

    @property
    def tables(self) -> TableReader:
        """All rows as they are, with `capabilities.tables`."""


class Writer(Reader, Protocol):
    """A reader that may also apply one change."""

    def clock(self) -> int:
        """Return the time for a change made now. It is later than the time of every change before."""

    def apply(self, change: Change) -> int:
        """Make the change part of the transaction, once, after everything that is read.

        Return the id of the change; 0 in a store without history. An entity whose observations change, and every
        touched one, is updated at the change's time.
        """
