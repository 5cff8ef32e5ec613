"""Entities, facts, relations and notes. Times are microseconds since 1970; 0 means unknown."""

from collections.abc import Iterable
from time import time_ns

from msgspec import Struct
from msgspec.structs import replace

RelationKey = tuple[str, str, str]
# Ordinals are never reused, so this bounds the facts an entity can ever have.
MAX_ORDINAL = 2**31 - 1


class Fact(Struct, frozen=True, gc=False, omit_defaults=True):
    """One fact about an entity. Its ordinal is never reused and never renumbered.

    `valid_at` is when the fact was said or true; 0 means when it was created. `source` is the
    conversation or document it comes from; empty means unknown. It is not recalled after `expires`.
    `author` is who wrote it first, where the change that created its row does not tell.
    """

    ordinal: int
    text: str
    created_at: int = 0
    valid_at: int = 0
    source: str = ""
    expires: int = 0
    author: str = ""


class Entity(Struct, frozen=True, omit_defaults=True):
    """A named thing and what is known about it. The name is unique among living entities.

    `aliases` are its former names and those of entities merged into it. A to-do has a `due` time
    and a `status`. Nothing about it is recalled after `expires`.
    """

    name: str
    type: str
    facts: tuple[Fact, ...] = ()
    id: str = ""
    next_ordinal: int = 1
    summary: str | None = None
    summary_at: int = 0
    tags: tuple[str, ...] = ()
    created_at: int = 0
    updated_at: int = 0
    aliases: tuple[str, ...] = ()
    due: int = 0
    status: str = ""
    expires: int = 0

    @property
    def texts(self) -> tuple[str, ...]:
        """The texts of the facts, oldest first."""
        return tuple([fact.text for fact in self.facts])


def is_expired(item: Fact | Entity) -> bool:
    """Return True from the time when a fact, or an entity, is not recalled any more."""
    return bool(item.expires) and item.expires <= time_ns() // 1000


def drop_expired_facts(entities: Iterable[Entity]) -> list[Entity]:
    """Return the entities with the facts that have not expired.

    An entity that expired, or whose facts all did, is left out.
    """
    living = []
    for entity in entities:
        facts = tuple([fact for fact in entity.facts if not is_expired(fact)])
        if is_expired(entity) or (entity.facts and not facts):
            continue
        living.append(replace(entity, facts=facts))
    return living


class Relation(Struct, frozen=True, gc=False, omit_defaults=True):
    """A directed, typed edge between two names. Either end may be a name that no entity has yet."""

    source: str
    target: str
    type: str
    created_at: int = 0

    @property
    def key(self) -> RelationKey:
        """What identifies the relation."""
        return (self.source, self.target, self.type)

    @property
    def ends(self) -> tuple[str, str]:
        """The names at both ends, the source first."""
        return (self.source, self.target)


class Graph(Struct, frozen=True):
    """Entities and relations read together, each in order of creation."""

    entities: list[Entity]
    relations: list[Relation]


class EntityDraft(Struct, frozen=True):
    """An entity to create."""

    name: str
    type: str
    facts: tuple[str, ...] = ()
    summary: str | None = None
    tags: tuple[str, ...] = ()


class FactAddition(Struct, frozen=True):
    """Texts to add to the named entity. `valid_at` and `source` as in Fact."""

    entity: str
    texts: tuple[str, ...]
    valid_at: int = 0
    source: str = ""


class FactSet(Struct, frozen=True):
    """Some facts of the named entity."""

    entity: str
    facts: tuple[Fact, ...]


class TypeCount(Struct, frozen=True):
    """A type and how many entities or relations have it."""

    type: str
    count: int


class Counts(Struct, frozen=True):
    """How many living rows a store holds, or rows a purge removed."""

    entities: int = 0
    facts: int = 0
    relations: int = 0
    notes: int = 0  # of the vault


class NoteScope(Struct, frozen=True, omit_defaults=True):
    """Where a note lives: in one session of one principal or, without a session, in the vault."""

    session: str = ""
    owner: str = ""


VAULT = NoteScope()


class Note(Struct, frozen=True, omit_defaults=True):
    """A text under a key, unique in its scope. The embedding is float32, or empty."""

    key: str
    content: str
    tags: tuple[str, ...] = ()
    scope: NoteScope = VAULT
    embedding: bytes = b""
    created_at: int = 0
    updated_at: int = 0


class NoteHit(Struct, frozen=True):
    """A note that a search found. The relevance is between 0 and 1; 1 means an exact match."""

    note: Note
    relevance: float


class NoteQuery(Struct, frozen=True, kw_only=True):
    """A search over the notes of one scope. The vector is little-endian float32, or empty."""

    text: str
    scope: NoteScope = VAULT
    tags: tuple[str, ...] = ()
    vector: bytes = b""
    limit: int = 10
