"""The 24 tools and the JSON of their arguments: writing, reading, following relations."""

from typing import Annotated, Literal

from msgspec import Meta
from msgspec.json import encode

from polymnia.dialects.base import MAX_ROWS, Call, Reply, StrictArguments, catalogue, tool
from polymnia.dialects.reference import tools as reference
from polymnia.dialects.replies import in_order, matching_notes
from polymnia.engine.facts.merge import merge
from polymnia.engine.graph import entities, facts, relations, traverse
from polymnia.engine.graph.drawing import as_dot, as_mermaid
from polymnia.engine.health import statistics
from polymnia.engine.recall import search
from polymnia.errors import EntityNotFound
from polymnia.model import Graph

# Unknown arguments are rejected by name.
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


# Larger replies say how to get smaller ones: clients cut them off, or a model's context overflows.
MAX_USUAL_BYTES = 25 * 1024


@tool(Entities, needs="write")
def create_entities(call: Call, arguments: Entities) -> Reply:
    """Create entities. Existing names are left unchanged. Returns the entities that were \
created."""
    drafts = reference.entity_drafts(arguments.entities)
    created = entities.create(call.memory, drafts, by=call.by)
    return _reply([reference.entity_shape(entity) for entity in created])


@tool(GraphRelations, needs="write")
def create_relations(call: Call, arguments: GraphRelations) -> Reply:
    """Create directed relations. The entities at their ends need not exist yet. Existing \
relations are skipped. Returns the relations that were created."""
    requested = reference.named_relations(arguments.relations)
    created = relations.create(call.memory, requested, by=call.by)
    return _reply(reference.relation_shapes(created.new))


@tool(GraphAddObservations, needs="write")
def add_observations(call: Call, arguments: GraphAddObservations) -> Reply:
    """Add observations to existing entities, except those they already have. Returns what was \
added to each entity."""
    drafts = reference.observation_drafts(arguments.observations)
    additions = facts.add(call.memory, drafts, by=call.by, skip_repeats=True)
    return _reply(reference.added_shapes(additions))


@tool(GraphDeleteEntities, needs="write", destructive=True, idempotent=True)
def delete_entities(call: Call, arguments: GraphDeleteEntities) -> Reply:
    """Delete entities by name, and every relation that touches them. Returns the names that were \
deleted and the number of relations."""
    graph = entities.delete(call.memory, set(arguments.entity_names), by=call.by)
    names = [entity.name for entity in in_order(graph, arguments.entity_names)]
    return _reply({"deletedEntities": names, "deletedRelations": len(graph.relations)})


@tool(GraphDeleteObservations, needs="write", destructive=True, idempotent=True)
def delete_observations(call: Call, arguments: GraphDeleteObservations) -> Reply:
    """Delete observations from entities by their exact text. Returns how many were deleted."""
    removals = reference.removals(arguments.deletions)
    removed = facts.remove(call.memory, removals, by=call.by)
    return _reply({"deletedObservations": sum(len(removal.facts) for removal in removed)})


@tool(GraphRelations, needs="write", destructive=True, idempotent=True)
def delete_relations(call: Call, arguments: GraphRelations) -> Reply:
    """Delete relations by their exact from, to and relationType. Returns how many were deleted."""
    unwanted = reference.named_relations(arguments.relations)
    deleted = relations.delete(call.memory, unwanted, by=call.by)
    return _reply({"deletedRelations": len(deleted)})


@tool(Entities, needs="write", idempotent=True)
def upsert_entities(call: Call, arguments: Entities) -> Reply:
    """Create entities or add the observations that existing ones lack. An existing entity keeps \
its type."""
    drafts = reference.entity_drafts(arguments.entities)
    results = []
    for upserted in entities.upsert(call.memory, drafts, by=call.by):
        result = {"name": upserted.name, "created": upserted.created}
        results.append({**result, "addedObservations": upserted.added})
    return _reply(results)


@tool(Merge, needs="write", destructive=True)
def merge_entities(call: Call, arguments: Merge) -> Reply:
    """Merge one entity into another: observations and relations move to the target, the source is \
deleted."""
    merged = merge(call.memory, [arguments.source], arguments.target, by=call.by)
    return _reply(
        {
            "source": arguments.source,
            "target": arguments.target,
            "movedObservations": merged.facts + merged.known,
            "addedObservations": merged.facts,
            "redirectedRelations": merged.relations,
        }
    )


@tool(StrictArguments, needs="write", idempotent=True)
def compact(call: Call, arguments: StrictArguments) -> Reply:
    """Rewrite the store to reclaim the space of deleted data. The graph does not change."""
    call.memory.store.compact()
    with call.memory.reading() as read:
        counts = read.counts()
    return _reply({"compacted": True, "entities": counts.entities, "relations": counts.relations})


@tool(GraphPage, needs="read", idempotent=True)
def read_graph(call: Call, arguments: GraphPage) -> Reply:
    """Read the whole graph, or one page of it: entities of one type, from an offset, up to a \
limit, and the relations among them. The whole graph can be large: set a limit, or use \
search_nodes."""
    if arguments == GraphPage():
        return _graph_reply(entities.read_all(call.memory))
    offset, limit = _page_bounds(arguments)
    page = entities.page(call.memory, kind=arguments.entity_type, offset=offset, limit=limit)
    return _graph_reply(page)


@tool(GraphSearch, needs="read", idempotent=True)
def search_nodes(call: Call, arguments: GraphSearch) -> Reply:
    """Find entities by a part of their name, type or observations, best match first, with their \
relations. With several words, entities that have all of them come before those that have some. \
Without a limit every match is returned."""
    offset, limit = _page_bounds(arguments)
    graph = search.best_matches(
        call.memory, arguments.query, kind=arguments.entity_type, offset=offset, limit=limit
    )
    note = None
    if not offset and arguments.entity_type is None:
        note = matching_notes(call.memory, arguments.query)
    return _graph_reply(graph, note)


@tool(Several, needs="read", idempotent=True)
def open_nodes(call: Call, arguments: Several) -> Reply:
    """Get entities by exact name, in the order given, and every relation that touches one of \
them."""
    graph = entities.open_named(call.memory, set(arguments.names))
    entities_in_order = in_order(graph, arguments.names)
    return _reply(reference.graph_shape(Graph(entities_in_order, graph.relations)))


@tool(One, needs="read", idempotent=True)
def get_entity(call: Call, arguments: One) -> Reply:
    """Get one entity by exact name, with its observations but without relations."""
    graph = entities.open_named(call.memory, (arguments.name,))
    if not graph.entities:
        raise EntityNotFound(arguments.name)
    return _reply(reference.entity_shape(graph.entities[0]))


@tool(Several, needs="read", idempotent=True)
def batch_get_entities(call: Call, arguments: Several) -> Reply:
    """Get several entities by exact name, in the order given, with null for each that does not \
exist."""
    with call.memory.reading() as read:
        entities = {entity.name: entity for entity in read.entities(set(arguments.names))}
    results = []
    for name in arguments.names:
        entity = entities.get(name)
        results.append(entity and reference.entity_shape(entity))
    return _reply(results)


@tool(StrictArguments, needs="read", idempotent=True)
def graph_stats(call: Call, arguments: StrictArguments) -> Reply:
    """Count entities, relations, observations and texts."""
    known = statistics(call.memory)
    return _reply(
        {
            "entities": known.counts.entities,
            "relations": known.counts.relations,
            "totalObservations": known.counts.facts,
            "searchIndexEntries": known.counts.entities,
            "internedStrings": known.texts,
            "internedBytes": known.text_bytes,
        }
    )


@tool(RelationFilter, needs="read", idempotent=True)
def search_relations(call: Call, arguments: RelationFilter) -> Reply:
    """Find relations by start, end and type. An omitted or empty argument matches everything."""
    matching = relations.find(
        call.memory,
        source=arguments.source or None,
        target=arguments.target or None,
        kind=arguments.relation_type or None,
    )
    return _reply(reference.relation_shapes(matching))


@tool(StrictArguments, needs="read", idempotent=True)
def list_entity_types(call: Call, arguments: StrictArguments) -> Reply:
    """List the entity types with the number of entities of each, most frequent first."""
    return _reply(entities.types(call.memory))


@tool(StrictArguments, needs="read", idempotent=True)
def list_relation_types(call: Call, arguments: StrictArguments) -> Reply:
    """List the relation types with the number of relations of each, most frequent first."""
    return _reply(relations.types(call.memory))


@tool(GraphExport, needs="read", idempotent=True)
def export_graph(call: Call, arguments: GraphExport) -> Reply:
    """Export the whole graph as JSON, as a Mermaid flowchart or as a Graphviz DOT file. The \
result can be large."""
    graph = entities.read_all(call.memory)
    if arguments.format == "mermaid":
        return Reply(as_mermaid(graph))
    if arguments.format == "dot":
        return Reply(as_dot(graph))
    return _reply(reference.graph_shape(graph))


@tool(Ends, needs="read", idempotent=True)
def find_path(call: Call, arguments: Ends) -> Reply:
    """Find the shortest path between two entities along relations in either direction. Returns \
the names on it, both ends included, or an empty list."""
    return _reply(traverse.shortest_path(call.memory, arguments.source, arguments.target).names)


@tool(AllPaths, needs="read", idempotent=True)
def find_all_paths(call: Call, arguments: AllPaths) -> Reply:
    """Find every path between two entities that visits no entity twice, shortest first, up to \
maxDepth relations and maxPaths paths."""
    result = traverse.all_paths(
        call.memory,
        arguments.source,
        arguments.target,
        max_depth=arguments.max_depth,
        max_paths=arguments.max_paths,
    )
    note = None
    if result.cut is not None:
        note = f"The list is cut: {result.cut}."
    return Reply(encode(result.paths).decode(), note=note)


@tool(Subgraph, needs="read", idempotent=True)
def extract_subgraph(call: Call, arguments: Subgraph) -> Reply:
    """Get the entities within depth steps of the named ones, and the relations among them."""
    graph = traverse.subgraph(call.memory, set(arguments.names), arguments.depth)
    return _reply(reference.graph_shape(graph))


@tool(GraphNeighbours, needs="read", idempotent=True)
def get_neighbors(call: Call, arguments: GraphNeighbours) -> Reply:
    """Get an entity and those around it, up to depth steps along relations of a given type and \
direction, and the relations among them."""
    graph = traverse.neighbours(
        call.memory,
        arguments.name,
        arguments.depth,
        kind=arguments.relation_type or None,
        direction=arguments.direction,
    )
    return _reply(reference.graph_shape(graph))


@tool(One, needs="read", idempotent=True)
def describe_entity(call: Call, arguments: One) -> Reply:
    """Get one entity with its observations, every relation that touches it, the names at their \
other ends, and the number of relations."""
    description = traverse.describe(call.memory, arguments.name)
    return _reply(
        {
            "entity": reference.entity_shape(description.entity),
            "relations": reference.relation_shapes(description.relations),
            "neighbors": description.neighbours,
            "degree": len(description.relations),
        }
    )


TOOLS = catalogue(
    create_entities,
    create_relations,
    add_observations,
    delete_entities,
    delete_observations,
    delete_relations,
    upsert_entities,
    merge_entities,
    compact,
    read_graph,
    search_nodes,
    open_nodes,
    get_entity,
    batch_get_entities,
    graph_stats,
    search_relations,
    find_path,
    find_all_paths,
    extract_subgraph,
    get_neighbors,
    describe_entity,
    list_entity_types,
    list_relation_types,
    export_graph,
)


def _reply(value: object) -> Reply:
    """Return a reply whose text is compact JSON."""
    return Reply(encode(value).decode())


def _graph_reply(graph: Graph, note: str | None = None) -> Reply:
    """Return a graph with a note and, if it is large, with another that says how to limit it."""
    encoded = encode(reference.graph_shape(graph))
    notes = [note] if note else []
    if len(encoded) > MAX_USUAL_BYTES:
        size = f"{len(graph.entities):,} entities in {len(encoded) // 1024:,} KB"
        notes.insert(0, f"This reply is large: {size}. Set limit (and offset) to get fewer.")
    return Reply(encoded.decode(), note="\n".join(notes) or None)


def _page_bounds(arguments: GraphPage | GraphSearch) -> tuple[int, int | None]:
    """Return offset and limit in a range that every store can count to."""
    limit = arguments.limit
    if limit is not None:
        limit = min(limit, MAX_ROWS)
    return min(arguments.offset, MAX_ROWS), limit
