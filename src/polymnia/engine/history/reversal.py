"""The reversal of changes: the rows that take them back, and conflicts with later changes."""

from collections.abc import Collection, Iterable
from typing import cast

from msgspec import Struct
from msgspec.structs import replace

from polymnia.engine.graph.relations import redirect
from polymnia.engine.history.altered import (
    ATTRIBUTES,
    Altered,
    Item,
    Value,
    describe_item,
    is_same,
    items_of,
)
from polymnia.engine.history.changes import merge_target
from polymnia.engine.history.later import LaterChanges
from polymnia.model import (
    VAULT,
    Change,
    ChangeQuery,
    Entity,
    Fact,
    FactSet,
    Note,
    Relation,
    RelationKey,
    Rows,
)
from polymnia.search.similarity import similar_facts
from polymnia.search.terms import count_noun
from polymnia.stores.contract import Reader, check_cancelled, find_note

# How many later changes are searched for the present name of an entity.
_MAX_SEARCHED = 1_000
# Conflicts for which the later change is looked up; people and models read no more.
_MAX_TRACED = 20
# These give facts of an entity to another one.
_MERGING_OPERATIONS = ("merge_entities", "move_observations")


class UndoConflict(Struct, frozen=True):
    """Something that cannot be undone: what it is, whose, why, and the change it was part of.

    Pass `key` as `overwrite` to undo it anyway; it is empty if that is not possible. `now` is the
    text that stays and `then` the one that an undo would restore, if there are any. `later` is the
    newest change that is in the way, 0 if it was not found, and `ordinal` that of a fact.
    """

    what: str
    name: str
    reason: str
    change: int
    key: str = ""
    now: str = ""
    then: str = ""
    later: int = 0
    ordinal: int = 0


class UndoPlan(Struct, frozen=True):
    """The rows that an undo ends and creates, and what it has to leave as it is."""

    before: Rows
    after: Rows
    conflicts: tuple[UndoConflict, ...]


def plan_undo(read: Reader, altered: Altered, at: int, overwrite: Collection[str] = ()) -> UndoPlan:
    """Return how to undo what some changes altered, on the present state.

    `overwrite` has the keys of conflicts that are undone anyway, with what others changed later.
    """
    planner = _Planner(read, altered, at, frozenset(overwrite))
    planner.compare()
    planner.require_successors()
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
        self._changes = altered.changes
        self._later = LaterChanges(read, [change.id for change in altered.changes])
        self._at = at
        last_names = {}
        for item in self._spans:
            if item[0] not in ("relation", "note"):
                identity = str(item[1])
                last_names[identity] = altered.names[identity]
        self._living = _living_entities(read, last_names)
        self._names |= {identity: entity.name for identity, entity in self._living.items()}
        self._now = self._present_values()
        self._targets: dict[Item, Value] = {}
        # The relations right after a change, by the names at their ends.
        self._relations_then: dict[int, dict[str, list[Relation]]] = {}
        self.conflicts: list[UndoConflict] = []

    def compare(self) -> None:
        """Decide for each item: leave it, reset it, or refuse because others changed it since."""
        for item, span in self._spans.items():
            now = self._now.get(item)
            if is_same(item, now, span.before):
                continue
            is_changed = span.is_interrupted or not is_same(item, now, span.after)
            # A conflict without a key cannot be overwritten.
            key = _key(item) if _may_overwrite(item) else ""
            is_overwritten = bool(key) and key in self._overwrite
            if not is_changed or is_overwritten:
                self._targets[item] = span.before
            elif now is None:
                self._refuse(item, "it was deleted since", key)
            else:
                self._refuse(item, "it was changed since", key)

    def require_successors(self) -> None:
        """Refuse to remove what replaced other facts since, and to restore what was replaced."""
        removed = []
        for item, target in self._targets.items():
            if item[0] == "fact" and target is None:
                removed.append(item)
        if removed:
            linked = self._later.linked_names({self._names[str(item[1])] for item in removed})
            for item in removed:
                if self._names[str(item[1])] in linked:
                    self._require_no_link(item)
        for change in self._changes:
            if change.operation in _MERGING_OPERATIONS:
                self._require_merged_facts(change)

    def require_structure(self) -> None:
        """Refuse what would lose facts of others, orphan facts, or use a name twice."""
        self._require_unused_entities()
        while self._refuse_taken_names():
            self._require_unused_entities()  # a merge that stays may have added to one of them
        # A refusal removes the item from the targets, so go through copies.
        for item, target in list(self._targets.items()):
            is_part = item[0] in ("fact", *ATTRIBUTES)
            if is_part and target is not None and not self._will_live(str(item[1])):
                self._refuse(item, "its entity was deleted since", cause=("entity", item[1]))
        then, ending = self._names_then(), self._ending_names()
        for item in list(self._targets):
            if item[0] == "relation":
                self._require_ends(item, then, ending)

    def before(self) -> Rows:
        """Return the rows that the undo ends."""
        entities = []
        for identity, entity in self._living.items():
            if self._has_card_target(identity):
                entities.append(entity)
        facts = []
        for item in self._items_to_end("fact"):
            facts.append((str(item[1]), cast("Fact", self._now[item])))
        relations = [cast("Relation", self._now[item]) for item in self._items_to_end("relation")]
        relations += [relation for relation, _ in self._moved_relations()]
        notes = [cast("Note", self._now[item]) for item in self._items_to_end("note")]
        return Rows(tuple(entities), self._sets(facts), tuple(relations), tuple(notes))

    def after(self) -> Rows:
        """Return the rows that the undo creates."""
        facts = []
        facts_by_entity: dict[str, list[Fact]] = {}
        for item in self._items_to_create("fact"):
            identity, fact = str(item[1]), cast("Fact", self._targets[item])
            facts.append((identity, fact))
            facts_by_entity.setdefault(identity, []).append(fact)
        entities = []
        for identity, entity in self._living.items():
            if self._changes_card(identity):
                entities.append(self._set_back(entity))
        for item in self._items_to_create("entity"):
            identity = str(item[1])
            entities.append(self._bring_back(identity, facts_by_entity.get(identity, [])))
        relations = [
            cast("Relation", self._targets[item]) for item in self._items_to_create("relation")
        ]
        relations += self._distinct_moves(relations)
        notes = [cast("Note", self._targets[item]) for item in self._items_to_create("note")]
        return Rows(tuple(entities), self._sets(facts), tuple(relations), tuple(notes))

    def _present_values(self) -> dict[Item, Value]:
        now: dict[Item, Value] = {}
        for entity in self._living.values():
            now.update(items_of(entity))
        relation_keys = []
        for item in self._spans:
            if item[0] == "relation":
                relation_keys.append(cast("RelationKey", item[1:]))
            if item[0] == "note":
                note = find_note(self._read.notes, VAULT, str(item[1]))
                if note is not None:
                    now[item] = note
        for key, relation in self._read.find_relations(relation_keys).items():
            now["relation", *key] = relation
        return now

    def _refuse(
        self, item: Item, reason: str, key: str = "", *, cause: Item = (), later: int = 0
    ) -> None:
        """Leave an item as it is.

        `later` is the change that prevents its undo, otherwise the last that altered the item or
        its `cause` does.
        """
        self._targets.pop(item, None)
        what, name = describe_item(item, self._names)
        span = self._spans[item]
        now, then = _text(self._now.get(item)), _text(span.before)
        if not later and len(self.conflicts) < _MAX_TRACED:
            later = self._later.last_to_alter(cause or item, self._names, span.first.id)
        ordinal = int(item[2]) if item[0] == "fact" else 0
        number = span.last.id
        self.conflicts.append(
            UndoConflict(what, name, reason, number, key, now, then, later, ordinal)
        )

    def _last_touching(self, name: str, after: int) -> int:
        """Return the newest change that others made to an entity; 0 beyond the first conflicts."""
        if len(self.conflicts) >= _MAX_TRACED:
            return 0
        changes = self._later.touching(name, after)
        return changes[0].id if changes else 0

    def _require_no_link(self, item: Item) -> None:
        """Refuse to remove a fact in favour of which another one has ended since."""
        entity = self._living[str(item[1])]
        fact = cast("Fact", self._now[item])
        for link in self._later.links(entity.name, self._spans[item].last.id):
            ended = ("fact", entity.id, link.ended.ordinal)
            is_undone_too = ended in self._spans and self._spans[ended].before is None
            if self._now.get(ended) is not None or is_undone_too:
                continue
            # The change does not say which fact took its place: a similar one, or any.
            successors = similar_facts(link.ended.text, entity) or entity.facts
            if fact in successors:
                perhaps = "perhaps " if len(successors) > 1 else ""
                reason = f"it was {perhaps}made to replace #{link.ended.ordinal} since"
                self._refuse(item, reason, later=link.change)
                return

    def _require_merged_facts(self, merge: Change) -> None:
        """Refuse to give an entity back the facts that were replaced where they were merged into.

        Otherwise the undo would also undo that.
        """
        name = merge_target(merge)
        if not name:
            return
        for holder in self._read.history.state_before(merge.id + 1, [name]).entities:
            lost = self._facts_lost_since(holder)
            for item, target in list(self._targets.items()):
                is_restored = item[0] == "fact" and target is not None
                is_merged = is_restored and self._spans[item].last.id == merge.id
                if is_merged and item[1] != holder.id and _text(target) in lost:
                    reason = f"it was merged into {name} and changed there since"
                    self._refuse(item, reason, cause=lost[_text(target)])

    def _facts_lost_since(self, holder: Entity) -> dict[str, Item]:
        """Return the facts of an earlier state of an entity that others have altered, by text."""
        self._names.setdefault(holder.id, holder.name)
        now = {}
        for entity in self._read.entities([self._names[holder.id]]):
            if entity.id == holder.id:
                now = dict(items_of(entity))
        lost: dict[str, Item] = {}
        for fact in holder.facts:
            item = ("fact", holder.id, fact.ordinal)
            span = self._spans.get(item)
            is_undone = span is not None and is_same(item, now.get(item), span.after)
            if _text(now.get(item)) != fact.text and not is_undone:
                lost[fact.text] = item
        return lost

    def _require_unused_entities(self) -> None:
        for item, target in list(self._targets.items()):
            if item[0] == "entity" and target is None:
                self._require_unused(str(item[1]))

    def _require_unused(self, identity: str) -> None:
        """Refuse to delete an entity that others have added to or changed since."""
        check_cancelled()
        entity, item = self._living[identity], ("entity", identity)
        reasons = []
        # What the undone changes made of the entity is a target; the rest is by others.
        ordinals = [fact.ordinal for fact in entity.facts]
        facts = [one for one in ordinals if ("fact", identity, one) not in self._targets]
        if facts:
            reasons.append(_were_added(len(facts), "fact"))
        if any((attribute, identity) not in self._targets for attribute in ATTRIBUTES):
            reasons.append("it was changed")
        relations = self._relations_since(self._spans[item].first, entity)
        if relations:
            reasons.append(_were_added(len(relations), "relation"))
        if reasons:
            later = self._last_touching(entity.name, self._spans[item].first.id)
            self._refuse(item, " and ".join(reasons) + " since", later=later)
            for attribute in ATTRIBUTES:
                self._targets.pop((attribute, identity), None)

    def _refuse_taken_names(self) -> bool:
        """Refuse entities whose former name another one has now.

        Return True if that may affect others.
        """
        check_cancelled()
        wanted = {}
        for item in self._items_to_create("name"):
            identity = str(item[1])
            wanted[identity] = self._name_target(identity)
        taken = self._read.existing_names(list(wanted.values()))
        for identity, entity in self._living.items():
            if not self._keeps_name(identity):
                taken.discard(entity.name)
        for identity, name in wanted.items():
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
        for item in list(self._targets):
            if item[0] not in ("relation", "note") and item[1] == identity:
                del self._targets[item]
        self._targets[("entity", identity)] = True
        self._refuse(("entity", identity), reason)
        ended = self._spans["entity", identity].last
        if ended.operation == "merge_entities":
            self._keep_merge(ended)

    def _keep_merge(self, merge: Change) -> None:
        """Refuse to undo the rest of a merge.

        Otherwise the facts would leave the entity they were merged into and have nowhere to go.
        """
        for item in list(self._targets):
            if self._spans[item].last.id == merge.id:
                self._refuse(item, "it was merged, and its former entity cannot come back")

    def _require_ends(self, item: Item, then: set[str], ending: dict[str, Entity]) -> None:
        """Refuse to restore a relation if an entity at its end was deleted since.

        `then` are names that entities have only after the undo, `ending` those that they lose with
        it.
        """
        check_cancelled()
        if self._targets[item] is None:
            return
        _, source, target, _ = cast("tuple[str, str, str, str]", item)
        ends = {source, target} - then
        missing = ends - self._read.existing_names(ends)
        restored = cast("Relation", self._targets[item])
        for end in ends & ending.keys():
            if not self._is_older(restored, ending[end]):
                missing.add(end)
        if missing:
            earlier = self._read.history.state_before(self._spans[item].first.id, missing)
            if gone := {entity.name for entity in earlier.entities}:
                self._refuse(item, f"the entity {' and '.join(sorted(gone))} was deleted since")

    def _names_then(self) -> set[str]:
        """Return the names that entities have only after the undo."""
        return {self._name_target(str(item[1])) for item in self._items_to_create("name")}

    def _ending_names(self) -> dict[str, Entity]:
        """Return the entities that the undo deletes, by name."""
        ending = {}
        for identity, entity in self._living.items():
            if not self._will_live(identity):
                ending[entity.name] = entity
        return ending

    def _is_older(self, relation: Relation, entity: Entity) -> bool:
        """Return True if the relation existed before the undone creation of the entity."""
        creation = self._spans["entity", entity.id].first
        if relation.key in {created.key for created in creation.after.relations}:
            return False
        return relation.key in self._relations_after(creation, entity)

    def _relations_since(self, change: Change, entity: Entity) -> list[Relation]:
        """Return the relations of an entity that others have created since the change."""
        others = self._others_relations(entity.name)
        if not others:
            return []
        then = self._relations_after(change, entity)
        return [relation for relation in others if relation.key not in then]

    def _relations_after(self, change: Change, entity: Entity) -> set[RelationKey]:
        """Return the relations that an entity had right after a change, with its present name.

        Times do not tell which came first: the clock may have been wrong.
        """
        if change.id not in self._relations_then:
            names = [card.name for card in change.after.entities]
            state = self._read.history.state_before(change.id + 1, names)
            self._relations_then[change.id] = _by_end(state.relations)
        keys = set()
        for card in change.after.entities:
            if card.id == entity.id:
                for relation in self._relations_then[change.id].get(card.name, ()):
                    keys.add(redirect(relation, [card.name], entity.name).key)
        return keys

    def _others_relations(self, name: str) -> list[Relation]:
        return [
            relation
            for relation in self._read.relations([name])
            if ("relation", *relation.key) not in self._targets
        ]

    def _moved_relations(self) -> list[tuple[Relation, Relation]]:
        """Return the relations made since a rename, and what they become with the old name."""
        moved: dict[Item, tuple[Relation, Relation]] = {}
        for identity, entity in self._living.items():
            item = ("name", identity)
            if item not in self._targets or not self._will_live(identity):
                continue
            old_name = self._name_target(identity)
            for relation in self._relations_since(self._spans[item].last, entity):
                key = ("relation", *relation.key)
                # The entity at its other end may get its old name back too.
                _, so_far = moved.get(key, (relation, relation))
                moved[key] = (relation, redirect(so_far, [entity.name], old_name))
        return list(moved.values())

    def _distinct_moves(self, relations: Iterable[Relation]) -> list[Relation]:
        """Return what moved relations become, without those that exist anyway."""
        moved = {relation.key: relation for _, relation in self._moved_relations()}
        present = {*self._read.find_relations(moved), *(relation.key for relation in relations)}
        return [relation for key, relation in moved.items() if key not in present]

    def _set_back(self, entity: Entity) -> Entity:
        """Return a living entity with the attributes it had."""
        values = {}
        for attribute in ATTRIBUTES:
            if (attribute, entity.id) in self._targets:
                values[attribute] = self._targets[attribute, entity.id]
        return _with_attributes(replace(entity, updated_at=self._at), values)

    def _bring_back(self, identity: str, had: Iterable[Fact]) -> Entity:
        """Return a deleted entity with all it had."""
        facts = sorted(had, key=lambda fact: fact.ordinal)
        values = {attribute: self._targets[attribute, identity] for attribute in ATTRIBUTES}
        whole = replace(self._wholes[identity], facts=tuple(facts), updated_at=self._at)
        return _with_attributes(whole, values)

    def _sets(self, facts: Iterable[tuple[str, Fact]]) -> tuple[FactSet, ...]:
        """Return facts of entities that live before and after, by the present name."""
        sets: dict[str, list[Fact]] = {}
        for identity, fact in facts:
            if identity in self._living and self._will_live(identity):
                sets.setdefault(self._living[identity].name, []).append(fact)
        return tuple(FactSet(name, tuple(several)) for name, several in sets.items())

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
        if item in self._targets:
            return self._targets[item] is not None
        return identity in self._living

    def _keeps_name(self, identity: str) -> bool:
        return self._will_live(identity) and ("name", identity) not in self._targets

    def _name_target(self, identity: str) -> str:
        return cast("str", self._targets["name", identity])


def _by_end(relations: Iterable[Relation]) -> dict[str, list[Relation]]:
    """Return relations by the names at their ends."""
    related: dict[str, list[Relation]] = {}
    for relation in relations:
        for name in relation.ends:
            related.setdefault(name, []).append(relation)
    return related


def _may_overwrite(item: Item) -> bool:
    """Return True if the item can be reset, whatever its present value.

    An entity cannot: it may hold the work of others. Nor can a name: relations follow its later
    one.
    """
    return item[0] not in ("entity", "name")


def _key(item: Item) -> str:
    return "\t".join(map(str, item))


def _text(value: Value) -> str:
    """Return what people read of a value; empty if there is nothing to read."""
    if isinstance(value, Fact):
        return value.text
    if isinstance(value, Note):
        return value.content
    if isinstance(value, tuple):  # a summary and its time, or tags
        return ", ".join(item for item in value if isinstance(item, str))
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
        aliases=cast("tuple[str, ...]", values.get("aliases", entity.aliases)),
        due=cast("int", values.get("due", entity.due)),
        status=cast("str", values.get("status", entity.status)),
        expires=cast("int", values.get("expires", entity.expires)),
    )


def _living_entities(read: Reader, names: dict[str, str]) -> dict[str, Entity]:
    """Return those of the entities that live, by id.

    `names` has the last name that is known of each.
    """
    living = _with_ids(names, read.entities(set(names.values())))
    missing = {identity: name for identity, name in names.items() if identity not in living}
    if missing:
        present_names = _present_names(read, missing)
        if present_names:
            living |= _with_ids(names, read.entities(present_names))
    return living


def _with_ids(ids: Collection[str], entities: Iterable[Entity]) -> dict[str, Entity]:
    return {entity.id: entity for entity in entities if entity.id in ids}


def _present_names(read: Reader, names: dict[str, str]) -> set[str]:
    """Return the latest names of entities, which are given by id with an earlier name."""
    unresolved, present_names = set(names), set()
    query = ChangeQuery(limit=_MAX_SEARCHED, names=tuple(set(names.values())))
    # Newest first: the first change that has an entity knows its latest name.
    for change in read.history.changes(query):
        check_cancelled()
        for entity in change.after.entities:
            if entity.id in unresolved:
                present_names.add(entity.name)
        touched = (*change.before.entities, *change.after.entities)
        unresolved -= {entity.id for entity in touched}
    return present_names


def _were_added(count: int, noun: str) -> str:
    verb = "was" if count == 1 else "were"
    return f"{count_noun(count, noun)} {verb} added"
