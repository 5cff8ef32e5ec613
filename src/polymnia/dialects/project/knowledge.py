"""The tools for the graph of the active project."""

from polymnia.dialects.base import Call, Reply, tool
from polymnia.dialects.project import shapes
from polymnia.dialects.project.projects import active_memory
from polymnia.dialects.project.replies import added_shape, entity_shape, nodes, plain, relation_shape, wrapped
from polymnia.engine import entities, observations, relations, search
from polymnia.model import EntityDraft, Graph, ObservationDraft, Relation


@tool(shapes.CreateEntities, needs="write", returns=shapes.EntitiesReply)
def create_entities(call: Call, arguments: shapes.CreateEntities) -> Reply:
    """Create one or more entities in the knowledge graph. Names that exist are left as they are."""
    drafts = [EntityDraft(each.name, each.entity_type, tuple(each.observations)) for each in arguments.entities]
    shaped = [entity_shape(each) for each in entities.create(active_memory(call), drafts, by=call.by)]
    known = {each.name for each in drafts} - {each.name for each in shaped}
    note = f"Left as they are, since they exist: {', '.join(sorted(known))}." if known else None
    return wrapped(shaped, shapes.EntitiesReply(shaped), note=note)


@tool(shapes.AddObservations, needs="write", returns=shapes.ObservationsReply)
def add_observations(call: Call, arguments: shapes.AddObservations) -> Reply:
    """Add observations to existing entities."""
    additions = [ObservationDraft(each.entity_name, tuple(each.contents)) for each in arguments.observations]
    added = observations.add_to(active_memory(call), additions, by=call.by, skip_repeats=False)
    shaped = [added_shape(entity, each) for entity, noted in added for each in noted.observations]
    return wrapped(shaped, shapes.ObservationsReply(shaped))


@tool(shapes.Relations, needs="write", returns=shapes.RelationsReply)
def create_relations(call: Call, arguments: shapes.Relations) -> Reply:
    """Create directed relations between entities. Both must exist; relations that exist are left as they are."""
    wanted = _relations(arguments)
    created = relations.create(active_memory(call), wanted, by=call.by, between_known=True)
    shaped = [relation_shape(each) for each in created]
    return wrapped(shaped, shapes.RelationsReply(shaped))


@tool(shapes.SearchNodes, needs="read", returns=shapes.NodesReply, idempotent=True)
def search_nodes(call: Call, arguments: shapes.SearchNodes) -> Reply:
    """Search entities and observations using FTS5 full-text search, best match first: words, "phrases", prefix*, \
AND, OR, NOT, and columns as in name: alice (name, entity_type, content). Any other text is searched as words."""
    found = nodes(search.full_text(active_memory(call), arguments.query))
    return wrapped(found, shapes.NodesReply(found))


@tool(shapes.OpenNodes, needs="read", returns=shapes.NodesReply, idempotent=True, quick=True)
def open_nodes(call: Call, arguments: shapes.OpenNodes) -> Reply:
    """Retrieve specific entities by exact name match, with their observations and relations."""
    graph = entities.open_named(active_memory(call), set(arguments.names))
    by_name = {entity.name: entity for entity in graph.entities}
    ordered = [by_name[name] for name in dict.fromkeys(arguments.names) if name in by_name]
    found = nodes(Graph(ordered, graph.relations))
    return wrapped(found, shapes.NodesReply(found))


@tool(shapes.Nothing, needs="read", returns=shapes.GraphReply, idempotent=True)
def read_graph(call: Call, arguments: shapes.Nothing) -> Reply:
    """Read the entire knowledge graph of the current project. It can be large: prefer search_nodes."""
    graph = entities.read_all(active_memory(call))
    found = [entity_shape(each) for each in graph.entities]
    return plain(shapes.GraphReply(found, [relation_shape(each) for each in graph.relations]))


@tool(shapes.DeleteEntities, needs="write", returns=shapes.CountReply, destructive=True, idempotent=True)
def delete_entities(call: Call, arguments: shapes.DeleteEntities) -> Reply:
    """Delete entities with their observations and relations, and get how many. They can be restored by hand."""
    deleted = entities.delete(active_memory(call), set(arguments.names), by=call.by)
    return plain(shapes.CountReply(len(deleted.entities)))


@tool(shapes.DeleteObservations, needs="write", returns=shapes.CountReply, destructive=True, idempotent=True)
def delete_observations(call: Call, arguments: shapes.DeleteObservations) -> Reply:
    """Delete specific observations from entities by their exact text, and get how many."""
    removals = [ObservationDraft(each.entity_name, tuple(each.observations)) for each in arguments.deletions]
    removed = observations.remove(active_memory(call), removals, by=call.by)
    return plain(shapes.CountReply(sum(len(each.observations) for each in removed)))


@tool(shapes.Relations, needs="write", returns=shapes.CountReply, destructive=True, idempotent=True)
def delete_relations(call: Call, arguments: shapes.Relations) -> Reply:
    """Delete specific relations by their exact from, to and relation_type, and get how many."""
    deleted = relations.delete(active_memory(call), _relations(arguments), by=call.by)
    return plain(shapes.CountReply(len(deleted)))


def _relations(arguments: shapes.Relations) -> list[Relation]:
    return [Relation(each.source, each.target, each.relation_type) for each in arguments.relations]
