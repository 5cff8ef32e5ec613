"""The values everything speaks in: entities, observations, relations and the changes made to them.

Times are whole microseconds since 1970 in UTC; 0 means that the store does not know.
"""

from msgspec import Struct

RelationKey = tuple[str, str, str]


class Observation(Struct, frozen=True, gc=False, omit_defaults=True):
    """One fact about an entity; its ordinal is never reused and never renumbered.

    `valid_at` is when what it tells was said or true; 0 is when it was created.
    """

    ordinal: int
    text: str
    created_at: int = 0
    valid_at: int = 0


class Entity(Struct, frozen=True, omit_defaults=True):
    """A named thing and what is known of it; the name is unique among the living."""

    name: str
    type: str
    observations: tuple[Observation, ...] = ()
    id: str = ""
    next_ordinal: int = 1
    summary: str | None = None
    summary_at: int = 0
    tags: tuple[str, ...] = ()
    created_at: int = 0
    updated_at: int = 0

    @property
    def texts(self) -> tuple[str, ...]:
        """The texts of its observations, oldest first."""
        return tuple([observation.text for observation in self.observations])


class Relation(Struct, frozen=True, gc=False, omit_defaults=True):
    """A directed, typed edge between two names; either may be a name that nothing has yet."""

    source: str
    target: str
    type: str
    created_at: int = 0

    @property
    def key(self) -> RelationKey:
        """What makes it the same relation as another."""
        return (self.source, self.target, self.type)


class Graph(Struct, frozen=True):
    """Entities and relations read together, each in the order they were created."""

    entities: list[Entity]
    relations: list[Relation]


class Draft(Struct, frozen=True):
    """An entity somebody wants to create."""

    name: str
    type: str
    observations: tuple[str, ...] = ()
    summary: str | None = None
    tags: tuple[str, ...] = ()


class Texts(Struct, frozen=True):
    """Observation texts to add to, or take from, the entity of that name; `valid_at` as in what they become."""

    entity: str
    texts: tuple[str, ...]
    valid_at: int = 0


class Noted(Struct, frozen=True):
    """Observations of the entity of that name."""

    entity: str
    observations: tuple[Observation, ...]


class Rows(Struct, frozen=True, omit_defaults=True):
    """One side of a change. Entities carry their own observations; `notes` are those of entities that stay."""

    entities: tuple[Entity, ...] = ()
    notes: tuple[Noted, ...] = ()
    relations: tuple[Relation, ...] = ()

    def __bool__(self) -> bool:
        return bool(self.entities or self.notes or self.relations)


class Change(Struct, frozen=True):
    """One write: who, when, what, and the rows it touched as they were before and are after.

    What is only in `before` is deleted, what is only in `after` is created, what is in both is replaced.
    """

    operation: str
    actor: str
    at: int
    before: Rows = Rows()
    after: Rows = Rows()
    id: int = 0


class TypeCount(Struct, frozen=True):
    """A type and how many have it."""

    type: str
    count: int


class Counts(Struct, frozen=True):
    """How much a store holds."""

    entities: int
    observations: int
    relations: int


PassageKey = tuple[str, int]


class Passage(Struct, frozen=True, gc=False):
    """One text that a search can find: an observation or, with ordinal 0, an entity itself by name and type."""

    entity: str
    type: str
    ordinal: int
    text: str
    created_at: int = 0
    valid_at: int = 0
    place: int = 0  # where its store has it; 0 where that means nothing

    @property
    def key(self) -> PassageKey:
        """What tells it from every other."""
        return (self.entity, self.ordinal)


class WordCounts(Struct, frozen=True):
    """How many passages and words a store has, and how many passages have each of some terms."""

    passages: int
    words: int
    having: dict[str, int]


class Within(Struct, frozen=True):
    """What a search is kept to: entities of these names, of these types, and a time; None is anything."""

    names: tuple[str, ...] | None = None
    types: tuple[str, ...] | None = None
    since: int | None = None
    until: int | None = None

    def has(self, passage: Passage) -> bool:
        """Whether the passage is one of those."""
        at = passage.valid_at or passage.created_at
        return (
            (self.names is None or passage.entity in self.names)
            and (self.types is None or passage.type in self.types)
            and (self.since is None or at >= self.since)
            and (self.until is None or at < self.until)
        )


class Signals(Struct, frozen=True):
    """What speaks for one candidate, each on its own scale."""

    words: float = 0.0  # BM25 of its text
    before: float = 0.0  # BM25 of what was said just before it
    meaning: float | None = None  # cosine with the question; None without a vector
    entity: float = 0.0  # how much of its entity's name the question says
    linked: float = 0.0  # 1 when a relation leads from a named entity to its own
    date: float = 0.0  # agreement with the date in the question
    tells_time: float = 0.0  # 1 when the question asks when and it has words of time
    length: float = 0.0  # log of its length, where it is a turn of a conversation
    asks: float = 0.0  # 1 when it is itself a question, where it is a turn of a conversation


class Hit(Struct, frozen=True):
    """A passage that answers a question, what speaks for it, and how many that say the same stand behind it."""

    passage: Passage
    score: float
    rung: str
    signals: Signals
    alike: int = 0


class EmbeddingModel(Struct, frozen=True):
    """A model whose vectors a store has."""

    number: int
    identity: str
    url: str
    dimension: int
