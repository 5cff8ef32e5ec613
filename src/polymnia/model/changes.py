"""Changes: one per write, with the rows it ended and the rows it created."""

import re
from collections.abc import Collection, Iterator

from msgspec import Struct

from polymnia.errors import BadInput
from polymnia.model.graph import Entity, Fact, FactSet, Note, Relation, RelationKey
from polymnia.model.passages import PassageKey


class Rows(Struct, frozen=True, omit_defaults=True):
    """One side of a change. `facts` holds those of entities that stay."""

    entities: tuple[Entity, ...] = ()
    facts: tuple[FactSet, ...] = ()
    relations: tuple[Relation, ...] = ()
    notes: tuple[Note, ...] = ()

    def __bool__(self) -> bool:
        return bool(self.entities or self.facts or self.relations or self.notes)

    @property
    def fact_count(self) -> int:
        """The number of facts: those of whole entities, and single ones."""
        whole = sum(len(entity.facts) for entity in self.entities)
        return whole + sum(len(owner.facts) for owner in self.facts)


class Change(Struct, frozen=True):
    """One write: who made it, when, and the rows it touched before and after.

    Rows only in `before` are deleted, rows only in `after` are created, rows in both are replaced:
    entities with the same id, facts with the same ordinal, relations and notes with the same
    key. An entity that is replaced may have another name; sets of its facts name it as it
    was called before. `touched` names entities that count as updated though none of their rows is
    written. `successors` has the ordinals of facts that replace others, by the name of the entity
    and the ordinal of the one that ends. A change that is read back has neither.
    """

    operation: str
    actor: str
    at: int
    before: Rows = Rows()
    after: Rows = Rows()
    id: int = 0
    touched: tuple[str, ...] = ()
    successors: dict[PassageKey, int] = {}

    @property
    def renamed(self) -> list[str]:
        """The ids of the entities that get another name or type."""
        headings = {entity.id: (entity.name, entity.type) for entity in self.before.entities}
        renamed = []
        for entity in self.after.entities:
            heading = (entity.name, entity.type)
            if headings.get(entity.id, heading) != heading:
                renamed.append(entity.id)
        return renamed


class ChangeQuery(Struct, frozen=True, kw_only=True):
    """Which changes to read, newest first. None allows any.

    `after` and `before` are ids of changes; only those between them are read. `since` and `until`
    are times, as in since <= at < until. `names` are names that entities have or had and keys of
    notes: a change counts if it touched one of them. `ids` are the changes to choose from.
    """

    limit: int | None = 20
    after: int = 0
    before: int | None = None
    since: int | None = None
    until: int | None = None
    actors: tuple[str, ...] | None = None
    operations: tuple[str, ...] | None = None
    names: tuple[str, ...] | None = None
    ids: tuple[int, ...] | None = None


class RowCounts(Struct, frozen=True):
    """How many rows of each kind one side of a change has. Each fact counts."""

    entities: int = 0
    facts: int = 0
    relations: int = 0
    notes: int = 0

    @property
    def total(self) -> int:
        return self.entities + self.facts + self.relations + self.notes


class ChangeSize(Struct, frozen=True):
    """How many rows a change ended and created."""

    before: RowCounts
    after: RowCounts

    @property
    def total(self) -> int:
        return self.before.total + self.after.total


class Author(Struct, frozen=True):
    """Who first wrote a passage, when, and in which change."""

    actor: str
    at: int
    change: int


class SupersededFact(Struct, frozen=True):
    """A fact that ended, when, by whom and in which change.

    `successor` is the ordinal of the fact that replaced it; 0 if none did, or it is unknown.
    """

    old: Fact
    successor: int
    change: int
    ended_at: int
    actor: str
    operation: str


class TrashItem(Struct, frozen=True):
    """Something deleted that can be restored. An entity comes back with all it had."""

    id: str
    deleted_at: int
    change: int  # that deleted it
    rows: Rows
    # For a fact: the id of its entity, and whether the entity is deleted too.
    owner: str = ""
    owner_gone: bool = False


MAX_FACT_BYTES = 1_000_000


class Quota(Struct, frozen=True, kw_only=True):
    """How many facts and bytes a workspace may hold, how many bytes a fact, and how many workspaces
    there may be. 0 is any number.
    """

    facts: int = 0
    fact_bytes: int = MAX_FACT_BYTES
    bytes: int = 0
    workspaces: int = 0


DEFAULT_QUOTA = Quota()


class FactRead(Struct, frozen=True):
    """A fact that a client got from a tool. The entity has no name if it is gone."""

    at: int
    actor: str
    tool: str
    entity: str
    ordinal: int


# What the history shows in the place of an erased text.
ERASED = "(erased)"


def replace_erased(text: str, erased: Collection[str]) -> str:
    """Return a text with ERASED in the place of these texts, where they are whole words."""
    for part in sorted(erased, key=len, reverse=True):
        if part in text:
            text = re.sub(rf"(?<!\w){re.escape(part)}(?!\w)", ERASED, text)
    return text


class Erasure(Struct, frozen=True, kw_only=True):
    """What to erase: whole entities by id, facts by entity id and ordinal, relations, notes.

    Summaries of the entities lose these `texts` too.
    """

    entities: frozenset[str] = frozenset()
    facts: frozenset[tuple[str, int]] = frozenset()
    relations: frozenset[RelationKey] = frozenset()
    notes: frozenset[str] = frozenset()
    texts: frozenset[str] = frozenset()


class Traces(Struct, frozen=True, kw_only=True):
    """The rows, by id, that an erasure replaces as soon as they have ended.

    `names` are those that it replaces at the ends of the relations. `erased` are the facts by the
    name and ordinal that they have, also equal ones that were not asked for. `others` are entities
    that have one of the `texts` too and keep it. `perhaps_replaced` are facts that one of these may
    have replaced. `moved` has text and time of every fact if one came from another workspace: a
    move keeps them.
    """

    facts: tuple[int, ...] = ()
    cards: tuple[int, ...] = ()
    summaries: tuple[int, ...] = ()
    relations: tuple[int, ...] = ()
    notes: tuple[int, ...] = ()
    names: tuple[str, ...] = ()
    texts: frozenset[str] = frozenset()
    erased: tuple[tuple[str, int], ...] = ()
    others: tuple[str, ...] = ()
    perhaps_replaced: tuple[tuple[str, int], ...] = ()
    moved: frozenset[tuple[str, int]] = frozenset()


class PastFact(Struct, frozen=True):
    """A version of a fact: the id of its entity, its ordinal and text."""

    owner: str
    ordinal: int
    text: str


class Mark(Struct, frozen=True):
    """A named point of a store's history: the last change before it, and its time."""

    change: int
    at: int


class EventCounts(Struct, frozen=True):
    """Counts of entities and relations created and deleted, and of entities changed.

    An entity that several changes touched is counted once for each of them. `last_change` is the
    last change counted.
    """

    creates: int = 0
    updates: int = 0
    deletes: int = 0
    last_change: int = 0


def require_storable(rows: Rows) -> None:
    """Raise BadInput if a text has a NUL character or half of a surrogate pair."""
    joined = "\n".join(texts_in(rows))
    if "\x00" in joined:
        raise BadInput(
            "a text contains a NUL character (U+0000), which cannot be stored; remove it"
        )
    if not joined.isascii():
        try:
            joined.encode()
        except UnicodeEncodeError as exc:
            raise BadInput(
                "a text contains half of a surrogate pair, which is not a character; remove it"
            ) from exc


def require_size(rows: Rows, max_bytes: int = MAX_FACT_BYTES) -> None:
    """Raise BadInput for a fact of more bytes: each search would read it whole."""
    parts = [entity.facts for entity in rows.entities] + [part.facts for part in rows.facts]
    for facts in parts:
        for fact in facts:
            if len(fact.text) * 4 > max_bytes and len(fact.text.encode()) > max_bytes:
                raise BadInput(
                    f"a fact has {len(fact.text.encode()):,} bytes: at most {max_bytes:,} can "
                    "be stored; split it, or remember where the text is kept"
                )


def texts_in(rows: Rows) -> Iterator[str]:
    """Return every text of the rows: names, types, summaries, tags, facts, relations and notes."""
    for entity in rows.entities:
        yield from (entity.name, entity.type, entity.summary or "", *entity.tags)
        yield from (entity.status, *entity.aliases)
        yield from _texts_of(entity.facts)
    for changed in rows.facts:
        yield from _texts_of(changed.facts)
    for relation in rows.relations:
        yield from relation.key
    for note in rows.notes:
        yield from (note.key, note.content, note.scope.owner, note.scope.session, *note.tags)


def _texts_of(facts: tuple[Fact, ...]) -> Iterator[str]:
    for fact in facts:
        yield fact.text
        if fact.source:
            yield fact.source
        if fact.author:
            yield fact.author
