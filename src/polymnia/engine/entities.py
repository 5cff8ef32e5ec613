"""Verbs on entities: create, upsert, merge, open, read, delete."""

from collections.abc import Collection, Sequence
from uuid import uuid4

from msgspec import Struct
from msgspec.structs import replace

from polymnia.engine.memory import Memory, Transaction
from polymnia.errors import BadInput, EntityNotFound
from polymnia.model import (
    Entity,
    EntityDraft,
    Graph,
    Observation,
    ObservationSet,
    Relation,
    Rows,
    TypeCount,
)
from polymnia.search.dates import stamped_time


class UpsertResult(Struct, frozen=True):
    """What an upsert did with one draft."""

    name: str
    created: bool
    added: tuple[str, ...]


class MergeCounts(Struct, frozen=True):
    """How many observations the source of a merge had, how many the target gained, and how many relations moved."""

    moved: int
    added: int
    redirected: int


def create(memory: Memory, drafts: Sequence[EntityDraft], *, by: str) -> list[Entity]:
    """Create entities and return the new ones. Skip names that exist and names that come twice."""
    wanted: dict[str, EntityDraft] = {}
    for draft in drafts:
        wanted.setdefault(draft.name, draft)
    with memory.writing("create_entities", by) as transaction:
        known = transaction.read.known(wanted)
        created = [
            new_entity(draft, transaction.at) for name, draft in wanted.items() if name not in known
        ]
        transaction.apply(after=Rows(entities=tuple(created)), new_ids=True)
    return created


def upsert(memory: Memory, drafts: Sequence[EntityDraft], *, by: str) -> list[UpsertResult]:
    """Create entities, or add missing observations to those that exist. An existing entity keeps its type."""
    with memory.writing("upsert_entities", by) as transaction:
        batch = _UpsertBatch(
            {each.name: each for each in transaction.read.find({draft.name for draft in drafts})}
        )
        results = [batch.add(draft) for draft in drafts]
        transaction.apply(after=batch.rows(transaction.at), new_ids=True)
    return results


def merge(memory: Memory, source: str, target: str, *, by: str) -> MergeCounts:
    """Move the observations and relations of the source to the target, then delete the source.

    Delete relations that would lead from the target to itself. Raise EntityNotFound, or BadInput if both are the same.
    """
    with memory.writing("merge_entities", by) as transaction:
        return merge_into(transaction, [source], target)


def merge_into(
    transaction: Transaction, sources: Sequence[str], target: str, *, dry_run: bool = False
) -> MergeCounts:
    """Do the same for several sources inside a transaction. Observations keep their times; tags are joined."""
    if target in sources:
        raise BadInput(f"source and target are the same entity, {target}; name two to merge")
    found = {each.name: each for each in transaction.read.find({*sources, target})}
    for name in (*sources, target):
        if name not in found:
            raise EntityNotFound(name)
    return _merge(transaction, [found[name] for name in sources], found[target], dry_run)


def open_named(memory: Memory, names: Collection[str]) -> Graph:
    """Return the entities with these names and every relation that touches one of them."""
    with memory.reading(once=True) as read:
        return read.graph_of(names)


def read_all(memory: Memory) -> Graph:
    """Return the whole graph."""
    with memory.reading() as read:
        return Graph(read.entities(), read.relations())


def page(memory: Memory, *, kind: str | None, offset: int, limit: int | None) -> Graph:
    """Return a page of the entities, or of those of one type, and the relations among them."""
    with memory.reading() as read:
        entities = read.page(kind, offset, limit)
        names = {entity.name for entity in entities}
        relations = [
            each for each in read.touching(names) if each.source in names and each.target in names
        ]
    return Graph(entities, relations)


def types(memory: Memory) -> list[TypeCount]:
    """Return the types of entities, the most frequent first."""
    with memory.reading() as read:
        return read.entity_types()


def delete(memory: Memory, names: Collection[str], *, by: str) -> Graph:
    """Delete entities and the relations that touch their names; return what was deleted."""
    with memory.writing("delete_entities", by) as transaction:
        entities: list[Entity] = transaction.read.find(names)
        relations: list[Relation] = transaction.read.touching(names)
        others = {end for each in relations for end in (each.source, each.target)}.difference(names)
        transaction.apply(
            before=Rows(entities=tuple(entities), relations=tuple(relations)),
            touched=sorted(others),
        )
    return Graph(entities, relations)


def new_entity(draft: EntityDraft, at: int) -> Entity:
    """Return the entity that a draft becomes when it is created at that time."""
    numbered = enumerate(draft.observations, 1)
    observations = tuple(
        [Observation(ordinal, text, at, stamped_time(text)) for ordinal, text in numbered]
    )
    return Entity(
        name=draft.name,
        type=draft.type,
        observations=observations,
        id=str(uuid4()),
        next_ordinal=len(observations) + 1,
        summary=draft.summary,
        summary_at=at if draft.summary is not None else 0,
        tags=draft.tags,
        created_at=at,
        updated_at=at,
    )


def new_observations(entity: Entity, texts: Sequence[str], at: int) -> ObservationSet:
    """Return observations of these texts with the next ordinals of the entity."""
    numbered = enumerate(texts, entity.next_ordinal)
    new = [Observation(ordinal, text, at, stamped_time(text)) for ordinal, text in numbered]
    return ObservationSet(entity.name, tuple(new))


def missing_texts(texts: Sequence[str], present: Sequence[str]) -> tuple[str, ...]:
    """Return the texts that are not present, each once."""
    known = set(present)
    return tuple([text for text in dict.fromkeys(texts) if text not in known])


class _UpsertBatch:
    """The drafts of one upsert: those that become entities, and the texts to add to entities that exist."""

    def __init__(self, known: dict[str, Entity]) -> None:
        self._known = known
        self._new: dict[str, EntityDraft] = {}
        self._added: dict[str, tuple[str, ...]] = {}

    def add(self, draft: EntityDraft) -> UpsertResult:
        if draft.name in self._known:
            earlier = self._added.get(draft.name, ())
            added = missing_texts(draft.observations, self._known[draft.name].texts + earlier)
            self._added[draft.name] = earlier + added
            return UpsertResult(draft.name, False, added)
        first = self._new.get(draft.name)
        earlier = first.observations if first else ()
        added = missing_texts(draft.observations, earlier)
        self._new[draft.name] = EntityDraft(
            draft.name, first.type if first else draft.type, earlier + added
        )
        return UpsertResult(draft.name, first is None, added)

    def rows(self, at: int) -> Rows:
        created = [new_entity(each, at) for each in self._new.values()]
        added = [
            new_observations(self._known[name], texts, at)
            for name, texts in self._added.items()
            if texts
        ]
        return Rows(entities=tuple(created), observations=tuple(added))


def _merge(
    transaction: Transaction, sources: Sequence[Entity], target: Entity, dry_run: bool
) -> MergeCounts:
    new = {
        text: one
        for each in reversed(sources)
        for text, one in zip(each.texts, each.observations, strict=True)
    }
    moved = [text for each in sources for text in each.texts]
    texts = missing_texts(moved, target.texts)
    observations = [
        replace(new[text], ordinal=ordinal)
        for ordinal, text in enumerate(texts, target.next_ordinal)
    ]
    names = {each.name for each in sources}
    old = transaction.read.touching(names)
    wanted = {each.key: each for each in (_redirect_all(each, names, target.name) for each in old)}
    wanted = {key: each for key, each in wanted.items() if each.source != each.target}
    linked = transaction.read.linked(wanted)
    relations = tuple([each for key, each in wanted.items() if key not in linked])
    tags = tuple(dict.fromkeys((*target.tags, *(tag for each in sources for tag in each.tags))))
    card = (replace(target, tags=tags, updated_at=transaction.at),) if tags != target.tags else ()
    if not dry_run:
        transaction.apply(
            before=Rows(entities=(*sources, *((target,) if card else ())), relations=tuple(old)),
            after=Rows(
                card,
                (ObservationSet(target.name, tuple(observations)),) if observations else (),
                relations,
            ),
        )
    return MergeCounts(len(moved), len(observations), len(relations))


def _redirect_all(relation: Relation, names: Collection[str], new: str) -> Relation:
    for name in names:
        relation = redirect(relation, name, new)
    return relation


def redirect(relation: Relation, old: str, new: str) -> Relation:
    """Return the relation with the new name at every end that had the old one."""
    source = new if relation.source == old else relation.source
    target = new if relation.target == old else relation.target
    return Relation(source, target, relation.type, relation.created_at)
