"""Move what entities have to another entity: everything, or some facts."""

from collections.abc import Iterable, Sequence

from msgspec import Struct
from msgspec.structs import replace

from polymnia.engine.facts.revise import join_aliases
from polymnia.engine.graph.entities import new_entity
from polymnia.engine.graph.relations import redirect, require_known
from polymnia.engine.memory import Memory, Transaction, find_by_name
from polymnia.errors import BadInput, EntityNotFound
from polymnia.model import (
    Author,
    Entity,
    EntityDraft,
    Fact,
    FactSet,
    PassageKey,
    Relation,
    Rows,
)
from polymnia.stores.contract import Reader


class MergeReceipt(Struct, frozen=True):
    """What a merge did: the entity that remains, what it gained, and what it had already.

    The change is 0 in a dry run and in a store without history.
    """

    change: int
    at: int
    target: str
    facts: int
    relations: int
    known: int = 0  # facts that the target had already


class MoveReceipt(Struct, frozen=True):
    """What a move did, or would do: how many facts moved, how many the target had already.

    The change is 0 in a dry run and in a store without history.
    """

    change: int
    target: str
    moved: int
    known: int
    is_new: bool


def merge(
    memory: Memory, sources: Sequence[str], target: str, *, by: str, dry_run: bool = False
) -> MergeReceipt:
    """Move everything the sources have to the target, then delete them, as one change.

    Facts keep author, times and source, tags are joined, and the names of the sources become
    aliases. A relation that would lead from the target to itself is deleted. A dry run only
    counts. Raise EntityNotFound, or BadInput if a source is the target.
    """
    names = list(dict.fromkeys(sources))
    if target in names:
        raise BadInput(f"source and target are the same entity, {target}; name two to merge")
    with memory.writing("merge_entities", by) as transaction:
        entities = find_by_name(transaction.read, [*names, target])
        require_known((*names, target), entities)
        remaining = entities[target]
        merged = [entities[name] for name in names]
        parts = [FactSet(entity.name, entity.facts) for entity in merged]
        facts = keep_authors(memory, transaction.read, parts)
        gained = number_gained(remaining, facts)
        old, redirected = _redirect_relations(transaction, names, target)
        if not dry_run:
            card = join_card(remaining, merged, transaction.time())
            before = Rows(tuple(merged), relations=tuple(old))
            after = Rows((), _sets(target, gained), tuple(redirected))
            if (card.tags, card.aliases) != (remaining.tags, remaining.aliases):
                before = replace(before, entities=(*merged, remaining))
                after = replace(after, entities=(card,))
            transaction.apply(before=before, after=after)
    return MergeReceipt(
        transaction.change_id,
        transaction.time(),
        target,
        len(gained),
        len(redirected),
        len(facts) - len(gained),
    )


def move_facts(
    memory: Memory,
    chosen: Sequence[tuple[str, int]],
    target: str,
    *,
    by: str,
    new_type: str | None = None,
    dry_run: bool = False,
) -> MoveReceipt:
    """Move facts, given by entity and ordinal, to the target, with their times and sources.

    A text that the target has already is only removed from its entity. A target that does not
    exist is created with `new_type`. Raise EntityNotFound, or BadInput if an entity has no such
    fact or is the target.
    """
    with memory.writing("move_observations", by) as transaction:
        entities = find_by_name(transaction.read, {target, *(name for name, _ in chosen)})
        receiver = entities.get(target)
        is_new = receiver is None
        if receiver is None:
            if new_type is None:
                raise EntityNotFound(target)
            receiver = new_entity(EntityDraft(target, new_type), transaction.time())
        ended = _choose_facts(entities, chosen, target)
        facts = keep_authors(memory, transaction.read, ended)
        gained = number_gained(receiver, facts)
        if is_new:
            next_ordinal = receiver.next_ordinal + len(gained)
            after = Rows((replace(receiver, facts=gained, next_ordinal=next_ordinal),))
        else:
            after = Rows(facts=_sets(target, gained))
        if not dry_run:
            transaction.apply(before=Rows(facts=ended), after=after)
    known = len(facts) - len(gained)
    return MoveReceipt(transaction.change_id, target, len(gained), known, is_new)


def keep_authors(memory: Memory, read: Reader, parts: Iterable[FactSet]) -> list[Fact]:
    """Return the facts with the names of those who wrote them.

    They get rows of a change that the caller makes.
    """
    facts = [(part.entity, fact) for part in parts for fact in part.facts]
    authors: dict[PassageKey, Author] = {}
    if memory.store.capabilities.history:
        authors = read.history.authors({(name, fact.ordinal) for name, fact in facts})
    signed = []
    for name, fact in facts:
        author = authors.get((name, fact.ordinal))
        if author is not None:
            fact = replace(fact, author=author.actor)
        signed.append(fact)
    return signed


def number_gained(target: Entity, facts: Iterable[Fact]) -> tuple[Fact, ...]:
    """Return the facts that the target lacks, each text once, with its next ordinals."""
    texts = set(target.texts)
    gained: list[Fact] = []
    for fact in facts:
        if fact.text not in texts:
            texts.add(fact.text)
            gained.append(replace(fact, ordinal=target.next_ordinal + len(gained)))
    return tuple(gained)


def _redirect_relations(
    transaction: Transaction, sources: Sequence[str], target: str
) -> tuple[list[Relation], list[Relation]]:
    """Return the relations that touch the sources, and the new ones that replace them."""
    old = transaction.read.relations(sources)
    names = frozenset(sources)  # a list would be searched once for each relation
    redirected: dict[tuple[str, str, str], Relation] = {}
    for relation in old:
        moved = redirect(relation, names, target)
        if moved.source != moved.target:
            redirected[moved.key] = moved
    present = transaction.read.find_relations(redirected)
    return old, [relation for key, relation in redirected.items() if key not in present]


def join_card(target: Entity, sources: Sequence[Entity], at: int) -> Entity:
    """Return the target with the tags of all, and the names of the sources as aliases."""
    tags = dict.fromkeys(target.tags)
    names: list[str] = []
    for entity in sources:
        tags.update(dict.fromkeys(entity.tags))
        names += [entity.name, *entity.aliases]
    return replace(target, tags=tuple(tags), aliases=join_aliases(target, names), updated_at=at)


def _sets(name: str, facts: tuple[Fact, ...]) -> tuple[FactSet, ...]:
    return (FactSet(name, facts),) if facts else ()


def _choose_facts(
    entities: dict[str, Entity], chosen: Sequence[tuple[str, int]], target: str
) -> tuple[FactSet, ...]:
    """Return the chosen facts by entity. Raise EntityNotFound, BadInput."""
    facts = {
        name: {fact.ordinal: fact for fact in entity.facts} for name, entity in entities.items()
    }
    by_entity: dict[str, dict[int, Fact]] = {}
    for name, ordinal in chosen:
        if name == target:
            raise BadInput(f"fact {ordinal} belongs to {target} already; choose another entity")
        if name not in entities:
            raise EntityNotFound(name)
        if ordinal not in facts[name]:
            raise BadInput(f"{name} has no fact {ordinal} any more; reload to see what it has")
        by_entity.setdefault(name, {})[ordinal] = facts[name][ordinal]
    return tuple(FactSet(name, tuple(moved.values())) for name, moved in by_entity.items())
