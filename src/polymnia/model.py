"""The values everything speaks in: entities, observations, relations, notes, changes to them and who makes those.

Times are whole microseconds since 1970 in UTC; 0 means that the store does not know.
"""

from typing import Literal

from msgspec import Struct
from msgspec.structs import replace

from polymnia.errors import NotAllowed

RelationKey = tuple[str, str, str]
# What somebody may do; each includes those before it.
Capability = Literal["read", "write", "admin"]
CAPABILITIES: tuple[Capability, ...] = ("read", "write", "admin")


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


class NoteScope(Struct, frozen=True, omit_defaults=True):
    """Whose notes: those of one session of one principal (by name) or, without a session, the vault's: everybody's."""

    session: str = ""
    owner: str = ""


VAULT = NoteScope()


class Note(Struct, frozen=True, omit_defaults=True):
    """A text under a key, unique in its scope; the embedding is little-endian float32, empty when there is none."""

    key: str
    content: str
    tags: tuple[str, ...] = ()
    scope: NoteScope = VAULT
    embedding: bytes = b""
    created_at: int = 0
    updated_at: int = 0


class NoteHit(Struct, frozen=True):
    """A note that a search found, and how well it answers: from 0 to 1, and 1 only for an exact match."""

    note: Note
    relevance: float


class Rows(Struct, frozen=True, omit_defaults=True):
    """One side of a change. Entities carry their own observations; `notes` are those of entities that stay.

    `memos` are the notes that agents keep by key.
    """

    entities: tuple[Entity, ...] = ()
    notes: tuple[Noted, ...] = ()
    relations: tuple[Relation, ...] = ()
    memos: tuple[Note, ...] = ()

    def __bool__(self) -> bool:
        return bool(self.entities or self.notes or self.relations or self.memos)


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
# The ordinal of a passage that is a note, and its type.
NOTE, NOTE_TYPE = -1, "note"


class Passage(Struct, frozen=True, gc=False):
    """One text that a search can find: an observation, an entity itself (ordinal 0), or a note of the vault (NOTE).

    Of a note `entity` is the key.
    """

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

    @property
    def kind(self) -> Literal["entity", "observation", "note"]:
        """What it is."""
        return "observation" if self.ordinal > 0 else "note" if self.ordinal == NOTE else "entity"

    @property
    def words(self) -> str:
        """The text whose words it is found by."""
        if self.ordinal > 0:
            return self.text
        return f"{self.entity}\n{self.text if self.ordinal == NOTE else self.type}"


class WordCounts(Struct, frozen=True):
    """How many passages and words a store has, and how many passages have each of some terms."""

    passages: int
    words: int
    having: dict[str, int]


class Within(Struct, frozen=True):
    """What a search is kept to: these names (of a note the key), these types, and a time; None is anything."""

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


class Signals(Struct, frozen=True, gc=False):
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


class Purged(Struct, frozen=True):
    """How much was taken away for good."""

    entities: int = 0
    observations: int = 0
    relations: int = 0
    notes: int = 0


class EmbeddingModel(Struct, frozen=True):
    """A model whose vectors a store has."""

    number: int
    identity: str
    url: str
    dimension: int


class Trashed(Struct, frozen=True):
    """Something deleted that can be brought back: an entity with what went with it, an observation or a relation."""

    id: str
    deleted_at: int
    rows: Rows
    # The id of an observation's entity, and whether that is deleted too.
    owner: str = ""
    owner_gone: bool = False


Status = Literal["active", "archived"]


class Workspace(Struct, frozen=True):
    """A namespace with a graph of its own."""

    id: str
    name: str
    description: str = ""
    status: Status = "active"
    created_at: int = 0
    updated_at: int = 0


class Principal(Struct, frozen=True, kw_only=True):
    """Who asks, what they may do, and in which workspaces (None: in all).

    `id` tells those of one name apart; `until` is when what they came with ends, in seconds since 1970.
    """

    name: str = ""
    can: Capability = "admin"
    workspaces: frozenset[str] | None = None
    id: str = ""
    until: int | None = None

    def is_same(self, other: "Principal") -> bool:
        """Whether it is the same one with the same rights, come with an old token or a renewed one."""
        return (self.id, self.name, self.can, self.workspaces) == (other.id, other.name, other.can, other.workspaces)

    def may(self, needed: Capability) -> bool:
        """Whether this principal may do what needs the capability."""
        return CAPABILITIES.index(needed) <= CAPABILITIES.index(self.can)

    def enters(self, workspace: str) -> bool:
        """Whether this principal may use the workspace."""
        return self.workspaces is None or workspace in self.workspaces

    def require(self, needed: Capability, what: str) -> None:
        """Raises NotAllowed unless this principal may."""
        if not self.may(needed):
            raise NotAllowed(f"{self.title} may only {self.can}; {what} needs {needed}")

    def require_entry(self, workspace: str) -> None:
        """Raises NotAllowed unless this principal may use the workspace."""
        if not self.enters(workspace):
            theirs = ", ".join(sorted(self.workspaces or ())) or "none"
            raise NotAllowed(f"{self.title} may not use the workspace {workspace!r} (only: {theirs})")

    def restricted(self, to: Capability) -> "Principal":
        """The same, able to do no more than that."""
        return replace(self, can=to) if self.may(to) else self

    @property
    def title(self) -> str:
        """How an error names this principal."""
        return f"the token {self.name}" if self.name else "this server"


# Whoever started the process: what they may do is for the file system to say.
OWNER = Principal()
# Whoever has not shown a token yet where one is needed.
NOBODY = Principal(name="nobody", can="read", workspaces=frozenset())
