"""The tools for relations, and those that follow them."""

from polymnia.dialects.base import Call, Reply, tool
from polymnia.dialects.workspace import arguments as given
from polymnia.dialects.workspace import shapes
from polymnia.dialects.workspace.perspectives import open_memory
from polymnia.dialects.workspace.shapes import list_of, list_reply, object_reply, relation_shape
from polymnia.engine import relations, traverse
from polymnia.model import Relation


@tool(given.Relations, needs="write", returns=shapes.CreatedRelationsReply, idempotent=True)
def create_relations(call: Call, arguments: given.Relations) -> Reply:
    """Create directed typed relations between existing nodes. Relations with an unknown end are not created; \
not_found names the unknown ends."""
    result = relations.create_known(open_memory(call), _relations(arguments), by=call.by)
    return object_reply(
        shapes.CreatedRelationsReply(
            [relation_shape(each) for each in result.created],
            [relation_shape(each) for each in result.existing],
            result.unknown,
        )
    )


@tool(
    given.Relations,
    needs="write",
    returns=shapes.DeletedRelationsReply,
    destructive=True,
    idempotent=True,
)
def delete_relations(call: Call, arguments: given.Relations) -> Reply:
    """Delete specific relations. Returns how many were deleted and how many did not exist."""
    wanted = _relations(arguments)
    deleted = len(relations.delete(open_memory(call), wanted, by=call.by))
    return object_reply(
        shapes.DeletedRelationsReply(deleted, len({each.key for each in wanted}) - deleted)
    )


@tool(given.UpdateRelationType, needs="write", returns=shapes.RenamedReply, destructive=True)
def update_relation_type(call: Call, arguments: given.UpdateRelationType) -> Reply:
    """Rename the type of an existing relation."""
    relation = Relation(arguments.from_entity, arguments.to_entity, arguments.old_type)
    relations.rename(open_memory(call), relation, arguments.new_type, by=call.by)
    return object_reply(shapes.RenamedReply(*relation.key, arguments.new_type))


@tool(
    given.GetRelationsBetween, needs="read", returns=list_of(shapes.RelationShape), idempotent=True
)
def get_relations_between(call: Call, arguments: given.GetRelationsBetween) -> Reply:
    """Return all relations between two nodes, in both directions."""
    found = relations.between(open_memory(call), arguments.entity_a, arguments.entity_b)
    return list_reply([relation_shape(each) for each in found])


@tool(given.GetNeighborhood, needs="read", returns=shapes.NeighborhoodReply, idempotent=True)
def get_neighborhood(call: Call, arguments: given.GetNeighborhood) -> Reply:
    """Return a node and all nodes within some hops, whatever the direction, and the relations between them."""
    graph, is_complete = traverse.neighbourhood(open_memory(call), arguments.name, arguments.depth)
    nodes = [
        shapes.NeighborShape(each.name, each.type, each.summary, list(each.tags))
        for each in graph.entities
    ]
    note = (
        None
        if is_complete
        else f"Incomplete: more than {traverse.MAX_NAMES} nodes are within {arguments.depth} hops."
    )
    return object_reply(
        shapes.NeighborhoodReply(nodes, [relation_shape(each) for each in graph.relations]),
        note=note,
    )


@tool(given.GetPath, needs="read", returns=shapes.PathReply, idempotent=True)
def get_path(call: Call, arguments: given.GetPath) -> Reply:
    """Find a shortest path of relations between two nodes, whatever the direction of the relations."""
    route = traverse.shortest_route(open_memory(call), arguments.from_entity, arguments.to_entity)
    return object_reply(
        shapes.PathReply(
            bool(route.names), route.names, [relation_shape(each) for each in route.relations]
        )
    )


def _relations(arguments: given.Relations) -> list[Relation]:
    return [
        Relation(each.from_entity, each.to_entity, each.relation_type)
        for each in arguments.relations
    ]
