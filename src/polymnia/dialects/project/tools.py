"""The tools for the graph of the active project."""

from polymnia.dialects.base import Call, Reply, StrictArguments, tool
from polymnia.dialects.project import shapes
from polymnia.dialects.project.projects import active_memory
from polymnia.dialects.project.shapes import (
    added_shape,
    entity_shape,
    node_shapes,
    relation_shape,
)
from polymnia.dialects.replies import (
    array_reply,
    in_order,
    json_reply,
    matching_notes,
    unchanged_note,
)
from polymnia.engine.graph import entities, facts, relations
from polymnia.engine.recall import search
from polymnia.model import EntityDraft, FactAddition, Relation


@tool(shapes.ProjectCreateEntities, needs="write", returns=shapes.ProjectEntitiesReply)
def create_entities(call: Call, arguments: shapes.ProjectCreateEntities) -> Reply:
    """Create one or more entities in the knowledge graph. Existing names are left unchanged."""
    drafts = [
        EntityDraft(shape.name, shape.entity_type, tuple(shape.observations))
        for shape in arguments.entities
    ]
    with active_memory(call) as memory:
        created = entities.create(memory, drafts, by=call.by)
    names = sorted(draft.name for draft in drafts)
    note = unchanged_note(names, [entity.name for entity in created])
    return array_reply([entity_shape(entity) for entity in created], "entities", note)


@tool(shapes.ProjectAddObservations, needs="write", returns=shapes.ObservationsReply)
def add_observations(call: Call, arguments: shapes.ProjectAddObservations) -> Reply:
    """Add observations to existing entities."""
    drafts = [
        FactAddition(shape.entity_name, tuple(shape.contents)) for shape in arguments.observations
    ]
    with active_memory(call) as memory:
        additions = facts.add(memory, drafts, by=call.by)
    added = []
    for addition in additions:
        entity = addition.before
        assert entity is not None  # unknown names are refused
        added += [added_shape(entity, observation) for observation in addition.facts]
    return array_reply(added, "observations")


@tool(shapes.ProjectRelations, needs="write", returns=shapes.ProjectRelationsReply)
def create_relations(call: Call, arguments: shapes.ProjectRelations) -> Reply:
    """Create directed relations between entities. Both must exist. Existing relations are left \
unchanged."""
    requested = _relations(arguments)
    with active_memory(call) as memory:
        created = relations.create(memory, requested, by=call.by, unknown_ends="refuse").new
    note = unchanged_note(_arrows(requested), _arrows(created))
    return array_reply([relation_shape(relation) for relation in created], "relations", note)


@tool(shapes.ProjectSearchNodes, needs="read", returns=shapes.NodesReply, idempotent=True)
def search_nodes(call: Call, arguments: shapes.ProjectSearchNodes) -> Reply:
    """Search entities and observations using FTS5 full-text search, best match first: words, \
"phrases", prefix*, AND, OR, NOT, and columns as in name: alice (name, entity_type, content). \
Words without an operator must all occur. Text that is not valid FTS5 is searched as plain words. \
Every match is returned: use specific words."""
    with active_memory(call) as memory:
        graph = search.full_text(memory, arguments.query)
        note = matching_notes(memory, arguments.query)
    return array_reply(node_shapes(graph.entities, graph.relations), "entities", note)


@tool(shapes.ProjectOpenNodes, needs="read", returns=shapes.NodesReply, idempotent=True)
def open_nodes(call: Call, arguments: shapes.ProjectOpenNodes) -> Reply:
    """Retrieve specific entities by exact name match, with their observations and relations."""
    with active_memory(call) as memory:
        graph = entities.open_named(memory, set(arguments.names))
    nodes = node_shapes(in_order(graph, arguments.names), graph.relations)
    return array_reply(nodes, "entities")


@tool(StrictArguments, needs="read", returns=shapes.GraphReply, idempotent=True)
def read_graph(call: Call, arguments: StrictArguments) -> Reply:
    """Read the entire knowledge graph of the current project. It can be large: prefer \
search_nodes."""
    with active_memory(call) as memory:
        graph = entities.read_all(memory)
    call.check()
    entity_shapes = [entity_shape(entity) for entity in graph.entities]
    call.check()
    relation_shapes = [relation_shape(relation) for relation in graph.relations]
    return json_reply(shapes.GraphReply(entity_shapes, relation_shapes))


@tool(
    shapes.ProjectDeleteEntities,
    needs="write",
    returns=shapes.CountReply,
    destructive=True,
    idempotent=True,
)
def delete_entities(call: Call, arguments: shapes.ProjectDeleteEntities) -> Reply:
    """Delete entities with their observations and relations. Returns how many entities were \
deleted."""
    with active_memory(call) as memory:
        deleted = entities.delete(memory, set(arguments.names), by=call.by)
    return json_reply(shapes.CountReply(len(deleted.entities)))


@tool(
    shapes.ProjectDeleteObservations,
    needs="write",
    returns=shapes.CountReply,
    destructive=True,
    idempotent=True,
)
def delete_observations(call: Call, arguments: shapes.ProjectDeleteObservations) -> Reply:
    """Delete specific observations from entities by their exact text. Returns how many were \
deleted."""
    removals = [(shape.entity_name, shape.observations) for shape in arguments.deletions]
    with active_memory(call) as memory:
        removed = facts.remove(memory, removals, by=call.by)
    return json_reply(shapes.CountReply(sum(len(removal.facts) for removal in removed)))


@tool(
    shapes.ProjectRelations,
    needs="write",
    returns=shapes.CountReply,
    destructive=True,
    idempotent=True,
)
def delete_relations(call: Call, arguments: shapes.ProjectRelations) -> Reply:
    """Delete specific relations by their exact from, to and relation_type. Returns how many were \
deleted."""
    with active_memory(call) as memory:
        deleted = relations.delete(memory, _relations(arguments), by=call.by)
    return json_reply(shapes.CountReply(len(deleted)))


def _relations(arguments: shapes.ProjectRelations) -> list[Relation]:
    return [
        Relation(shape.source, shape.target, shape.relation_type) for shape in arguments.relations
    ]


def _arrows(relations: list[Relation]) -> list[str]:
    return [f"{relation.source} -{relation.type}-> {relation.target}" for relation in relations]
