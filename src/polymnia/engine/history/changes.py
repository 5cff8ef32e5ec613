"""Read history: the latest changes, what they altered, who wrote a fact, what became of a name."""

import re
from collections.abc import Callable, Collection, Sequence
from contextlib import suppress
from typing import TYPE_CHECKING, Literal

from msgspec import Struct
from msgspec.structs import replace

from polymnia.engine.memory import Memory
from polymnia.errors import USE_A_DATABASE, BadInput, NotSupported
from polymnia.model import (
    Author,
    Change,
    ChangeQuery,
    ChangeSize,
    Entity,
    EventCounts,
    Fact,
    FactSet,
    Graph,
    PassageKey,
    Rows,
    SupersededFact,
)
from polymnia.search.dates import day_of
from polymnia.search.terms import fold, one_line
from polymnia.stores.contract import Reader

if TYPE_CHECKING:
    from polymnia.stores.contract import HistoryReader

What = Literal[
    "entity",
    "name",
    "type",
    "summary",
    "tags",
    "due",
    "status",
    "expires",
    "fact",
    "relation",
    "note",
]
DEFAULT_LIMIT, MAX_LIMIT = 20, 200
# A change with more rows is read only as far as it concerns the entities that are asked for.
MAX_WHOLE_ROWS = 100
# These end a fact only if another one replaces it. `correct` ends facts that were never true.
LINKING_OPERATIONS = ("remember", "revise")
# Changes that are searched for a name.
_MAX_NAME_CHANGES = 200
# The version in an actor's name: `claude-code 2.1.0 (token laptop)`.
_VERSION = re.compile(r" v?\d[\w.+-]*(?= \(|$)")


class Difference(Struct, frozen=True):
    """One thing that a change altered: its value before and after, None where there was none."""

    what: What
    name: str  # of the entity or note; for a relation, its source
    before: str | None
    after: str | None
    ordinal: int = 0  # of a fact

    def describe(self, show: Callable[[str], str] = str, *, empty: str = "") -> str:
        """Return a line: + what is new, - what is gone, or ~ both values."""
        subject = f"{self.what} {self.name}"
        if self.ordinal:
            subject += f" #{self.ordinal}"
        before, after = show(self.before or ""), show(self.after or "")
        if self.before is None:
            return f"+ {subject}: {after}"
        if self.after is None:
            return f"- {subject}: {before}"
        return f"~ {subject}: {before or empty} => {after or empty}"


class ChangePage(Struct, frozen=True):
    """Some changes, newest first, and the id to pass as `before` for older ones, if any.

    `sizes` are those of changes that have more rows than were asked for.
    """

    changes: tuple[Change, ...]
    next: int | None
    sizes: dict[int, ChangeSize]


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
    """Return the latest changes: all, or those of an actor, of some entities or of a period.

    `actor` is any part of a name; `actors` are whole names. `names` finds an entity under its
    former names too. If a change has more than `max_rows` rows, only those of the entities in
    `names` are read, and none without `names`. Raise NotSupported.
    """
    shown_limit = min(limit, MAX_LIMIT)
    with memory.reading() as read:
        history = history_of(memory, read)
        if actor is not None:
            actors = find_actors(history, actor)
        query = ChangeQuery(
            limit=shown_limit + 1,
            before=before,
            since=since,
            until=until,
            actors=None if actors is None else tuple(actors),
            operations=None if operations is None else tuple(operations),
            names=None if names is None else tuple(names),
        )
        sizes: dict[int, ChangeSize] = {}
        if max_rows is None:
            changes = history.changes(query)
        else:
            changes, sizes = read_changes(history, query, max_rows)
    shown = tuple(changes[:shown_limit])
    has_more = len(changes) > shown_limit
    return ChangePage(shown, shown[-1].id if has_more else None, sizes)


def last_change(memory: Memory, read: Reader) -> int:
    """Return the id of the last change; 0 if there is none or the store has no history."""
    if not memory.store.capabilities.history:
        return 0
    latest_heads = read.history.change_heads(ChangeQuery(limit=1))
    return latest_heads[0].id if latest_heads else 0


def all_actors(memory: Memory) -> list[str]:
    """Return everyone who made a change, in alphabetical order. Raise NotSupported."""
    with memory.reading() as read:
        return history_of(memory, read).actors()


def differences(change: Change, names: Collection[str] | None = None) -> list[Difference]:
    """Return what a change altered, or only what concerns some names."""
    changed: list[Difference] = []

    def add(what: What, name: str, old: str | None, new: str | None, ordinal: int = 0) -> None:
        if names is None or name in names:
            changed.append(Difference(what, name, old, new, ordinal))

    before = {entity.id or entity.name: entity for entity in change.before.entities}
    after = {entity.id or entity.name: entity for entity in change.after.entities}
    for key in dict.fromkeys((*before, *after)):
        old, new = before.get(key), after.get(key)
        if old is not None and new is not None:
            pairs: Sequence[tuple[What, str | None, str | None]] = (
                ("name", old.name, new.name),
                ("type", old.type, new.type),
                ("summary", old.summary, new.summary),
                ("tags", ", ".join(old.tags), ", ".join(new.tags)),
                ("due", day_of(old.due), day_of(new.due)),
                ("status", old.status, new.status),
                ("expires", day_of(old.expires), day_of(new.expires)),
            )
            for what, one, other in pairs:
                if one != other:
                    add(what, new.name, one, other)
        elif new is not None:
            add("entity", new.name, None, new.type)
            for fact in new.facts:
                add("fact", new.name, None, fact.text, fact.ordinal)
        elif old is not None:
            add("entity", old.name, old.type, None)
            for fact in old.facts:
                add("fact", old.name, fact.text, None, fact.ordinal)
    old_facts, new_facts = _by_ordinal(change.before), _by_ordinal(change.after)
    for name, ordinal in dict.fromkeys((*old_facts, *new_facts)):
        ended, created = old_facts.get((name, ordinal)), new_facts.get((name, ordinal))
        if ended and created and ended.text == created.text and ended.expires != created.expires:
            add("expires", name, day_of(ended.expires), day_of(created.expires), ordinal)
            continue
        old_text = None if ended is None else ended.text
        add("fact", name, old_text, None if created is None else created.text, ordinal)
    old_links = {relation.key: relation for relation in change.before.relations}
    new_links = {relation.key: relation for relation in change.after.relations}
    for triple, relation in (*old_links.items(), *new_links.items()):
        is_kept = triple in old_links and triple in new_links
        if is_kept or not (names is None or any(end in names for end in relation.ends)):
            continue
        text = f"{relation.type} {relation.target}"
        values = (text, None) if triple in old_links else (None, text)
        changed.append(Difference("relation", relation.source, *values))
    old_notes = {note.key: note.content for note in change.before.notes}
    new_notes = {note.key: note.content for note in change.after.notes}
    for note_key in dict.fromkeys((*old_notes, *new_notes)):
        add("note", note_key, old_notes.get(note_key), new_notes.get(note_key))
    return changed


def names_of(memory: Memory, name: str) -> set[str]:
    """Return all present and former names of the entities that have or had this name."""
    with memory.reading() as read:
        return history_of(memory, read).all_names([name])


def authors(memory: Memory, passages: Collection[PassageKey]) -> dict[PassageKey, Author]:
    """Return who first wrote these passages; nothing in a store without history."""
    if not memory.store.capabilities.history or not passages:
        return {}
    with memory.reading() as read:
        return read.history.authors(passages)


def superseded_facts(memory: Memory, name: str) -> list[SupersededFact]:
    """Return the facts of an entity that newer ones replaced, by ordinal; none without history."""
    if not memory.store.capabilities.history:
        return []
    with memory.reading() as read:
        ended = read.history.ended_facts(name)
    last: dict[int, SupersededFact] = {}
    for fact in ended:
        earlier = last.get(fact.old.ordinal)
        if fact.operation == "undo" and earlier is not None:
            # It had been restored, and the undo that did so was undone.
            fact = earlier
        last[fact.old.ordinal] = fact
    return [
        fact
        for _, fact in sorted(last.items())
        if fact.successor or fact.operation in LINKING_OPERATIONS
    ]


def restored_facts(memory: Memory) -> dict[PassageKey, int]:
    """Return the facts that the last few undos restored, and when. Whoever did so knew newer ones.

    There are none without history.
    """
    if not memory.store.capabilities.history:
        return {}
    with memory.reading() as read:
        query = ChangeQuery(operations=("undo",))
        undos, _ = read_changes(read.history, query, MAX_WHOLE_ROWS)
    restored: dict[PassageKey, int] = {}
    for change in undos:  # the latest first
        for key in _by_ordinal(change.after):
            restored.setdefault(key, change.at)
    return restored


def find_successor(memory: Memory, name: str, ordinal: int) -> int:
    """Return the ordinal of the fact that replaced another one of an entity; 0 if none is known."""
    successors = {fact.old.ordinal: fact.successor for fact in superseded_facts(memory, name)}
    newest = 0
    while successors.get(ordinal):
        newest = ordinal = successors.pop(ordinal)
    return newest


def as_of(memory: Memory, time: int, names: Collection[str] | None = None) -> Graph:
    """Return what was remembered at that time: all, or some entities and their relations.

    Raise NotSupported, or BadInput for a time that was purged.
    """
    with memory.reading() as read:
        rows = history_of(memory, read).state_at(time, names)
    return Graph(list(rows.entities), list(rows.relations))


def history_of(memory: Memory, read: Reader) -> "HistoryReader":
    """Return the history behind a reader. Raise NotSupported if the store has none."""
    if not memory.store.capabilities.history:
        raise NotSupported(f"{memory.store.url} has no history; {USE_A_DATABASE}")
    return read.history


def client_label(actor: str) -> str:
    """Return the name of a client without its version."""
    return _VERSION.sub("", one_line(actor))


def find_actors(history: "HistoryReader", wanted: str) -> tuple[str, ...]:
    """Return the actors whose name contains the text, in any case.

    Raise BadInput if there are none.
    """
    everyone = history.actors()
    matching = tuple(actor for actor in everyone if fold(wanted) in fold(actor))
    if not matching:
        known = ", ".join(everyone[:10]) or "none"
        raise BadInput(f"nobody called {wanted!r} has made a change; those who have: {known}")
    return matching


def _by_ordinal(rows: Rows) -> dict[tuple[str, int], Fact]:
    """Return the facts by the name of their entity and their ordinal."""
    numbered = {}
    for part in rows.facts:
        for fact in part.facts:
            numbered[part.entity, fact.ordinal] = fact
    return numbered


class Whereabouts(Struct, frozen=True):
    """What became of a name: how, in which change, by whom and when.

    `now` is the present name; empty if there is none.
    """

    name: str
    how: Literal["renamed", "merged", "deleted"]
    now: str
    change: int
    at: int
    actor: str


def find_former(memory: Memory, name: str) -> Whereabouts | None:
    """Return what became of a name; None if no entity had it, or in a store without history."""
    if not memory.store.capabilities.history:
        return None
    with memory.reading() as read:
        first = _last_end(read, name)
        if first is None:
            return None
        step = first
        for _ in range(10):
            if not step.now or read.existing_names([step.now]):
                break
            following = _last_end(read, step.now)
            if following is None:
                break
            step = following
        lives = bool(step.now and read.existing_names([step.now]))
    now = step.now if lives else ""
    return Whereabouts(first.name, first.how, now, first.change, first.at, first.actor)


def merge_target(change: Change) -> str:
    """Return the entity into which a change merged others; empty if its rows do not tell."""
    left = [entity.name for entity in change.after.entities]
    gone = {entity.name for entity in change.before.entities} - set(left)
    # The target got the facts of the others.
    names = [part.entity for part in change.after.facts] + left
    if not names:
        # Only relations were redirected, and one end of each is the target.
        old_ends = {end for relation in change.before.relations for end in relation.ends}
        for relation in change.after.relations:
            names += [end for end in relation.ends if end not in old_ends]
    for name in names:
        if name and name not in gone:
            return name
    return ""


def _last_end(read: Reader, name: str) -> Whereabouts | None:
    """Return how the last entity of that name lost it."""
    for change in read.history.changes(ChangeQuery(limit=_MAX_NAME_CHANGES, names=(name,))):
        ended = next((entity for entity in change.before.entities if entity.name == name), None)
        if ended is None:
            continue
        kept = next((entity for entity in change.after.entities if entity.id == ended.id), None)
        if kept is not None and kept.name != name:
            return Whereabouts(name, "renamed", kept.name, change.id, change.at, change.actor)
        if kept is None:
            target = merge_target(change) if change.operation == "merge_entities" else ""
            how: Literal["merged", "deleted"] = "merged" if target else "deleted"
            return Whereabouts(name, how, target, change.id, change.at, change.actor)
    return None


def count_events(history: "HistoryReader", since: int = 0) -> EventCounts:
    """Return how much happened after the change with that id. Purged rows are not counted."""
    creates = updates = deletes = 0
    changes = history.changes(ChangeQuery(after=since, limit=None))
    for change in changes:
        before = {entity.id or entity.name for entity in change.before.entities}
        after = {entity.id or entity.name for entity in change.after.entities}
        whole = {entity.name for entity in (*change.before.entities, *change.after.entities)}
        parts = {part.entity for part in (*change.before.facts, *change.after.facts)}
        creates += len(after - before) + len(change.after.relations)
        updates += len(after & before) + len(parts - whole)
        deletes += len(before - after) + len(change.before.relations)
    last = changes[0].id if changes else since
    return EventCounts(creates, updates, deletes, last)


def read_changes(
    history: "HistoryReader",
    query: ChangeQuery,
    max_rows: int,
) -> tuple[list[Change], dict[int, ChangeSize]]:
    """Return the changes that a query selects, and the sizes of those with more than `max_rows`.

    A change of a large import has thousands of rows. For a large change only the rows of some
    entities are read, those in `query.names`, and none without names.
    """
    heads = history.change_heads(query)
    sizes = history.change_sizes([head.id for head in heads])
    large = {number: size for number, size in sizes.items() if size.total > max_rows}
    names = history.all_names(query.names) if large and query.names else set()
    small_ids = tuple(head.id for head in heads if head.id not in large)
    changes = history.changes(ChangeQuery(limit=None, ids=small_ids)) if small_ids else []
    for head in heads:
        if head.id not in large:
            continue
        changes.append(head)
        if names:
            # Its rows stay missing if they were purged.
            with suppress(BadInput):
                before = history.state_before(head.id, names)
                after = history.state_before(head.id + 1, names)
                rows = {"before": _subtract(before, after), "after": _subtract(after, before)}
                changes[-1] = replace(head, **rows)
    changes.sort(key=lambda change: -change.id)
    return changes, large


def _subtract(state: Rows, other: Rows) -> Rows:
    """Return what a state has and another one has not, or has otherwise."""
    counterparts = {entity.id: entity for entity in other.entities}
    cards: list[Entity] = []
    facts: list[FactSet] = []
    for entity in state.entities:
        counterpart = counterparts.get(entity.id)
        if counterpart is None:
            cards.append(entity)
            continue
        if _card(entity) != _card(counterpart):
            cards.append(_card(entity))
        own_facts = [fact for fact in entity.facts if fact not in counterpart.facts]
        if own_facts:
            facts.append(FactSet(entity.name, tuple(own_facts)))
    known_links = {relation.key for relation in other.relations}
    links = [relation for relation in state.relations if relation.key not in known_links]
    return Rows(tuple(cards), tuple(facts), tuple(links))


def _card(entity: Entity) -> Entity:
    """Return an entity without its facts, and without what every change to a fact alters."""
    return replace(entity, facts=(), next_ordinal=0, updated_at=0)
