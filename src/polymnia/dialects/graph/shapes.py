"""The arguments of the graph tools as JSON. Unknown arguments are rejected by name."""

from typing import Annotated, Literal

from msgspec import Meta

from polymnia.dialects.base import StrictArguments
from polymnia.dialects.reference import tools as reference

Names = Annotated[list[str], Meta(description="Exact entity names")]
Name = Annotated[str, Meta(description="The exact name of an entity")]
OneType = Annotated[str | None, Meta(description="Only entities of this type")]
Offset = Annotated[int, Meta(ge=0, description="How many to skip")]
Limit = Annotated[int, Meta(ge=0, description="Maximum number to return")]
Depth = Annotated[int, Meta(ge=0, le=100, description="Maximum number of relations to follow")]


class GraphEntityArgument(
    reference.ReferenceEntityShape, frozen=True, forbid_unknown_fields=True, rename="camel"
):
    observations: Annotated[
        list[str], Meta(description="What is known about it, one fact each")
    ] = []


class GraphRelationArgument(
    reference.ReferenceRelationShape, frozen=True, forbid_unknown_fields=True, rename="camel"
):
    pass


class GraphAdditionArgument(
    reference.Addition, frozen=True, forbid_unknown_fields=True, rename="camel"
):
    pass


class GraphDeletionArgument(
    reference.Deletion, frozen=True, forbid_unknown_fields=True, rename="camel"
):
    pass


class Entities(StrictArguments, frozen=True):
    entities: list[GraphEntityArgument]


class GraphRelations(StrictArguments, frozen=True):
    relations: list[GraphRelationArgument]


class GraphAddObservations(StrictArguments, frozen=True):
    observations: list[GraphAdditionArgument]


class GraphDeleteEntities(StrictArguments, frozen=True, rename="camel"):
    entity_names: Names


class GraphDeleteObservations(StrictArguments, frozen=True):
    deletions: list[GraphDeletionArgument]


class Merge(StrictArguments, frozen=True):
    source: Annotated[str, Meta(description="The entity to merge and then delete")]
    target: Annotated[str, Meta(description="The entity that remains and receives everything")]


class GraphPage(StrictArguments, frozen=True, rename="camel"):
    entity_type: OneType = None
    offset: Offset = 0
    limit: Limit | None = None


class GraphSearch(StrictArguments, frozen=True, rename="camel"):
    query: Annotated[
        str, Meta(description="A part of a name, type or observation, or several words")
    ]
    entity_type: OneType = None
    offset: Offset = 0
    limit: Limit | None = None


class Several(StrictArguments, frozen=True):
    names: Names


class One(StrictArguments, frozen=True):
    name: Name


class RelationFilter(
    StrictArguments,
    frozen=True,
    rename={"source": "from", "target": "to", "relation_type": "relationType"},
):
    source: Annotated[str | None, Meta(description="Where the relation starts")] = None
    target: Annotated[str | None, Meta(description="Where the relation ends")] = None
    relation_type: Annotated[str | None, Meta(description="The relation's type")] = None


class Ends(StrictArguments, frozen=True, rename={"source": "from", "target": "to"}):
    source: Name
    target: Name


class AllPaths(
    Ends,
    frozen=True,
    rename={"source": "from", "target": "to", "max_depth": "maxDepth", "max_paths": "maxPaths"},
):
    max_depth: Annotated[
        int, Meta(ge=0, le=100, description="Maximum number of relations on a path")
    ] = 6
    max_paths: Annotated[
        int, Meta(ge=1, le=100_000, description="Maximum number of paths to return")
    ] = 50


class Subgraph(StrictArguments, frozen=True):
    names: Names
    depth: Depth = 1


class GraphNeighbours(StrictArguments, frozen=True, rename="camel"):
    name: Name
    depth: Depth = 1
    relation_type: Annotated[str | None, Meta(description="Follow only relations of this type")] = (
        None
    )
    direction: Annotated[
        Literal["out", "in", "both"],
        Meta(description="Follow relations from the entity, to it, or in both directions"),
    ] = "both"


class GraphExport(StrictArguments, frozen=True):
    format: Annotated[Literal["json", "mermaid", "dot"], Meta(description="Export format")] = "json"
