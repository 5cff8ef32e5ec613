"""The nine tools: each one engine verb, its arguments and its reply put into the catalogue's words."""

from msgspec import Raw, Struct
from msgspec.json import encode
from msgspec.json import format as reformat

from polymnia.dialects import camel
from polymnia.dialects.base import Call, Reply, catalogue, indented, tool
from polymnia.dialects.reference import shapes
from polymnia.engine import entities, observations, relations, search
from polymnia.model import Graph


@tool(shapes.CreateEntities, needs="write", returns=shapes.EntitiesReply)
def create_entities(call: Call, arguments: shapes.CreateEntities) -> Reply:
    """Create multiple new entities in the knowledge graph"""
    created = entities.create(call.memory, [camel.draft(each) for each in arguments.entities], by=call.by)
    shaped = [camel.entity_shape(each) for each in created]
    return _reply(shaped, shapes.EntitiesReply(shaped))


@tool(shapes.CreateRelations, needs="write", returns=shapes.RelationsReply)
def create_relations(call: Call, arguments: shapes.CreateRelations) -> Reply:
    """Create multiple new relations between entities in the knowledge graph. Relations are directed edges."""
    created = relations.create(call.memory, [camel.relation(each) for each in arguments.relations], by=call.by)
    shaped = [camel.relation_shape(each) for each in created]
    return _reply(shaped, shapes.RelationsReply(shaped))


@tool(shapes.AddObservations, needs="write", returns=shapes.ResultsReply)
def add_observations(call: Call, arguments: shapes.AddObservations) -> Reply:
    """Add new observations to existing entities in the knowledge graph"""
    additions = [camel.addition(each) for each in arguments.observations]
    added = observations.add(call.memory, additions, by=call.by, skip_repeats=True)
    shaped = [camel.added_shape(each) for each in added]
    return _reply(shaped, shapes.ResultsReply(shaped))


@tool(shapes.DeleteEntities, needs="write", returns=shapes.DoneReply, destructive=True, idempotent=True)
def delete_entities(call: Call, arguments: shapes.DeleteEntities) -> Reply:
    """Delete multiple entities and their associated relations from the knowledge graph"""
    entities.delete(call.memory, set(arguments.entity_names), by=call.by)
    return _done("Entities deleted successfully")


@tool(shapes.DeleteObservations, needs="write", returns=shapes.DoneReply, destructive=True, idempotent=True)
def delete_observations(call: Call, arguments: shapes.DeleteObservations) -> Reply:
    """Delete specific observations from entities in the knowledge graph"""
    observations.remove(call.memory, [camel.deletion(each) for each in arguments.deletions], by=call.by)
    return _done("Observations deleted successfully")


@tool(shapes.DeleteRelations, needs="write", returns=shapes.DoneReply, destructive=True, idempotent=True)
def delete_relations(call: Call, arguments: shapes.DeleteRelations) -> Reply:
    """Delete multiple relations from the knowledge graph"""
    relations.delete(call.memory, [camel.relation(each) for each in arguments.relations], by=call.by)
    return _done("Relations deleted successfully")


@tool(shapes.ReadGraph, needs="read", returns=camel.GraphShape, idempotent=True)
def read_graph(call: Call, arguments: shapes.ReadGraph) -> Reply:
    """Read the entire knowledge graph"""
    return _graph(entities.read_all(call.memory))


@tool(shapes.SearchNodes, needs="read", returns=camel.GraphShape, idempotent=True)
def search_nodes(call: Call, arguments: shapes.SearchNodes) -> Reply:
    """Search for nodes in the knowledge graph based on a query"""
    return _graph(search.containing(call.memory, arguments.query))


@tool(shapes.OpenNodes, needs="read", returns=camel.GraphShape, idempotent=True, quick=True)
def open_nodes(call: Call, arguments: shapes.OpenNodes) -> Reply:
    """Open specific nodes in the knowledge graph by their names"""
    return _graph(entities.open_named(call.memory, set(arguments.names)))


TOOLS = catalogue(
    create_entities,
    create_relations,
    add_observations,
    delete_entities,
    delete_observations,
    delete_relations,
    read_graph,
    search_nodes,
    open_nodes,
)


def _graph(graph: Graph) -> Reply:
    """Text and JSON say the same here, so it is spelled once; two spaces a level are what `reformat` does unasked."""
    spelled = encode(camel.graph_shape(graph))
    return Reply(reformat(spelled).decode(), Raw(spelled))


def _done(message: str) -> Reply:
    return Reply(message, Raw(encode(shapes.DoneReply(True, message))))


def _reply(text: object, structured: Struct) -> Reply:
    return Reply(indented(text), Raw(encode(structured)))
