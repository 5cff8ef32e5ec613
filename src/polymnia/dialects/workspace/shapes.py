"""The JSON of the workspace tools' replies. A list is wrapped as FastMCP does it: `{"result": [...]}`."""

from collections.abc import Sequence
from typing import Annotated, Any, cast

from msgspec import Meta, Raw, Struct, defstruct, field
from msgspec.json import encode

from polymnia.dialects.base import Reply
from polymnia.dialects.times import iso_time
from polymnia.model import Entity, Observation, Relation

# Tells FastMCP's clients to unwrap the list.
_WRAPPED = Meta(extra_json_schema={"x-fastmcp-wrap-result": True})


class CreatedShape(Struct, frozen=True):
    name: str
    entity_type: str
    created_at: str | None


class DeletedReply(Struct, frozen=True):
    deleted: list[str]
    not_found: list[str]


class ObservationShape(Struct, frozen=True):
    ordinal: int
    content: str


class NodeShape(Struct, frozen=True):
    name: str
    entity_type: str
    summary: str | None
    tags: list[str]
    observations: list[ObservationShape]
    created_at: str | None
    updated_at: str | None


class RelationShape(Struct, frozen=True):
    source: str = field(name="from")
    target: str = field(name="to")
    relation_type: str


class OpenedReply(Struct, frozen=True):
    entities: list[NodeShape]
    relations: list[RelationShape]
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


class AddedShape(Struct, frozen=True):
    entity_name: str
    added: list[ObservationShape]
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
    created: list[RelationShape]
    already_existed: list[RelationShape]
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
    relations: list[RelationShape]


class PathReply(Struct, frozen=True):
    found: bool
    path: list[str]
    relations: list[RelationShape]


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
    """Return the type of a reply that is a list of these shapes."""
    items = cast(Any, list).__class_getitem__(shape)
    wrapped = defstruct(f"{shape.__name__}List", [("result", items)], frozen=True)
    return cast(type[Struct], Annotated[wrapped, _WRAPPED])


def list_reply(values: Sequence[Struct], *, note: str | None = None) -> Reply:
    """Reply with a list: as text the array itself, as structured content an object that holds it."""
    return Reply(encode(values).decode(), Raw(encode({"result": values})), note)


def object_reply(value: Struct, *, note: str | None = None) -> Reply:
    """Reply with the same object as text and as structured content."""
    encoded = encode(value)
    return Reply(encoded.decode(), Raw(encoded), note)


def node_shape(entity: Entity) -> NodeShape:
    return NodeShape(
        entity.name,
        entity.type,
        entity.summary,
        list(entity.tags),
        [observation_shape(each) for each in entity.observations],
        iso_time(entity.created_at),
        iso_time(entity.updated_at),
    )


def observation_shape(observation: Observation) -> ObservationShape:
    return ObservationShape(observation.ordinal, observation.text)


def relation_shape(relation: Relation) -> RelationShape:
    return RelationShape(*relation.key)


def recent_shape(entity: Entity) -> RecentNodeShape:
    return RecentNodeShape(entity.name, entity.type, entity.summary, iso_time(entity.updated_at))
