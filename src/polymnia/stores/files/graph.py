"""A graph in dictionaries, with its indexes, for the file stores."""

from collections import Counter, defaultdict
from collections.abc import Callable, Collection, Iterator, Sequence
from operator import itemgetter
from typing import TYPE_CHECKING, Any, Literal, TypeVar

from msgspec.structs import replace

from polymnia.errors import USE_A_DATABASE, NotSupported
from polymnia.model import (
    Change,
    Counts,
    Entity,
    FactSet,
    Match,
    Neighbours,
    Passage,
    PassageKey,
    PassageKind,
    Relation,
    RelationKey,
    Rows,
    Traces,
    TypeCount,
    Within,
    WordCounts,
)
from polymnia.search.fulltext import TextQuery
from polymnia.search.terms import fold
from polymnia.stores.clock import next_change_time
from polymnia.stores.contract import (
    ChangeFeed,
    TableRow,
)

if TYPE_CHECKING:
    from polymnia.stores.contract import HistoryReader, NoteReader, VectorReader, VectorStore
    from polymnia.stores.sqlite.store import SqliteStore

T = TypeVar("T")

# The relations of each name, by number.
Touching = defaultdict[str, dict[int, Relation]]
# Separates the folded texts of one entity. A query that contains it is compared with each text.
_SEPARATOR = "\x00"


class MemoryGraph:
    """Entities by name and relations by key, each numbered in the order of creation.

    With `is_file`, it is the content of a file, whose format has no aliases: they are dropped.
    """

    def __init__(self, *, is_file: bool = False) -> None:
        self._is_file = is_file
        self.applied: list[Change] = []
        self._entities: dict[str, tuple[int, Entity]] = {}
        self._relations: dict[RelationKey, tuple[int, Relation]] = {}
        # The relations of each name; None until they are first needed.
        self._touching: Touching | None = defaultdict(dict)
        # The folded texts of entities that were searched, by name.
        self._folded: dict[str, str] = {}
        self._copy: SqliteStore | None = None
        self._created = 0

    def existing_names(self, names: Collection[str]) -> set[str]:
        return {name for name in names if name in self._entities}

    def get(self, name: str) -> Entity | None:
        """Return the entity with that name."""
        known = self._entities.get(name)
        return known[1] if known else None

    def entities(
        self,
        names: Collection[str] | None = None,
        *,
        kind: str | None = None,
        offset: int = 0,
        limit: int | None = None,
    ) -> list[Entity]:
        if names is not None:
            return _in_order([self._entities[name] for name in self.existing_names(names)])
        entities = [entity for _, entity in self._entities.values()]
        if kind is not None:
            entities = [entity for entity in entities if entity.type == kind]
        return entities[offset:] if limit is None else entities[offset : offset + limit]

    def containing(self, folded: str, *, outlines: bool = False) -> list[Entity]:
        # A scan of 20,000 entities takes some milliseconds.
        entities = []
        for name, (_, entity) in self._entities.items():
            text = self._folded.get(name)
            if text is None:
                parts = (entity.name, entity.type, *entity.texts)
                text = self._folded[name] = fold(_SEPARATOR.join(parts))
            if folded in text and (_SEPARATOR not in folded or _contains(entity, folded)):
                entities.append(entity)
        return [replace(entity, facts=()) for entity in entities] if outlines else entities

    def find_relations(self, keys: Collection[RelationKey]) -> dict[RelationKey, Relation]:
        return {key: self._relations[key][1] for key in keys if key in self._relations}

    def relations(
        self,
        touching: Collection[str] | None = None,
        *,
        source: str | None = None,
        target: str | None = None,
        kind: str | None = None,
    ) -> list[Relation]:
        if touching is not None:
            return self._relations_of(touching)
        if source is None and target is None and kind is None:
            return [relation for _, relation in self._relations.values()]
        end = target if source is None else source
        near = self.relations() if end is None else self._relations_of([end])
        return [
            relation
            for relation in near
            if (
                source in (None, relation.source)
                and target in (None, relation.target)
                and kind in (None, relation.type)
            )
        ]

    def _relations_of(self, names: Collection[str]) -> list[Relation]:
        numbered: dict[int, Relation] = {}
        for name in names:
            numbered.update(self._by_name().get(name, {}))
        return _in_order(list(numbered.items()))

    def outlines(
        self,
        names: Collection[str] | None = None,
        *,
        ids: Collection[str] | None = None,
        kind: str | None = None,
        latest: int | None = None,
        updated_since: int = 0,
    ) -> list[Entity]:
        entities = self.entities(names)
        if ids is not None:
            entities = [entity for entity in entities if entity.id in ids]
        if kind is not None:
            entities = [entity for entity in entities if entity.type == kind]
        if latest is not None:
            entities = [entity for entity in entities if entity.updated_at >= updated_since]
            entities.reverse()  # of those updated at the same time, the newest first
            entities.sort(key=lambda entity: -entity.updated_at)
            entities = entities[:latest]
        return [replace(entity, facts=()) for entity in entities]

    def aliased(self) -> list[Entity]:
        entities = [entity for entity in self.entities() if entity.aliases]
        return [replace(entity, facts=()) for entity in entities]

    def with_status(self, status: str | None = None) -> list[Entity]:
        entities = [entity for entity in self.outlines() if entity.status]
        return [entity for entity in entities if status in (None, entity.status)]

    def together(self, *questions: Callable[[], Any]) -> list[Any]:
        return [question() for question in questions]

    def find_path(self, source: str, target: str) -> list[str]:
        from polymnia.stores.paths import join_steps, walk_path

        return join_steps(source, target, walk_path(self, source, target))

    def types(self) -> list[str]:
        return sorted({entity.type for entity in self.entities()})

    def newest_of_type(self, kind: str, limit: int) -> list[Entity]:
        return self.entities(kind=kind)[-limit:]

    def type_counts(self, of: Literal["entities", "relations"]) -> list[TypeCount]:
        rows = self.entities() if of == "entities" else self.relations()
        counter = Counter(row.type for row in rows)
        ranked = sorted(counter.items(), key=lambda item: (-item[1], item[0]))
        return [TypeCount(kind, count) for kind, count in ranked]

    def counts(self) -> Counts:
        facts = sum(len(entity.facts) for _, entity in self._entities.values())
        return Counts(len(self._entities), facts, len(self._relations))

    def stored_bytes(self) -> int:
        texts = [fact.text for _, entity in self._entities.values() for fact in entity.facts]
        return sum(len(text.encode()) for text in texts)

    def word_counts(self, terms: Collection[str]) -> WordCounts:
        with self._in_sqlite().reading() as read:
            return read.word_counts(terms)

    def vocabulary(self, first: str, last: str, limit: int) -> list[str]:
        with self._in_sqlite().reading() as read:
            return read.vocabulary(first, last, limit)

    def candidates(
        self,
        terms: Collection[str],
        limit: int,
        within: Within | None = None,
        *,
        every: bool = False,
        newest: bool = False,
    ) -> list[Passage]:
        with self._in_sqlite().reading() as read:
            return read.candidates(terms, limit, within, every=every, newest=newest)

    def names_with(self, terms: Collection[str], limit: int) -> list[str]:
        with self._in_sqlite().reading() as read:
            return read.names_with(terms, limit)

    def neighbours(self, passages: Collection[Passage]) -> dict[PassageKey, Neighbours]:
        with self._in_sqlite().reading() as read:
            return read.neighbours(passages)

    def passages(
        self, ids: Collection[int] = (), *, cards_of: Collection[str] = ()
    ) -> list[Passage]:
        with self._in_sqlite().reading() as read:
            return read.passages(ids, cards_of=cards_of)

    def passages_containing(self, folded: str, limit: int) -> list[Passage]:
        with self._in_sqlite().reading() as read:
            return read.passages_containing(folded, limit)

    def facts_between(self, start: int, end: int, limit: int) -> list[Passage]:
        with self._in_sqlite().reading() as read:
            return read.facts_between(start, end, limit)

    def fact_counts(self, names: Collection[str]) -> dict[str, int]:
        return {entity.name: len(entity.facts) for entity in self.entities(names)}

    def match(
        self, query: TextQuery, kinds: Collection[PassageKind], limit: int | None = None
    ) -> list[Match]:
        raise not_supported("query expressions")

    @property
    def notes(self) -> "NoteReader":
        raise not_supported("notes")

    @property
    def vectors(self) -> "VectorReader":
        raise not_supported("vectors")

    def erase(self, traces: Traces) -> None:
        raise not_supported("a trash")

    @property
    def history(self) -> "HistoryReader":
        raise not_supported("history")

    def read_rows(self, table: str) -> Iterator[TableRow]:
        raise not_supported("copies of its rows")

    def clock(self) -> int:
        """Return the time for a change made now, which is later than that of the last change."""
        last_at = self.applied[-1].at if self.applied else 0
        return next_change_time(last_at)

    def apply(self, change: Change) -> int:
        """Remove the rows of `before` and add those of `after`.

        An entity in both keeps its place and facts.
        """
        before, after = change.before, change.after
        for relation in before.relations:
            self.unlink(relation.key)
        # Before the entities: facts name an entity as it was called before the change.
        for group in before.facts:
            entity = self._entities[group.entity][1]
            gone = {fact.ordinal for fact in group.facts}
            kept = tuple([fact for fact in entity.facts if fact.ordinal not in gone])
            self.put(replace(entity, facts=kept, updated_at=change.at))
        for group in after.facts:
            entity = self._entities[group.entity][1]
            facts = sorted([*entity.facts, *group.facts], key=lambda fact: fact.ordinal)
            next_ordinal = max(entity.next_ordinal, facts[-1].ordinal + 1)
            now = {"facts": tuple(facts), "next_ordinal": next_ordinal, "updated_at": change.at}
            self.put(replace(entity, **now))
        self._replace_entities(before.entities, after.entities)
        for relation in after.relations:
            self.link(relation)
        for entity in self.entities(change.touched):
            self.put(replace(entity, updated_at=change.at))
        self.applied.append(change)
        return change.id

    def fill(self, entities: list[Entity], relations: list[Relation]) -> bool:
        """Fill an empty graph quickly. Return False and do nothing if two entities share a name."""
        self._entities = {entity.name: (number, entity) for number, entity in enumerate(entities)}
        if len(self._entities) != len(entities):
            self._entities = {}
            return False
        self._created = len(entities)
        numbered = list(enumerate(relations, self._created))
        keys = [(relation.source, relation.target, relation.type) for relation in relations]
        self._relations = dict(zip(keys, numbered, strict=True))
        if len(self._relations) != len(relations):
            # Of relations with the same key the first one stays.
            self._relations = {}
            for key, pair in zip(keys, numbered, strict=True):
                self._relations.setdefault(key, pair)
        self._created += len(relations)
        self._touching = None
        return True

    def put(self, entity: Entity) -> None:
        """Add the entity, or replace the one with the same name."""
        if self._is_file and entity.aliases:
            entity = replace(entity, aliases=())
        known = self._entities.get(entity.name)
        self._entities[entity.name] = (known[0] if known else self._next(), entity)
        self._forget_texts(entity.name)

    def link(self, relation: Relation) -> None:
        """Add the relation, or replace the one with the same key."""
        key, touching = relation.key, self._by_name()
        known = self._relations.get(key)
        number = known[0] if known else self._next()
        self._relations[key] = (number, relation)
        touching[relation.source][number] = relation
        touching[relation.target][number] = relation

    def remove(self, name: str) -> None:
        """Remove the entity with that name, and nothing else."""
        del self._entities[name]
        self._forget_texts(name)

    def unlink(self, key: RelationKey) -> None:
        """Remove the relation with that key."""
        touching = self._by_name()
        number, relation = self._relations.pop(key)
        for name in {relation.source, relation.target}:
            del touching[name][number]

    def _replace_entities(self, before: Sequence[Entity], after: Sequence[Entity]) -> None:
        """Remove and add entities. One with the same id keeps its place.

        So does one with the same name in files without ids.
        """
        known: dict[tuple[str, str], tuple[int, Entity]] = {}
        for entity in before:
            known[entity.id, ""] = known["", entity.name] = self._entities[entity.name]
        if len(before) == len(after) == 1 and not after[0].id:  # a renamed entity without an id
            known["", after[0].name] = self._entities[before[0].name]
        removed = {entity.name for entity in before} - {entity.name for entity in after}
        for name in removed:
            self.remove(name)
        has_moved = False
        for entity in after:
            same = known.get((entity.id, "") if entity.id else ("", entity.name))
            if same is not None:
                number, old = same
                present = self._entities.get(entity.name)
                has_moved = has_moved or present is None or present[0] != number
                entity = replace(entity, facts=old.facts, next_ordinal=old.next_ordinal)
                self._entities[entity.name] = (number, entity)
            elif entity.name in self._entities:
                self.remove(entity.name)
            self.put(entity)
        if has_moved:  # under a new name, an entity comes last, but keeps its number
            self._entities = dict(sorted(self._entities.items(), key=lambda item: item[1][0]))

    def _next(self) -> int:
        self._created += 1
        return self._created

    def _by_name(self) -> Touching:
        if self._touching is None:
            self._touching = defaultdict(dict)
            for number, relation in self._relations.values():
                self._touching[relation.source][number] = relation
                self._touching[relation.target][number] = relation
        return self._touching

    def _forget_texts(self, name: str) -> None:
        """Search the present texts of an entity from now on."""
        self._folded.pop(name, None)
        if self._copy is not None:
            self._copy.close()
            self._copy = None

    def _in_sqlite(self) -> "SqliteStore":
        """Return a copy of the entities in SQLite, made at the first such search after a change.

        The dialects of file stores search for substrings; the command line and the web interface
        also search for words.
        """
        if self._copy is None:
            from polymnia.stores.sqlite.store import SqliteStore

            self._copy = SqliteStore(":memory:")
            cards, facts = [], []
            for number, entity in self._entities.values():
                cards.append(replace(entity, id=str(number), facts=()))
                if entity.facts:
                    facts.append(FactSet(entity.name, entity.facts))
            # Facts of their own change are in the order in which they were written.
            for after in (Rows(entities=tuple(cards)), Rows(facts=tuple(facts))):
                with self._copy.writing() as writer:
                    writer.apply(Change("copy", "polymnia", writer.clock(), after=after))
        return self._copy


class GraphOnlyStore:
    """What every store that holds only a graph refuses."""

    @property
    def vectors(self) -> "VectorStore":
        raise not_supported("vectors")

    def write_rows(self, table: str, rows: Sequence[TableRow]) -> None:
        raise not_supported("copies of its rows")

    def follow(self, wake: Callable[[], None] | None = None) -> ChangeFeed:
        raise not_supported("a change feed")

    def record_reads(
        self, facts: Collection[tuple[str, int]], *, at: int, actor: str, tool: str, since: int
    ) -> None:
        raise not_supported("an audit of reads")

    def purge(self, before: int | None) -> Counts:
        raise not_supported("a trash")

    def remove_copies(self) -> None:
        raise not_supported("a trash")


def not_supported(what: str) -> NotSupported:
    """Return the error of a store that lacks a capability."""
    return NotSupported(f"this kind of store has no {what}; {USE_A_DATABASE}")


def _in_order(numbered: list[tuple[int, T]]) -> list[T]:
    return [value for _, value in sorted(numbered, key=itemgetter(0))]


def _contains(entity: Entity, folded: str) -> bool:
    return any(folded in fold(text) for text in (entity.name, entity.type, *entity.texts))
