"""The arguments of the workspace tools. Unknown arguments are rejected."""

from typing import Annotated, Literal

from msgspec import Meta, Struct

from polymnia.dialects.base import MAX_ROWS

MAX_DEPTH = 10
MAX_DAYS = 36_500

EntityName = Annotated[str, Meta(description="Name of the entity, exactly as it was created")]
RelationType = Annotated[
    str, Meta(min_length=1, description="Type of the relation, for example uses or depends_on")
]
Mode = Annotated[
    Literal["embedding", "text"],
    Meta(
        description="embedding: by meaning, from every perspective; text: by words, for exact terms or when no "
        "embedder is available",
        extra_json_schema={"type": "string"},
    ),
]
Limit = Annotated[int, Meta(ge=1, le=MAX_ROWS, description="Return at most this many")]


class Nothing(Struct, frozen=True, forbid_unknown_fields=True):
    pass


class EntityArgument(Struct, frozen=True, forbid_unknown_fields=True):
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


class CreateEntities(Struct, frozen=True, forbid_unknown_fields=True):
    entities: list[EntityArgument]


class DeleteEntities(Struct, frozen=True, forbid_unknown_fields=True):
    entity_names: list[str]


class OpenNodes(Struct, frozen=True, forbid_unknown_fields=True):
    names: list[str]


class GetNodesByType(Struct, frozen=True, forbid_unknown_fields=True):
    entity_type: str


class GetRecentlyModified(Struct, frozen=True, forbid_unknown_fields=True):
    days: Annotated[int, Meta(ge=0, le=MAX_DAYS, description="How many days to look back")] = 7
    limit: Limit = 20


class SetSummary(Struct, frozen=True, forbid_unknown_fields=True):
    name: EntityName
    summary: str


class SetTags(Struct, frozen=True, forbid_unknown_fields=True):
    name: EntityName
    tags: Annotated[list[str], Meta(description="The new tags; they replace all others")]


class AdditionArgument(Struct, frozen=True, forbid_unknown_fields=True):
    entity_name: EntityName
    contents: Annotated[list[str], Meta(description="Observations, appended in order")]


class AddObservations(Struct, frozen=True, forbid_unknown_fields=True):
    observations: list[AdditionArgument]


class ReplaceObservation(Struct, frozen=True, forbid_unknown_fields=True):
    entity_name: EntityName
    ordinal: int
    new_content: str


class DeletionArgument(Struct, frozen=True, forbid_unknown_fields=True):
    entity_name: EntityName
    ordinals: list[int]


class DeleteObservations(Struct, frozen=True, forbid_unknown_fields=True):
    deletions: list[DeletionArgument]


class QueryObservations(Struct, frozen=True, forbid_unknown_fields=True):
    entity_name: EntityName
    query: str
    mode: Mode = "embedding"


class RelationArgument(Struct, frozen=True, forbid_unknown_fields=True):
    from_entity: EntityName
    to_entity: EntityName
    relation_type: RelationType


class Relations(Struct, frozen=True, forbid_unknown_fields=True):
    relations: list[RelationArgument]


class UpdateRelationType(Struct, frozen=True, forbid_unknown_fields=True):
    from_entity: EntityName
    to_entity: EntityName
    old_type: str
    new_type: RelationType


class GetRelationsBetween(Struct, frozen=True, forbid_unknown_fields=True):
    entity_a: EntityName
    entity_b: EntityName


class GetNeighborhood(Struct, frozen=True, forbid_unknown_fields=True):
    name: EntityName
    depth: Annotated[int, Meta(ge=0, le=MAX_DEPTH, description="Number of hops")] = 1


class GetPath(Struct, frozen=True, forbid_unknown_fields=True):
    from_entity: EntityName
    to_entity: EntityName


class FindSimilarNodes(Struct, frozen=True, forbid_unknown_fields=True):
    limit: Limit = 20
    min_score: Annotated[float, Meta(ge=-1, le=1, description="Least cosine similarity")] = 0.75


class SearchNodes(Struct, frozen=True, forbid_unknown_fields=True):
    query: str
    limit: Limit = 10
    mode: Mode = "embedding"
