"""`open`, `explore` and `briefing`: the tools that read what is known."""

from msgspec import Raw
from msgspec.json import encode
from msgspec.structs import replace

from polymnia.dialects.base import Call, Reply, tool
from polymnia.dialects.native.replies import (
    Item,
    bounded_reply,
    entity_item,
    fact_item,
    line_item,
    page_reply,
    relation_item,
    short_time,
)
from polymnia.dialects.native.scope import Place, join_names, own_names, places
from polymnia.dialects.native.shapes import Briefing, Explore, Items, Open
from polymnia.engine.facts.briefing import brief_session
from polymnia.engine.facts.names import resolve_name
from polymnia.engine.facts.todos import DAY
from polymnia.engine.graph import entities, traverse
from polymnia.engine.history import changes as history
from polymnia.engine.recall.names import similar_names
from polymnia.errors import BadInput, EntityNotFound
from polymnia.formats.briefing import briefing_text, tokens_for_sections
from polymnia.formats.times import parse_optional_moment
from polymnia.model import Author, Entity, Graph, Observation, PassageKey, Relation
from polymnia.search.terms import one_line


@tool(Open, needs="read", returns=Items, brief=True)
def open(call: Call, arguments: Open) -> Reply:  # noqa: A001  # the name that clients call
    """Read all that is known of entities: numbered facts with time and author, and relations. Use \
it after recall for the whole or the exact text. Partial and old names work if only one entity \
fits. Two clocks: true_on is what was true on a day, as_of what this memory held at a time."""
    if not any(name.strip() for name in arguments.names):
        raise BadInput("names: give at least one name")
    at = parse_optional_moment(arguments.as_of, "as_of")
    read = places(call, arguments.workspace)
    true_on = parse_optional_moment(arguments.true_on, "true_on")
    items: list[Item] = []
    missing = dict.fromkeys(arguments.names)
    remarks: dict[str, None] = {}
    for place in read:
        if at is None:
            names = _resolve_names(place, arguments.names)
            graph = entities.open_named(place.memory, set(names.values()))
        else:
            names = _resolve_past_names(place, arguments.names, at)
            graph = history.as_of(place.memory, at, set(names.values()))
        opened = {entity.name for entity in graph.entities}
        for given, name in names.items():
            if name in opened:
                missing.pop(given, None)
            if name != given:
                remarks[f'"{given}" was taken as {name}.'] = None
        for entity in graph.entities:
            if true_on is not None:
                entity = replace(entity, observations=_true_facts(place, entity, true_on))
            items += entity_items(
                place,
                entity,
                graph.relations,
                is_past=at is not None,
                with_superseded=arguments.superseded,
            )
    note = " ".join([*remarks, _missing_note(read, list(missing), at)])
    return page_reply(items, arguments, note=one_line(note))


def _resolve_names(place: Place, names: list[str]) -> dict[str, str]:
    """Return the entities that the names mean: a former or partial name may stand for one."""
    with place.memory.reading() as reader:
        return {name: resolve_name(reader, name) for name in names}


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


def _true_facts(place: Place, entity: Entity, day: int) -> tuple[Observation, ...]:
    """Return the facts that had become true by the end of a day and were not replaced before it."""
    end = day + DAY - 1
    facts = [fact for fact in entity.observations if _became_true(fact) <= end]
    for past in history.superseded_facts(place.memory, entity.name):
        ended_at = past.ended_at
        if past.new:
            ended_at = _became_true(past.new[0])
        if _became_true(past.old) <= end < ended_at:
            facts.append(past.old)
    return tuple(sorted(facts, key=lambda fact: fact.ordinal))


def _became_true(fact: Observation) -> int:
    return fact.valid_at or fact.created_at


def entity_items(
    place: Place,
    entity: Entity,
    relations: list[Relation],
    *,
    is_past: bool = False,
    with_superseded: bool = False,
) -> list[Item]:
    """Return an entity, its facts with their authors, and its relations."""
    touching = [
        relation for relation in relations if entity.name in (relation.source, relation.target)
    ]
    items = [entity_item(entity, place.name, len(touching))]
    authors: dict[PassageKey, Author] = {}
    if not is_past:  # the past has no authors: they are known of living rows
        keys = [(entity.name, fact.ordinal) for fact in entity.observations]
        authors = history.authors(place.memory, keys)
    for fact in entity.observations:
        items.append(fact_item(entity.name, fact, authors.get((entity.name, fact.ordinal))))
    if with_superseded:
        for superseded in history.superseded_facts(place.memory, entity.name):
            note = f"superseded {short_time(superseded.ended_at)}"
            items.append(fact_item(entity.name, superseded.old, None, note))
    items += [relation_item(relation) for relation in touching]
    return items


def _missing_note(read: list[Place], missing: list[str], at: int | None) -> str:
    """Return which names are unknown, or were at a time, and what is spelled like them."""
    sentences = []
    for name in missing:
        if at is not None:
            then = f"The memory held no {name} at {short_time(at)}."
            sentences.append(f"{then} For what was true then: true_on.")
            continue
        similar = [other for place in read for other in similar_names(place.memory, name)]
        if similar:
            sentences.append(f"There is no entity {name}; similar: {', '.join(similar)}.")
        else:
            sentences.append(f"There is no entity {name}.")
    return one_line(" ".join(sentences))


@tool(Explore, needs="read", returns=Items, brief=True)
def explore(call: Call, arguments: Explore) -> Reply:
    """Follow relations from an entity: who owns, blocks, leads, is part of what. With to: the \
shortest path between two."""
    read = places(call, arguments.workspace)
    arguments = _resolve_ends(read, arguments)
    if arguments.to:
        return _path_reply(read, arguments)
    homes = _homes(read, arguments.name)
    items: list[Item] = []
    note = ""
    for place in homes:
        graph, is_whole = traverse.neighbourhood(place.memory, arguments.name, arguments.depth)
        items += _neighbourhood_items(place, graph, arguments)
        if not is_whole:
            note = "there are too many to go further; explore one of these names"
    if not items:
        note = f"{one_line(arguments.name)} has no relations in {join_names(homes)}."
    return page_reply(items, arguments, note=note)


def _resolve_ends(read: list[Place], arguments: Explore) -> Explore:
    """Return the arguments with names that entities have, as far as a workspace knows them."""
    resolved = {}
    for field in ("name", "to"):
        given = getattr(arguments, field)
        resolved[field] = given
        for place in read:
            with place.memory.reading() as reader:
                name = resolve_name(reader, given) if given else given
            if name != given:
                resolved[field] = name
                break
    return replace(arguments, **resolved)


def _homes(read: list[Place], *names: str) -> list[Place]:
    """Return the workspaces that have all of these entities. Raise EntityNotFound."""
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
            raise EntityNotFound(name)
    return homes


def _neighbourhood_items(place: Place, graph: Graph, arguments: Explore) -> list[Item]:
    """Return the relations around an entity in one workspace, and then its neighbours."""
    items = []
    related: set[str] = set()
    for relation in graph.relations:
        if arguments.type in ("", relation.type):
            items.append(relation_item(relation, place.name))
            related.update(relation.ends)
    for entity in graph.entities:
        if entity.name != arguments.name and entity.name in related:
            data = {"name": entity.name, "type": entity.type, "workspace": place.name}
            items.append(line_item(f"{entity.name} ({entity.type})", data))
    return items


def _path_reply(read: list[Place], arguments: Explore) -> Reply:
    """Return the shortest path in the first workspace that has one."""
    for place in _homes(read, arguments.name, arguments.to):
        route = traverse.shortest_path(place.memory, arguments.name, arguments.to)
        if route.relations:
            items = [relation_item(relation, place.name) for relation in route.relations]
            return bounded_reply(items, max_tokens=arguments.max_tokens)
    note = f"Nothing connects {arguments.name} and {arguments.to} in {join_names(read)}."
    return bounded_reply([], max_tokens=arguments.max_tokens, note=one_line(note))


@tool(Briefing, needs="read", returns=Items, brief=True)
def briefing(call: Call, arguments: Briefing) -> Reply:
    """Call it once at the start of a session: the date, about the user, rules, open to-dos by due \
date, decisions of two weeks, what others changed since your last write, what is pinned, and how \
much more there is."""
    text, items = brief(call, arguments.workspace, arguments.max_tokens)
    return Reply(text, Raw(encode(Items(items=items))))


def brief(call: Call, workspace: str, max_tokens: int) -> tuple[str, list[dict[str, object]]]:
    """Return a briefing as text, and its lines as JSON."""
    read = places(call, workspace)
    memories = [(place.name, place.memory) for place in read]
    session = brief_session(memories, by=call.by, max_tokens=tokens_for_sections(max_tokens))
    items: list[dict[str, object]] = []
    for section in session.sections:
        for line in section.lines:
            item: dict[str, object] = {"section": section.title, "name": line.name}
            items.append(item | {"text": line.text, "workspace": line.workspace})
    names = [place.name for place in read]
    remarks = []
    if not workspace:
        for name in own_names(call):
            if name not in names:
                remarks.append(f"{name}: nothing yet; the first write creates it.")
    return briefing_text(session, names, remarks), items
