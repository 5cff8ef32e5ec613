"""The tools for the graph of the active project."""

from polymnia.dialects.base import Call, Reply, tool
from polymnia.dialects.project import shapes
from polymnia.dialects.project.projects import active_memory
from polymnia.dialects.project.shapes import (
    added_shape,
    array_reply,
    entity_shape,
    node_shapes,
    object_reply,
    relation_shape,
)
from polymnia.dialects.vault_notes import matching_notes
from polymnia.engine import entities, observations, relations, search
from polymnia.model import EntityDraft, Graph, ObservationDraft, Relation


@tool(shapes.CreateEntities, needs="write", returns=shapes.EntitiesReply)
def create_entities(call: Call, arguments: shapes.CreateEntities) -> Reply:
    """Create one or more entities in the knowledge graph. Existing names are left unchanged."""
    drafts = [
        EntityDraft(each.name, each.entity_type, tuple(each.observations))
        for each in arguments.entities
    ]
    with active_memory(call) as memory:
        shaped = [entity_shape(each) for each in entities.create(memory, drafts, by=call.by)]
    known = {each.name for each in drafts} - {each.name for each in shaped}
    note = f"Unchanged, because they exist: {', '.join(sorted(known))}." if known else None
    return array_reply(shaped, shapes.EntitiesReply(shaped), note=note)


@tool(shapes.AddObservations, needs="write", returns=shapes.ObservationsReply)
def add_observations(call: Call, arguments: shapes.AddObservations) -> Reply:
    """Add observations to existing entities."""
    additions = [
        ObservationDraft(each.entity_name, tuple(each.contents)) for each in arguments.observations
    ]
    with active_memory(call) as memory:
        added = observations.add_to(memory, additions, by=call.by, skip_repeats=False)
    shaped = [added_shape(entity, each) for entity, new in added for each in new.observations]
    return array_reply(shaped, shapes.ObservationsReply(shaped))


@tool(shapes.Relations, needs="write", returns=shapes.RelationsReply)
def create_relations(call: Call, arguments: shapes.Relations) -> Reply:
    """Create directed relations between entities. Both must exist. Existing relations are left unchanged."""
    wanted = _relations(arguments)
    with active_memory(call) as memory:
        created = relations.create(memory, wanted, by=call.by, between_known=True)
    shaped = [relation_shape(each) for each in created]
    return array_reply(shaped, shapes.RelationsReply(shaped), note=_existing_note(wanted, created))


@tool(shapes.SearchNodes, needs="read", returns=shapes.NodesReply, idempotent=True)
def search_nodes(call: Call, arguments: shapes.SearchNodes) -> Reply:
    """Search entities and observations using FTS5 full-text search, best match first: words, "phrases", prefix*, \
AND, OR, NOT, and columns as in name: alice (name, entity_type, content). Words without an operator must all occur. \
Text that is not valid FTS5 is searched as plain words. Every match is returned: use specific words."""
    with active_memory(call) as memory:
        found = node_shapes(search.full_text(memory, arguments.query))
        note = matching_notes(memory, arguments.query)
    return array_reply(found, shapes.NodesReply(found), note=note)


@tool(shapes.OpenNodes, needs="read", returns=shapes.NodesReply, idempotent=True, quick=True)
def open_nodes(call: Call, arguments: shapes.OpenNodes) -> Reply:
    """Retrieve specific entities by exact name match, with their observations and relations."""
    with active_memory(call) as memory:
        graph = entities.open_named(memory, set(arguments.names))
    by_name = {entity.name: entity for entity in graph.entities}
    ordered = [by_name[name] for name in dict.fromkeys(arguments.names) if name in by_name]
    found = node_shapes(Graph(ordered, graph.relations))
    return array_reply(found, shapes.NodesReply(found))


@tool(shapes.Nothing, needs="read", returns=shapes.GraphReply, idempotent=True)
def read_graph(call: Call, arguments: shapes.Nothing) -> Reply:
    """Read the entire knowledge graph of the current project. It can be large: prefer search_nodes."""
    with active_memory(call) as memory:
        graph = entities.read_all(memory)
    call.check()
    found = [entity_shape(each) for each in graph.entities]
    call.check()
    return object_reply(
        shapes.GraphReply(found, [relation_shape(each) for each in graph.relations])
    )


@tool(
    shapes.DeleteEntities,
    needs="write",
    returns=shapes.CountReply,
    destructive=True,
    idempotent=True,
)
def delete_entities(call: Call, arguments: shapes.DeleteEntities) -> Reply:
    """Delete entities with their observations and relations. Returns how many entities were deleted."""
    with active_memory(call) as memory:
        deleted = entities.delete(memory, set(arguments.names), by=call.by)
    return object_reply(shapes.CountReply(len(deleted.entities)))


@tool(
    shapes.DeleteObservations,
    needs="write",
    returns=shapes.CountReply,
    destructive=True,
    idempotent=True,
)
def delete_observations(call: Call, arguments: shapes.DeleteObservations) -> Reply:
    """Delete specific observations from entities by their exact text. Returns how many were deleted."""
    removals = [
        ObservationDraft(each.entity_name, tuple(each.observations)) for each in arguments.deletions
    ]
    with active_memory(call) as memory:
        removed = observations.remove(memory, removals, by=call.by)
    return object_reply(shapes.CountReply(sum(len(each.observations) for each in removed)))


@tool(shapes.Relations, needs="write", returns=shapes.CountReply, destructive=True, idempotent=True)
def delete_relations(call: Call, arguments: shapes.Relations) -> Reply:
    """Delete specific relations by their exact from, to and relation_type. Returns how many were deleted."""
    with active_memory(call) as memory:
        deleted = relations.delete(memory, _relations(arguments), by=call.by)
    return object_reply(shapes.CountReply(len(deleted)))


def _relations(arguments: shapes.Relations) -> list[Relation]:
    return [Relation(each.source, each.target, each.relation_type) for each in arguments.relations]


def _existing_note(wanted: list[Relation], created: list[Relation]) -> str | None:
    """Name the relations that were not created because they exist."""
    new = {each.key for each in created}
    known = [each for each in dict.fromkeys(wanted) if each.key not in new]
    if not known:
        return None
    names = ", ".join(f"{each.source} -{each.type}-> {each.target}" for each in known)
    return f"Unchanged, because they exist: {names}."
