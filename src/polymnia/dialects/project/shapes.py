"""The JSON of the project tools: arguments (unknown ones are rejected) and replies."""

from hashlib import sha1
from typing import Annotated, Literal
from uuid import UUID

from msgspec import Meta, Struct, field
from msgspec.json import encode

from polymnia.dialects.base import StrictArguments
from polymnia.model import Entity, Fact, Relation, Workspace
from polymnia.search.times import iso_time


class ListProjects(StrictArguments, frozen=True):
    status: Annotated[
        Literal["active", "archived", "all"],
        Meta(description="Filter projects by status", extra_json_schema={"type": "string"}),
    ] = "active"


class CreateProject(StrictArguments, frozen=True):
    name: Annotated[
        str,
        Meta(
            description="Unique project name (slug-friendly): letters, digits, '-', '_' and '.', "
            "starting with a letter or digit, at most 100 characters"
        ),
    ]
    description: Annotated[str, Meta(description="Optional project description")] = ""


class SwitchProject(StrictArguments, frozen=True):
    name: Annotated[str, Meta(description="Name of the project to switch to")]


class ArchiveProject(StrictArguments, frozen=True):
    name: Annotated[str, Meta(description="Name of the project to archive")]


class DeleteProject(StrictArguments, frozen=True):
    name: Annotated[str, Meta(description="Name of the project to permanently delete")]


class RestoreProject(StrictArguments, frozen=True):
    name: Annotated[str, Meta(description="Name of the archived project to restore")]


class ProjectEntityArgument(StrictArguments, frozen=True):
    name: Annotated[str, Meta(description="Entity name")]
    entity_type: Annotated[str, Meta(description="Entity type (e.g., person, technology, concept)")]
    observations: Annotated[
        list[str], Meta(description="Initial observations about the entity")
    ] = []


class ProjectCreateEntities(StrictArguments, frozen=True):
    entities: Annotated[
        list[ProjectEntityArgument], Meta(description="Array of entities to create")
    ]


class ProjectAdditionArgument(StrictArguments, frozen=True):
    entity_name: Annotated[str, Meta(description="Name of the entity")]
    contents: Annotated[list[str], Meta(description="Observation texts to add")]


class ProjectAddObservations(StrictArguments, frozen=True):
    observations: list[ProjectAdditionArgument]


class ProjectRelationArgument(StrictArguments, frozen=True):
    source: Annotated[str, Meta(description="Source entity name")] = field(name="from")
    target: Annotated[str, Meta(description="Target entity name")] = field(name="to")
    relation_type: Annotated[
        str, Meta(description="Relation type in active voice (e.g., uses, depends_on, manages)")
    ]


class ProjectRelations(StrictArguments, frozen=True):
    relations: list[ProjectRelationArgument]


class ProjectSearchNodes(StrictArguments, frozen=True):
    query: Annotated[
        str, Meta(description="Search query (supports FTS5 syntax: AND, OR, NOT, prefix*)")
    ]


class ProjectOpenNodes(StrictArguments, frozen=True):
    names: Annotated[list[str], Meta(description="Exact entity names to retrieve")]


class ProjectDeleteEntities(StrictArguments, frozen=True):
    names: Annotated[list[str], Meta(description="Entity names to delete")]


class ProjectDeletionArgument(StrictArguments, frozen=True):
    entity_name: str
    observations: Annotated[
        list[str], Meta(description="Observation content strings to match and delete")
    ]


class ProjectDeleteObservations(StrictArguments, frozen=True):
    deletions: list[ProjectDeletionArgument]


class ProjectShape(Struct, frozen=True):
    id: str
    name: str
    description: str
    status: Literal["active", "archived"]
    created_at: str | None
    updated_at: str | None


class ProjectObservationShape(Struct, frozen=True):
    id: str
    content: str
    created_at: str | None


class ProjectAddedShape(Struct, frozen=True):
    id: str
    entity_id: str
    entity_name: str
    content: str
    created_at: str | None


class ProjectRelationShape(Struct, frozen=True):
    id: str
    source: str = field(name="from")
    target: str = field(name="to")
    relation_type: str
    created_at: str | None


class ProjectEntityShape(Struct, frozen=True):
    id: str
    name: str
    entity_type: str
    created_at: str | None
    updated_at: str | None
    observations: list[ProjectObservationShape]


class ProjectNodeShape(ProjectEntityShape, frozen=True):
    relations: list[ProjectRelationShape]


class ProjectsReply(Struct, frozen=True):
    projects: list[ProjectShape]


class ConfirmedReply(Struct, frozen=True):
    message: str
    project: ProjectShape


class CurrentReply(Struct, frozen=True):
    message: str | None
    project: ProjectShape | None


class ProjectEntitiesReply(Struct, frozen=True):
    entities: list[ProjectEntityShape]


class NodesReply(Struct, frozen=True):
    entities: list[ProjectNodeShape]


class ObservationsReply(Struct, frozen=True):
    observations: list[ProjectAddedShape]


class ProjectRelationsReply(Struct, frozen=True):
    relations: list[ProjectRelationShape]


class GraphReply(Struct, frozen=True):
    entities: list[ProjectEntityShape]
    relations: list[ProjectRelationShape]


class CountReply(Struct, frozen=True):
    deleted: int


def project_shape(project: Workspace) -> ProjectShape:
    times = (iso_time(project.created_at), iso_time(project.updated_at))
    return ProjectShape(project.id, project.name, project.description, project.status, *times)


def entity_shape(entity: Entity) -> ProjectEntityShape:
    return ProjectEntityShape(*_entity_fields(entity))


def node_shapes(entities: list[Entity], relations: list[Relation]) -> list[ProjectNodeShape]:
    """Return every entity with the relations that touch it."""
    touching: dict[str, list[ProjectRelationShape]] = {entity.name: [] for entity in entities}
    for relation in relations:
        shape = relation_shape(relation)
        for name in {relation.source, relation.target} & touching.keys():
            touching[name].append(shape)
    return [ProjectNodeShape(*_entity_fields(entity), touching[entity.name]) for entity in entities]


def relation_shape(relation: Relation) -> ProjectRelationShape:
    # Derive an id from the ends, type and creation time, which identify a relation.
    key = encode((*relation.key, relation.created_at))
    relation_id = str(UUID(bytes=sha1(key, usedforsecurity=False).digest()[:16], version=5))
    return ProjectRelationShape(relation_id, *relation.key, iso_time(relation.created_at))


def added_shape(entity: Entity, observation: Fact) -> ProjectAddedShape:
    return ProjectAddedShape(
        observation_id(entity, observation),
        entity.id,
        entity.name,
        observation.text,
        iso_time(observation.created_at),
    )


def observation_id(entity: Entity, observation: Fact) -> str:
    """Return the entity's id and the ordinal, which is never reused."""
    return f"{entity.id}/{observation.ordinal}"


def _entity_fields(
    entity: Entity,
) -> tuple[str, str, str, str | None, str | None, list[ProjectObservationShape]]:
    times = (iso_time(entity.created_at), iso_time(entity.updated_at))
    observations = []
    for observation in entity.facts:
        created_at = iso_time(observation.created_at)
        identity = observation_id(entity, observation)
        observations.append(ProjectObservationShape(identity, observation.text, created_at))
    return (entity.id, entity.name, entity.type, *times, observations)
