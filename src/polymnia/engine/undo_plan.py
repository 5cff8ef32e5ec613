"""Plan an undo: the rows that take changes back, and the conflicts with what others changed since."""

from collections.abc import Collection, Iterable, Sequence
from typing import cast

from msgspec import Struct
from msgspec.structs import replace

from polymnia.engine.entities import redirect
from polymnia.engine.undo_items import (
    ATTRIBUTES,
    Altered,
    Item,
    Value,
    describe_item,
    find_altered,
    is_same,
    items_of,
)
from polymnia.model import (
    VAULT,
    Change,
    ChangeQuery,
    Entity,
    Note,
    Observation,
    ObservationSet,
    Relation,
    Rows,
)
from polymnia.search.text import count_noun
from polymnia.stores.contract import Reader, check_cancelled

# How many later changes are searched for the present name of an entity.
_MAX_SEARCHED = 1_000


class UndoConflict(Struct, frozen=True):
    """Something that cannot be undone: what it is, the name it belongs to, why, and the change that would be undone.

    Pass `key` as `overwrite` to undo it anyway; it is empty if that is not possible. `now` is the text that stays and
    `then` the one that an undo would restore, if there are any.
    """

    what: str
    name: str
    reason: str
    change: int
    key: str = ""
    now: str = ""
    then: str = ""


class UndoPlan(Struct, frozen=True):
    """The rows that an undo ends and creates, and what it has to leave as it is."""

    before: Rows
    after: Rows
    conflicts: tuple[UndoConflict, ...]


def plan_undo(
    read: Reader, changes: Sequence[Change], at: int, overwrite: Collection[str] = ()
) -> UndoPlan:
    """Return how to undo these changes, which are in order, on the present state.

    `overwrite` has the keys of conflicts that are undone anyway, with what others changed later.
    """
    planner = _Planner(read, find_altered(read, changes), at, frozenset(overwrite))
    planner.compare()
    planner.require_structure()
    return UndoPlan(planner.before(), planner.after(), tuple(planner.conflicts))


class _Planner:
    """Finds the items to reset: compares what the changes left with the present state."""

    def __init__(self, read: Reader, altered: Altered, at: int, overwrite: frozenset[str]) -> None:
        self._read = read
        self._overwrite = overwrite
        self._spans = altered.spans
        self._names = altered.names
        self._wholes = altered.wholes
        self._at = at
        identities = {str(item[1]) for item in self._spans if item[0] not in ("relation", "note")}
        self._living = _living_entities(read, {each: altered.names[each] for each in identities})
        self._names |= {identity: each.name for identity, each in self._living.items()}
        self._now = self._present_values()
        self._targets: dict[Item, Value] = {}
        self.conflicts: list[UndoConflict] = []

    def compare(self) -> None:
        """Decide for each item on its own: leave it, reset it, or refuse because others changed it since."""
        for item, span in self._spans.items():
            now = self._now.get(item)
            if is_same(item, now, span.before):
                continue
            is_changed = span.is_interrupted or not is_same(item, now, span.after)
            if is_changed and not (_may_overwrite(item) and _key(item) in self._overwrite):
                reason = "it was changed since" if now is not None else "it was deleted since"
                self._refuse(item, reason, key=_key(item) if _may_overwrite(item) else "")
            else:
                self._targets[item] = span.before

    def require_structure(self) -> None:
        """Refuse what would lose facts that others added, leave facts without their entity, or use a name twice."""
        for item in [
            each for each in self._targets if each[0] == "entity" and self._targets[each] is None
        ]:
            self._require_unused(str(item[1]))
        while self._refuse_taken_names():
            continue
        for item in [each for each in self._targets if each[0] in ("observation", *ATTRIBUTES)]:
            if self._targets[item] is not None and not self._will_live(str(item[1])):
                self._refuse(item, "its entity was deleted since")
        then, ending = self._names_then(), self._ending_names()
        for item in [each for each in self._targets if each[0] == "relation"]:
            self._require_ends(item, then, ending)

    def before(self) -> Rows:
        """Return the rows that the undo ends."""
        relations = [cast("Relation", self._now[item]) for item in self._items_to_end("relation")]
        notes = [cast("Note", self._now[item]) for item in self._items_to_end("note")]
        entities = [
            each for identity, each in self._living.items() if self._has_card_target(identity)
        ]
        observations = [
            (str(item[1]), cast("Observation", self._now[item]))
            for item in self._items_to_end("observation")
        ]
        moved = [each for each, _ in self._moved_relations()]
        return Rows(tuple(entities), self._sets(observations), (*relations, *moved), tuple(notes))

    def after(self) -> Rows:
        """Return the rows that the undo creates."""
        relations = [
            cast("Relation", self._targets[item]) for item in self._items_to_create("relation")
        ]
        notes = [cast("Note", self._targets[item]) for item in self._items_to_create("note")]
        observations = [
            (str(item[1]), cast("Observation", self._targets[item]))
            for item in self._items_to_create("observation")
        ]
        kept = [
            self._set_back(each)
            for identity, each in self._living.items()
            if self._changes_card(identity)
        ]
        had: dict[str, list[Observation]] = {}
        for identity, each in observations:
            had.setdefault(identity, []).append(each)
        returning = [str(item[1]) for item in self._items_to_create("entity")]
        whole = [self._bring_back(identity, had.get(identity, [])) for identity in returning]
        moved = self._distinct_moves(relations)
        return Rows((*kept, *whole), self._sets(observations), (*relations, *moved), tuple(notes))

    def _present_values(self) -> dict[Item, Value]:
        now = {item: value for each in self._living.values() for item, value in items_of(each)}
        keys = [
            cast("tuple[str, str, str]", item[1:]) for item in self._spans if item[0] == "relation"
        ]
        now |= {("relation", *key): relation for key, relation in self._read.linked(keys).items()}
        notes = [str(item[1]) for item in self._spans if item[0] == "note"]
        now |= {
            ("note", key): note
            for key in notes
            if (note := self._read.notes.find(VAULT, key)) is not None
        }
        return now

    def _refuse(self, item: Item, reason: str, key: str = "") -> None:
        self._targets.pop(item, None)
        what, name = describe_item(item, self._names)
        span = self._spans[item]
        now, then = _text(self._now.get(item)), _text(span.before)
        self.conflicts.append(UndoConflict(what, name, reason, span.last.id, key, now, then))

    def _require_unused(self, identity: str) -> None:
        """Refuse to delete an entity that the changes created if others have added to it or changed it since."""
        check_cancelled()
        entity, item = self._living[identity], ("entity", identity)
        added = [
            each
            for each in entity.observations
            if ("observation", identity, each.ordinal) not in self._targets
        ]
        changed = [each for each in ATTRIBUTES if (each, identity) not in self._targets]
        since = self._spans[item].first.at
        related = [each for each in self._others_relations(entity.name) if each.created_at > since]
        if added or changed or related:
            reasons = [_were_added(len(added), "observation"), "it was changed" if changed else ""]
            reasons.append(_were_added(len(related), "relation"))
            self._refuse(item, " and ".join([each for each in reasons if each]) + " since")
            for attribute in ATTRIBUTES:
                self._targets.pop((attribute, identity), None)

    def _refuse_taken_names(self) -> bool:
        """Refuse entities whose former name another one has now. Return True if that may affect others."""
        check_cancelled()
        wanted = [str(item[1]) for item in self._items_to_create("name")]
        freed = {
            each.name for identity, each in self._living.items() if not self._keeps_name(identity)
        }
        taken = self._read.known([self._name_target(each) for each in wanted]) - freed
        for identity in wanted:
            name = self._name_target(identity)
            if name in taken:
                self._refuse_entity(identity, f"there is another entity {name} now")
                return True
            taken.add(name)
        return False

    def _refuse_entity(self, identity: str, reason: str) -> None:
        """Refuse to rename an entity or, with all it had, to bring it back."""
        if identity in self._living:
            self._refuse(("name", identity), reason)
            return
        for item in [
            each
            for each in self._targets
            if each[0] not in ("relation", "note") and each[1] == identity
        ]:
            del self._targets[item]
        self._targets[("entity", identity)] = True
        self._refuse(("entity", identity), reason)

    def _require_ends(self, item: Item, then: set[str], ending: dict[str, int]) -> None:
        """Refuse to restore a relation if an entity at its end was deleted since.

        `then` are names that entities have only after the undo, `ending` those that they lose with it.
        """
        check_cancelled()
        if self._targets[item] is None:
            return
        _, source, target, _ = cast("tuple[str, str, str, str]", item)
        ends = {source, target} - then
        missing = ends - self._read.known(ends)
        restored = cast("Relation", self._targets[item])
        missing |= {end for end in ends if end in ending and ending[end] < restored.created_at}
        if missing:
            earlier = self._read.history.at(self._spans[item].first.at - 1, missing)
            if gone := {each.name for each in earlier.entities}:
                self._refuse(item, f"the entity {' and '.join(sorted(gone))} was deleted since")

    def _names_then(self) -> set[str]:
        """Return the names that entities have only after the undo."""
        return {self._name_target(str(item[1])) for item in self._items_to_create("name")}

    def _ending_names(self) -> dict[str, int]:
        """Return the names of entities that the undo deletes, and when the changes created these."""
        ending = [each for identity, each in self._living.items() if not self._will_live(identity)]
        return {each.name: self._spans["entity", each.id].first.at for each in ending}

    def _others_relations(self, name: str) -> list[Relation]:
        return [
            each
            for each in self._read.touching([name])
            if ("relation", *each.key) not in self._targets
        ]

    def _moved_relations(self) -> list[tuple[Relation, Relation]]:
        """Return the relations that others made since an entity was renamed, and what they become with its old name."""
        moved: dict[Item, tuple[Relation, Relation]] = {}
        for identity, each in self._living.items():
            span = self._spans.get(("name", identity))
            if (
                ("name", identity) not in self._targets
                or span is None
                or not self._will_live(identity)
            ):
                continue
            for relation in self._others_relations(each.name):
                if relation.created_at > span.last.at:
                    start = moved.get(("relation", *relation.key), (relation, relation))[1]
                    moved["relation", *relation.key] = (
                        relation,
                        redirect(start, each.name, self._name_target(identity)),
                    )
        return list(moved.values())

    def _distinct_moves(self, relations: Iterable[Relation]) -> list[Relation]:
        """Return what moved relations become, without those that exist anyway."""
        wanted = {each.key: each for _, each in self._moved_relations()}
        present = {*self._read.linked(wanted), *(each.key for each in relations)}
        return [each for key, each in wanted.items() if key not in present]

    def _set_back(self, entity: Entity) -> Entity:
        """Return a living entity with the attributes it had."""
        values = {
            kind: self._targets[kind, entity.id]
            for kind in ATTRIBUTES
            if (kind, entity.id) in self._targets
        }
        return _with_attributes(replace(entity, updated_at=self._at), values)

    def _bring_back(self, identity: str, had: Iterable[Observation]) -> Entity:
        """Return a deleted entity with all it had."""
        observations = sorted(had, key=lambda each: each.ordinal)
        values = {kind: self._targets[kind, identity] for kind in ATTRIBUTES}
        whole = self._wholes[identity]
        return _with_attributes(
            replace(whole, observations=tuple(observations), updated_at=self._at), values
        )

    def _sets(self, observations: Iterable[tuple[str, Observation]]) -> tuple[ObservationSet, ...]:
        """Return observations of entities that live before and after, by the present name."""
        sets: dict[str, list[Observation]] = {}
        for identity, each in observations:
            if identity in self._living and self._will_live(identity):
                sets.setdefault(self._living[identity].name, []).append(each)
        return tuple([ObservationSet(name, tuple(several)) for name, several in sets.items()])

    def _items_to_end(self, kind: str) -> list[Item]:
        return [
            item for item in self._targets if item[0] == kind and self._now.get(item) is not None
        ]

    def _items_to_create(self, kind: str) -> list[Item]:
        return [
            item for item, value in self._targets.items() if item[0] == kind and value is not None
        ]

    def _has_card_target(self, identity: str) -> bool:
        return any((kind, identity) in self._targets for kind in ("entity", *ATTRIBUTES))

    def _changes_card(self, identity: str) -> bool:
        return self._will_live(identity) and self._has_card_target(identity)

    def _will_live(self, identity: str) -> bool:
        item = ("entity", identity)
        return (
            self._targets[item] is not None if item in self._targets else identity in self._living
        )

    def _keeps_name(self, identity: str) -> bool:
        return self._will_live(identity) and ("name", identity) not in self._targets

    def _name_target(self, identity: str) -> str:
        return cast("str", self._targets["name", identity])


def _may_overwrite(item: Item) -> bool:
    """Return True if the item can be reset, whatever its present value.

    An entity cannot: it may hold the work of others. Nor can a name: relations follow its later one.
    """
    return item[0] not in ("entity", "name")


def _key(item: Item) -> str:
    return "\t".join(map(str, item))


def _text(value: Value) -> str:
    """Return what people read of a value; empty if there is nothing to read."""
    if isinstance(value, Observation):
        return value.text
    if isinstance(value, Note):
        return value.content
    if isinstance(value, tuple):  # a summary and its time, or tags
        return ", ".join([each for each in value if isinstance(each, str)])
    return value if isinstance(value, str) else ""


def _with_attributes(entity: Entity, values: dict[str, Value]) -> Entity:
    summary, summary_at = cast(
        "tuple[str | None, int]", values.get("summary", (entity.summary, entity.summary_at))
    )
    return replace(
        entity,
        name=cast("str", values.get("name", entity.name)),
        type=cast("str", values.get("type", entity.type)),
        summary=summary,
        summary_at=summary_at,
        tags=cast("tuple[str, ...]", values.get("tags", entity.tags)),
    )


def _living_entities(read: Reader, names: dict[str, str]) -> dict[str, Entity]:
    """Return those of the entities that live, by id. `names` has the last name that is known of each."""
    living = {each.id: each for each in read.find(set(names.values())) if each.id in names}
    missing = {identity: name for identity, name in names.items() if identity not in living}
    renamed = _present_names(read, missing) if missing else set()
    found = read.find(renamed) if renamed else []
    return living | {each.id: each for each in found if each.id in names}


def _present_names(read: Reader, names: dict[str, str]) -> set[str]:
    """Return the names that the latest changes gave to entities, which are given by id with an earlier name."""
    unresolved, found = set(names), set()
    for change in read.history.latest(
        ChangeQuery(limit=_MAX_SEARCHED, names=tuple(set(names.values())))
    ):
        check_cancelled()
        after = {each.id: each.name for each in change.after.entities if each.id in unresolved}
        found |= set(after.values())
        unresolved -= {*after, *(each.id for each in change.before.entities)}
    return found


def _were_added(count: int, noun: str) -> str:
    return f"{count_noun(count, noun)} {'was' if count == 1 else 'were'} added" if count else ""
