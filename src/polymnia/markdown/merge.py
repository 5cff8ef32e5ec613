"""Merge a memory with an edited copy of it, given their last common state.

A change of one side is adopted by the other. If both changed the same thing differently, nothing is
lost: both texts of a fact stay; of everything else the memory's version stays and the
copy's is reported.
"""

from collections.abc import Iterable
from typing import TypeVar
from uuid import uuid4

from msgspec import Struct, field
from msgspec.structs import replace

from polymnia.model import Entity, Fact, FactSet, Note, Relation, RelationKey, Rows

# An end of a relation: whether it is the id of an entity, and the id or the name.
End = tuple[bool, str]
K = TypeVar("K")
V = TypeVar("V")


class State(Struct):
    """A memory: entities by id, relations by key, notes by key.

    In a copy, new facts have the ordinal 0.
    """

    entities: dict[str, Entity] = field(default_factory=dict)
    relations: dict[RelationKey, Relation] = field(default_factory=dict)
    notes: dict[str, Note] = field(default_factory=dict)


class MergeConflict(Struct, frozen=True):
    """Something that both sides changed, with both versions.

    If `lost`, the merged state lacks the copy's.
    """

    what: str
    key: str  # the id of the entity, or the key of the note
    name: str
    memory: str
    copy: str
    lost: bool = True


def reconcile(base: State, memory: State, copy: State) -> tuple[State, list[MergeConflict]]:
    """Return what the memory and the copy should both become, and where they disagree."""
    conflicts: list[MergeConflict] = []
    merged = State()
    for key in dict.fromkeys((*memory.entities, *copy.entities)):
        entity = _merge_entity(
            base.entities.get(key), memory.entities.get(key), copy.entities.get(key), conflicts
        )
        if entity is not None:
            merged.entities[key] = entity
    _require_distinct_names(merged, memory, conflicts)
    for key in dict.fromkeys((*memory.notes, *copy.notes)):
        note = _merge_note(
            base.notes.get(key), memory.notes.get(key), copy.notes.get(key), conflicts
        )
        if note is not None:
            merged.notes[key] = note
    merged.relations = _merge_relations(base, memory, copy, merged)
    return merged, conflicts


def rows_between(memory: State, merged: State, at: int) -> tuple[Rows, Rows]:
    """Return the rows that end and begin when the memory becomes the merged state."""
    old_entities: list[Entity] = []
    new_entities: list[Entity] = []
    old_sets: list[FactSet] = []
    new_sets: list[FactSet] = []
    for key, entity in memory.entities.items():
        if key not in merged.entities:
            old_entities.append(entity)
    for key, new in merged.entities.items():
        old = memory.entities.get(key)
        if old is None:
            # It gets this time where it has none.
            facts = tuple(_fill_fact(fact, at) for fact in new.facts)
            summary_at = 0 if new.summary is None else new.summary_at or at
            new_entities.append(
                replace(
                    new,
                    facts=facts,
                    summary_at=summary_at,
                    created_at=new.created_at or at,
                    updated_at=new.updated_at or at,
                )
            )
            continue
        if _card(old) != _card(new):
            summary_at = old.summary_at
            if new.summary != old.summary:
                summary_at = 0 if new.summary is None else at
            old_entities.append(old)
            new_entities.append(replace(new, summary_at=summary_at, updated_at=at))
        ended, begun = _differences(_by_ordinal(old), _by_ordinal(new))
        if ended:
            old_sets.append(FactSet(old.name, tuple(ended)))
        if begun:
            filled = tuple(_fill_fact(fact, at) for fact in begun)
            new_sets.append(FactSet(old.name, filled))
    old_relations, relations = _differences(memory.relations, merged.relations)
    new_relations = [
        replace(relation, created_at=relation.created_at or at) for relation in relations
    ]
    old_notes, notes = _differences(memory.notes, merged.notes)
    new_notes = []
    for note in notes:
        known = memory.notes.get(note.key)
        created_at = note.created_at or (known.created_at if known else 0) or at
        new_notes.append(replace(note, created_at=created_at, updated_at=note.updated_at or at))
    before = Rows(tuple(old_entities), tuple(old_sets), tuple(old_relations), tuple(old_notes))
    after = Rows(tuple(new_entities), tuple(new_sets), tuple(new_relations), tuple(new_notes))
    return before, after


def adopt_ids(base: State, memory: State, copy: Iterable[Entity]) -> list[Entity]:
    """Return the entities of a copy with ids: their own, that of the name in the memory, or new."""
    entities = list(copy)
    known = base.entities.keys() | memory.entities.keys()
    present = {entity.id for entity in entities if entity.id in known}
    ids = {}
    for entity in memory.entities.values():
        if entity.id not in present:
            ids[entity.name] = entity.id
    adopted: dict[str, Entity] = {}
    for entity in entities:
        uid = entity.id
        if uid not in known:
            uid = ids.get(entity.name) or uid
        if not uid or uid in adopted:
            uid = str(uuid4())
        adopted[uid] = replace(entity, id=uid)
    return list(adopted.values())


def with_ordinals(entity: Entity) -> Entity:
    """Return an entity of a copy with ordinals for all facts."""
    last = max((fact.ordinal for fact in entity.facts), default=0)
    numbered: dict[int, Fact] = {}
    for fact in entity.facts:
        ordinal = fact.ordinal
        if not ordinal or ordinal in numbered:
            last += 1
            ordinal = last
        numbered[ordinal] = replace(fact, ordinal=ordinal)
    facts = tuple(numbered[ordinal] for ordinal in sorted(numbered))
    next_ordinal = max(entity.next_ordinal, last + 1)
    return replace(entity, facts=facts, next_ordinal=next_ordinal)


def _merge_entity(
    base: Entity | None, memory: Entity | None, copy: Entity | None, conflicts: list[MergeConflict]
) -> Entity | None:
    if memory is not None and copy is not None:
        return _merge_both(base, memory, copy, conflicts)
    present = memory or copy
    if present is None:
        return None
    if base is not None:  # one side has deleted it
        if _content(base) == _content(present):
            return None
        sides = ("changed", "deleted") if memory else ("deleted", "changed")
        conflicts.append(
            MergeConflict("deleted entity", present.id, present.name, *sides, lost=False)
        )
    return memory or with_ordinals(present)


def _merge_both(
    base: Entity | None, memory: Entity, copy: Entity, conflicts: list[MergeConflict]
) -> Entity:
    def choose(what: str, old: str | None, mine: str | None, theirs: str | None) -> str | None:
        if mine == theirs or theirs == old:
            return mine
        if mine == old:
            return theirs
        if mine and theirs:
            conflicts.append(MergeConflict(what, memory.id, memory.name, mine, theirs))
        return mine or theirs

    old = base or Entity("", "")
    kept = [tag for tag in memory.tags if tag in copy.tags or tag not in old.tags]
    added = [tag for tag in copy.tags if tag not in old.tags]
    facts = _merge_facts(old, memory, copy, conflicts)
    last = max((fact.ordinal for fact in facts), default=0)
    return replace(
        memory,
        name=choose("name", old.name or None, memory.name, copy.name) or memory.name,
        type=choose("type", old.type if base else None, memory.type, copy.type) or memory.type,
        summary=choose("summary", old.summary, memory.summary, copy.summary),
        tags=tuple(dict.fromkeys((*kept, *added))),
        facts=facts,
        next_ordinal=max(memory.next_ordinal, last + 1),
    )


def _merge_facts(
    base: Entity, memory: Entity, copy: Entity, conflicts: list[MergeConflict]
) -> tuple[Fact, ...]:
    """Merge the facts by their ordinals. A text that both sides added is one fact."""
    old = {fact.ordinal: fact.text for fact in base.facts}
    merged = _by_ordinal(memory)
    in_copy = {fact.ordinal for fact in copy.facts}
    texts = set(memory.texts)
    shared = in_copy | old.keys()
    added = [fact.text for fact in memory.facts if fact.ordinal not in shared]
    new: list[Fact] = []

    def report(mine: str, theirs: str) -> None:
        conflicts.append(MergeConflict("fact", memory.id, memory.name, mine, theirs, lost=False))

    for theirs in copy.facts:
        mine, was = merged.get(theirs.ordinal), old.get(theirs.ordinal)
        if theirs.text == was or (mine and mine.text == theirs.text):
            continue
        if mine and mine.text == was:  # only the copy changed it
            merged[theirs.ordinal] = replace(mine, text=theirs.text)
            continue
        if mine and theirs.text in texts:
            continue
        if was is not None:
            report(mine.text if mine else "deleted", theirs.text)
        if theirs.text in added:
            added.remove(theirs.text)
        else:
            new.append(replace(theirs, ordinal=memory.next_ordinal + len(new)))
    for ordinal, was in old.items():
        if ordinal in merged and ordinal not in in_copy:
            if merged[ordinal].text == was:
                del merged[ordinal]
            else:
                report(merged[ordinal].text, "deleted")
    return (*(merged[ordinal] for ordinal in sorted(merged)), *new)


def _merge_note(
    base: Note | None, memory: Note | None, copy: Note | None, conflicts: list[MergeConflict]
) -> Note | None:
    was, mine, theirs = _note_content(base), _note_content(memory), _note_content(copy)
    if theirs in (mine, was):
        return memory
    if memory is None:
        if base is not None and copy is not None:
            conflicts.append(
                MergeConflict("deleted note", copy.key, copy.key, "deleted", "changed", lost=False)
            )
        return copy
    if mine == was:  # only the copy changed it
        if copy is None:
            return None
        embedding = memory.embedding if copy.content == memory.content else b""
        return replace(
            memory, content=copy.content, tags=copy.tags, updated_at=0, embedding=embedding
        )
    if copy is None:
        conflicts.append(
            MergeConflict("deleted note", memory.key, memory.key, "changed", "deleted", lost=False)
        )
    else:
        conflicts.append(
            MergeConflict("note", memory.key, memory.key, memory.content, copy.content)
        )
    return memory


def _merge_relations(
    base: State, memory: State, copy: State, merged: State
) -> dict[RelationKey, Relation]:
    """Merge the relations. Their ends are compared by id: a renamed entity changes none of them."""
    base_ids = _ids(base)
    old = _by_ends(base, base_ids)
    mine = _by_ends(memory, _ids(memory))
    theirs = _by_ends(copy, {**base_ids, **_ids(copy)})
    kept = {}
    for key, relation in mine.items():
        if key in theirs or key not in old:
            kept[key] = relation
    for key, relation in theirs.items():
        if key not in old:
            kept.setdefault(key, relation)
    names: dict[str, str] = {}
    for state in (base, copy, memory, merged):
        names |= {uid: entity.name for uid, entity in state.entities.items()}
    relations: dict[RelationKey, Relation] = {}
    for (source, target, kind), relation in kept.items():
        source_name, target_name = [names[end] if is_id else end for is_id, end in (source, target)]
        named = Relation(source_name, target_name, kind, relation.created_at)
        relations.setdefault(named.key, memory.relations.get(named.key, named))
    return relations


def _by_ends(state: State, ids: dict[str, str]) -> dict[tuple[End, End, str], Relation]:
    def end(name: str) -> End:
        return (True, ids[name]) if name in ids else (False, name)

    return {
        (end(relation.source), end(relation.target), relation.type): relation
        for relation in state.relations.values()
    }


def _ids(state: State) -> dict[str, str]:
    return {entity.name: uid for uid, entity in state.entities.items()}


def _require_distinct_names(merged: State, memory: State, conflicts: list[MergeConflict]) -> None:
    """Take back renames to names that are taken, and leave out new entities with such names."""
    ids = _ids(memory)
    taken = set()
    for uid, entity in merged.entities.items():
        if ids.get(entity.name) == uid:
            taken.add(entity.name)
    for uid, entity in list(merged.entities.items()):
        if ids.get(entity.name) == uid:
            continue
        if entity.name not in taken:
            taken.add(entity.name)
            continue
        own = memory.entities.get(uid)
        if own is None:
            conflicts.append(MergeConflict("name", uid, entity.name, "taken", entity.name))
            del merged.entities[uid]
        else:
            conflicts.append(MergeConflict("name", uid, own.name, own.name, entity.name))
            merged.entities[uid] = replace(entity, name=own.name)
            taken.add(own.name)


def _by_ordinal(entity: Entity) -> dict[int, Fact]:
    return {fact.ordinal: fact for fact in entity.facts}


def _content(entity: Entity) -> object:
    texts = sorted((fact.ordinal, fact.text) for fact in entity.facts)
    return entity.name, entity.type, entity.summary, frozenset(entity.tags), texts


def _card(entity: Entity) -> object:
    return entity.name, entity.type, entity.summary, entity.tags


def _note_content(note: Note | None) -> object:
    return None if note is None else (note.content, note.tags)


def _differences(old: dict[K, V], new: dict[K, V]) -> tuple[list[V], list[V]]:
    """Return the values that end and those that begin."""
    ended = [value for key, value in old.items() if new.get(key) != value]
    begun = [value for key, value in new.items() if old.get(key) != value]
    return ended, begun


def _fill_fact(fact: Fact, at: int) -> Fact:
    return replace(fact, created_at=fact.created_at or at)
