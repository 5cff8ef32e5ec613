"""Verbs on deleted things: list them, restore them, purge them on request or after some days."""

from collections.abc import Iterable
from time import time
from weakref import WeakKeyDictionary

from polymnia.engine.memory import Memory
from polymnia.errors import USE_A_DATABASE, BadInput
from polymnia.model import VAULT, PurgeCounts, Relation, Rows, TrashItem
from polymnia.stores.contract import Reader

_DAY_S = 86_400
_MICROSECONDS = 1_000_000


def items(memory: Memory) -> list[TrashItem]:
    """Return everything that can be restored. Raise BadInput if the store has no trash."""
    with memory.reading() as read:
        return _items(memory, read)


def restore(memory: Memory, wanted: str, *, by: str) -> Rows:
    """Do the same as `restore_item`, and return only what was restored."""
    return restore_item(memory, wanted, by=by)[0]


def restore_item(memory: Memory, wanted: str, *, by: str) -> tuple[Rows, int]:
    """Restore the item with that id, or the latest deleted entity or note with that name.

    Return what was restored, and the change. An entity comes back with the observations and relations that were deleted
    with it, except for relations to entities that do not exist. Raise BadInput if there is no such item, or if its name
    is in use again.
    """
    with memory.writing("restore", by) as transaction:
        found = _find(_items(memory, transaction.read), wanted)
        restored = _restorable_rows(transaction.read, found)
        transaction.apply(after=restored)
    return restored, transaction.change.id if transaction.change else 0


def purge(memory: Memory, *, days: float) -> PurgeCounts:
    """Remove everything that was deleted more than `days` days ago, and its text everywhere."""
    _require_trash(memory)
    return memory.store.purge(int((time() - days * _DAY_S) * _MICROSECONDS))


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


def deleted_ends(read: Reader, relations: Iterable[Relation], deleted_at: int) -> set[str]:
    """Return the ends of relations that were entities just before the relations were deleted and no longer are."""
    ends = {end for each in relations for end in (each.source, each.target)}
    missing = ends - read.known(ends)
    return (
        {each.name for each in read.history.at(deleted_at - 1, missing).entities}
        if missing
        else set()
    )


def _items(memory: Memory, read: Reader) -> list[TrashItem]:
    _require_trash(memory)
    return read.trash.items()


def _require_trash(memory: Memory) -> None:
    if not memory.store.capabilities.trash:
        raise BadInput(f"{memory.store.url} keeps nothing that is deleted; {USE_A_DATABASE}")


def _find(items: list[TrashItem], wanted: str) -> TrashItem:
    for each in items:
        if wanted == each.id:
            return each
    for each in items:
        names = [entity.name for entity in each.rows.entities] + [
            note.key for note in each.rows.notes
        ]
        if wanted in names:
            return each
    raise BadInput(
        f"nothing that was deleted is called {wanted}; `polymnia trash list` shows what there is"
    )


def _restorable_rows(read: Reader, item: TrashItem) -> Rows:
    """Return the rows of an item that can be restored now. Raise BadInput if the item itself cannot."""
    rows = item.rows
    names = {entity.name for entity in rows.entities}
    if in_use := read.known(names):
        raise BadInput(
            f"there is an entity {in_use.pop()} again; delete that one first to restore the older"
        )
    if rows.notes and any(read.notes.find(VAULT, note.key) for note in rows.notes):
        raise BadInput(
            f"there is a note {rows.notes[0].key} again; delete that one first to restore the older"
        )
    if item.owner_gone:
        raise BadInput(f"its entity is deleted too; restore that first: {item.owner}")
    if not names and (gone := deleted_ends(read, rows.relations, item.deleted_at)):
        raise BadInput(f"the entity {gone.pop()} at its end is deleted too; restore that first")
    relations = [each for each in rows.relations if not names or _has_other_end(read, each, names)]
    linked = read.linked({each.key for each in relations})
    return Rows(
        rows.entities,
        rows.observations,
        tuple([each for each in relations if each.key not in linked]),
        rows.notes,
    )


def _has_other_end(read: Reader, relation: Relation, restored: set[str]) -> bool:
    ends = {relation.source, relation.target} - restored
    return read.known(ends) == ends
