"""The contract every store keeps: read a consistent moment, write one change at a time."""

from collections.abc import Collection, Sequence
from contextlib import AbstractContextManager
from typing import TYPE_CHECKING, Protocol, runtime_checkable

from msgspec import Struct

from polymnia.model import (
    VAULT,
    Change,
    Counts,
    EmbeddingModel,
    Entity,
    Graph,
    Neighbours,
    Note,
    NoteHit,
    NoteScope,
    Passage,
    PassageKey,
    PurgeCounts,
    Relation,
    RelationKey,
    TrashItem,
    TypeCount,
    Within,
    WordCounts,
)

if TYPE_CHECKING:
    from polymnia.search.vectors import Row


class NoteQuery(Struct, frozen=True, kw_only=True):
    """What to search a scope's notes for; the vector is little-endian float32, empty when there is none."""

    text: str
    scope: NoteScope = VAULT
    tags: tuple[str, ...] = ()
    vector: bytes = b""
    limit: int = 10


class Notes(Protocol):
    """The notes of a store that holds them, and which sessions are in use; lists come in the order of creation.

    Only `find` and `like` give embeddings.
    """

    def find(self, scope: NoteScope, key: str) -> Note | None:
        """The note with that key."""

    def page(self, scope: NoteScope, offset: int, limit: int | None) -> list[Note]:
        """A stretch of the scope's notes."""

    def like(self, scope: NoteScope, *, key: str | None, tags: Collection[str], before: int | None) -> list[Note]:
        """The notes that have the key, all of the tags, and were created before that time; None and nothing are any."""

    def keys(self, scope: NoteScope, prefix: str) -> list[str]:
        """The keys that start so, in alphabetical order."""

    def count(self, scope: NoteScope, tags: Collection[str]) -> int:
        """How many notes have all of the tags."""

    def containing(self, folded: str) -> list[Note]:
        """The vault's notes whose key or content contains the text, which is folded already."""

    def search(self, query: NoteQuery) -> list[NoteHit]:
        """The notes that answer the query, best first."""

    def attend(self, seat: str, scope: NoteScope, at: int) -> None:
        """Say that a conversation uses the session; the empty seat is this server's own, for those who never leave."""

    def attends(self, seat: str, *, unused_since: int | None = None) -> bool:
        """Whether that conversation uses any session, or any that it has not used since that time."""

    def leave(self, seat: str, *, unused_since: int | None = None) -> None:
        """Say that a conversation uses none any more, or none of those that it has not used since that time."""

    def abandoned(self) -> list[NoteScope]:
        """The sessions that have notes or were in use, and that nobody on a living server uses."""


class Reader(Protocol):
    """What can be asked of a store; lists come in the order of creation, and only the living are seen."""

    @property
    def notes(self) -> Notes | None:
        """The notes, where the store holds them."""

    def known(self, names: Collection[str]) -> set[str]:
        """Those of the names that entities have."""

    def find(self, names: Collection[str]) -> list[Entity]:
        """The entities with these names."""

    def entities(self) -> list[Entity]:
        """All of them."""

    def containing(self, folded: str) -> list[Entity]:
        """Entities whose name, type or an observation contains the text, which is folded already."""

    def linked(self, keys: Collection[RelationKey]) -> dict[RelationKey, Relation]:
        """The relations with these keys."""

    def touching(self, names: Collection[str]) -> list[Relation]:
        """The relations that start or end at one of the names."""

    def relations(self) -> list[Relation]:
        """All of them."""

    def page(self, kind: str | None, offset: int, limit: int | None) -> list[Entity]:
        """A stretch of the entities, or of those of one type."""

    def relations_like(self, source: str | None, target: str | None, kind: str | None) -> list[Relation]:
        """The relations that have what is given; None is anything."""

    def entity_types(self) -> list[TypeCount]:
        """The types entities have, the commonest first, then by name."""

    def relation_types(self) -> list[TypeCount]:
        """The types relations have, the commonest first, then by name."""

    def counts(self) -> Counts:
        """How much there is."""

    def distinct_texts(self) -> tuple[int, int]:
        """How many different texts there are in all, and their length in UTF-8 bytes."""

    def word_counts(self, terms: Collection[str]) -> WordCounts:
        """How common the terms are; a term is a stemmed word as `search.words` makes it."""

    def vocabulary(self, first: str, last: str, limit: int) -> list[str]:
        """The terms from `first` to before `last`, in order, at most so many."""

    def candidates(
        self, terms: Collection[str], limit: int, within: Within | None = None, *, every: bool = False
    ) -> list[Passage]:
        """Passages that have one of the terms, or every one; of more than are asked for, those that match best.

        Among them are the vault's notes, and never a session's.
        """

    def names_with(self, terms: Collection[str], limit: int) -> list[str]:
        """Names of entities that have one of the terms in them, those that match best first."""

    def observation_counts(self, names: Collection[str]) -> dict[str, int]:
        """Return how many living observations each of these entities has; unknown names are left out."""

    def neighbours(self, passages: Collection[Passage]) -> dict[PassageKey, Neighbours]:
        """Return what was written around each observation in its conversation.

        A conversation is the observations with the same valid time; those without a valid time form one, in order of
        writing.
        """

    def passages_by_id(self, ids: Collection[int]) -> list[Passage]:
        """What still stands at these places of the store, in no order."""

    def between(self, start: int, end: int, limit: int) -> list[Passage]:
        """The newest observations from one time to before another, by their valid time or when they were written."""


@runtime_checkable
class FullTextReader(Protocol):
    """A reader over a store with a full-text index."""

    def matching(self, query: str) -> list[Entity]:
        """Entities that match an FTS5 query, best first; what is no valid query is searched as words."""


@runtime_checkable
class TrashReader(Protocol):
    """A reader over a store that keeps what was deleted."""

    def trashed(self) -> list[TrashItem]:
        """Everything that can be brought back: entities, then observations, then relations, the latest first."""


class Writer(Reader, Protocol):
    """A reader that may also apply a change, once, after everything it read."""

    def apply(self, change: Change) -> None:
        """Make the change part of the transaction.

        An entity whose observations change is updated at the change's time.
        """


class VectorTable(Protocol):
    """The vectors a store keeps of its observations and of the vault's notes.

    Safe to use from several threads and several processes.
    """

    def models(self) -> list[EmbeddingModel]:
        """The models it has vectors of, oldest first."""

    def add_model(self, identity: str, url: str, dimension: int) -> EmbeddingModel:
        """The model with that identity, kept from now on; if it is new, everything is queued for it."""

    def remove_model(self, number: int, most: int) -> bool:
        """Forget so many vectors of a model, and with the last of them the model; False while there are more."""

    def queued(self, model: int, limit: int) -> list[tuple[int, str | None]]:
        """What the model has to embed next, by place and text; without a text where it is gone. At most so many."""

    def put(self, model: int, embedded: Sequence[tuple[int, str | None, bytes]]) -> None:
        """Keep the vectors of texts and take them off the queue; one whose text has changed since is dropped."""

    def state(self) -> tuple[int, int]:
        """Numbers of the last vector written and the last one gone: they change when another process did something."""

    def since(self, model: int, vector: int, limit: int) -> tuple[int, list["Row"]]:
        """The number of the last one given, and the model's vectors written after a number, at most so many."""

    def gone_since(self, model: int, number: int) -> tuple[int, list[int]] | None:
        """The number of the last one, and the places whose vectors of the model went after a number.

        Those that have a new one are left out: it may be known already. None when that is so long ago that it is not
        known any more.
        """

    def places(self, model: int) -> set[int]:
        """Every place that has a vector of the model."""

    def forget_gone(self, keep: int) -> None:
        """Remember of the vectors that went no more than the last so many, or twice as many until it is worth it."""

    def counts(self, model: int) -> tuple[int, int]:
        """How many observations and notes have a vector of the model, and how many there are."""

    def groups(self, within: Within) -> list[int] | None:
        """The groups of vectors that names and types allow; None is all."""


class Store(Protocol):
    """One workspace's memory. Safe to use from several threads and several processes."""

    @property
    def url(self) -> str:
        """What `open_store` was given."""

    @property
    def best_batch(self) -> int:
        """How many rows to write in one transaction when there are very many."""

    @property
    def short_reads(self) -> bool:
        """Whether a read of a few names never waits for a write or for a file to be read again."""

    @property
    def vectors(self) -> VectorTable | None:
        """Where it keeps vectors; None when it cannot."""

    def look_up(self, name: str) -> Graph:
        """The entity of that name and every relation that touches it: the commonest read, the shortest way."""

    def reading(self) -> AbstractContextManager[Reader]:
        """A consistent view for the length of the block."""

    def writing(self) -> AbstractContextManager[Writer]:
        """A transaction: durable when the block ends, undone when it raises."""

    def check(self) -> list[str]:
        """Everything that is wrong with what is on disk, a sentence each; empty when all is well."""

    def tidy(self) -> bool:
        """A short piece of housekeeping that makes later reads quicker; True while there is more to do."""

    def compact(self) -> None:
        """Give back the room that deleted things take, and do all the housekeeping at once; it may take seconds."""

    def close(self) -> None:
        """Let go of files and locks. A store may be closed twice."""


class Following(Protocol):
    """A reader of the changes that other processes make."""

    def news(self) -> list[Change]:
        """What others have changed since it was last asked, oldest first. Raises StoreError."""

    def close(self) -> None:
        """No more is wanted."""


@runtime_checkable
class Followed(Protocol):
    """A store that can tell what other processes have changed."""

    def follow(self) -> Following:
        """Begin now."""


@runtime_checkable
class TrashStore(Protocol):
    """A store that keeps what was deleted until it is told not to."""

    def purge(self, before: int) -> PurgeCounts:
        """Take away for good what was deleted before that time, and its text with it; gives how much it was."""
