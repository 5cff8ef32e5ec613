"""Passages: everything a search can return, and the values that rank them."""

from collections.abc import Iterable
from time import time_ns
from typing import Literal

from msgspec import Struct

from polymnia.model.graph import Entity, Fact

PassageKey = tuple[str, int]
PassageKind = Literal["entity", "fact", "note"]
# The ordinal and the type of a passage that is a note.
NOTE, NOTE_TYPE = -1, "note"
US_PER_DAY = 86_400_000_000


class Passage(Struct, frozen=True, gc=False):
    """A text that a search can return: a fact, a card (ordinal 0) or a note (NOTE).

    A card stands for an entity; its text is the entity's summary. The `entity` of a note is its
    key. A fact has its entity's tags.
    """

    entity: str
    type: str
    ordinal: int
    text: str
    created_at: int = 0
    valid_at: int = 0
    id: int = 0  # 0 in stores without passage ids
    tags: tuple[str, ...] = ()
    source: str = ""
    expires: int = 0  # its own time or its entity's, whichever is earlier; 0: never

    @classmethod
    def of(cls, entity: Entity, fact: Fact) -> "Passage":
        """Return a fact of an entity as the passage that a search would find."""
        return cls(
            entity.name,
            entity.type,
            fact.ordinal,
            fact.text,
            created_at=fact.created_at,
            valid_at=fact.valid_at,
            tags=entity.tags,
            source=fact.source,
            expires=min(filter(None, (fact.expires, entity.expires)), default=0),
        )

    @property
    def key(self) -> PassageKey:
        """What identifies the passage among the living ones."""
        return (self.entity, self.ordinal)

    @property
    def kind(self) -> PassageKind:
        """What the passage is."""
        return "fact" if self.ordinal > 0 else "note" if self.ordinal == NOTE else "entity"

    @property
    def is_turn(self) -> bool:
        """True for what was said in a conversation: what stands beside it has the same topic.

        A fact that is true from a day on, or without a time, was noted, not said.
        """
        return self.type == "conversation" or bool(self.valid_at % US_PER_DAY)

    @property
    def words(self) -> str:
        """The text whose words find the passage."""
        if self.ordinal > 0:
            return self.text
        labels = self.tags if self.ordinal == NOTE else (self.type, *self.tags)
        return "\n".join([self.entity, *labels, self.text])


def drop_expired(passages: Iterable[Passage]) -> list[Passage]:
    """Return the passages that have not expired."""
    now = time_ns() // 1000
    return [passage for passage in passages if not passage.expires or passage.expires > now]


class Neighbours(Struct, frozen=True):
    """What was written around a fact: just before it, before that, and just after it."""

    before: Passage | None = None
    earlier: Passage | None = None
    after: Passage | None = None


class Match(Struct, frozen=True, gc=False):
    """A passage that matches a query expression. The BM25 score is positive; higher is better."""

    id: int
    entity: str  # the entity's name, or a note's key
    kind: PassageKind
    score: float


class WordCounts(Struct, frozen=True):
    """The passages and words of a store, and how many passages contain each of some terms."""

    passages: int
    words: int
    having: dict[str, int]


class Within(Struct, frozen=True):
    """Restrict a search to names (keys of notes), types, a period and all of some tags."""

    names: tuple[str, ...] | None = None
    types: tuple[str, ...] | None = None
    since: int | None = None
    until: int | None = None
    tags: tuple[str, ...] | None = None

    def has(self, passage: Passage) -> bool:
        """Return True if the passage satisfies every restriction."""
        at = passage.valid_at or passage.created_at
        return (
            (self.names is None or passage.entity in self.names)
            and (self.types is None or passage.type in self.types)
            and (self.since is None or at >= self.since)
            and (self.until is None or at < self.until)
            and (self.tags is None or set(self.tags) <= set(passage.tags))
        )


class Signals(Struct, frozen=True, gc=False):
    """The evidence for one candidate, each signal on its own scale."""

    words: float = 0.0  # BM25 of its text, in units of a usual best match
    # The same of what another one said just before, more for a short text and less for a long one.
    before: float = 0.0
    meaning: float | None = None  # cosine with the question; None without a vector
    entity: float = 0.0  # the share of its entity's name that the question contains
    date: float = 0.0  # agreement with the date in the question
    tells_time: float = 0.0  # 1 if the question asks when and the text contains time words
    length: float = 0.0  # log of its length in words
    asks: float = 0.0  # the share of its words that stand in questions
    is_turn: bool = False  # it was said in a conversation
    brevity: float = 1.0  # how short the texts of its memory are: length and asks count by it


class Hit(Struct, frozen=True):
    """A passage that answers a question, its evidence, and how many similar passages it stands for.

    `reasons` say why it was found, `excerpt` is the part of its text that matches, and `is_weak` is
    True if it has little in common with the question. `before` and `after` are the facts
    around it in its conversation, in order, as far as they were asked for. `share` is the share of
    the question's words that it has; unlike the score it does not depend on other hits.
    """

    passage: Passage
    score: float
    match_kind: str
    signals: Signals
    alike: int = 0
    reasons: tuple[str, ...] = ()
    excerpt: str = ""
    is_weak: bool = False
    before: tuple[Passage, ...] = ()
    after: tuple[Passage, ...] = ()
    share: float = 0.0


class Perspective(Struct, frozen=True):
    """A way to embed passages: a template of their text, and one of the questions.

    A document template may have the fields of `search.templates`, a query template has `{query}`.
    """

    name: str
    document: str
    query: str


class CosineScale(Struct, frozen=True):
    """The cosines of a model: that of texts that have hardly anything in common, and a unit."""

    zero: float
    unit: float


class EmbeddingModel(Struct, frozen=True):
    """A model whose vectors a store holds. Its scale is None until it is measured."""

    number: int
    identity: str
    url: str
    dimension: int
    scale: CosineScale | None = None
