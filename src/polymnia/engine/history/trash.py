"""Verbs on deleted things: list them, restore them, purge them on request or after some days."""

from collections import defaultdict
from collections.abc import Iterable
from itertools import chain
from time import time
from weakref import WeakKeyDictionary

from polymnia.engine.memory import Memory
from polymnia.errors import USE_A_DATABASE, BadInput
from polymnia.model import VAULT, ChangeQuery, Counts, Relation, Rows, TrashItem
from polymnia.stores.contract import Reader, find_note

_DAY_S = 86_400
# Operations that end a fact or relation at one entity and create it at another, under another name
# or number.
_MOVES = ("merge_entities", "move_observations", "revise", "correct", "sync", "undo")


def items(memory: Memory) -> list[TrashItem]:
    """Return everything that was deleted and can be restored.

    What was only moved is left out. Raise BadInput if the store has no trash.
    """
    with memory.reading() as read:
        return _items(memory, read)


def restore(memory: Memory, wanted: str, *, by: str) -> Rows:
    """Do the same as `restore_item`, and return only what was restored."""
    return restore_item(memory, wanted, by=by)[0]


def restore_item(memory: Memory, wanted: str, *, by: str) -> tuple[Rows, int]:
    """Restore the item with that id, or the latest deleted entity or note with that name.

    Return what was restored, and the change. An entity comes back with the facts and
    relations that were deleted with it, except for relations to entities that do not exist. Raise
    BadInput if there is no such item, or if its name is in use again.
    """
    with memory.writing("restore", by) as transaction:
        deleted = _items(memory, transaction.read)
        item = next((one for one in deleted if one.id == wanted), None)
        for named in deleted if item is None else ():
            rows = named.rows
            if wanted in [*(one.name for one in rows.entities), *(one.key for one in rows.notes)]:
                item = named
                break
        if item is None:
            raise BadInput(
                f"nothing that was deleted is called {wanted}; "
                "`polymnia trash list` shows what there is"
            )
        restored = _restorable_rows(transaction.read, item)
        transaction.apply(after=restored)
    return restored, transaction.change_id


def purge(memory: Memory, *, days: float) -> Counts:
    """Remove everything that was deleted more than `days` days ago, and its text everywhere.

    0 days or less means all of it, regardless of the clock.
    """
    _require_trash(memory)
    if days <= 0:
        return memory.store.purge(None)
    return memory.store.purge(int((time() - days * _DAY_S) * 1_000_000))


class Retention:
    """Keeps deleted things for some days; 0 means for ever. Each memory is checked once a day."""

    def __init__(self, days: int) -> None:
        self._days = days
        self._checked_at: WeakKeyDictionary[Memory, float] = WeakKeyDictionary()

    def apply(self, memory: Memory) -> None:
        """Purge what is too old, unless the memory was checked today."""
        if not self._days or not memory.store.capabilities.trash:
            return
        if time() - self._checked_at.get(memory, 0.0) >= _DAY_S:
            self._checked_at[memory] = time()
            purge(memory, days=self._days)


def deleted_ends(read: Reader, relations: Iterable[Relation], change: int) -> set[str]:
    """Return the ends that were entities before the relations were deleted and no longer are."""
    ends = {end for relation in relations for end in (relation.source, relation.target)}
    missing = ends - read.existing_names(ends)
    if not missing:
        return set()
    earlier = read.history.state_before(change, missing)
    return {entity.name for entity in earlier.entities}


def _items(memory: Memory, read: Reader) -> list[TrashItem]:
    _require_trash(memory)
    deleted = read.history.trash()
    # Single facts and relations. Those of a whole entity come back with it.
    parts = []
    for item in deleted:
        if item.rows.facts or (item.rows.relations and not item.rows.entities):
            parts.append(item)
    if not parts:
        return deleted
    first = min(item.change for item in parts)
    moves = read.history.changes(ChangeQuery(limit=None, after=first - 1, operations=_MOVES))
    # Leave out a fact or relation that the same change created elsewhere. An undone merge does
    # that: its facts go back to the entity they came from, so restoring one would only repeat it
    # at the wrong entity.
    facts: set[tuple[int, str, int]] = set()
    relations: defaultdict[tuple[int, str, int], list[Relation]] = defaultdict(list)
    for change in moves:
        created = [entity.facts for entity in change.after.entities]
        created += [part.facts for part in change.after.facts]
        for fact in chain.from_iterable(created):
            facts.add((change.id, fact.text, fact.created_at))
        for relation in change.after.relations:
            relations[change.id, relation.type, relation.created_at].append(relation)
    moved: set[str] = set()
    for item in parts:
        for part in item.rows.facts:
            fact = part.facts[0]
            if (item.change, fact.text, fact.created_at) in facts:
                moved.add(item.id)
        for old in item.rows.relations:
            for new in relations[item.change, old.type, old.created_at]:
                if _is_redirected(old, new):
                    moved.add(item.id)
    return [item for item in deleted if item.id not in moved]


def _is_redirected(old: Relation, new: Relation) -> bool:
    """Return True if one relation is the other with a new name at one end, or at both of a loop."""
    if old.source == old.target:
        return new.source == new.target
    return old.source == new.source or old.target == new.target


def _require_trash(memory: Memory) -> None:
    if not memory.store.capabilities.trash:
        raise BadInput(f"{memory.store.url} keeps nothing that is deleted; {USE_A_DATABASE}")


def _restorable_rows(read: Reader, item: TrashItem) -> Rows:
    """Return the rows of an item that can be restored now.

    Raise BadInput if the item itself cannot.
    """
    rows = item.rows
    names = {entity.name for entity in rows.entities}
    if in_use := read.existing_names(names):
        raise BadInput(
            f"there is an entity {in_use.pop()} again; delete that one first to restore the older"
        )
    if rows.notes and any(find_note(read.notes, VAULT, note.key) for note in rows.notes):
        raise BadInput(
            f"there is a note {rows.notes[0].key} again; delete that one first to restore the older"
        )
    if item.owner_gone:
        raise BadInput(f"its entity is deleted too; restore that first: {item.owner}")
    if not names and (gone := deleted_ends(read, rows.relations, item.change)):
        raise BadInput(f"the entity {gone.pop()} at its end is deleted too; restore that first")
    links = []
    for relation in rows.relations:
        others = set(relation.ends) - names
        if not names or read.existing_names(others) == others:
            links.append(relation)
    linked = read.find_relations({relation.key for relation in links})
    missing = tuple(relation for relation in links if relation.key not in linked)
    return Rows(rows.entities, rows.facts, missing, rows.notes)
