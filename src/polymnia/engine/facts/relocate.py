"""Move an entity, or some of its facts, to another workspace."""

from collections.abc import Sequence

from msgspec import Struct
from msgspec.structs import replace

from polymnia.engine.facts.merge import join_card, keep_authors, number_gained
from polymnia.engine.facts.revise import FactIndex
from polymnia.engine.graph.entities import new_entity
from polymnia.engine.graph.relations import ends_of
from polymnia.engine.memory import Memory, find_by_name
from polymnia.errors import BadInput, EntityNotFound
from polymnia.model import Entity, EntityDraft, Fact, FactSet, Relation, Rows


class Relocation(Struct, frozen=True):
    """What moved: two changes, one in each workspace, and what the target had already.

    `facts` are the numbers that the facts have in the target.
    """

    name: str
    source_change: int
    target_change: int
    facts: tuple[int, ...]
    known: int
    relations: int
    is_whole: bool


def relocate(
    source: Memory, target: Memory, name: str, facts: Sequence[int | str] = (), *, by: str
) -> Relocation:
    """Move the named facts, or the whole entity with its relations, to another memory.

    Facts keep author, times and source; those of an entity that is new in the target keep their
    numbers too. The source's history keeps what was there. Two stores have no common transaction,
    so the target is written first: a crash between the two leaves the facts in both. Raise
    EntityNotFound, or BadInput if the entity has no such fact.
    """
    with source.reading() as read:
        entity = _find(read.entities([name]), name)
        index = FactIndex(entity)
        chosen = {fact.ordinal: fact for fact in map(index.find, facts)}
        moved = tuple(chosen[ordinal] for ordinal in sorted(chosen)) or entity.facts
        part = FactSet(name, moved)
        signed = keep_authors(source, read, [part])
        relations = read.relations([name])
    # What would leave nothing but a name behind moves whole.
    is_bare = len(moved) == len(entity.facts) and not (relations or entity.summary)
    is_whole = not facts or is_bare
    if not is_whole:
        relations = []
    target_change, gained, new_relations = _put(target, entity, signed, relations, is_whole, by)
    with source.writing("move", by) as transaction:
        current = _find(transaction.read.entities([name]), name)
        if not set(moved) <= set(current.facts):
            raise BadInput(f"{name} was changed meanwhile: it is in both workspaces; try again")
        before = Rows(facts=(part,))
        if is_whole:
            before = Rows((current,), relations=tuple(transaction.read.relations([name])))
        transaction.apply(before=before, touched=ends_of(before.relations))
    return Relocation(
        name,
        transaction.change_id,
        target_change,
        tuple(fact.ordinal for fact in gained),
        len(moved) - len(gained),
        len(new_relations),
        is_whole,
    )


def _find(entities: Sequence[Entity], name: str) -> Entity:
    if not entities:
        raise EntityNotFound(name)
    return entities[0]


def _put(
    target: Memory,
    entity: Entity,
    facts: list[Fact],
    relations: Sequence[Relation],
    is_whole: bool,
    by: str,
) -> tuple[int, tuple[Fact, ...], list[Relation]]:
    """Write the facts and relations to the target. Return the change and what was new there."""
    with target.writing("move", by) as transaction:
        known = find_by_name(transaction.read, [entity.name]).get(entity.name)
        present = transaction.read.find_relations({relation.key for relation in relations})
        new_relations = [relation for relation in relations if relation.key not in present]
        before: tuple[Entity, ...] = ()
        cards: tuple[Entity, ...] = ()
        sets: tuple[FactSet, ...] = ()
        if known is None:
            gained = tuple(facts)
            fresh = new_entity(EntityDraft(entity.name, entity.type), transaction.time())
            last = max((fact.ordinal for fact in gained), default=0)
            card = replace(fresh, facts=gained, next_ordinal=last + 1)
            if is_whole:  # with all that it has
                card = replace(entity, id=fresh.id, facts=gained)
            cards = (card,)
        else:
            gained = number_gained(known, facts)
            if gained:
                sets = (FactSet(entity.name, gained),)
            card = join_card(known, [entity], transaction.time())
            if is_whole and (card.tags, card.aliases) != (known.tags, known.aliases):
                before, cards = (known,), (card,)
        transaction.apply(
            before=Rows(before),
            after=Rows(cards, sets, tuple(new_relations)),
            touched=ends_of(new_relations),
        )
    return transaction.change_id, gained, new_relations
