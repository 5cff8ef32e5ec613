"""The tools for nodes and their observations."""

from polymnia.dialects.base import Call, Reply, tool
from polymnia.dialects.replies import (
    array_reply,
    in_order,
    json_reply,
    matching_notes,
    unchanged_note,
)
from polymnia.dialects.workspace import shapes
from polymnia.dialects.workspace.perspectives import DEFAULT_PERSPECTIVES, open_memory
from polymnia.dialects.workspace.shapes import (
    entity_shape,
    list_of,
    observation_shape,
    relation_shapes,
)
from polymnia.engine.facts.revise import Revision, revise
from polymnia.engine.facts.todos import DAY
from polymnia.engine.graph import entities, facts
from polymnia.engine.recall import search
from polymnia.model import EntityDraft, FactAddition
from polymnia.search.times import iso_time
from polymnia.stores.clock import now_us


@tool(shapes.WorkspaceCreateEntities, needs="write", returns=list_of(shapes.CreatedShape))
def create_entities(call: Call, arguments: shapes.WorkspaceCreateEntities) -> Reply:
    """Create one or more nodes. Names are unique within the workspace; existing nodes are left \
unchanged."""
    drafts = []
    for shape in arguments.entities:
        tags = tuple(dict.fromkeys(shape.tags))
        texts = tuple(shape.observations)
        drafts.append(EntityDraft(shape.name, shape.entity_type, texts, shape.summary, tags))
    created = entities.create(open_memory(call), drafts, by=call.by)
    names = sorted(draft.name for draft in drafts)
    note = unchanged_note(names, [entity.name for entity in created])
    return array_reply(
        [entity_shape(shapes.CreatedShape, entity) for entity in created], "result", note
    )


@tool(
    shapes.WorkspaceDeleteEntities,
    needs="write",
    returns=shapes.DeletedReply,
    destructive=True,
    idempotent=True,
)
def delete_entities(call: Call, arguments: shapes.WorkspaceDeleteEntities) -> Reply:
    """Delete nodes by name, including all their observations, relations and embeddings."""
    names = list(dict.fromkeys(arguments.entity_names))
    graph = entities.delete(open_memory(call), names, by=call.by)
    deleted = [entity.name for entity in in_order(graph, names)]
    not_found = [name for name in names if name not in deleted]
    return json_reply(shapes.DeletedReply(deleted, not_found))


@tool(shapes.WorkspaceOpenNodes, needs="read", returns=shapes.OpenedReply, idempotent=True)
def open_nodes(call: Call, arguments: shapes.WorkspaceOpenNodes) -> Reply:
    """Retrieve nodes by name with all observations in ordinal order, summary and tags, and every \
relation that touches one of them."""
    graph = entities.open_named(open_memory(call), set(arguments.names))
    nodes = [
        entity_shape(shapes.WorkspaceNodeShape, entity)
        for entity in in_order(graph, arguments.names)
    ]
    known = {node.name for node in nodes}
    not_found = [name for name in dict.fromkeys(arguments.names) if name not in known]
    return json_reply(shapes.OpenedReply(nodes, relation_shapes(graph.relations), not_found))


@tool(shapes.GetNodesByType, needs="read", returns=list_of(shapes.TypedNodeShape), idempotent=True)
def get_nodes_by_type(call: Call, arguments: shapes.GetNodesByType) -> Reply:
    """List all nodes of a given entity type, without their observations."""
    with open_memory(call).reading() as read:
        outlines = read.outlines(kind=arguments.entity_type)
    call.check()
    nodes = [entity_shape(shapes.TypedNodeShape, outline) for outline in outlines]
    return array_reply(nodes, "result")


@tool(
    shapes.GetRecentlyModified,
    needs="read",
    returns=list_of(shapes.RecentNodeShape),
    idempotent=True,
)
def get_recently_modified(call: Call, arguments: shapes.GetRecentlyModified) -> Reply:
    """Return the nodes modified in the last days, the latest first. Adding, replacing or deleting \
an observation or a relation of a node modifies it too."""
    since = now_us() - arguments.days * DAY
    with open_memory(call).reading() as read:
        outlines = read.outlines(latest=arguments.limit, updated_since=since)
    nodes = [entity_shape(shapes.RecentNodeShape, outline) for outline in outlines]
    return array_reply(nodes, "result")


@tool(shapes.SetSummary, needs="write", returns=shapes.SummaryReply)
def set_summary(call: Call, arguments: shapes.SetSummary) -> Reply:
    """Set or replace the summary of a node."""
    revision = Revision(summary=arguments.summary)
    receipt = revise(open_memory(call), arguments.name, revision, by=call.by)
    updated_at = iso_time(receipt.after.updated_at)
    return json_reply(shapes.SummaryReply(arguments.name, arguments.summary, updated_at))


@tool(shapes.SetTags, needs="write", returns=shapes.TagsReply, idempotent=True)
def set_tags(call: Call, arguments: shapes.SetTags) -> Reply:
    """Replace the tags of a node."""
    revision = Revision(tags=tuple(arguments.tags))
    receipt = revise(open_memory(call), arguments.name, revision, by=call.by)
    return json_reply(shapes.TagsReply(arguments.name, list(receipt.after.tags)))


@tool(shapes.WorkspaceAddObservations, needs="write", returns=list_of(shapes.WorkspaceAddedShape))
def add_observations(call: Call, arguments: shapes.WorkspaceAddObservations) -> Reply:
    """Append observations to existing nodes. Each gets the next ordinal of its node, which never \
changes."""
    drafts = [
        FactAddition(shape.entity_name, tuple(shape.contents)) for shape in arguments.observations
    ]
    added_shapes = []
    for added in facts.add(open_memory(call), drafts, by=call.by, skip_unknown=True):
        new = [observation_shape(observation) for observation in added.facts]
        added_shapes.append(
            shapes.WorkspaceAddedShape(added.entity, new, not_found=added.before is None)
        )
    return array_reply(added_shapes, "result")


@tool(
    shapes.ReplaceObservation,
    needs="write",
    returns=shapes.ReplacedReply,
    destructive=True,
    idempotent=True,
)
def replace_observation(call: Call, arguments: shapes.ReplaceObservation) -> Reply:
    """Replace a single observation of a node by its ordinal, which it keeps."""
    name, ordinal, text = arguments.entity_name, arguments.ordinal, arguments.new_content
    old = facts.replace(open_memory(call), name, ordinal, text, by=call.by)
    return json_reply(shapes.ReplacedReply(name, ordinal, old.text, text))


@tool(
    shapes.WorkspaceDeleteObservations,
    needs="write",
    returns=list_of(shapes.DeletedOrdinalsShape),
    destructive=True,
    idempotent=True,
)
def delete_observations(call: Call, arguments: shapes.WorkspaceDeleteObservations) -> Reply:
    """Delete observations of nodes by their ordinals. The remaining ones keep theirs."""
    removals = [(shape.entity_name, shape.ordinals) for shape in arguments.deletions]
    deleted = []
    for removed in facts.remove(open_memory(call), removals, by=call.by):
        ordinals = [observation.ordinal for observation in removed.facts]
        missing = [int(ordinal) for ordinal in removed.missing]
        deleted.append(shapes.DeletedOrdinalsShape(removed.entity, ordinals, missing))
    return array_reply(deleted, "result")


@tool(
    shapes.QueryObservations,
    needs="read",
    returns=list_of(shapes.ScoredObservationShape),
    idempotent=True,
)
def query_observations(call: Call, arguments: shapes.QueryObservations) -> Reply:
    """Search the observations of one node, best first: by meaning (embedding, the default) or by \
words (text). Scores of the text mode are keyword weights."""
    memory = open_memory(call)
    name, query = arguments.entity_name, arguments.query
    if arguments.mode == "text":
        hits = search.facts_by_words(memory, name, query)
    else:
        hits = search.facts_by_meaning(memory, name, query, defaults=DEFAULT_PERSPECTIVES)
    scored = []
    for hit in hits:
        passage = hit.passage
        scored.append(shapes.ScoredObservationShape(passage.ordinal, passage.text, hit.score))
    return array_reply(scored, "result")


@tool(
    shapes.WorkspaceSearchNodes,
    needs="read",
    returns=list_of(shapes.FoundNodeShape),
    idempotent=True,
)
def search_nodes(call: Call, arguments: shapes.WorkspaceSearchNodes) -> Reply:
    """Search all nodes, best first: by the meaning of their observations from every perspective \
(embedding, the default), or by words in them (text): words, "phrases", prefix*, AND, OR, NOT. \
Scores of the text mode are keyword weights."""
    memory = open_memory(call)
    query, limit = arguments.query, arguments.limit
    if arguments.mode == "text":
        hits = search.entities_by_words(memory, query, limit=limit)
    else:
        hits = search.entities_by_meaning(memory, query, limit=limit, defaults=DEFAULT_PERSPECTIVES)
    nodes = []
    for hit in hits:
        nodes.append(
            shapes.FoundNodeShape(
                name=hit.passage.entity,
                entity_type=hit.passage.type,
                summary=hit.summary,
                matched_observation=hit.passage.text,
                matched_perspective=hit.perspective,
                score=hit.score,
            )
        )
    return array_reply(nodes, "result", note=matching_notes(memory, query))
