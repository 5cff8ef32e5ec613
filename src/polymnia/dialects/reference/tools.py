"""The nine tools, and the JSON of their arguments and replies, which `graph` shares."""

from collections.abc import Sequence
from typing import Annotated

from msgspec import Meta, Raw, Struct, field
from msgspec.json import encode
from msgspec.json import format as reformat

from polymnia.dialects.base import Call, Reply, catalogue, tool
from polymnia.dialects.replies import indented_json, matching_notes
from polymnia.engine.graph import entities, facts, relations
from polymnia.engine.graph.facts import AddedFacts
from polymnia.model import Entity, EntityDraft, FactAddition, Graph, Relation


class ReferenceEntityShape(Struct, frozen=True, rename="camel"):
    name: Annotated[str, Meta(description="The name of the entity")]
    entity_type: Annotated[str, Meta(description="The type of the entity")]
    observations: Annotated[
        list[str], Meta(description="An array of observation contents associated with the entity")
    ]


class ReferenceRelationShape(Struct, frozen=True, rename="camel"):
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


class ReferenceAddedShape(Struct, frozen=True, rename="camel"):
    entity_name: str
    added_observations: list[str]


class GraphShape(Struct, frozen=True):
    entities: list[ReferenceEntityShape]
    relations: list[ReferenceRelationShape]


class ReferenceCreateEntities(Struct, frozen=True):
    entities: list[ReferenceEntityShape]


class CreateRelations(Struct, frozen=True):
    relations: list[ReferenceRelationShape]


class ReferenceAddObservations(Struct, frozen=True):
    observations: list[Addition]


class ReferenceDeleteEntities(Struct, frozen=True, rename="camel"):
    entity_names: Annotated[list[str], Meta(description="An array of entity names to delete")]


class ReferenceDeleteObservations(Struct, frozen=True):
    deletions: list[Deletion]


class DeleteRelations(Struct, frozen=True):
    relations: Annotated[
        list[ReferenceRelationShape], Meta(description="An array of relations to delete")
    ]


class ReadGraph(Struct, frozen=True):
    pass


class ReferenceSearchNodes(Struct, frozen=True):
    query: Annotated[
        str,
        Meta(
            description="The search query to match against entity names, types, and observation "
            "content"
        ),
    ]


class ReferenceOpenNodes(Struct, frozen=True):
    names: Annotated[list[str], Meta(description="An array of entity names to retrieve")]


class ReferenceEntitiesReply(Struct, frozen=True):
    entities: list[ReferenceEntityShape]


class ReferenceRelationsReply(Struct, frozen=True):
    relations: list[ReferenceRelationShape]


class ResultsReply(Struct, frozen=True):
    results: list[ReferenceAddedShape]


class SuccessReply(Struct, frozen=True):
    success: bool
    message: str


@tool(ReferenceCreateEntities, needs="write", returns=ReferenceEntitiesReply)
def create_entities(call: Call, arguments: ReferenceCreateEntities) -> Reply:
    """Create multiple new entities in the knowledge graph"""
    drafts = entity_drafts(arguments.entities)
    created = entities.create(call.memory, drafts, by=call.by)
    return _array_reply([entity_shape(entity) for entity in created], "entities")


@tool(CreateRelations, needs="write", returns=ReferenceRelationsReply)
def create_relations(call: Call, arguments: CreateRelations) -> Reply:
    """Create multiple new relations between entities in the knowledge graph. Relations are \
directed edges."""
    requested = named_relations(arguments.relations)
    created = relations.create(call.memory, requested, by=call.by)
    return _array_reply(relation_shapes(created.new), "relations")


@tool(ReferenceAddObservations, needs="write", returns=ResultsReply)
def add_observations(call: Call, arguments: ReferenceAddObservations) -> Reply:
    """Add new observations to existing entities in the knowledge graph"""
    drafts = observation_drafts(arguments.observations)
    additions = facts.add(call.memory, drafts, by=call.by, skip_repeats=True)
    return _array_reply(added_shapes(additions), "results")


@tool(
    ReferenceDeleteEntities, needs="write", returns=SuccessReply, destructive=True, idempotent=True
)
def delete_entities(call: Call, arguments: ReferenceDeleteEntities) -> Reply:
    """Delete multiple entities and their associated relations from the knowledge graph"""
    entities.delete(call.memory, set(arguments.entity_names), by=call.by)
    return _success("Entities deleted successfully")


@tool(
    ReferenceDeleteObservations,
    needs="write",
    returns=SuccessReply,
    destructive=True,
    idempotent=True,
)
def delete_observations(call: Call, arguments: ReferenceDeleteObservations) -> Reply:
    """Delete specific observations from entities in the knowledge graph"""
    facts.remove(call.memory, removals(arguments.deletions), by=call.by)
    return _success("Observations deleted successfully")


@tool(DeleteRelations, needs="write", returns=SuccessReply, destructive=True, idempotent=True)
def delete_relations(call: Call, arguments: DeleteRelations) -> Reply:
    """Delete multiple relations from the knowledge graph"""
    relations.delete(call.memory, named_relations(arguments.relations), by=call.by)
    return _success("Relations deleted successfully")


@tool(ReadGraph, needs="read", returns=GraphShape, idempotent=True)
def read_graph(call: Call, arguments: ReadGraph) -> Reply:
    """Read the entire knowledge graph"""
    return _graph_reply(entities.read_all(call.memory))


@tool(ReferenceSearchNodes, needs="read", returns=GraphShape, idempotent=True)
def search_nodes(call: Call, arguments: ReferenceSearchNodes) -> Reply:
    """Search for nodes in the knowledge graph based on a query"""
    # Imported here: it loads search by meaning, and `initialize` need not wait for that.
    from polymnia.engine.recall import search

    graph = search.containing(call.memory, arguments.query)
    return _graph_reply(graph, matching_notes(call.memory, arguments.query))


@tool(ReferenceOpenNodes, needs="read", returns=GraphShape, idempotent=True)
def open_nodes(call: Call, arguments: ReferenceOpenNodes) -> Reply:
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
    encoded = encode(graph_shape(graph))  # once, for the text and the structured content
    return Reply(reformat(encoded).decode(), Raw(encoded), note)


def _success(message: str) -> Reply:
    return Reply(message, Raw(encode(SuccessReply(True, message))))


def _array_reply(items: Sequence[Struct], field: str) -> Reply:
    return Reply(indented_json(items), Raw(encode({field: items})))


def entity_drafts(shapes: Sequence[ReferenceEntityShape]) -> list[EntityDraft]:
    return [
        EntityDraft(shape.name, shape.entity_type, tuple(shape.observations)) for shape in shapes
    ]


def named_relations(shapes: Sequence[ReferenceRelationShape]) -> list[Relation]:
    return [Relation(shape.source, shape.target, shape.relation_type) for shape in shapes]


def observation_drafts(shapes: Sequence[Addition]) -> list[FactAddition]:
    return [FactAddition(shape.entity_name, tuple(shape.contents)) for shape in shapes]


def removals(shapes: Sequence[Deletion]) -> list[tuple[str, list[str]]]:
    return [(shape.entity_name, shape.observations) for shape in shapes]


def entity_shape(entity: Entity) -> ReferenceEntityShape:
    return ReferenceEntityShape(entity.name, entity.type, list(entity.texts))


def relation_shapes(relations: Sequence[Relation]) -> list[ReferenceRelationShape]:
    return [ReferenceRelationShape(*relation.key) for relation in relations]


def added_shapes(additions: Sequence[AddedFacts]) -> list[ReferenceAddedShape]:
    shapes = []
    for addition in additions:
        texts = [observation.text for observation in addition.facts]
        shapes.append(ReferenceAddedShape(addition.entity, texts))
    return shapes


def graph_shape(graph: Graph) -> GraphShape:
    entities = [entity_shape(entity) for entity in graph.entities]
    return GraphShape(entities, relation_shapes(graph.relations))
