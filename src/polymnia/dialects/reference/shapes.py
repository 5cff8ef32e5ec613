"""What the reference catalogue's JSON looks like: arguments in, replies out."""

from typing import Annotated

from msgspec import Meta, Struct, field

from polymnia.model import Draft, Entity, Graph, Noted, Relation, Texts


class EntityShape(Struct, frozen=True, rename="camel"):
    name: Annotated[str, Meta(description="The name of the entity")]
    entity_type: Annotated[str, Meta(description="The type of the entity")]
    observations: Annotated[list[str], Meta(description="An array of observation contents associated with the entity")]


class RelationShape(Struct, frozen=True, rename="camel"):
    source: Annotated[str, Meta(description="The name of the entity where the relation starts")] = field(name="from")
    target: Annotated[str, Meta(description="The name of the entity where the relation ends")] = field(name="to")
    relation_type: Annotated[str, Meta(description="The type of the relation")]


class Addition(Struct, frozen=True, rename="camel"):
    entity_name: Annotated[str, Meta(description="The name of the entity to add the observations to")]
    contents: Annotated[list[str], Meta(description="An array of observation contents to add")]


class Deletion(Struct, frozen=True, rename="camel"):
    entity_name: Annotated[str, Meta(description="The name of the entity containing the observations")]
    observations: Annotated[list[str], Meta(description="An array of observations to delete")]


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
        str, Meta(description="The search query to match against entity names, types, and observation content")
    ]


class OpenNodes(Struct, frozen=True):
    names: Annotated[list[str], Meta(description="An array of entity names to retrieve")]


class EntitiesReply(Struct, frozen=True):
    entities: list[EntityShape]


class RelationsReply(Struct, frozen=True):
    relations: list[RelationShape]


class AddedShape(Struct, frozen=True, rename="camel"):
    entity_name: str
    added_observations: list[str]


class ResultsReply(Struct, frozen=True):
    results: list[AddedShape]


class DoneReply(Struct, frozen=True):
    success: bool
    message: str


class GraphReply(Struct, frozen=True):
    entities: list[EntityShape]
    relations: list[RelationShape]


def draft(shape: EntityShape) -> Draft:
    return Draft(shape.name, shape.entity_type, tuple(shape.observations))


def relation(shape: RelationShape) -> Relation:
    return Relation(shape.source, shape.target, shape.relation_type)


def addition(shape: Addition) -> Texts:
    return Texts(shape.entity_name, tuple(shape.contents))


def deletion(shape: Deletion) -> Texts:
    return Texts(shape.entity_name, tuple(shape.observations))


def entity_shape(entity: Entity) -> EntityShape:
    return EntityShape(entity.name, entity.type, [each.text for each in entity.observations])


def relation_shape(relation: Relation) -> RelationShape:
    return RelationShape(relation.source, relation.target, relation.type)


def added_shape(noted: Noted) -> AddedShape:
    return AddedShape(noted.entity, [each.text for each in noted.observations])


def graph_shape(graph: Graph) -> GraphReply:
    entities = [entity_shape(entity) for entity in graph.entities]
    return GraphReply(entities, [relation_shape(relation) for relation in graph.relations])
