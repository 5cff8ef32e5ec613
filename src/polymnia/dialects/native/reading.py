"""`open`, `explore` and `briefing`: the tools that read the memory."""

from collections.abc import Sequence
from functools import partial
from itertools import islice

from msgspec import Struct
from msgspec.structs import replace

from polymnia.dialects.base import Call, Reply, tool
from polymnia.dialects.native.grouping import (
    RELATIONS,
    Line,
    fact_line,
    head_of,
    heading_of,
    relation_text,
    shared_day_of,
    usual,
)
from polymnia.dialects.native.marks import mark_files
from polymnia.dialects.native.replies import (
    Item,
    bounded_reply,
    clean_reply,
    line_item,
    offset_of,
    page_reply,
    prose,
    relation_item,
)
from polymnia.dialects.native.scope import Place, join_names, own_names, places
from polymnia.dialects.native.shapes import Briefing, Explore, Open
from polymnia.engine.facts.briefing import brief_session
from polymnia.engine.facts.briefing_text import briefing_text, tokens_for_sections
from polymnia.engine.facts.names import resolve_names
from polymnia.engine.facts.todos import DAY
from polymnia.engine.graph import entities, traverse
from polymnia.engine.history import changes as history
from polymnia.engine.history.changes import superseded_facts
from polymnia.engine.memory import one_snapshot
from polymnia.engine.reads import note_facts
from polymnia.engine.recall.names import similar_names
from polymnia.errors import BadInput
from polymnia.model import (
    Author,
    Entity,
    Fact,
    Graph,
    Passage,
    PassageKey,
    Relation,
    SupersededFact,
    is_expired,
)
from polymnia.search.terms import one_line, plain
from polymnia.search.times import day_name, parse_optional_moment
from polymnia.stores.contract import check_cancelled


@tool(Open, needs="read", brief=True)
def open(call: Call, arguments: Open) -> Reply:  # noqa: A001  # the name that clients call
    """Read all that is known of entities: numbered facts with time and author, and relations. Use \
it after recall for the whole or the exact text. Partial and old names work if only one entity \
fits. Two clocks: true_on is what was true on a day, as_of what this memory held at a time."""
    if not any(name.strip() for name in arguments.names):
        raise BadInput("names: give at least one name")
    at = parse_optional_moment(arguments.as_of, "as_of", end=True)
    read = places(call, arguments.workspace)
    true_on = parse_optional_moment(arguments.true_on, "true_on")
    opened: list[Opened] = []
    missing = dict.fromkeys(arguments.names)
    remarks: dict[str, None] = {}

    def open_place(place: Place) -> None:
        if at is None:
            # Most names are exact, so they are opened while it is found out what others mean.
            names, graph = together(
                partial(_resolve_names, place, arguments.names),
                partial(entities.open_named, place.memory, set(arguments.names)),
            )
            if set(names.values()) != set(arguments.names):
                graph = entities.open_named(place.memory, set(names.values()))
        else:
            names = _resolve_past_names(place, arguments.names, at)
            graph = history.as_of(place.memory, at, set(names.values()))
        present = {entity.name for entity in graph.entities}
        for given, name in names.items():
            if name in present:
                missing.pop(given, None)
            if name != given:
                remarks[f'"{given}" was taken as {name}.'] = None
        for entity in graph.entities:
            if true_on is not None:
                entity = replace(entity, facts=_true_facts(place, entity, true_on))
            replaced = []
            if arguments.superseded:
                replaced = superseded_facts(place.memory, entity.name)
            touching = relations_of(graph, entity.name)
            opened.append(Opened(place, entity, touching, replaced, at is not None))

    with one_snapshot([place.memory for place in read]) as together:
        together(*[partial(open_place, place) for place in read])
        opened.sort(key=lambda one: read.index(one.place))
        note = " ".join([*remarks, _missing_note(read, list(missing), at)])
        head, items = entity_items(opened)
    head += _continued_entity(items, offset_of(arguments.cursor))
    return page_reply(items, arguments, note=one_line(note), head=head, note_first=True)


def _continued_entity(items: list[Item], offset: int) -> str:
    """Return the heading above the items of a page that begins within an entity."""
    if not 0 < offset < len(items) or _is_heading(items[offset]):
        return ""
    headings = [item.line for item in items[:offset] if _is_heading(item)]
    return f"\n{headings[-1]}"


def _is_heading(item: Item) -> bool:
    return not item.row and not item.line.startswith(" ")


def relations_of(graph: Graph, name: str) -> list[Relation]:
    """Return the relations from and to an entity."""
    return [relation for relation in graph.relations if name in relation.ends]


def _resolve_names(place: Place, names: list[str]) -> dict[str, str]:
    """Return the entities that the names mean: a former or partial name may stand for one."""
    with place.memory.reading() as reader:
        return resolve_names(reader, names)


def _resolve_past_names(place: Place, names: list[str], at: int) -> dict[str, str]:
    """Return what the entities that the names mean now were called at a time."""
    held = {entity.name for entity in history.as_of(place.memory, at, set(names)).entities}
    resolved = {name: name for name in names}
    unknown = [name for name in names if name not in held]
    for given, current in _resolve_names(place, unknown).items():
        resolved[given] = _past_name(place, current, at) or given
    return resolved


def _past_name(place: Place, name: str, at: int) -> str:
    """Return what the entity of that name was called at a time; "" if it was not there."""
    with place.memory.reading() as reader:
        outlines = reader.outlines([name])
    for entity in outlines:
        past = history.as_of(place.memory, at, {entity.name, *entity.aliases})
        for former in past.entities:
            if former.id == entity.id:
                return former.name
    return ""


def _true_facts(place: Place, entity: Entity, day: int) -> tuple[Fact, ...]:
    """Return the facts that had become true by the end of a day and had not ended before it."""
    end = day + DAY - 1
    facts = []
    for fact in entity.facts:
        if _became_true(fact) <= end and (not fact.expires or fact.expires > end):
            facts.append(fact)
    present = {fact.ordinal for fact in entity.facts}
    replaced = superseded_facts(place.memory, entity.name)
    for past in replaced:
        became_true = _became_true(past.old)
        if became_true > past.ended_at:
            continue  # a plan that was replaced before its day
        is_true = became_true <= end < _stopped_being_true(past, entity, replaced)
        if is_true and past.old.ordinal not in present:
            facts.append(past.old)
    return tuple(sorted(facts, key=lambda fact: fact.ordinal))


def _became_true(fact: Fact) -> int:
    return fact.valid_at or fact.created_at


def _stopped_being_true(
    past: SupersededFact, entity: Entity, replaced: Sequence[SupersededFact]
) -> int:
    """Return when the fact that replaced another became true.

    If both became true at once, the other one ended with the change.
    """
    for fact in (*entity.facts, *(other.old for other in replaced)):
        if fact.ordinal == past.successor and _became_true(fact) > _became_true(past.old):
            return _became_true(fact)
    return past.ended_at


class Opened(Struct, frozen=True):
    """An entity that is shown whole, and its relations. `replaced` are its former facts."""

    place: Place
    entity: Entity
    relations: list[Relation]
    replaced: Sequence[SupersededFact] = ()
    is_past: bool = False


def entity_items(opened: list[Opened]) -> tuple[str, list[Item]]:
    """Return the head line of some entities, and these with their facts and relations."""
    with one_snapshot([one.place.memory for one in opened]) as together:
        facts = together(*[partial(_fact_lines, one) for one in opened])
    lines = mark_files([line for own in facts for line in own])
    workspace, author = usual(lines)
    if opened and not workspace:
        workspace = opened[0].place.name
    items = []
    marked = iter(lines)
    for one, unmarked in zip(opened, facts, strict=True):
        own = list(islice(marked, len(unmarked)))
        day = shared_day_of(own)
        items.append(line_item(_heading(one, workspace, day)))
        items += [Item(fact_line(line, author, day)) for line in own]
        for relation in one.relations:
            items.append(Item(relation_text(relation, one.entity.name), RELATIONS))
    return head_of(workspace, author), items


def _heading(one: Opened, usual_workspace: str, day: str) -> str:
    heading = heading_of(one.entity, "" if one.place.name == usual_workspace else one.place.name)
    if one.entity.tags:
        heading += f", tags: {one_line(', '.join(one.entity.tags))}"
    return f"{heading}, {day}" if day else heading


def _fact_lines(one: Opened) -> list[Line]:
    """Return the facts of an entity by their numbers."""
    name = one.entity.name
    authors: dict[PassageKey, Author] = {}
    if not one.is_past:  # the past has no authors: only living rows have them
        keys = [(name, fact.ordinal) for fact in one.entity.facts]
        authors = history.authors(one.place.memory, keys)
    facts = []
    for fact in one.entity.facts:
        author = authors.get((name, fact.ordinal))
        notes = _notes(fact, one.entity)
        passage = Passage.of(one.entity, fact)
        facts.append(Line(one.place, passage, prose(fact.text), author, notes))
    present = {fact.ordinal for fact in one.entity.facts}
    for past in one.replaced:
        if past.old.ordinal not in present:
            facts.append(_replaced_line(one, past))
    facts.sort(key=lambda line: line.passage.ordinal)
    return facts


def _replaced_line(one: Opened, past: SupersededFact) -> Line:
    ended_at = _stopped_being_true(past, one.entity, one.replaced)
    replaced = f"replaced by #{past.successor}" if past.successor else "replaced"
    notes = (replaced, *_notes(past.old, one.entity))
    passage = Passage.of(one.entity, past.old)
    return Line(one.place, passage, prose(past.old.text), None, notes, ended_at)


def _notes(fact: Fact, entity: Entity) -> tuple[str, ...]:
    """Return where a fact comes from, and when it expires."""
    notes = []
    if fact.source:
        notes.append(f"from {one_line(fact.source)}")
    expires = min([at for at in (fact.expires, entity.expires) if at], default=0)
    if expires:
        verb = "expired" if is_expired(fact) or is_expired(entity) else "expires"
        notes.append(f"{verb} {day_name(expires)}")
    return tuple(notes)


def _missing_note(read: list[Place], missing: list[str], at: int | None) -> str:
    """Return which names are unknown, now or at a time, and names spelled like them."""
    sentences = []
    for name in missing[:10]:  # each is compared with many names
        check_cancelled()
        if at is not None:
            # For the end of a day, only the day.
            time = at - at % DAY if at % DAY == DAY - 1 else at
            then = f"The memory held no {name} on {day_name(time)}."
            sentences.append(f"{then} For what was true then: true_on.")
            continue
        similar = [other for place in read for other in similar_names(place.memory, name)]
        if similar:
            sentences.append(f"There is no entity {name}; similar: {', '.join(similar)}.")
        else:
            sentences.append(f"There is no entity {name}.")
    if len(missing) > 10:
        sentences.append(f"{len(missing) - 10:,} more names are unknown.")
    return one_line(" ".join(sentences))


@tool(Explore, needs="read", brief=True)
def explore(call: Call, arguments: Explore) -> Reply:
    """Follow relations from an entity: who owns, blocks, leads, is part of what. With to: the \
shortest path between two."""
    read = places(call, arguments.workspace)
    arguments, remarks = _resolve_ends(read, arguments)
    if arguments.to:
        return _path_reply(read, arguments, remarks)
    homes = _mentioning(read, arguments.name)
    items: list[Item] = []
    types: dict[str, None] = {}
    for place in homes:
        graph, is_whole = traverse.surroundings(place.memory, arguments.name, arguments.depth)
        types |= dict.fromkeys(relation.type for relation in graph.relations)
        label = f" ({place.name})" if place is not homes[0] else ""
        items += _neighbourhood_items(graph, arguments, label)
        if not is_whole:
            remarks.append("there are too many to go further; explore one of these names")
    if not items:
        remarks.append(_no_relations(homes, arguments, list(types)))
    return page_reply(items, arguments, note=one_line(" ".join(remarks)))


def _no_relations(homes: list[Place], arguments: Explore, types: list[str]) -> str:
    """Return that there are no relations, or none of the type that was asked for."""
    where = join_names(homes)
    if not types:
        return f"{arguments.name} has no relations in {where}."
    of_type = f"no relations of type {arguments.type} in {where}"
    return f"{arguments.name} has {of_type}; types: {', '.join(types[:10])}."


def _resolve_ends(read: list[Place], arguments: Explore) -> tuple[Explore, list[str]]:
    """Return the arguments with names that entities have, and what was guessed.

    Raise BadInput with similar names if no workspace knows a name.
    """
    resolved, remarks = {}, []
    for field in ("name", "to"):
        given = getattr(arguments, field)
        if not given:
            continue
        resolved[field] = _resolve_end(read, given)
        if resolved[field] != given:
            remarks.append(f'"{given}" was taken as {resolved[field]}.')
    return replace(arguments, **resolved), remarks


def _resolve_end(read: list[Place], given: str) -> str:
    """Return the name of an entity, or of an end of relations. Raise BadInput."""
    if _mentioning(read, given):
        return given
    for place in read:
        name = _resolve_names(place, [given])[given]
        if name != given:
            return name
    similar: dict[str, None] = {}
    for place in read:
        similar |= dict.fromkeys(similar_names(place.memory, given))
    advice = f"similar: {', '.join(similar)}" if similar else "recall finds what there is"
    where = join_names(read) or "this memory"
    raise BadInput(one_line(f"there is no entity {given} in {where}; {advice}"))


def _mentioning(read: list[Place], name: str) -> list[Place]:
    """Return the workspaces that have an entity or a relation with that name."""

    def mentions(place: Place) -> bool:
        with place.memory.reading() as reader:
            return bool(reader.existing_names([name]) or reader.relations([name]))

    with one_snapshot([place.memory for place in read]) as together:
        known = together(*[partial(mentions, place) for place in read])
    return [place for place, is_known in zip(read, known, strict=True) if is_known]


def _homes(read: list[Place], *names: str) -> list[Place]:
    """Return the workspaces that have all of these entities. Raise BadInput."""
    homes = []
    missing = set(names)
    for place in read:
        with place.memory.reading() as reader:
            known = reader.existing_names(names)
        missing -= known
        if known.issuperset(names):
            homes.append(place)
    for name in names:
        if name in missing:
            advice = "explore it without to, or remember what is known of it"
            raise BadInput(one_line(f"{name} has no entity yet, only relations: {advice}"))
    return homes


def _neighbourhood_items(graph: Graph, arguments: Explore, label: str) -> list[Item]:
    """Return the relations around an entity in one workspace, and then its neighbours."""
    items = []
    related: set[str] = set()
    for relation in graph.relations:
        if not arguments.type or plain(arguments.type) == plain(relation.type):
            items.append(relation_item(relation, label))
            related.update(relation.ends)
    for entity in graph.entities:
        if entity.name != arguments.name and entity.name in related:
            items.append(line_item(f"{entity.name} ({entity.type})"))
    return items


def _path_reply(read: list[Place], arguments: Explore, remarks: list[str]) -> Reply:
    """Return the shortest path in the first workspace that has one."""
    ends = arguments.name, arguments.to
    items: list[Item] = []
    for place in _homes(read, *ends):
        route = traverse.shortest_path(place.memory, *ends)
        items = [relation_item(relation) for relation in route.relations]
        if items:
            break
    else:
        remarks.append(f"Nothing connects {' and '.join(ends)} in {join_names(read)}.")
    note = one_line(" ".join(remarks))
    return bounded_reply(items, max_tokens=arguments.max_tokens, note=note)


@tool(Briefing, needs="read", brief=True)
def briefing(call: Call, arguments: Briefing) -> Reply:
    """Call it once at the start of a session: the date, about the user, rules, open to-dos by due \
date, decisions of two weeks, what others changed since your last write, what is pinned, and how \
much more there is."""
    return clean_reply(brief(call, arguments.workspace, arguments.max_tokens))


def brief(call: Call, workspace: str, max_tokens: int) -> str:
    """Return a briefing as text."""
    read = places(call, workspace)
    memories = [(place.name, place.memory) for place in read]
    session = brief_session(
        memories,
        by=call.by,
        max_tokens=tokens_for_sections(max_tokens),
        root=read[0].root if read else None,
    )
    by_name = dict(memories)
    for section in session.sections:
        for line in section.lines:
            note_facts(by_name[line.workspace], [(line.name, line.ordinal)])
    names = [place.name for place in read]
    remarks = []
    if not workspace:
        for name in own_names(call):
            if name not in names:
                remarks.append(f"{name}: nothing yet; the first write creates it.")
    return briefing_text(session, names, remarks)
