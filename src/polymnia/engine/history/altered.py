"""What changes altered: every item with its value before and after them."""

from collections.abc import Callable, Iterator, Sequence

from msgspec import Struct

from polymnia.errors import BadInput
from polymnia.model import Change, Entity, Fact, Note, Relation, Rows
from polymnia.stores.contract import Reader, check_cancelled

# ("entity", id), (an attribute, id), ("fact", id, ordinal), ("relation", *key)
# or ("note", key)
Item = tuple[str | int, ...]
Value = object  # None: the item does not exist
ATTRIBUTES = ("name", "type", "summary", "tags", "aliases", "due", "status", "expires")


class Span(Struct):
    """The value of an item before the first and after the last of the changes that altered it."""

    before: Value
    after: Value
    first: Change
    last: Change
    is_interrupted: bool = False  # another change altered it in between


class Altered(Struct, frozen=True):
    """What some changes altered, and the last name and value of the entities concerned."""

    changes: Sequence[Change]
    spans: dict[Item, Span]
    names: dict[str, str]
    wholes: dict[str, Entity]


def find_altered(read: Reader, changes: Sequence[Change]) -> Altered:
    """Return what the changes altered; they are in order.

    Raise BadInput if a purge removed rows of one of them.
    """
    altered = Altered(changes, {}, {}, {})
    for change in changes:
        _add_change(read, change, altered)
    return altered


def items_of(entity: Entity) -> Iterator[tuple[Item, Value]]:
    """Return the items of an entity: that it exists, its attributes and its facts."""
    yield from _card_items(entity)
    yield from _fact_items(entity.id, entity.facts)


def is_same(item: Item, one: Value, other: Value) -> bool:
    """Return True if two values of an item are equal.

    Of relations and entities only their existence counts.
    """
    if item[0] in ("relation", "entity"):
        return (one is None) == (other is None)
    return one == other


def describe_item(item: Item, names: dict[str, str]) -> tuple[str, str]:
    """Return what an item is, and the name it belongs to."""
    kind, *key = item
    if kind == "relation":
        source, target, name = key
        return f"the relation {source} {name} {target}", str(source)
    if kind == "note":
        return f"the note {key[0]}", str(key[0])
    owner = names.get(str(key[0]), "")
    if kind == "fact":
        return f"fact {key[1]} of {owner}", owner
    return (f"the entity {owner}" if kind == "entity" else f"the {kind} of {owner}"), owner


def _add_change(read: Reader, change: Change, altered: Altered) -> None:
    check_cancelled()
    owners = {fact.entity for rows in (change.before, change.after) for fact in rows.facts}
    if "" in owners:
        raise BadInput(f"change {change.id} cannot be undone: some of its rows have been purged")
    # Also refuses a change that is not newer than the last purge.
    earlier = read.history.state_before(change.id, owners)
    then = {entity.name: entity.id for entity in earlier.entities}
    altered.names.update({uid: name for name, uid in then.items()})
    for entity in (*change.before.entities, *change.after.entities):
        altered.names[entity.id] = entity.name
        altered.wholes[entity.id] = entity
    before, after = [
        dict(_row_items(rows, then.__getitem__)) for rows in (change.before, change.after)
    ]
    for item in before | after:
        _extend(altered.spans, item, change, before.get(item), after.get(item))


def _extend(
    spans: dict[Item, Span], item: Item, change: Change, before: Value, after: Value
) -> None:
    if is_same(item, before, after):
        return
    span = spans.get(item)
    if span is None:
        spans[item] = Span(before, after, change, change)
        return
    span.is_interrupted |= not is_same(item, span.after, before)
    span.after, span.last = after, change


def _row_items(rows: Rows, identity: Callable[[str], str]) -> Iterator[tuple[Item, Value]]:
    for entity in rows.entities:
        yield from items_of(entity)
    for fact in rows.facts:
        yield from _fact_items(identity(fact.entity), fact.facts)
    yield from [(_relation_item(relation), relation) for relation in rows.relations]
    yield from [(_note_item(note), note) for note in rows.notes]


def _card_items(entity: Entity) -> Iterator[tuple[Item, Value]]:
    yield ("entity", entity.id), True
    yield ("name", entity.id), entity.name
    yield ("type", entity.id), entity.type
    yield ("summary", entity.id), (entity.summary, entity.summary_at)
    yield ("tags", entity.id), entity.tags
    yield ("aliases", entity.id), entity.aliases
    yield ("due", entity.id), entity.due
    yield ("status", entity.id), entity.status
    yield ("expires", entity.id), entity.expires


def _fact_items(identity: str, facts: Sequence[Fact]) -> Iterator[tuple[Item, Value]]:
    for fact in facts:
        yield ("fact", identity, fact.ordinal), fact


def _relation_item(relation: Relation) -> Item:
    return ("relation", *relation.key)


def _note_item(note: Note) -> Item:
    return ("note", note.key)
