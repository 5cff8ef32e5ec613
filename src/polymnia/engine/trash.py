"""Verbs on what was deleted: look at it, bring it back, take it away for good, by hand or after some days."""

from time import time
from weakref import WeakKeyDictionary

from polymnia.engine.memory import Memory, Transaction
from polymnia.errors import BadInput
from polymnia.model import VAULT, PurgeCounts, Relation, Rows, TrashItem
from polymnia.stores.contract import Reader

_DAY = 86_400
_SECOND = 1_000_000


def listed(memory: Memory) -> list[TrashItem]:
    """Everything that can be brought back. Raises BadInput when the store keeps nothing that is deleted."""
    with memory.reading() as read:
        return _trashed(memory, read)


def restore(memory: Memory, wanted: str, *, by: str) -> Rows:
    """Bring back what has that id, or the entity of that name that was deleted last; gives what came back.

    An entity comes with the observations and relations that were deleted with it; of the relations those whose other
    end lives. Raises BadInput when there is no such thing, or something else has taken its place.
    """
    with memory.writing("restore", by) as transaction:
        found = _found(_trashed(memory, transaction.read), wanted)
        back = _restorable(transaction, found)
        transaction.apply(after=back)
    return back


def purge(memory: Memory, *, days: float) -> PurgeCounts:
    """Take away for good what was deleted longer ago than that, its text in the change log too."""
    if not memory.store.capabilities.trash:
        raise _keeps_nothing(memory)
    return memory.store.purge(int((time() - days * _DAY) * _SECOND))


class Retention:
    """Deleted things are kept for so many days, 0 is for ever; each memory is looked at once a day."""

    def __init__(self, days: int) -> None:
        self._days = days
        self._looked: WeakKeyDictionary[Memory, float] = WeakKeyDictionary()

    def apply(self, memory: Memory) -> None:
        """Purge what is too old, if it is time to look."""
        if not self._days or not memory.store.capabilities.trash:
            return
        if time() - self._looked.get(memory, 0.0) >= _DAY:
            self._looked[memory] = time()
            purge(memory, days=self._days)


def _trashed(memory: Memory, read: Reader) -> list[TrashItem]:
    if not memory.store.capabilities.trash:
        raise _keeps_nothing(memory)
    return read.trash.items()


def _keeps_nothing(memory: Memory) -> BadInput:
    return BadInput(f"{memory.store.url} keeps nothing that is deleted; only SQLite stores do")


def _found(trashed: list[TrashItem], wanted: str) -> TrashItem:
    for each in trashed:
        if wanted == each.id:
            return each
    for each in trashed:
        names = [entity.name for entity in each.rows.entities] + [note.key for note in each.rows.notes]
        if wanted in names:
            return each
    raise BadInput(f"nothing that was deleted is called {wanted}; `polymnia trash list` shows what there is")


def _restorable(transaction: Transaction, found: TrashItem) -> Rows:
    """What of it can come back now."""
    read, rows = transaction.read, found.rows
    names = {entity.name for entity in rows.entities}
    if taken := read.known(names):
        raise BadInput(f"there is an entity {taken.pop()} again; delete that one first to restore the older")
    if rows.notes and any(read.notes.find(VAULT, note.key) for note in rows.notes):
        raise BadInput(f"there is a note {rows.notes[0].key} again; delete that one first to restore the older")
    if found.owner_gone:
        raise BadInput(f"its entity is deleted too; restore that first: {found.owner}")
    relations = [each for each in rows.relations if not names or _joins_living(read, each, names)]
    linked = read.linked({each.key for each in relations})
    back = tuple([each for each in relations if each.key not in linked])
    return Rows(rows.entities, rows.observations, back, rows.notes)


def _joins_living(read: Reader, relation: Relation, back: set[str]) -> bool:
    ends = {relation.source, relation.target} - back
    return read.known(ends) == ends
