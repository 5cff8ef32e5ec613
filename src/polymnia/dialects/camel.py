"""Entities and relations in the JSON of the camelCase catalogues, `reference` and `graph`."""

from typing import Annotated

from msgspec import Meta, Struct, field

from polymnia.model import Entity, EntityDraft, Graph, ObservationDraft, ObservationSet, Relation


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


class AddedShape(Struct, frozen=True, rename="camel"):
    entity_name: str
    added_observations: list[str]


class GraphShape(Struct, frozen=True):
    entities: list[EntityShape]
    relations: list[RelationShape]


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
