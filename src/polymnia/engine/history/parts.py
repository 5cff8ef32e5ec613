"""Changes of any size: a large one is counted, or read as far as it concerns some entities."""

from collections.abc import Collection

from msgspec.structs import replace

from polymnia.errors import BadInput
from polymnia.model import Change, ChangeQuery, ChangeSize, Entity, FactSet, Rows
from polymnia.stores.contract import HistoryReader


def read_changes(
    history: HistoryReader,
    query: ChangeQuery,
    max_rows: int,
    *,
    about: Collection[str] | None = None,
) -> tuple[list[Change], dict[int, ChangeSize]]:
    """Return the changes that a query selects, and the sizes of those with more than `max_rows`.

    A change of a large import has thousands of rows. For a large change only the rows of some
    entities are read, usually those in `query.names`, and none without names.
    """
    about = query.names if about is None else about
    heads = history.change_heads(query)
    sizes = history.change_sizes([head.id for head in heads])
    large = {number: size for number, size in sizes.items() if size.total > max_rows}
    names = history.all_names(about) if large and about else set()
    small_ids = tuple(head.id for head in heads if head.id not in large)
    changes = history.changes(ChangeQuery(limit=None, ids=small_ids)) if small_ids else []
    for head in heads:
        if head.id in large:
            changes.append(_part_of(history, head, names))
    changes.sort(key=lambda change: -change.id)
    return changes, large


def _part_of(history: HistoryReader, head: Change, names: Collection[str]) -> Change:
    """Return a change with the rows of some entities only; without rows if they were purged."""
    if not names:
        return head
    try:
        before = history.state_before(head.id, names)
        after = history.state_before(head.id + 1, names)
    except BadInput:
        return head
    return replace(head, before=_subtract(before, after), after=_subtract(after, before))


def _subtract(state: Rows, other: Rows) -> Rows:
    """Return what a state has and another one has not, or has otherwise."""
    counterparts = {entity.id: entity for entity in other.entities}
    cards: list[Entity] = []
    facts: list[FactSet] = []
    for entity in state.entities:
        counterpart = counterparts.get(entity.id)
        if counterpart is None:
            cards.append(entity)
            continue
        if _card(entity) != _card(counterpart):
            cards.append(_card(entity))
        own_facts = [fact for fact in entity.facts if fact not in counterpart.facts]
        if own_facts:
            facts.append(FactSet(entity.name, tuple(own_facts)))
    known_links = {relation.key for relation in other.relations}
    links = [relation for relation in state.relations if relation.key not in known_links]
    return Rows(tuple(cards), tuple(facts), tuple(links))


def _card(entity: Entity) -> Entity:
    """Return an entity without its facts, and without what every change to a fact alters."""
    return replace(entity, facts=(), next_ordinal=0, updated_at=0)
