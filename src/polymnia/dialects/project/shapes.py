"""What the project catalogue's JSON looks like: arguments and replies. Unknown arguments are refused by name."""

from typing import Annotated, Literal

from msgspec import Meta, Struct, field


class Nothing(Struct, frozen=True, forbid_unknown_fields=True):
    pass


class ListProjects(Struct, frozen=True, forbid_unknown_fields=True):
    status: Annotated[
        Literal["active", "archived", "all"],
        Meta(description="Filter projects by status", extra_json_schema={"type": "string"}),
    ] = "active"


class CreateProject(Struct, frozen=True, forbid_unknown_fields=True):
    name: Annotated[str, Meta(description="Unique project name (slug-friendly)")]
    description: Annotated[str, Meta(description="Optional project description")] = ""


class SwitchProject(Struct, frozen=True, forbid_unknown_fields=True):
    name: Annotated[str, Meta(description="Name of the project to switch to")]


class ArchiveProject(Struct, frozen=True, forbid_unknown_fields=True):
    name: Annotated[str, Meta(description="Name of the project to archive")]


class DeleteProject(Struct, frozen=True, forbid_unknown_fields=True):
    name: Annotated[str, Meta(description="Name of the project to permanently delete")]


class RestoreProject(Struct, frozen=True, forbid_unknown_fields=True):
    name: Annotated[str, Meta(description="Name of the archived project to restore")]


class EntityArgument(Struct, frozen=True, forbid_unknown_fields=True):
    name: Annotated[str, Meta(description="Entity name")]
    entity_type: Annotated[str, Meta(description="Entity type (e.g., person, technology, concept)")]
    observations: Annotated[list[str], Meta(description="Initial observations about the entity")] = []


class CreateEntities(Struct, frozen=True, forbid_unknown_fields=True):
    entities: Annotated[list[EntityArgument], Meta(description="Array of entities to create")]


class AdditionArgument(Struct, frozen=True, forbid_unknown_fields=True):
    entity_name: Annotated[str, Meta(description="Name of the entity")]
    contents: Annotated[list[str], Meta(description="Observation texts to add")]


class AddObservations(Struct, frozen=True, forbid_unknown_fields=True):
    observations: list[AdditionArgument]


class RelationArgument(Struct, frozen=True, forbid_unknown_fields=True):
    source: Annotated[str, Meta(description="Source entity name")] = field(name="from")
    target: Annotated[str, Meta(description="Target entity name")] = field(name="to")
    relation_type: Annotated[str, Meta(description="Relation type in active voice (e.g., uses, depends_on, manages)")]


class Relations(Struct, frozen=True, forbid_unknown_fields=True):
    relations: list[RelationArgument]


class SearchNodes(Struct, frozen=True, forbid_unknown_fields=True):
    query: Annotated[str, Meta(description="Search query (supports FTS5 syntax: AND, OR, NOT, prefix*)")]


class OpenNodes(Struct, frozen=True, forbid_unknown_fields=True):
    names: Annotated[list[str], Meta(description="Exact entity names to retrieve")]


class DeleteEntities(Struct, frozen=True, forbid_unknown_fields=True):
    names: Annotated[list[str], Meta(description="Entity names to delete")]


class DeletionArgument(Struct, frozen=True, forbid_unknown_fields=True):
    entity_name: str
    observations: Annotated[list[str], Meta(description="Observation content strings to match and delete")]


class DeleteObservations(Struct, frozen=True, forbid_unknown_fields=True):
    deletions: list[DeletionArgument]


class ProjectShape(Struct, frozen=True):
    id: str
    name: str
    description: str
    status: Literal["active", "archived"]
    created_at: str | None
    updated_at: str | None


class ObservationShape(Struct, frozen=True):
    id: str
    content: str
    created_at: str | None


class AddedShape(Struct, frozen=True):
    id: str
    entity_id: str
    entity_name: str
    content: str
    created_at: str | None


class RelationShape(Struct, frozen=True):
    id: str
    source: str = field(name="from")
    target: str = field(name="to")
    relation_type: str
    created_at: str | None


class EntityShape(Struct, frozen=True):
    id: str
    name: str
    entity_type: str
    created_at: str | None
    updated_at: str | None
    observations: list[ObservationShape]


class NodeShape(EntityShape, frozen=True):
    relations: list[RelationShape]


class ProjectsReply(Struct, frozen=True):
    projects: list[ProjectShape]


class ConfirmedReply(Struct, frozen=True):
    message: str
    project: ProjectShape


class CurrentReply(Struct, frozen=True):
    message: str | None
    project: ProjectShape | None


class EntitiesReply(Struct, frozen=True):
    entities: list[EntityShape]


class NodesReply(Struct, frozen=True):
    entities: list[NodeShape]


class ObservationsReply(Struct, frozen=True):
    observations: list[AddedShape]


class RelationsReply(Struct, frozen=True):
    relations: list[RelationShape]


class GraphReply(Struct, frozen=True):
    entities: list[EntityShape]
    relations: list[RelationShape]


class CountReply(Struct, frozen=True):
    deleted: int
