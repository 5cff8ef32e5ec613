"""The tools that read: whole, by page, by name, by search, by kind."""

from polymnia.dialects import camel
from polymnia.dialects.base import Call, Reply, tool
from polymnia.dialects.graph import shapes
from polymnia.dialects.graph.changing import said
from polymnia.dialects.graph.export import as_dot, as_mermaid
from polymnia.engine import entities, search, survey
from polymnia.engine.memory import Memory
from polymnia.errors import EntityNotFound
from polymnia.model import Entity, Graph


@tool(shapes.Page, needs="read", idempotent=True)
def read_graph(call: Call, arguments: shapes.Page) -> Reply:
    """Read the whole graph, or a page of it: entities of one type, from an offset, up to a limit, and the \
relations among them."""
    if arguments == shapes.Page():
        return said(camel.graph_shape(entities.read_all(call.memory)))
    kind = arguments.entity_type
    return said(camel.graph_shape(survey.page(call.memory, kind=kind, offset=arguments.offset, limit=arguments.limit)))


@tool(shapes.Search, needs="read", idempotent=True)
def search_nodes(call: Call, arguments: shapes.Search) -> Reply:
    """Find entities by a part of their name, type or observations, best match first, with their relations. \
Of several words, entities that have all come before those that have some."""
    found = search.ranked(
        call.memory,
        arguments.query,
        kind=arguments.entity_type,
        offset=arguments.offset,
        limit=arguments.limit,
    )
    return said(camel.graph_shape(found))


@tool(shapes.Several, needs="read", idempotent=True, quick=True)
def open_nodes(call: Call, arguments: shapes.Several) -> Reply:
    """Get entities by exact name, in the order asked for, and every relation that touches one of them."""
    graph = entities.open_named(call.memory, set(arguments.names))
    by_name = {entity.name: entity for entity in graph.entities}
    ordered = [by_name[name] for name in dict.fromkeys(arguments.names) if name in by_name]
    return said(camel.graph_shape(Graph(ordered, graph.relations)))


@tool(shapes.One, needs="read", idempotent=True, quick=True)
def get_entity(call: Call, arguments: shapes.One) -> Reply:
    """Get one entity by exact name, with its observations and without relations."""
    found = entities.open_named(call.memory, (arguments.name,)).entities
    if not found:
        raise EntityNotFound(arguments.name)
    return said(camel.entity_shape(found[0]))


@tool(shapes.Several, needs="read", idempotent=True, quick=True)
def batch_get_entities(call: Call, arguments: shapes.Several) -> Reply:
    """Get several entities by exact name, in the order asked for, null for each that does not exist."""
    found = _named(call.memory, arguments.names)
    return said([camel.entity_shape(found[name]) if name in found else None for name in arguments.names])


@tool(shapes.Nothing, needs="read", idempotent=True)
def graph_stats(call: Call, arguments: shapes.Nothing) -> Reply:
    """Count what the graph holds."""
    statistics = survey.statistics(call.memory)
    return said(
        {
            "entities": statistics.counts.entities,
            "relations": statistics.counts.relations,
            "totalObservations": statistics.counts.observations,
            "searchIndexEntries": statistics.counts.entities,
            "internedStrings": statistics.texts,
            "internedBytes": statistics.text_bytes,
        }
    )


@tool(shapes.RelationFilter, needs="read", idempotent=True)
def search_relations(call: Call, arguments: shapes.RelationFilter) -> Reply:
    """Find relations by where they start, where they end and their type; what is left out or empty matches all."""
    found = survey.relations_like(
        call.memory,
        source=arguments.source or None,
        target=arguments.target or None,
        kind=arguments.relation_type or None,
    )
    return said([camel.relation_shape(each) for each in found])


@tool(shapes.Nothing, needs="read", idempotent=True)
def list_entity_types(call: Call, arguments: shapes.Nothing) -> Reply:
    """List the types entities have and how many have each, the commonest first."""
    return said(survey.entity_types(call.memory))


@tool(shapes.Nothing, needs="read", idempotent=True)
def list_relation_types(call: Call, arguments: shapes.Nothing) -> Reply:
    """List the types relations have and how many have each, the commonest first."""
    return said(survey.relation_types(call.memory))


@tool(shapes.Export, needs="read", idempotent=True)
def export_graph(call: Call, arguments: shapes.Export) -> Reply:
    """Export the whole graph as json, as a mermaid flowchart or as a Graphviz dot file."""
    graph = entities.read_all(call.memory)
    if arguments.format == "mermaid":
        return Reply(as_mermaid(graph))
    if arguments.format == "dot":
        return Reply(as_dot(graph))
    return said(camel.graph_shape(graph))


def _named(memory: Memory, names: list[str]) -> dict[str, Entity]:
    with memory.reading() as read:
        return {entity.name: entity for entity in read.find(set(names))}
