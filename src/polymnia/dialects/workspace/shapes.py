"""The JSON of the workspace tools: arguments (unknown ones are rejected) and replies."""

from typing import Annotated, Any, Literal, TypeVar, cast

from msgspec import Meta, Struct, defstruct, field

from polymnia.dialects.base import MAX_ROWS, StrictArguments
from polymnia.model import Entity, Fact, Relation
from polymnia.search.times import iso_time

S = TypeVar("S", bound=Struct)

MAX_DEPTH = 10
MAX_DAYS = 36_500

EntityName = Annotated[str, Meta(description="Name of the entity, exactly as it was created")]
RelationType = Annotated[
    str, Meta(min_length=1, description="Type of the relation, for example uses or depends_on")
]
Mode = Annotated[
    Literal["embedding", "text"],
    Meta(
        description="embedding: by meaning, from every perspective; text: by words, for exact "
        "terms or when no embedder is available",
        extra_json_schema={"type": "string"},
    ),
]
Limit = Annotated[int, Meta(ge=1, le=MAX_ROWS, description="Return at most this many")]


class WorkspaceEntityArgument(StrictArguments, frozen=True):
    name: Annotated[str, Meta(min_length=1, description="Unique name within the workspace")]
    entity_type: Annotated[
        str, Meta(description="Type of the entity, for example person, service or decision")
    ]
    observations: Annotated[
        list[str], Meta(description="Initial observations, appended in order")
    ] = []
    summary: Annotated[str | None, Meta(description="What the entity is, in a sentence or two")] = (
        None
    )
    tags: list[str] = []


class WorkspaceCreateEntities(StrictArguments, frozen=True):
    entities: list[WorkspaceEntityArgument]


class WorkspaceDeleteEntities(StrictArguments, frozen=True):
    entity_names: list[str]


class WorkspaceOpenNodes(StrictArguments, frozen=True):
    names: list[str]


class GetNodesByType(StrictArguments, frozen=True):
    entity_type: str


class GetRecentlyModified(StrictArguments, frozen=True):
    days: Annotated[int, Meta(ge=0, le=MAX_DAYS, description="How many days to look back")] = 7
    limit: Limit = 20


class SetSummary(StrictArguments, frozen=True):
    name: EntityName
    summary: str


class SetTags(StrictArguments, frozen=True):
    name: EntityName
    tags: Annotated[list[str], Meta(description="The new tags; they replace all others")]


class WorkspaceAdditionArgument(StrictArguments, frozen=True):
    entity_name: EntityName
    contents: Annotated[list[str], Meta(description="Observations, appended in order")]


class WorkspaceAddObservations(StrictArguments, frozen=True):
    observations: list[WorkspaceAdditionArgument]


class ReplaceObservation(StrictArguments, frozen=True):
    entity_name: EntityName
    ordinal: int
    new_content: str


class WorkspaceDeletionArgument(StrictArguments, frozen=True):
    entity_name: EntityName
    ordinals: list[int]


class WorkspaceDeleteObservations(StrictArguments, frozen=True):
    deletions: list[WorkspaceDeletionArgument]


class QueryObservations(StrictArguments, frozen=True):
    entity_name: EntityName
    query: str
    mode: Mode = "embedding"


class WorkspaceRelationArgument(StrictArguments, frozen=True):
    from_entity: EntityName
    to_entity: EntityName
    relation_type: RelationType


class WorkspaceRelations(StrictArguments, frozen=True):
    relations: list[WorkspaceRelationArgument]


class UpdateRelationType(StrictArguments, frozen=True):
    from_entity: EntityName
    to_entity: EntityName
    old_type: str
    new_type: RelationType


class GetRelationsBetween(StrictArguments, frozen=True):
    entity_a: EntityName
    entity_b: EntityName


class GetNeighborhood(StrictArguments, frozen=True):
    name: EntityName
    depth: Annotated[int, Meta(ge=0, le=MAX_DEPTH, description="Number of hops")] = 1


class GetPath(StrictArguments, frozen=True):
    from_entity: EntityName
    to_entity: EntityName


class FindSimilarNodes(StrictArguments, frozen=True):
    limit: Limit = 20
    min_score: Annotated[float, Meta(ge=-1, le=1, description="Least cosine similarity")] = 0.75


class WorkspaceSearchNodes(StrictArguments, frozen=True):
    query: str
    limit: Limit = 10
    mode: Mode = "embedding"


class CreatedShape(Struct, frozen=True):
    name: str
    entity_type: str
    created_at: str | None


class DeletedReply(Struct, frozen=True):
    deleted: list[str]
    not_found: list[str]


class WorkspaceObservationShape(Struct, frozen=True):
    ordinal: int
    content: str


class WorkspaceNodeShape(Struct, frozen=True):
    name: str
    entity_type: str
    summary: str | None
    tags: list[str]
    observations: list[WorkspaceObservationShape]
    created_at: str | None
    updated_at: str | None


class WorkspaceRelationShape(Struct, frozen=True):
    source: str = field(name="from")
    target: str = field(name="to")
    relation_type: str


class OpenedReply(Struct, frozen=True):
    entities: list[WorkspaceNodeShape]
    relations: list[WorkspaceRelationShape]
    not_found: list[str]


class TypedNodeShape(Struct, frozen=True):
    name: str
    entity_type: str
    summary: str | None
    tags: list[str]
    updated_at: str | None


class RecentNodeShape(Struct, frozen=True):
    name: str
    entity_type: str
    summary: str | None
    updated_at: str | None


class SummaryReply(Struct, frozen=True):
    name: str
    summary: str
    updated_at: str | None


class TagsReply(Struct, frozen=True):
    name: str
    tags: list[str]


class WorkspaceAddedShape(Struct, frozen=True):
    entity_name: str
    added: list[WorkspaceObservationShape]
    not_found: bool


class ReplacedReply(Struct, frozen=True):
    entity_name: str
    ordinal: int
    old_content: str
    new_content: str


class DeletedOrdinalsShape(Struct, frozen=True):
    entity_name: str
    deleted_ordinals: list[int]
    not_found_ordinals: list[int]


class ScoredObservationShape(Struct, frozen=True):
    ordinal: int
    content: str
    score: float


class CreatedRelationsReply(Struct, frozen=True):
    created: list[WorkspaceRelationShape]
    already_existed: list[WorkspaceRelationShape]
    not_found: list[str]


class DeletedRelationsReply(Struct, frozen=True):
    deleted: int
    not_found: int


class RenamedReply(Struct, frozen=True):
    from_entity: str
    to_entity: str
    old_type: str
    new_type: str


class NeighborShape(Struct, frozen=True):
    name: str
    entity_type: str
    summary: str | None
    tags: list[str]


class NeighborhoodReply(Struct, frozen=True):
    nodes: list[NeighborShape]
    relations: list[WorkspaceRelationShape]


class PathReply(Struct, frozen=True):
    found: bool
    path: list[str]
    relations: list[WorkspaceRelationShape]


class GapShape(Struct, frozen=True):
    node: str
    referenced_name: str
    reference_count: int


class SimilarShape(Struct, frozen=True):
    node_a: str
    node_b: str
    similarity: float
    node_a_type: str
    node_b_type: str


class FoundNodeShape(Struct, frozen=True):
    name: str
    entity_type: str
    summary: str | None
    matched_observation: str
    matched_perspective: str | None
    score: float


class StaleSummaryShape(Struct, frozen=True):
    name: str
    entity_type: str
    last_modified: str | None
    observation_count: int
    draft_summary: str | None


class CandidateShape(Struct, frozen=True):
    node_a: str
    node_b: str
    similarity_score: float
    rationale: str | None


class OrphanShape(Struct, frozen=True):
    name: str
    entity_type: str
    updated_at: str | None


class ClusterShape(Struct, frozen=True):
    cluster_id: int
    node_names: list[str]
    centroid_label: str | None


class EventsShape(Struct, frozen=True):
    since: str | None
    creates: int
    updates: int
    deletes: int


class ReportReply(Struct, frozen=True):
    stale_summaries: list[StaleSummaryShape]
    relation_candidates: list[CandidateShape]
    orphaned_nodes: list[OrphanShape]
    cluster_summary: list[ClusterShape]
    event_summary: EventsShape


class PendingShape(Struct, frozen=True):
    name: str
    entity_type: str
    observation_count: int
    last_observation_at: str | None
    summary_updated_at: str | None


class StatsReply(Struct, frozen=True):
    node_count: int
    observation_count: int
    relation_count: int
    embedding_coverage: float
    workspace: str


def list_of(shape: type[Struct]) -> type[Struct]:
    """Return the type of a list, wrapped as FastMCP does it: `{"result": [...]}`."""
    items = cast(Any, list).__class_getitem__(shape)
    wrapped = defstruct(f"{shape.__name__}List", [("result", items)], frozen=True)
    # Tells FastMCP's clients to unwrap the list.
    unwrap = Meta(extra_json_schema={"x-fastmcp-wrap-result": True})
    return cast(type[Struct], Annotated[wrapped, unwrap])


def entity_shape(kind: type[S], entity: Entity) -> S:
    """Return the fields of the entity that this kind of shape has."""
    fields = {
        "name": entity.name,
        "entity_type": entity.type,
        "summary": entity.summary,
        "tags": list(entity.tags),
        "observations": [observation_shape(observation) for observation in entity.facts],
        "created_at": iso_time(entity.created_at),
        "updated_at": iso_time(entity.updated_at),
    }
    return kind(**{field: fields[field] for field in kind.__struct_fields__})


def observation_shape(observation: Fact) -> WorkspaceObservationShape:
    return WorkspaceObservationShape(observation.ordinal, observation.text)


def relation_shapes(relations: list[Relation]) -> list[WorkspaceRelationShape]:
    return [WorkspaceRelationShape(*relation.key) for relation in relations]
