"""The nine tools and the JSON shapes of their arguments and replies; each tool calls one engine verb."""

from typing import Annotated

from msgspec import Meta, Raw, Struct
from msgspec.json import encode
from msgspec.json import format as reformat

from polymnia.dialects import camel
from polymnia.dialects.base import Call, Reply, catalogue, indented_json, tool
from polymnia.engine import entities, observations, relations, search
from polymnia.model import Graph


class CreateEntities(Struct, frozen=True):
    entities: list[camel.EntityShape]


class CreateRelations(Struct, frozen=True):
    relations: list[camel.RelationShape]


class AddObservations(Struct, frozen=True):
    observations: list[camel.Addition]


class DeleteEntities(Struct, frozen=True, rename="camel"):
    entity_names: Annotated[list[str], Meta(description="An array of entity names to delete")]


class DeleteObservations(Struct, frozen=True):
    deletions: list[camel.Deletion]


class DeleteRelations(Struct, frozen=True):
    relations: Annotated[list[camel.RelationShape], Meta(description="An array of relations to delete")]


class ReadGraph(Struct, frozen=True):
    pass


class SearchNodes(Struct, frozen=True):
    query: Annotated[
        str, Meta(description="The search query to match against entity names, types, and observation content")
    ]


class OpenNodes(Struct, frozen=True):
    names: Annotated[list[str], Meta(description="An array of entity names to retrieve")]


class EntitiesReply(Struct, frozen=True):
    entities: list[camel.EntityShape]


class RelationsReply(Struct, frozen=True):
    relations: list[camel.RelationShape]


class ResultsReply(Struct, frozen=True):
    results: list[camel.AddedShape]


class SuccessReply(Struct, frozen=True):
    success: bool
    message: str


@tool(CreateEntities, needs="write", returns=EntitiesReply)
def create_entities(call: Call, arguments: CreateEntities) -> Reply:
    """Create multiple new entities in the knowledge graph"""
    created = entities.create(call.memory, [camel.draft(each) for each in arguments.entities], by=call.by)
    shaped = [camel.entity_shape(each) for each in created]
    return _reply(shaped, EntitiesReply(shaped))


@tool(CreateRelations, needs="write", returns=RelationsReply)
def create_relations(call: Call, arguments: CreateRelations) -> Reply:
    """Create multiple new relations between entities in the knowledge graph. Relations are directed edges."""
    created = relations.create(call.memory, [camel.relation(each) for each in arguments.relations], by=call.by)
    shaped = [camel.relation_shape(each) for each in created]
    return _reply(shaped, RelationsReply(shaped))


@tool(AddObservations, needs="write", returns=ResultsReply)
def add_observations(call: Call, arguments: AddObservations) -> Reply:
    """Add new observations to existing entities in the knowledge graph"""
    additions = [camel.addition(each) for each in arguments.observations]
    added = observations.add(call.memory, additions, by=call.by, skip_repeats=True)
    shaped = [camel.added_shape(each) for each in added]
    return _reply(shaped, ResultsReply(shaped))


@tool(DeleteEntities, needs="write", returns=SuccessReply, destructive=True, idempotent=True)
def delete_entities(call: Call, arguments: DeleteEntities) -> Reply:
    """Delete multiple entities and their associated relations from the knowledge graph"""
    entities.delete(call.memory, set(arguments.entity_names), by=call.by)
    return _success("Entities deleted successfully")


@tool(DeleteObservations, needs="write", returns=SuccessReply, destructive=True, idempotent=True)
def delete_observations(call: Call, arguments: DeleteObservations) -> Reply:
    """Delete specific observations from entities in the knowledge graph"""
    observations.remove(call.memory, [camel.deletion(each) for each in arguments.deletions], by=call.by)
    return _success("Observations deleted successfully")


@tool(DeleteRelations, needs="write", returns=SuccessReply, destructive=True, idempotent=True)
def delete_relations(call: Call, arguments: DeleteRelations) -> Reply:
    """Delete multiple relations from the knowledge graph"""
    relations.delete(call.memory, [camel.relation(each) for each in arguments.relations], by=call.by)
    return _success("Relations deleted successfully")


@tool(ReadGraph, needs="read", returns=camel.GraphShape, idempotent=True)
def read_graph(call: Call, arguments: ReadGraph) -> Reply:
    """Read the entire knowledge graph"""
    return _graph_reply(entities.read_all(call.memory))


@tool(SearchNodes, needs="read", returns=camel.GraphShape, idempotent=True)
def search_nodes(call: Call, arguments: SearchNodes) -> Reply:
    """Search for nodes in the knowledge graph based on a query"""
    return _graph_reply(search.containing(call.memory, arguments.query))


@tool(OpenNodes, needs="read", returns=camel.GraphShape, idempotent=True, quick=True)
def open_nodes(call: Call, arguments: OpenNodes) -> Reply:
    """Open specific nodes in the knowledge graph by their names"""
    return _graph_reply(entities.open_named(call.memory, set(arguments.names)))


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


def _graph_reply(graph: Graph) -> Reply:
    """Encode the graph once, for both the text and the structured content. `reformat` indents by two spaces."""
    encoded = encode(camel.graph_shape(graph))
    return Reply(reformat(encoded).decode(), Raw(encoded))


def _success(message: str) -> Reply:
    return Reply(message, Raw(encode(SuccessReply(True, message))))


def _reply(text: object, structured: Struct) -> Reply:
    return Reply(indented_json(text), Raw(encode(structured)))
