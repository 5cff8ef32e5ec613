"""The nine tools and the JSON shapes of their arguments and replies, which `graph` shares; each calls one verb."""

from typing import Annotated

from msgspec import Meta, Raw, Struct, field
from msgspec.json import encode
from msgspec.json import format as reformat

from polymnia.dialects.base import Call, Reply, catalogue, indented_json, tool
from polymnia.dialects.vault_notes import matching_notes
from polymnia.engine import entities, observations, relations, search
from polymnia.model import Entity, EntityDraft, Graph, ObservationDraft, ObservationSet, Relation


class EntityShape(Struct, frozen=True, rename="camel"):
    name: Annotated[str, Meta(description="The name of the entity")]
    entity_type: Annotated[str, Meta(description="The type of the entity")]
    observations: Annotated[
        list[str], Meta(description="An array of observation contents associated with the entity")
    ]


class RelationShape(Struct, frozen=True, rename="camel"):
    source: Annotated[str, Meta(description="The name of the entity where the relation starts")] = (
        field(name="from")
    )
    target: Annotated[str, Meta(description="The name of the entity where the relation ends")] = (
        field(name="to")
    )
    relation_type: Annotated[str, Meta(description="The type of the relation")]


class Addition(Struct, frozen=True, rename="camel"):
    entity_name: Annotated[
        str, Meta(description="The name of the entity to add the observations to")
    ]
    contents: Annotated[list[str], Meta(description="An array of observation contents to add")]


class Deletion(Struct, frozen=True, rename="camel"):
    entity_name: Annotated[
        str, Meta(description="The name of the entity containing the observations")
    ]
    observations: Annotated[list[str], Meta(description="An array of observations to delete")]


class AddedShape(Struct, frozen=True, rename="camel"):
    entity_name: str
    added_observations: list[str]


class GraphShape(Struct, frozen=True):
    entities: list[EntityShape]
    relations: list[RelationShape]


class CreateEntities(Struct, frozen=True):
    entities: list[EntityShape]


class CreateRelations(Struct, frozen=True):
    relations: list[RelationShape]


class AddObservations(Struct, frozen=True):
    observations: list[Addition]


class DeleteEntities(Struct, frozen=True, rename="camel"):
    entity_names: Annotated[list[str], Meta(description="An array of entity names to delete")]


class DeleteObservations(Struct, frozen=True):
    deletions: list[Deletion]


class DeleteRelations(Struct, frozen=True):
    relations: Annotated[list[RelationShape], Meta(description="An array of relations to delete")]


class ReadGraph(Struct, frozen=True):
    pass


class SearchNodes(Struct, frozen=True):
    query: Annotated[
        str,
        Meta(
            description="The search query to match against entity names, types, and observation content"
        ),
    ]


class OpenNodes(Struct, frozen=True):
    names: Annotated[list[str], Meta(description="An array of entity names to retrieve")]


class EntitiesReply(Struct, frozen=True):
    entities: list[EntityShape]


class RelationsReply(Struct, frozen=True):
    relations: list[RelationShape]


class ResultsReply(Struct, frozen=True):
    results: list[AddedShape]


class SuccessReply(Struct, frozen=True):
    success: bool
    message: str


@tool(CreateEntities, needs="write", returns=EntitiesReply)
def create_entities(call: Call, arguments: CreateEntities) -> Reply:
    """Create multiple new entities in the knowledge graph"""
    created = entities.create(call.memory, [draft(each) for each in arguments.entities], by=call.by)
    shaped = [entity_shape(each) for each in created]
    return _reply(shaped, EntitiesReply(shaped))


@tool(CreateRelations, needs="write", returns=RelationsReply)
def create_relations(call: Call, arguments: CreateRelations) -> Reply:
    """Create multiple new relations between entities in the knowledge graph. Relations are directed edges."""
    created = relations.create(
        call.memory, [relation(each) for each in arguments.relations], by=call.by
    )
    shaped = [relation_shape(each) for each in created]
    return _reply(shaped, RelationsReply(shaped))


@tool(AddObservations, needs="write", returns=ResultsReply)
def add_observations(call: Call, arguments: AddObservations) -> Reply:
    """Add new observations to existing entities in the knowledge graph"""
    additions = [addition(each) for each in arguments.observations]
    added = observations.add(call.memory, additions, by=call.by, skip_repeats=True)
    shaped = [added_shape(each) for each in added]
    return _reply(shaped, ResultsReply(shaped))


@tool(DeleteEntities, needs="write", returns=SuccessReply, destructive=True, idempotent=True)
def delete_entities(call: Call, arguments: DeleteEntities) -> Reply:
    """Delete multiple entities and their associated relations from the knowledge graph"""
    entities.delete(call.memory, set(arguments.entity_names), by=call.by)
    return _success("Entities deleted successfully")


@tool(DeleteObservations, needs="write", returns=SuccessReply, destructive=True, idempotent=True)
def delete_observations(call: Call, arguments: DeleteObservations) -> Reply:
    """Delete specific observations from entities in the knowledge graph"""
    observations.remove(call.memory, [deletion(each) for each in arguments.deletions], by=call.by)
    return _success("Observations deleted successfully")


@tool(DeleteRelations, needs="write", returns=SuccessReply, destructive=True, idempotent=True)
def delete_relations(call: Call, arguments: DeleteRelations) -> Reply:
    """Delete multiple relations from the knowledge graph"""
    relations.delete(call.memory, [relation(each) for each in arguments.relations], by=call.by)
    return _success("Relations deleted successfully")


@tool(ReadGraph, needs="read", returns=GraphShape, idempotent=True)
def read_graph(call: Call, arguments: ReadGraph) -> Reply:
    """Read the entire knowledge graph"""
    return _graph_reply(entities.read_all(call.memory))


@tool(SearchNodes, needs="read", returns=GraphShape, idempotent=True)
def search_nodes(call: Call, arguments: SearchNodes) -> Reply:
    """Search for nodes in the knowledge graph based on a query"""
    found = search.containing(call.memory, arguments.query)
    return _graph_reply(found, matching_notes(call.memory, arguments.query))


@tool(OpenNodes, needs="read", returns=GraphShape, idempotent=True, quick=True)
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


def _graph_reply(graph: Graph, note: str | None = None) -> Reply:
    """Encode the graph once, for both the text and the structured content. `reformat` indents by two spaces."""
    encoded = encode(graph_shape(graph))
    return Reply(reformat(encoded).decode(), Raw(encoded), note)


def _success(message: str) -> Reply:
    return Reply(message, Raw(encode(SuccessReply(True, message))))


def _reply(text: object, structured: Struct) -> Reply:
    return Reply(indented_json(text), Raw(encode(structured)))


def draft(shape: EntityShape) -> EntityDraft:
    return EntityDraft(shape.name, shape.entity_type, tuple(shape.observations))


def relation(shape: RelationShape) -> Relation:
    return Relation(shape.source, shape.target, shape.relation_type)


def addition(shape: Addition) -> ObservationDraft:
    return ObservationDraft(shape.entity_name, tuple(shape.contents))


def deletion(shape: Deletion) -> ObservationDraft:
    return ObservationDraft(shape.entity_name, tuple(shape.observations))


def entity_shape(entity: Entity) -> EntityShape:
    return EntityShape(entity.name, entity.type, [each.text for each in entity.observations])


def relation_shape(relation: Relation) -> RelationShape:
    return RelationShape(relation.source, relation.target, relation.type)


def added_shape(added: ObservationSet) -> AddedShape:
    return AddedShape(added.entity, [each.text for each in added.observations])


def graph_shape(graph: Graph) -> GraphShape:
    entities = [entity_shape(entity) for entity in graph.entities]
    return GraphShape(entities, [relation_shape(relation) for relation in graph.relations])
