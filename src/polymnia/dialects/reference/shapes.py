"""What the reference catalogue's JSON looks like: the arguments and the replies of its tools."""

from typing import Annotated

from msgspec import Meta, Struct

from polymnia.dialects.camel import AddedShape, Addition, Deletion, EntityShape, RelationShape


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


class ResultsReply(Struct, frozen=True):
    results: list[AddedShape]


class DoneReply(Struct, frozen=True):
    success: bool
    message: str
