"""Read history: the latest changes, what each one altered, who wrote a fact, and the memory as it was."""

from collections.abc import Collection, Sequence
from typing import Literal

from msgspec import Struct
from msgspec.structs import replace

from polymnia.engine.memory import Memory
from polymnia.errors import USE_A_DATABASE, BadInput, NotSupported
from polymnia.model import (
    Author,
    Change,
    ChangeQuery,
    Entity,
    Graph,
    Observation,
    PassageKey,
    Relation,
    Rows,
)
from polymnia.search.text import fold
from polymnia.stores.contract import HistoryReader, Reader

What = Literal["entity", "name", "type", "summary", "tags", "observation", "relation", "note"]
DEFAULT_LIMIT, MAX_LIMIT = 20, 200
# Changes that are read at a time for a page with `max_rows`: a change of a large import has thousands of rows.
_CHANGES_PER_READ = 4
# How many changes of an entity are searched for superseded facts.
_MAX_SEARCHED = 1_000


class Difference(Struct, frozen=True):
    """One thing that a change altered: its value before and after, None where there was none."""

    what: What
    name: str  # of the entity or note; for a relation, its source
    before: str | None
    after: str | None
    ordinal: int = 0  # of an observation


class ChangePage(Struct, frozen=True):
    """Some changes, newest first, and the id to pass as `before` for older ones; None if there are none."""

    changes: tuple[Change, ...]
    next: int | None


class SupersededFact(Struct, frozen=True):
    """A fact that a newer one replaced: when, by whom and in which change it ended, and what replaced it."""

    old: Observation
    new: tuple[Observation, ...]
    ended_at: int
    actor: str
    change: int


def latest(
    memory: Memory,
    *,
    limit: int = DEFAULT_LIMIT,
    before: int | None = None,
    actor: str | None = None,
    actors: Collection[str] | None = None,
    names: Collection[str] | None = None,
    operations: Collection[str] | None = None,
    since: int | None = None,
    until: int | None = None,
    max_rows: int | None = None,
) -> ChangePage:
    """Return the latest changes, newest first: all, or those of an actor, of some entities or of a period.

    `actor` is any part of a name; `actors` are whole names. `names` finds an entity under its former names
    too. `max_rows` ends the page early, after the change that reaches this many rows. Raise NotSupported.
    """
    with memory.reading() as read:
        history = history_of(memory, read)
        query = ChangeQuery(
            limit=min(limit, MAX_LIMIT),
            before=before,
            since=since,
            until=until,
            actors=find_actors(history, actor)
            if actor is not None
            else None
            if actors is None
            else tuple(actors),
            operations=None if operations is None else tuple(operations),
            names=None if names is None else tuple(names),
        )
        found, has_more = _read_page(history, query, max_rows)
    return ChangePage(tuple(found), found[-1].id if found and has_more else None)


def _read_page(
    history: HistoryReader, query: ChangeQuery, max_rows: int | None
) -> tuple[list[Change], bool]:
    """Return the changes of a page, and whether there are more. With `max_rows` read a few at a time."""
    found: list[Change] = []
    while True:
        wanted = (
            query.limit - len(found)
            if max_rows is None
            else min(_CHANGES_PER_READ, query.limit - len(found))
        )
        before = found[-1].id if found else query.before
        part = history.latest(replace(query, limit=wanted + 1, before=before))
        found += part[:wanted]
        has_more = len(part) > wanted
        is_full = len(found) == query.limit or (
            max_rows is not None and sum(map(_count_rows, found)) >= max_rows
        )
        if is_full or not has_more:
            return found, has_more


def _count_rows(change: Change) -> int:
    sides = (change.before, change.after)
    return sum(
        len(each.entities) + len(each.observations) + len(each.relations) + len(each.notes)
        for each in sides
    )


def all_actors(memory: Memory) -> list[str]:
    """Return everyone who made a change, in alphabetical order. Raise NotSupported."""
    with memory.reading() as read:
        return history_of(memory, read).actors()


def differences(change: Change, names: Collection[str] | None = None) -> list[Difference]:
    """Return what a change altered, or only what concerns some names."""
    found = [*_entity_differences(change), *_observation_differences(change)]
    found += _relation_differences(change, names) + _note_differences(change)
    return (
        found
        if names is None
        else [each for each in found if each.what == "relation" or each.name in names]
    )


def names_of(memory: Memory, name: str) -> set[str]:
    """Return all present and former names of the entities that have or had this name."""
    with memory.reading() as read:
        changes = history_of(memory, read).latest(ChangeQuery(limit=_MAX_SEARCHED, names=(name,)))
    cards = [
        each for change in changes for each in (*change.before.entities, *change.after.entities)
    ]
    ids = {each.id for each in cards if each.name == name}
    return {name, *(each.name for each in cards if each.id in ids)}


def authors(memory: Memory, passages: Collection[PassageKey]) -> dict[PassageKey, Author]:
    """Return who first wrote these passages; nothing in a store without history."""
    if not memory.store.capabilities.history or not passages:
        return {}
    with memory.reading() as read:
        return read.history.authors(passages)


def superseded_facts(memory: Memory, name: str) -> list[SupersededFact]:
    """Return the facts of an entity that newer ones replaced, the latest first; nothing in a store without history."""
    if not memory.store.capabilities.history:
        return []
    names = names_of(memory, name)
    with memory.reading() as read:
        changes = read.history.latest(ChangeQuery(limit=_MAX_SEARCHED, names=(name,)))
    return [fact for change in changes for fact in _superseded_by(change, names)]


def as_of(memory: Memory, time: int, names: Collection[str] | None = None) -> Graph:
    """Return what was remembered at that time, or the named entities and the relations that touched them.

    Raise NotSupported, or BadInput for a time that was purged.
    """
    with memory.reading() as read:
        rows = history_of(memory, read).at(time, names)
    return Graph(list(rows.entities), list(rows.relations))


def history_of(memory: Memory, read: Reader) -> HistoryReader:
    """Return the history behind a reader. Raise NotSupported if the store has none."""
    if not memory.store.capabilities.history:
        raise NotSupported(f"{memory.store.url} has no history; {USE_A_DATABASE}")
    return read.history


def find_actors(history: HistoryReader, wanted: str) -> tuple[str, ...]:
    """Return the actors whose name contains the text, in any case. Raise BadInput if there are none."""
    everyone = history.actors()
    found = tuple([each for each in everyone if fold(wanted) in fold(each)])
    if not found:
        known = ", ".join(everyone[:10]) or "nobody"
        raise BadInput(f"nobody called {wanted!r} has made a change; those who have: {known}")
    return found


def _entity_differences(change: Change) -> list[Difference]:
    before = {each.id or each.name: each for each in change.before.entities}
    after = {each.id or each.name: each for each in change.after.entities}
    found = []
    for key in dict.fromkeys((*before, *after)):
        old, new = before.get(key), after.get(key)
        if old is not None and new is not None:
            found += _card_differences(old, new)
        else:
            found += _whole_differences(old, new)
    return found


def _card_differences(old: Entity, new: Entity) -> list[Difference]:
    pairs: Sequence[tuple[What, str | None, str | None]] = (
        ("name", old.name, new.name),
        ("type", old.type, new.type),
        ("summary", old.summary, new.summary),
        ("tags", ", ".join(old.tags), ", ".join(new.tags)),
    )
    return [Difference(what, new.name, one, other) for what, one, other in pairs if one != other]


def _whole_differences(old: Entity | None, new: Entity | None) -> list[Difference]:
    """Return an entity that appears or disappears, with its observations."""
    entity = new or old
    assert entity is not None  # one side of a change has it
    found = [_one_sided("entity", entity.name, entity.type, is_new=new is not None)]
    return found + [
        _one_sided(
            "observation", entity.name, each.text, is_new=new is not None, ordinal=each.ordinal
        )
        for each in entity.observations
    ]


def _one_sided(what: What, name: str, text: str, *, is_new: bool, ordinal: int = 0) -> Difference:
    return Difference(what, name, None if is_new else text, text if is_new else None, ordinal)


def _observation_differences(change: Change) -> list[Difference]:
    before, after = _by_ordinal(change.before), _by_ordinal(change.after)
    return [
        Difference("observation", key[0], _text(before.get(key)), _text(after.get(key)), key[1])
        for key in dict.fromkeys((*before, *after))
    ]


def _by_ordinal(rows: Rows) -> dict[tuple[str, int], Observation]:
    return {
        (each.entity, one.ordinal): one for each in rows.observations for one in each.observations
    }


def _text(observation: Observation | None) -> str | None:
    return None if observation is None else observation.text


def _relation_differences(change: Change, names: Collection[str] | None) -> list[Difference]:
    kept = {each.key for each in change.before.relations} & {
        each.key for each in change.after.relations
    }
    sides = ((change.before.relations, False), (change.after.relations, True))
    return [
        _one_sided("relation", each.source, f"{each.type} {each.target}", is_new=is_new)
        for relations, is_new in sides
        for each in relations
        if each.key not in kept and (names is None or _touches(each, names))
    ]


def _touches(relation: Relation, names: Collection[str]) -> bool:
    return relation.source in names or relation.target in names


def _note_differences(change: Change) -> list[Difference]:
    before = {each.key: each.content for each in change.before.notes}
    after = {each.key: each.content for each in change.after.notes}
    return [
        Difference("note", key, before.get(key), after.get(key))
        for key in dict.fromkeys((*before, *after))
    ]


def _superseded_by(change: Change, names: Collection[str]) -> list[SupersededFact]:
    """Return the facts that a change ended while it added others to the same entity."""
    before, after = _by_ordinal(change.before), _by_ordinal(change.after)
    new = [one for key, one in after.items() if key not in before and key[0] in names]
    ended = [one for key, one in before.items() if key not in after and key[0] in names]
    if not new:
        return []
    by = [(each,) for each in new] if len(new) == len(ended) else [tuple(new)] * len(ended)
    return [
        SupersededFact(old, successors, change.at, change.actor, change.id)
        for old, successors in zip(ended, by, strict=True)
    ]
