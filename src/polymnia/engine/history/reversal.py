"""What an undo ends and creates: a change is taken back if nothing later touched the same rows.

The idea: a change ended some rows and created others. To undo it is to end what it created and to
create again what it ended, as one new change. Several changes are undone as if they were one: of
each row only its value before the first of them and after the last of them counts.

A row is a fact, a relation, a note, an attribute of an entity, or the existence of an entity. Its
value now decides:

- it is what it was before: there is nothing to do;
- it is what the changes left, and no other change altered it in between: it is reset;
- otherwise a later change touched it: a conflict, which names that change.

Some rows depend on others. These are conflicts too:

- an entity that would be deleted, but others added facts or relations to it;
- a name that another entity has now;
- a fact whose entity, or a relation one of whose ends, was deleted since.

Invariants: what others wrote is never lost, no entity is left without a name of its own, and a
merge or a move is undone whole or not at all, because half of one would lose facts or double them.
The key of a conflict, given as `overwrite`, resets its row all the same; entities and names have no
key.

Example: change 1 added Ada #2, change 2 gave it another text, change 3 gave Ada a tag. Undoing 1
conflicts with 2. Undoing 1 and 2 removes Ada #2 and leaves the tag.
"""

from collections.abc import Collection, Iterable, Sequence
from typing import Generic, TypeVar

from msgspec import Struct
from msgspec.structs import replace

from polymnia.engine.graph.relations import redirect
from polymnia.engine.history.changes import read_changes
from polymnia.errors import BadInput
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
from polymnia.search.terms import count_noun
from polymnia.stores.contract import Reader, check_cancelled, find_note

ATTRIBUTES = ("name", "type", "summary", "tags", "aliases", "due", "status", "expires")
# A half of one of these would lose facts or double them.
INDIVISIBLE = ("merge_entities", "move_facts", "move_observations", "move")
# Conflicts for which the later change is looked up, among this many; people read no more.
_MAX_TRACED, _MAX_SEARCHED = 20, 200
# What a row is, the id of its entity or its key, and an ordinal or attribute.
Slot = tuple[str | int, ...]
T = TypeVar("T", Entity, Fact, Relation, Note)


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


class _Span(Struct, Generic[T]):
    """A row before the first and after the last of the changes that altered it, and now.

    For an attribute the row is the entity that has it.
    """

    slot: Slot
    before: T | None
    after: T | None
    first: Change
    last: Change
    is_interrupted: bool = False  # another change altered it in between
    now: T | None = None
    is_reset: bool = False


def plan_undo(
    read: Reader, changes: Sequence[Change], at: int, overwrite: Collection[str] = ()
) -> UndoPlan:
    """Return how to undo some changes, which are in order, on the present state.

    Raise BadInput if a purge removed rows of one of them.
    """
    planner = _Planner(read, changes, at)
    for change in changes:
        planner.add(change)
    planner.compare(frozenset(overwrite))
    planner.keep_structure()
    return UndoPlan(planner.ended_rows(), planner.created_rows(), tuple(planner.conflicts))


class _Planner:
    """The rows that the changes altered, and which of them are reset."""

    def __init__(self, read: Reader, changes: Sequence[Change], at: int) -> None:
        self._read = read
        self._changes = changes
        self._at = at
        self._entities: dict[str, _Span[Entity]] = {}
        self._attributes: dict[tuple[str, str], _Span[Entity]] = {}
        self._facts: dict[tuple[str, int], _Span[Fact]] = {}
        self._relations: dict[RelationKey, _Span[Relation]] = {}
        self._notes: dict[str, _Span[Note]] = {}
        self._names: dict[str, str] = {}  # the last known name of each entity
        self._living: dict[str, Entity] = {}
        self.conflicts: list[UndoConflict] = []

    def add(self, change: Change) -> None:
        """Add what a change altered. Raise BadInput if rows of it were purged."""
        check_cancelled()
        owners = {part.entity for part in (*change.before.facts, *change.after.facts)}
        if "" in owners:
            raise BadInput(f"change {change.id} cannot be undone: some of its rows were purged")
        # Also refuses a change that is not newer than the last purge.
        earlier = self._read.history.state_before(change.id, owners)
        ids = {entity.name: entity.id for entity in earlier.entities}
        self._names |= {uid: name for name, uid in ids.items()}
        old_rows, new_rows = change.before, change.after
        old = {entity.id: entity for entity in old_rows.entities}
        new = {entity.id: entity for entity in new_rows.entities}
        old_facts, new_facts = _facts_by_slot(old_rows, ids), _facts_by_slot(new_rows, ids)
        for uid in old | new:
            before, after = old.get(uid), new.get(uid)
            self._names[uid] = new[uid].name if uid in new else old[uid].name
            if before is None or after is None:
                _extend(self._entities, uid, ("entity", uid), change, before, after)
            for attribute in ATTRIBUTES:
                if _value(before, attribute) != _value(after, attribute):
                    place, slot = (uid, attribute), (attribute, uid)
                    _extend(self._attributes, place, slot, change, before, after)
        for key in old_facts | new_facts:
            fact, new_fact = old_facts.get(key), new_facts.get(key)
            if fact != new_fact:
                _extend(self._facts, key, ("fact", *key), change, fact, new_fact)
        links = {link.key: link for link in old_rows.relations}
        new_links = {link.key: link for link in new_rows.relations}
        for triple in links.keys() ^ new_links.keys():
            link, new_link = links.get(triple), new_links.get(triple)
            _extend(self._relations, triple, ("relation", *triple), change, link, new_link)
        notes = {note.key: note for note in old_rows.notes}
        new_notes = {note.key: note for note in new_rows.notes}
        for name in notes | new_notes:
            note, new_note = notes.get(name), new_notes.get(name)
            if note != new_note:
                _extend(self._notes, name, ("note", name), change, note, new_note)

    def compare(self, overwrite: frozenset[str]) -> None:
        """Decide for each row: leave it, reset it, or refuse because it was changed since."""
        ids = {uid for uid, _ in (*self._facts, *self._attributes)} | self._entities.keys()
        outlines = self._read.outlines(ids=ids) if ids else []
        names = {outline.name for outline in outlines}
        for entity in self._read.entities(names) if names else []:
            self._living[entity.id] = entity
            self._names[entity.id] = entity.name
        for uid, whole in self._entities.items():
            whole.now = self._living.get(uid)
            self._decide(whole, (whole.now is None) == (whole.before is None), overwrite)
        refused = {
            span.slot[1]
            for span in self._entities.values()
            if (not span.is_reset and (span.now is None) != (span.before is None))
        }
        for (uid, attribute), card in self._attributes.items():
            card.now = self._living.get(uid)
            if uid in self._entities and (self._entities[uid].is_reset or uid in refused):
                card.is_reset = uid not in refused  # as the entity that comes or goes
                continue
            now = _value(card.now, attribute)
            is_left = now == _value(card.after, attribute)
            self._decide(card, now == _value(card.before, attribute), overwrite, is_left)
        for (uid, ordinal), fact in self._facts.items():
            facts = self._living[uid].facts if uid in self._living else ()
            fact.now = next((one for one in facts if one.ordinal == ordinal), None)
            self._decide(fact, fact.now == fact.before, overwrite, fact.now == fact.after)
        present = self._read.find_relations(self._relations.keys())
        for key, link in self._relations.items():
            link.now = present.get(key)
            self._decide(link, (link.now is None) == (link.before is None), overwrite)
        for name, note in self._notes.items():
            note.now = find_note(self._read.notes, VAULT, name)
            self._decide(note, note.now == note.before, overwrite, note.now == note.after)

    def _decide(
        self, span: _Span[T], is_undone: bool, overwrite: frozenset[str], is_left: bool = True
    ) -> None:
        """Reset a row or refuse to.

        A row that either exists or not is left as the changes left it, unless it is undone.
        """
        check_cancelled()
        if is_undone:
            return
        key = ""
        if span.slot[0] not in ("entity", "name"):
            key = "\t".join(map(str, span.slot))
        span.is_reset = True
        if (span.is_interrupted or not is_left) and key not in overwrite - {""}:
            reason = "it was deleted since" if span.now is None else "it was changed since"
            self._refuse(span, reason, key)

    def keep_structure(self) -> None:
        """Refuse what would lose facts of others, orphan facts, or use a name twice."""
        count = -1
        while len(self.conflicts) > count:  # a row that stays may be in the way of another
            count = len(self.conflicts)
            self._keep_indivisible()
            for span in self._entities.values():
                if span.is_reset and span.before is None:
                    self._require_unused(span)
            self._require_free_names()
            for (uid, _), fact in self._facts.items():
                if fact.is_reset and fact.before is not None and not self._will_live(uid):
                    self._refuse(fact, "its entity was deleted since")
            for (uid, _), card in self._attributes.items():
                if card.is_reset and not self._will_live(uid) and uid not in self._entities:
                    self._refuse(card, "its entity was deleted since")
            self._require_ends()

    def _keep_indivisible(self) -> None:
        """Undo a merge or a move whole or not at all."""
        undone = {span.last.id for span in self._spans() if span.is_reset}
        for fact in self._facts.values():
            is_created = fact.before is None and fact.after is not None
            is_partial = fact.last.operation in INDIVISIBLE and fact.last.id in undone
            # What the change put there was taken away since: it cannot be taken back whole.
            if is_created and fact.now is None and is_partial:
                self._refuse(fact, "it was changed since")
        refused = {conflict.change for conflict in self.conflicts}
        for change in self._changes:
            if change.operation in INDIVISIBLE and change.id in refused:
                for span in self._spans():
                    if change.id in (span.first.id, span.last.id):
                        span.is_reset = False

    def _spans(self) -> Iterable[_Span[Entity] | _Span[Fact] | _Span[Relation] | _Span[Note]]:
        yield from self._entities.values()
        yield from self._attributes.values()
        yield from self._facts.values()
        yield from self._relations.values()
        yield from self._notes.values()

    def _require_unused(self, span: _Span[Entity]) -> None:
        """Refuse to delete an entity that others have added to or changed since."""
        entity = span.now
        assert entity is not None  # it is to be deleted
        reasons = []
        added = 0
        for fact in entity.facts:
            own = self._facts.get((entity.id, fact.ordinal))
            added += own is None or not own.is_reset
        if added:
            reasons.append(f"{count_noun(added, 'fact')} {_was(added)} added")
        for attribute in ATTRIBUTES:
            card = self._attributes.get((entity.id, attribute), span)
            if card.is_interrupted or _value(entity, attribute) != _value(card.after, attribute):
                reasons.append("it was changed")
                break
        links = [link for link in self._read.relations([entity.name]) if not self._ends(link)]
        if links:
            # Some dialects allow a relation before there is an entity at its end.
            names = [card.name for card in span.first.after.entities if card.id == entity.id]
            then = self._read.history.state_before(span.first.id + 1, names).relations
            old = {redirect(link, names, entity.name).key for link in then}
            links = [link for link in links if link.key not in old]
        if links:
            reasons.append(f"{count_noun(len(links), 'relation')} {_was(len(links))} added")
        if reasons:
            self._refuse(span, " and ".join(reasons) + " since")
            for attribute in ATTRIBUTES:
                if (entity.id, attribute) in self._attributes:
                    self._attributes[entity.id, attribute].is_reset = False

    def _require_free_names(self) -> None:
        """Refuse entities whose former name another one has now."""
        wanted: dict[str, str] = {}
        for (uid, attribute), card in self._attributes.items():
            if attribute == "name" and card.is_reset and card.before is not None:
                wanted[uid] = card.before.name
        taken = self._read.existing_names(set(wanted.values())) if wanted else set()
        for uid, entity in self._living.items():
            if uid in wanted or not self._will_live(uid):
                taken.discard(entity.name)
        for uid, name in wanted.items():
            if name not in taken:
                taken.add(name)
                continue
            span = self._entities.get(uid, self._attributes[uid, "name"])
            self._refuse(span, f"there is another entity {name} now", blocked_by=name)
            if uid not in self._living:  # it does not come back, nor does what it had
                for one in self._spans():
                    if one.slot[0] not in ("relation", "note") and one.slot[1] == uid:
                        one.is_reset = False

    def _require_ends(self) -> None:
        """Refuse to restore a relation if an entity at its end was deleted since."""
        coming = {self._name_then(uid) for uid in self._names if self._will_live(uid)}
        going = {one.name for uid, one in self._living.items() if not self._will_live(uid)}
        created_by = {
            self._living[uid].name: span.first.id
            for uid, span in self._entities.items()
            if span.is_reset and span.before is None and uid in self._living
        }
        for span in self._relations.values():
            if not span.is_reset or span.before is None:
                continue
            ends = set(span.before.ends) - coming
            missing = ends - (self._read.existing_names(ends) - going)
            for name in missing & created_by.keys():
                # A relation that is older than its entity does not need it.
                then = self._read.history.state_before(created_by[name], span.before.ends)
                if any(relation.key == span.before.key for relation in then.relations):
                    missing = missing - {name}
            if missing:
                earlier = self._read.history.state_before(span.first.id, missing)
                gone = sorted({entity.name for entity in earlier.entities})
                if gone:
                    self._refuse(span, f"the entity {' and '.join(gone)} was deleted since")

    def _refuse(self, span: _Span[T], reason: str, key: str = "", blocked_by: str = "") -> None:
        """Leave a row as it is, and name the newest change that is in the way."""
        span.is_reset = False
        kind, owner = span.slot[:2]
        name = self._names.get(str(owner), str(owner))
        what = f"the {kind} of {name}"
        if kind == "entity":
            what = f"the entity {name}"
        elif kind == "fact":
            what = f"fact {span.slot[2]} of {name}"
        elif kind == "note":
            what = f"the note {name}"
        elif kind == "relation":
            source, target, relation = span.slot[1:]
            what, name = f"the relation {source} {relation} {target}", str(source)
        later = 0
        if len(self.conflicts) < _MAX_TRACED:
            later = self._find_later(span.slot, blocked_by or name, span.first.id, bool(blocked_by))
        conflict = UndoConflict(
            what=what,
            name=name,
            reason=reason,
            change=span.last.id,
            key=key,
            now=_text(span.now, str(kind)),
            then=_text(span.before, str(kind)),
            later=later,
            ordinal=int(span.slot[2]) if kind == "fact" else 0,
        )
        self.conflicts.append(conflict)

    def _find_later(self, slot: Slot, name: str, after: int, is_any: bool) -> int:
        """Return the newest change since that touched a row, or else its entity; 0 for none."""
        undone = {change.id for change in self._changes}
        query = ChangeQuery(limit=_MAX_SEARCHED, after=after, names=(name,))
        changes, _ = read_changes(self._read.history, query, 100)
        others = [change for change in changes if change.id not in undone]
        former_names = self._read.history.all_names([name])
        for change in others:
            if not is_any and _touches(change, slot, former_names):
                return change.id
        return others[0].id if others else 0

    def ended_rows(self) -> Rows:
        """Return the rows that the undo ends."""
        cards = [entity for uid, entity in self._living.items() if self._alters_card(uid)]
        facts = []
        for (uid, _), span in self._facts.items():
            if span.is_reset and span.now is not None:
                facts.append((uid, span.now))
        links = [link.now for link in self._relations.values() if link.is_reset and link.now]
        links += [link for link, _ in self._renamed_relations()]
        notes = [note.now for note in self._notes.values() if note.is_reset and note.now]
        return Rows(tuple(cards), self._sets(facts), tuple(links), tuple(notes))

    def created_rows(self) -> Rows:
        """Return the rows that the undo creates."""
        facts = []
        for (uid, _), span in self._facts.items():
            if span.is_reset and span.before is not None:
                facts.append((uid, span.before))
        cards = []
        for uid, entity in self._living.items():
            if self._alters_card(uid) and self._will_live(uid):
                cards.append(self._reset_attributes(uid, entity))
        for uid, whole in self._entities.items():
            if whole.is_reset and whole.before is not None:
                own = sorted([fact for one, fact in facts if one == uid], key=lambda f: f.ordinal)
                card = self._reset_attributes(uid, whole.before)
                cards.append(replace(card, facts=tuple(own)))
        links = [link.before for link in self._relations.values() if link.is_reset and link.before]
        renamed = {link.key: link for _, link in self._renamed_relations()}
        present = {*self._read.find_relations(renamed), *(link.key for link in links)}
        links += [link for key, link in renamed.items() if key not in present]
        notes = [note.before for note in self._notes.values() if note.is_reset and note.before]
        return Rows(tuple(cards), self._sets(facts), tuple(links), tuple(notes))

    def _renamed_relations(self) -> list[tuple[Relation, Relation]]:
        """Return the relations made since a rename, and what they become with the old name."""
        moved: dict[RelationKey, tuple[Relation, Relation]] = {}
        for (uid, attribute), card in self._attributes.items():
            entity = self._living.get(uid)
            if attribute != "name" or not card.is_reset or entity is None:
                continue
            if not self._will_live(uid):
                continue
            for link in self._read.relations([entity.name]):
                if not self._ends(link):
                    # The entity at its other end may get its old name back too.
                    _, so_far = moved.get(link.key, (link, link))
                    new = redirect(so_far, [entity.name], self._name_then(uid))
                    moved[link.key] = (link, new)
        return list(moved.values())

    def _ends(self, link: Relation) -> bool:
        span = self._relations.get(link.key)
        return span is not None and span.is_reset

    def _alters_card(self, uid: str) -> bool:
        span = self._entities.get(uid)
        if span is not None and span.is_reset:
            return True
        cards = [self._attributes.get((uid, attribute)) for attribute in ATTRIBUTES]
        return any(card is not None and card.is_reset for card in cards)

    def _will_live(self, uid: str) -> bool:
        span = self._entities.get(uid)
        if span is not None and span.is_reset:
            return span.before is not None
        return uid in self._living

    def _name_then(self, uid: str) -> str:
        card = self._attributes.get((uid, "name"))
        if card is not None and card.is_reset and card.before is not None:
            return card.before.name
        return self._names[uid]

    def _reset_attributes(self, uid: str, entity: Entity) -> Entity:
        for attribute in ATTRIBUTES:
            card = self._attributes.get((uid, attribute))
            if card is None or not card.is_reset or card.before is None:
                continue
            entity = replace(entity, **{attribute: getattr(card.before, attribute)})
            if attribute == "summary":
                entity = replace(entity, summary_at=card.before.summary_at)
        return replace(entity, updated_at=self._at)

    def _sets(self, facts: Iterable[tuple[str, Fact]]) -> tuple[FactSet, ...]:
        """Return facts of entities that live before and after, by the present name."""
        sets: dict[str, list[Fact]] = {}
        for uid, fact in facts:
            if uid in self._living and self._will_live(uid):
                sets.setdefault(self._living[uid].name, []).append(fact)
        return tuple(FactSet(name, tuple(several)) for name, several in sets.items())


K = TypeVar("K")


def _extend(
    spans: dict[K, _Span[T]],
    key: K,
    slot: Slot,
    change: Change,
    before: T | None,
    after: T | None,
) -> None:
    """Add what one change did to a row."""
    span = spans.get(key)
    if span is None:
        spans[key] = _Span(slot, before, after, change, change)
        return
    kind = str(slot[0])
    span.is_interrupted |= _comparable(span.after, kind) != _comparable(before, kind)
    span.after, span.last = after, change


def _comparable(row: Entity | Fact | Relation | Note | None, kind: str) -> object:
    """Return what decides whether another change altered a row in between."""
    if kind in ("entity", "relation"):
        return row is None
    if isinstance(row, Entity):
        return _value(row, kind)
    return row


def _value(card: Entity | None, attribute: str) -> object:
    return None if card is None else (getattr(card, attribute),)


def _facts_by_slot(rows: Rows, ids: dict[str, str]) -> dict[tuple[str, int], Fact]:
    """Return the facts by the id of their entity and their ordinal."""
    facts: dict[tuple[str, int], Fact] = {}
    for entity in rows.entities:
        facts |= {(entity.id, fact.ordinal): fact for fact in entity.facts}
    for part in rows.facts:
        facts |= {(ids[part.entity], fact.ordinal): fact for fact in part.facts}
    return facts


def _touches(change: Change, slot: Slot, names: Collection[str]) -> bool:
    """Return True if a change altered a row, or the entity that had it as a whole."""
    kind, owner = slot[:2]
    for rows in (change.before, change.after):
        if kind == "relation" and any(link.key == slot[1:] for link in rows.relations):
            return True
        if kind == "note" and any(note.key == owner for note in rows.notes):
            return True
        if kind == "fact":
            for part in rows.facts:
                ordinals = {fact.ordinal for fact in part.facts}
                if part.entity in names and slot[2] in ordinals:
                    return True
    old = {entity.id: entity for entity in change.before.entities}
    new = {entity.id: entity for entity in change.after.entities}
    if kind in ATTRIBUTES or kind in ("entity", "fact"):
        before, after = old.get(str(owner)), new.get(str(owner))
        if (before is None) != (after is None):
            return True
        return kind in ATTRIBUTES and _value(before, str(kind)) != _value(after, str(kind))
    return False


def _text(row: Entity | Fact | Relation | Note | None, kind: str) -> str:
    """Return the text of a row; empty if it has none."""
    if isinstance(row, Fact):
        return row.text
    if isinstance(row, Note):
        return row.content
    if isinstance(row, Entity) and kind in ATTRIBUTES:
        value = getattr(row, kind)
        return ", ".join(value) if isinstance(value, tuple) else str(value or "")
    return ""


def _was(count: int) -> str:
    return "was" if count == 1 else "were"
