"""Values put into the project catalogue's words."""

from collections.abc import Sequence
from hashlib import sha1
from uuid import UUID

from msgspec import Raw, Struct
from msgspec.json import encode

from polymnia.dialects.base import Reply
from polymnia.dialects.project import shapes
from polymnia.dialects.times import iso_time
from polymnia.model import Entity, Graph, Observation, Relation, Workspace


def wrapped(values: Sequence[Struct], structured: Struct, *, note: str | None = None) -> Reply:
    """The text is the array itself; structured content must be an object, so the array has a name there."""
    return Reply(encode(values).decode(), Raw(encode(structured)), note)


def plain(value: Struct, *, note: str | None = None) -> Reply:
    """Text and structured content are the same object."""
    spelled = encode(value)
    return Reply(spelled.decode(), Raw(spelled), note)


def project_shape(project: Workspace) -> shapes.ProjectShape:
    times = (iso_time(project.created_at), iso_time(project.updated_at))
    return shapes.ProjectShape(project.id, project.name, project.description, project.status, *times)


def entity_shape(entity: Entity) -> shapes.EntityShape:
    return shapes.EntityShape(*_about(entity))


def nodes(graph: Graph) -> list[shapes.NodeShape]:
    """Every entity with the relations that touch it."""
    touching: dict[str, list[shapes.RelationShape]] = {entity.name: [] for entity in graph.entities}
    for relation in graph.relations:
        shape = relation_shape(relation)
        for name in {relation.source, relation.target} & touching.keys():
            touching[name].append(shape)
    return [shapes.NodeShape(*_about(entity), touching[entity.name]) for entity in graph.entities]


def relation_shape(relation: Relation) -> shapes.RelationShape:
    return shapes.RelationShape(_relation_id(relation), *relation.key, iso_time(relation.created_at))


def added_shape(entity: Entity, observation: Observation) -> shapes.AddedShape:
    return shapes.AddedShape(
        observation_id(entity, observation),
        entity.id,
        entity.name,
        observation.text,
        iso_time(observation.created_at),
    )


def observation_id(entity: Entity, observation: Observation) -> str:
    """The entity's id and the ordinal, which is never reused."""
    return f"{entity.id}/{observation.ordinal}"


def _about(
    entity: Entity,
) -> tuple[str, str, str, str | None, str | None, list[shapes.ObservationShape]]:
    times = (iso_time(entity.created_at), iso_time(entity.updated_at))
    observations = [
        shapes.ObservationShape(observation_id(entity, each), each.text, iso_time(each.created_at))
        for each in entity.observations
    ]
    return (entity.id, entity.name, entity.type, *times, observations)


def _relation_id(relation: Relation) -> str:
    """A relation is what it joins, how and since when; its id is made of that."""
    key = encode((*relation.key, relation.created_at))
    return str(UUID(bytes=sha1(key, usedforsecurity=False).digest()[:16], version=5))
