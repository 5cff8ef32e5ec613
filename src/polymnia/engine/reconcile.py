"""Merge a memory with an edited copy of it, given their last common state.

A change of one side is adopted by the other. If both changed the same thing differently, nothing is lost: both texts of
an observation stay; of everything else the memory's version stays and the copy's is reported.
"""

from collections.abc import Iterable
from typing import TypeVar
from uuid import uuid4

from msgspec import Struct, field
from msgspec.structs import replace

from polymnia.model import Entity, Note, Observation, ObservationSet, Relation, RelationKey, Rows

# An end of a relation: whether it is the id of an entity, and the id or the name.
End = tuple[bool, str]
K = TypeVar("K")
V = TypeVar("V")


class State(Struct):
    """A memory: entities by id, relations by key, notes by key. In a copy, new observations have the ordinal 0."""

    entities: dict[str, Entity] = field(default_factory=dict)
    relations: dict[RelationKey, Relation] = field(default_factory=dict)
    notes: dict[str, Note] = field(default_factory=dict)


class MergeConflict(Struct, frozen=True):
    """Something that both sides changed, with both versions. If `lost`, the merged state lacks the copy's."""

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
        sides = (base.entities.get(key), memory.entities.get(key), copy.entities.get(key))
        entity = _entity(*sides, conflicts)
        if entity is not None:
            merged.entities[key] = entity
    _require_distinct_names(merged, memory, conflicts)
    for key in dict.fromkeys((*memory.notes, *copy.notes)):
        note = _note(base.notes.get(key), memory.notes.get(key), copy.notes.get(key), conflicts)
        if note is not None:
            merged.notes[key] = note
    merged.relations = _relations(base, memory, copy, merged)
    return merged, conflicts


def rows_between(memory: State, merged: State, at: int) -> tuple[Rows, Rows]:
    """Return the rows that end and begin when the memory becomes the merged state."""
    ended: list[Entity] = [
        each for key, each in memory.entities.items() if key not in merged.entities
    ]
    created: list[Entity] = []
    removed: list[ObservationSet] = []
    added: list[ObservationSet] = []
    for key, new in merged.entities.items():
        old = memory.entities.get(key)
        if old is None:
            created.append(_fill(new, at))
            continue
        if _card(old) != _card(new):
            summary_at = (
                old.summary_at
                if new.summary == old.summary
                else at
                if new.summary is not None
                else 0
            )
            ended.append(old)
            created.append(replace(new, summary_at=summary_at, updated_at=at))
        known = {each.ordinal: each for each in old.observations}
        wanted = {each.ordinal: each for each in new.observations}
        gone = tuple([each for each in old.observations if wanted.get(each.ordinal) != each])
        come = tuple(
            [
                _fill_observation(each, at)
                for each in new.observations
                if known.get(each.ordinal) != each
            ]
        )
        removed += [ObservationSet(old.name, gone)] if gone else []
        added += [ObservationSet(old.name, come)] if come else []
    relations = _ends_and_begins(memory.relations, merged.relations)
    notes = _ends_and_begins(memory.notes, merged.notes)
    linked = tuple([replace(each, created_at=each.created_at or at) for each in relations[1]])
    noted = tuple([_fill_note(each, memory.notes.get(each.key), at) for each in notes[1]])
    before = Rows(tuple(ended), tuple(removed), tuple(relations[0]), tuple(notes[0]))
    return before, Rows(tuple(created), tuple(added), linked, noted)


def adopt_ids(base: State, memory: State, copy: Iterable[Entity]) -> list[Entity]:
    """Return the entities of a copy with ids: their own, that of the name in the memory, or new ones."""
    listed = list(copy)
    known = base.entities.keys() | memory.entities.keys()
    present = {each.id for each in listed if each.id in known}
    by_name = {each.name: each.id for each in memory.entities.values() if each.id not in present}
    found: dict[str, Entity] = {}
    for each in listed:
        key = each.id if each.id in known else by_name.get(each.name) or each.id
        key = str(uuid4()) if not key or key in found else key
        found[key] = replace(each, id=key)
    return list(found.values())


def with_ordinals(entity: Entity) -> Entity:
    """Return an entity of a copy with ordinals for all observations."""
    taken: set[int] = set()
    last = max([each.ordinal for each in entity.observations], default=0)
    numbered: list[Observation] = []
    for each in entity.observations:
        ordinal = each.ordinal
        if not ordinal or ordinal in taken:
            last += 1
            ordinal = last
        taken.add(ordinal)
        numbered.append(replace(each, ordinal=ordinal))
    numbered.sort(key=lambda each: each.ordinal)
    return replace(
        entity, observations=tuple(numbered), next_ordinal=max(entity.next_ordinal, last + 1)
    )


def _entity(
    base: Entity | None, memory: Entity | None, copy: Entity | None, conflicts: list[MergeConflict]
) -> Entity | None:
    if memory is not None and copy is not None:
        return _both(base, memory, copy, conflicts)
    if memory is not None:  # it was deleted in the copy, or is new in the memory
        if base is None:
            return memory
        if _content(base) == _content(memory):
            return None
        conflicts.append(
            MergeConflict(
                "deleted entity", memory.id, memory.name, "changed", "deleted", lost=False
            )
        )
        return memory
    if copy is None or base is None:
        return copy and with_ordinals(copy)
    if _content(base) == _content(copy):
        return None
    conflicts.append(
        MergeConflict("deleted entity", copy.id, copy.name, "deleted", "changed", lost=False)
    )
    return with_ordinals(copy)


def _both(
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

    old_tags = base.tags if base else ()
    tags = [each for each in memory.tags if not (each in old_tags and each not in copy.tags)]
    tags += [each for each in copy.tags if each not in old_tags]
    observations, next_ordinal = _observations(base, memory, copy, conflicts)
    return replace(
        memory,
        name=choose("name", base.name if base else None, memory.name, copy.name) or memory.name,
        type=choose("type", base.type if base else None, memory.type, copy.type) or memory.type,
        summary=choose("summary", base.summary if base else None, memory.summary, copy.summary),
        tags=tuple(dict.fromkeys(tags)),
        observations=observations,
        next_ordinal=next_ordinal,
    )


def _observations(
    base: Entity | None, memory: Entity, copy: Entity, conflicts: list[MergeConflict]
) -> tuple[tuple[Observation, ...], int]:
    """Merge the observations by their ordinals. A text that both sides added is one observation."""
    old = {each.ordinal: each.text for each in base.observations} if base else {}
    merged = {each.ordinal: each for each in memory.observations}
    in_copy = {each.ordinal for each in copy.observations}
    added = [
        each.text
        for each in memory.observations
        if each.ordinal not in in_copy and each.ordinal not in old
    ]
    new: list[Observation] = []

    def report(mine: str, theirs: str) -> None:
        conflicts.append(
            MergeConflict("observation", memory.id, memory.name, mine, theirs, lost=False)
        )

    for theirs in copy.observations:
        mine, was = merged.get(theirs.ordinal), old.get(theirs.ordinal)
        if theirs.text == was or (mine and mine.text == theirs.text):
            continue
        if mine and mine.text == was:  # only the copy changed it
            merged[theirs.ordinal] = replace(mine, text=theirs.text)
            continue
        if mine and theirs.text in memory.texts:
            continue
        if was is not None:
            report(mine.text if mine else "deleted", theirs.text)
        if theirs.text in added:
            added.remove(theirs.text)
        else:
            new.append(theirs)
    for ordinal, was in old.items():
        if ordinal in merged and ordinal not in in_copy:
            if merged[ordinal].text == was:
                del merged[ordinal]
            else:
                report(merged[ordinal].text, "deleted")
    numbered = [
        replace(each, ordinal=number) for number, each in enumerate(new, memory.next_ordinal)
    ]
    return (*[merged[ordinal] for ordinal in sorted(merged)], *numbered), memory.next_ordinal + len(
        new
    )


def _note(
    base: Note | None, memory: Note | None, copy: Note | None, conflicts: list[MergeConflict]
) -> Note | None:
    was, mine, theirs = [_note_content(each) for each in (base, memory, copy)]
    if theirs in (mine, was):
        return memory
    if memory is None:
        if base is not None and copy is not None:
            conflicts.append(
                MergeConflict("deleted note", copy.key, copy.key, "deleted", "changed", lost=False)
            )
        return copy
    if mine == was:  # only the copy changed it
        return copy and _rewrite_note(memory, copy)
    if copy is None:
        conflicts.append(
            MergeConflict("deleted note", memory.key, memory.key, "changed", "deleted", lost=False)
        )
    else:
        conflicts.append(
            MergeConflict("note", memory.key, memory.key, memory.content, copy.content)
        )
    return memory


def _rewrite_note(memory: Note, copy: Note) -> Note:
    embedding = memory.embedding if copy.content == memory.content else b""
    return replace(memory, content=copy.content, tags=copy.tags, updated_at=0, embedding=embedding)


def _relations(
    base: State, memory: State, copy: State, merged: State
) -> dict[RelationKey, Relation]:
    """Merge the relations. Their ends are compared by id, so that renaming an entity changes none of them."""
    old_names = _ids(base)
    sides = [
        _by_ends(each, names)
        for each, names in (
            (base, old_names),
            (memory, _ids(memory)),
            (copy, {**old_names, **_ids(copy)}),
        )
    ]
    old, mine, theirs = sides
    kept = {key: each for key, each in mine.items() if not (key in old and key not in theirs)}
    kept |= {key: each for key, each in theirs.items() if key not in old and key not in kept}
    names = {
        each.id: each.name
        for state in (base, copy, memory, merged)
        for each in state.entities.values()
    }
    named: dict[RelationKey, Relation] = {}
    for (source, target, kind), each in kept.items():
        ends = [names[end] if is_id else end for is_id, end in (source, target)]
        relation = Relation(ends[0], ends[1], kind, each.created_at)
        named.setdefault(relation.key, memory.relations.get(relation.key, relation))
    return named


def _by_ends(state: State, ids: dict[str, str]) -> dict[tuple[End, End, str], Relation]:
    def end(name: str) -> End:
        return (True, ids[name]) if name in ids else (False, name)

    return {
        (end(each.source), end(each.target), each.type): each for each in state.relations.values()
    }


def _ids(state: State) -> dict[str, str]:
    return {each.name: key for key, each in state.entities.items()}


def _require_distinct_names(merged: State, memory: State, conflicts: list[MergeConflict]) -> None:
    """Take back renames to names that are taken, and leave out new entities with such names."""
    names = _ids(memory)
    taken = {each.name for key, each in merged.entities.items() if names.get(each.name) == key}
    for key, each in list(merged.entities.items()):
        if names.get(each.name) == key:
            continue
        if each.name not in taken:
            taken.add(each.name)
            continue
        own = memory.entities.get(key)
        conflicts.append(
            MergeConflict(
                "name", key, own.name if own else each.name, own.name if own else "taken", each.name
            )
        )
        if own is None:
            del merged.entities[key]
        else:
            merged.entities[key] = replace(each, name=own.name)
            taken.add(own.name)


def _content(entity: Entity) -> object:
    texts = sorted([(each.ordinal, each.text) for each in entity.observations])
    return entity.name, entity.type, entity.summary, frozenset(entity.tags), texts


def _card(entity: Entity) -> object:
    return entity.name, entity.type, entity.summary, entity.tags


def _note_content(note: Note | None) -> object:
    return None if note is None else (note.content, note.tags)


def _ends_and_begins(old: dict[K, V], new: dict[K, V]) -> tuple[list[V], list[V]]:
    gone = [each for key, each in old.items() if new.get(key) != each]
    return gone, [each for key, each in new.items() if old.get(key) != each]


def _fill(entity: Entity, at: int) -> Entity:
    """Return a new entity with that time where it has none."""
    return replace(
        entity,
        observations=tuple([_fill_observation(each, at) for each in entity.observations]),
        summary_at=(entity.summary_at or at) if entity.summary is not None else 0,
        created_at=entity.created_at or at,
        updated_at=entity.updated_at or at,
    )


def _fill_observation(observation: Observation, at: int) -> Observation:
    return replace(observation, created_at=observation.created_at or at)


def _fill_note(note: Note, known: Note | None, at: int) -> Note:
    created_at = note.created_at or (known.created_at if known else 0) or at
    return replace(note, created_at=created_at, updated_at=note.updated_at or at)
