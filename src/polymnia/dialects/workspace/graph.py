"""The tools for relations, and those that follow them."""

from collections import Counter

from polymnia.dialects.base import Call, Reply, tool
from polymnia.dialects.replies import array_reply, json_reply
from polymnia.dialects.workspace import shapes
from polymnia.dialects.workspace.perspectives import open_memory
from polymnia.dialects.workspace.shapes import entity_shape, list_of, relation_shapes
from polymnia.engine.graph import relations, traverse
from polymnia.model import Relation


@tool(
    shapes.WorkspaceRelations, needs="write", returns=shapes.CreatedRelationsReply, idempotent=True
)
def create_relations(call: Call, arguments: shapes.WorkspaceRelations) -> Reply:
    """Create directed typed relations between existing nodes. Relations with an unknown end are \
not created; not_found names the unknown ends."""
    requested = _relations(arguments)
    result = relations.create(open_memory(call), requested, by=call.by, unknown_ends="skip")
    counts = Counter(relation.key for relation in requested)
    # The second of two equal relations finds that the first exists.
    repeated = [relation for relation in result.new if counts[relation.key] > 1]
    return json_reply(
        shapes.CreatedRelationsReply(
            created=relation_shapes(result.new),
            already_existed=relation_shapes(result.existing + repeated),
            not_found=result.unknown_ends,
        )
    )


@tool(
    shapes.WorkspaceRelations,
    needs="write",
    returns=shapes.DeletedRelationsReply,
    destructive=True,
    idempotent=True,
)
def delete_relations(call: Call, arguments: shapes.WorkspaceRelations) -> Reply:
    """Delete specific relations. Returns how many were deleted and how many did not exist."""
    requested = _relations(arguments)
    deleted = len(relations.delete(open_memory(call), requested, by=call.by))
    distinct = {relation.key for relation in requested}
    return json_reply(shapes.DeletedRelationsReply(deleted, not_found=len(distinct) - deleted))


@tool(shapes.UpdateRelationType, needs="write", returns=shapes.RenamedReply, destructive=True)
def update_relation_type(call: Call, arguments: shapes.UpdateRelationType) -> Reply:
    """Rename the type of an existing relation."""
    relation = Relation(arguments.from_entity, arguments.to_entity, arguments.old_type)
    relations.rename(open_memory(call), relation, arguments.new_type, by=call.by)
    return json_reply(shapes.RenamedReply(*relation.key, arguments.new_type))


@tool(
    shapes.GetRelationsBetween,
    needs="read",
    returns=list_of(shapes.WorkspaceRelationShape),
    idempotent=True,
)
def get_relations_between(call: Call, arguments: shapes.GetRelationsBetween) -> Reply:
    """Return all relations between two nodes, in both directions."""
    between = relations.between(open_memory(call), arguments.entity_a, arguments.entity_b)
    return array_reply(relation_shapes(between), "result")


@tool(shapes.GetNeighborhood, needs="read", returns=shapes.NeighborhoodReply, idempotent=True)
def get_neighborhood(call: Call, arguments: shapes.GetNeighborhood) -> Reply:
    """Return a node and all nodes within some hops, whatever the direction, and the relations \
between them."""
    depth = arguments.depth
    graph, is_complete = traverse.neighbourhood(open_memory(call), arguments.name, depth)
    nodes = [entity_shape(shapes.NeighborShape, entity) for entity in graph.entities]
    note = None
    if not is_complete:
        note = f"Incomplete: more than {traverse.MAX_NAMES} nodes are within {depth} hops."
    return json_reply(shapes.NeighborhoodReply(nodes, relation_shapes(graph.relations)), note)


@tool(shapes.GetPath, needs="read", returns=shapes.PathReply, idempotent=True)
def get_path(call: Call, arguments: shapes.GetPath) -> Reply:
    """Find a shortest path of relations between two nodes, whatever the direction of the \
relations."""
    path = traverse.shortest_path(open_memory(call), arguments.from_entity, arguments.to_entity)
    return json_reply(
        shapes.PathReply(bool(path.names), path.names, relation_shapes(path.relations))
    )


def _relations(arguments: shapes.WorkspaceRelations) -> list[Relation]:
    return [
        Relation(shape.from_entity, shape.to_entity, shape.relation_type)
        for shape in arguments.relations
    ]
