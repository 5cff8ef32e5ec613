"""Later changes: what others did since to the items that an undo would take back."""

from collections.abc import Collection, Iterator

from msgspec import Struct

from polymnia.engine.history.altered import Item, Value, describe_item, is_same, items_of
from polymnia.engine.history.changes import LINKING_OPERATIONS, MAX_WHOLE_ROWS
from polymnia.engine.history.parts import read_changes
from polymnia.model import Change, ChangeQuery, Fact, Rows
from polymnia.stores.contract import Reader, check_cancelled

# How many later changes are read, the newest ones.
_MAX_SEARCHED = 200


class Link(Struct, frozen=True):
    """A fact that ended in favour of one that its entity had already, and the change that did it.

    A change does not record which fact the other one is.
    """

    ended: Fact
    change: int


class LaterChanges:
    """The changes after the first one that is undone, without those that are undone too."""

    def __init__(self, read: Reader, undone: Collection[int]) -> None:
        self._read = read
        self._undone = frozenset(undone)
        self._by_name: dict[str, list[Change]] = {}

    def touching(self, name: str, after: int) -> list[Change]:
        """Return the changes that touched an entity or note after another one, newest first."""
        if name not in self._by_name:
            self._by_name[name] = self._find((name,), None)
        return [change for change in self._by_name[name] if change.id > after]

    def last_to_alter(self, item: Item, names: dict[str, str], after: int) -> int:
        """Return the newest change that altered an item; 0 if none is found."""
        _, name = describe_item(item, names)
        former_names = self._read.history.all_names([name])
        for change in self.touching(name, after):
            before = _value_in(change.before, item, former_names)
            if not is_same(item, before, _value_in(change.after, item, former_names)):
                return change.id
        return 0

    def linked_names(self, names: Collection[str]) -> set[str]:
        """Return the names of entities that may have links, of these and perhaps others."""
        linked: set[str] = set()
        for change in self._find(names, LINKING_OPERATIONS):
            linked.update(part.entity for part in change.before.facts)
        return self._read.history.all_names(linked) if linked else linked

    def links(self, name: str, after: int) -> Iterator[Link]:
        """Yield the facts of an entity that ended in favour of others that it had, newest first."""
        former_names = self._read.history.all_names([name])
        for change in self.touching(name, after):
            if change.operation not in LINKING_OPERATIONS:
                continue
            old = _facts_in(change.before, former_names)
            new = _facts_in(change.after, former_names)
            ended = [old[ordinal] for ordinal in old.keys() - new.keys()]
            # If each ended fact has a new one, those replaced them.
            if len(ended) > len(new.keys() - old.keys()):
                for fact in ended:
                    yield Link(fact, change.id)

    def _find(self, names: Collection[str], operations: tuple[str, ...] | None) -> list[Change]:
        check_cancelled()
        history = self._read.history
        names, first = tuple(names), min(self._undone, default=0)
        query = ChangeQuery(limit=None, after=first, names=names, operations=operations)
        ids = [head.id for head in history.change_heads(query) if head.id not in self._undone]
        if not ids:
            return []
        query = ChangeQuery(limit=None, ids=tuple(ids[:_MAX_SEARCHED]), names=names)
        return read_changes(history, query, MAX_WHOLE_ROWS)[0]


def _facts_in(rows: Rows, names: Collection[str]) -> dict[int, Fact]:
    """Return the facts of an entity that stays, by ordinal."""
    facts = {}
    for part in rows.facts:
        if part.entity in names:
            for fact in part.facts:
                facts[fact.ordinal] = fact
    return facts


def _value_in(rows: Rows, item: Item, names: Collection[str]) -> Value:
    """Return the value of an item in one side of a change; None if it is not there."""
    if item[0] == "relation":
        return next((link for link in rows.relations if link.key == item[1:]), None)
    if item[0] == "note":
        return next((note for note in rows.notes if note.key == item[1]), None)
    if item[0] == "fact":
        fact = _facts_in(rows, names).get(int(item[2]))
        if fact is not None:
            return fact
    for entity in rows.entities:
        if entity.id == item[1]:
            return dict(items_of(entity)).get(item)
    return None
