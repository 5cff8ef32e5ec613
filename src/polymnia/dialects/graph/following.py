"""The tools that follow relations: paths, neighbours, subgraphs, descriptions."""

from polymnia.dialects import camel
from polymnia.dialects.base import Call, Reply, tool
from polymnia.dialects.graph import shapes
from polymnia.dialects.graph.changing import said
from polymnia.engine import paths, traverse


@tool(shapes.Ends, needs="read", idempotent=True)
def find_path(call: Call, arguments: shapes.Ends) -> Reply:
    """Find the shortest way between two entities along relations in either direction: the names on it, both ends \
included, or an empty list."""
    return said(traverse.shortest_path(call.memory, arguments.source, arguments.target))


@tool(shapes.AllPaths, needs="read", idempotent=True)
def find_all_paths(call: Call, arguments: shapes.AllPaths) -> Reply:
    """Find every way between two entities that visits nothing twice, shortest first, up to maxDepth relations and \
maxPaths paths."""
    found = paths.all_paths(
        call.memory,
        arguments.source,
        arguments.target,
        max_depth=arguments.max_depth,
        max_paths=arguments.max_paths,
    )
    reply = said(found.paths)
    return reply if found.cut is None else Reply(reply.text, note=f"The list is cut: {found.cut}.")


@tool(shapes.Subgraph, needs="read", idempotent=True)
def extract_subgraph(call: Call, arguments: shapes.Subgraph) -> Reply:
    """Get the entities within depth steps of the named ones, and the relations among them."""
    return said(camel.graph_shape(traverse.subgraph(call.memory, set(arguments.names), arguments.depth)))


@tool(shapes.Neighbours, needs="read", idempotent=True)
def get_neighbors(call: Call, arguments: shapes.Neighbours) -> Reply:
    """Get an entity and those around it, up to depth steps along relations of a type and direction, and the \
relations among them."""
    graph = traverse.neighbours(
        call.memory,
        arguments.name,
        arguments.depth,
        kind=arguments.relation_type or None,
        direction=arguments.direction,
    )
    return said(camel.graph_shape(graph))


@tool(shapes.One, needs="read", idempotent=True)
def describe_entity(call: Call, arguments: shapes.One) -> Reply:
    """Get one entity with its observations, every relation that touches it, the names at their other ends, and how \
many relations there are."""
    description = traverse.describe(call.memory, arguments.name)
    return said(
        {
            "entity": camel.entity_shape(description.entity),
            "relations": [camel.relation_shape(each) for each in description.relations],
            "neighbors": description.neighbours,
            "degree": len(description.relations),
        }
    )
