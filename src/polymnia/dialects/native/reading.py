"""`open`, `explore` and `briefing`: what is known of names, how they are connected, and what to know at the start."""

from polymnia.dialects.base import Call, Reply, tool
from polymnia.dialects.native.budget import STORED, Item, bounded_reply, offset_of
from polymnia.dialects.native.lines import (
    entity_item,
    fact_item,
    line_item,
    one_line,
    relation_item,
    short_time,
)
from polymnia.dialects.native.scope import Place, own_names, places, require_names
from polymnia.dialects.native.shapes import Briefing, Explore, Items, Open
from polymnia.dialects.times import parse_moment
from polymnia.engine import briefing as briefings
from polymnia.engine import entities, history, traverse
from polymnia.engine.suggest import similar_names
from polymnia.errors import EntityNotFound
from polymnia.model import Entity, Graph, Relation
from polymnia.search.text import count_noun


@tool(Open, needs="read", returns=Items, brief=True)
def open(call: Call, arguments: Open) -> Reply:  # noqa: A001  # the name that clients call
    """Read entities by name: numbered facts with time and author, and relations. as_of reads the past."""
    require_names(arguments.names)
    at = parse_moment(arguments.as_of, "as_of") if arguments.as_of else None
    items: list[Item] = []
    found: set[str] = set()
    read = places(call, arguments.workspace)
    for place in read:
        graph = _graph(place, arguments.names, at)
        found |= {each.name for each in graph.entities}
        for entity in graph.entities:
            items += entity_items(
                place, entity, graph.relations, past=at is not None, old=arguments.superseded
            )
    missing = [name for name in dict.fromkeys(arguments.names) if name not in found]
    offset = offset_of(arguments.cursor)
    return bounded_reply(
        items[offset : offset + arguments.limit],
        max_tokens=arguments.max_tokens,
        offset=offset,
        total=len(items),
        note=_missing_note(read, missing, at),
    )


@tool(Explore, needs="read", returns=Items, brief=True)
def explore(call: Call, arguments: Explore) -> Reply:
    """Follow relations: what is around an entity, up to depth steps, or the shortest path to another one."""
    read = places(call, arguments.workspace)
    if arguments.to:
        return _path_reply(read, arguments)
    homes = _homes(read, arguments.name)
    around = [
        (place, *traverse.neighbourhood(place.memory, arguments.name, arguments.depth))
        for place in homes
    ]
    items = [item for place, graph, _ in around for item in _around(place, graph, arguments)]
    offset = offset_of(arguments.cursor)
    is_whole = all(each for _, _, each in around)
    note = "" if is_whole else "there are too many to go further; explore one of these names"
    return bounded_reply(
        items[offset : offset + arguments.limit],
        max_tokens=arguments.max_tokens,
        offset=offset,
        total=len(items),
        note=note
        if items
        else f"{one_line(arguments.name)} has no relations in {_join_names(homes)}.",
    )


@tool(Briefing, needs="read", returns=Items, brief=True)
def briefing(call: Call, arguments: Briefing) -> Reply:
    """Get what to know at the start of a session: pinned entities, then what changed last. Call it first."""
    text, items = brief_text(call, arguments.workspace, arguments.max_tokens)
    return bounded_reply(
        items, max_tokens=arguments.max_tokens, note="" if items else text, head=text
    )


def brief_text(call: Call, workspace: str, max_tokens: int) -> tuple[str, list[Item]]:
    """Return the heading of a briefing, and its entities."""
    read = places(call, workspace)
    share = max(max_tokens // max(len(read), 1) - 60, 20)
    told = [(each, briefings.brief(each.memory, max_tokens=share)) for each in read]
    heads = [_brief_head(place, each) for place, each in told]
    names = (
        [name for name in own_names(call) if name not in {each.name for each in read}]
        if not workspace
        else []
    )
    heads += [f"{name}: nothing yet; the first write creates it." for name in names]
    items = [
        Item(
            each.text,
            {"name": each.name, "type": each.type, "text": each.text, "workspace": place.name},
        )
        for place, briefed in told
        for each in briefed.entities
    ]
    return "\n".join([*heads, STORED] if items else heads), items


def _brief_head(place: Place, briefed: briefings.Briefing) -> str:
    counts = briefed.counts
    types = ", ".join([f"{each.type} {each.count}" for each in briefed.types])
    last = (
        f"; last change {short_time(briefed.last_change_at)} by {briefed.last_actor}"
        if briefed.last_actor
        else ""
    )
    held = f"{count_noun(counts.entities, 'entity')}, {count_noun(counts.observations, 'fact')}"
    return one_line(f"{place.name}: {held} ({types or 'no types'}){last}")


def _graph(place: Place, names: list[str], at: int | None) -> Graph:
    if at is None:
        return entities.open_named(place.memory, set(names))
    return history.as_of(place.memory, at, set(names))


def entity_items(
    place: Place, entity: Entity, relations: list[Relation], *, past: bool, old: bool
) -> list[Item]:
    """Return an entity, its facts with their authors, and its relations; with `old` also facts that were superseded."""
    touching = [each for each in relations if entity.name in (each.source, each.target)]
    keys = [(entity.name, each.ordinal) for each in entity.observations]
    authors = {} if past else history.authors(place.memory, keys)
    items = [entity_item(entity, place.name, len(touching))]
    items += [
        fact_item(entity.name, each, authors.get((entity.name, each.ordinal)))
        for each in entity.observations
    ]
    if old:
        ended = history.superseded_facts(place.memory, entity.name)
        items += [
            fact_item(entity.name, each.old, None, f"superseded {short_time(each.ended_at)}")
            for each in ended
        ]
    return items + [relation_item(each) for each in touching]


def _missing_note(read: list[Place], missing: list[str], at: int | None) -> str:
    """Return which names are unknown and what is spelled like them, or which were unknown at a time."""
    if at is not None:
        return one_line(
            " ".join([f"There was no entity {name} at {short_time(at)}." for name in missing])
        )
    told = []
    for name in missing:
        near = [other for each in read for other in similar_names(each.memory, name)]
        told.append(
            f"There is no entity {name}" + (f"; similar: {', '.join(near)}" if near else "") + "."
        )
    return one_line(" ".join(told))


def _homes(read: list[Place], *names: str) -> list[Place]:
    """Return the workspaces that have entities of all these names. Raise EntityNotFound for a name that none has."""
    known = []
    for place in read:
        with place.memory.reading() as reader:
            known.append((place, reader.known(names)))
    for name in names:
        if not any(name in found for _, found in known):
            raise EntityNotFound(name)
    return [place for place, found in known if found.issuperset(names)]


def _around(place: Place, graph: Graph, arguments: Explore) -> list[Item]:
    """Return the relations around an entity in one workspace, and then its neighbours."""
    relations = [
        each for each in graph.relations if not arguments.type or each.type == arguments.type
    ]
    near = [each for each in graph.entities if each.name != arguments.name]
    return [relation_item(each, place.name) for each in relations] + [
        line_item(
            f"{each.name} ({each.type})",
            {"name": each.name, "type": each.type, "workspace": place.name},
        )
        for each in near
    ]


def _path_reply(read: list[Place], arguments: Explore) -> Reply:
    """Return the shortest path in the first workspace that has one."""
    for place in _homes(read, arguments.name, arguments.to):
        route = traverse.shortest_route(place.memory, arguments.name, arguments.to)
        if route.relations:
            items = [relation_item(each, place.name) for each in route.relations]
            return bounded_reply(items, max_tokens=arguments.max_tokens)
    note = f"Nothing connects {arguments.name} and {arguments.to} in {_join_names(read)}."
    return bounded_reply([], max_tokens=arguments.max_tokens, note=one_line(note))


def _join_names(read: list[Place]) -> str:
    return " and ".join([each.name for each in read])
