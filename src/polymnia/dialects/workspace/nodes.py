"""The tools for nodes and their observations."""

from time import time_ns

from polymnia.dialects.base import Call, Reply, tool
from polymnia.dialects.times import iso_time
from polymnia.dialects.vault_notes import matching_notes
from polymnia.dialects.workspace import arguments as given
from polymnia.dialects.workspace import shapes
from polymnia.dialects.workspace.perspectives import DEFAULT_PERSPECTIVES, open_memory
from polymnia.dialects.workspace.shapes import (
    list_of,
    list_reply,
    node_shape,
    object_reply,
    observation_shape,
    recent_shape,
    relation_shape,
)
from polymnia.engine import attributes, entities, nearest, ordinals
from polymnia.engine.ordinals import OrdinalDraft
from polymnia.model import EntityDraft, ObservationDraft

_DAY_US = 86_400 * 1_000_000


@tool(given.CreateEntities, needs="write", returns=list_of(shapes.CreatedShape))
def create_entities(call: Call, arguments: given.CreateEntities) -> Reply:
    """Create one or more nodes. Names are unique within the workspace; existing nodes are left unchanged."""
    drafts = [
        EntityDraft(
            each.name,
            each.entity_type,
            tuple(each.observations),
            each.summary,
            tuple(dict.fromkeys(each.tags)),
        )
        for each in arguments.entities
    ]
    created = entities.create(open_memory(call), drafts, by=call.by)
    known = {each.name for each in drafts} - {each.name for each in created}
    note = f"Unchanged, because they exist: {', '.join(sorted(known))}." if known else None
    shaped = [
        shapes.CreatedShape(each.name, each.type, iso_time(each.created_at)) for each in created
    ]
    return list_reply(shaped, note=note)


@tool(
    given.DeleteEntities,
    needs="write",
    returns=shapes.DeletedReply,
    destructive=True,
    idempotent=True,
)
def delete_entities(call: Call, arguments: given.DeleteEntities) -> Reply:
    """Delete nodes by name, including all their observations, relations and embeddings."""
    wanted = list(dict.fromkeys(arguments.entity_names))
    deleted = {
        each.name for each in entities.delete(open_memory(call), wanted, by=call.by).entities
    }
    found = [name for name in wanted if name in deleted]
    return object_reply(
        shapes.DeletedReply(found, [name for name in wanted if name not in deleted])
    )


@tool(given.OpenNodes, needs="read", returns=shapes.OpenedReply, idempotent=True, quick=True)
def open_nodes(call: Call, arguments: given.OpenNodes) -> Reply:
    """Retrieve nodes by name with all observations in ordinal order, summary and tags, and every relation that \
touches one of them."""
    graph = entities.open_named(open_memory(call), set(arguments.names))
    found = {each.name: each for each in graph.entities}
    wanted = list(dict.fromkeys(arguments.names))
    return object_reply(
        shapes.OpenedReply(
            [node_shape(found[name]) for name in wanted if name in found],
            [relation_shape(each) for each in graph.relations],
            [name for name in wanted if name not in found],
        )
    )


@tool(given.GetNodesByType, needs="read", returns=list_of(shapes.TypedNodeShape), idempotent=True)
def get_nodes_by_type(call: Call, arguments: given.GetNodesByType) -> Reply:
    """List all nodes of a given entity type, without their observations."""
    with open_memory(call).reading() as read:
        found = read.outlines(kind=arguments.entity_type)
    call.check()
    return list_reply(
        [
            shapes.TypedNodeShape(
                each.name, each.type, each.summary, list(each.tags), iso_time(each.updated_at)
            )
            for each in found
        ]
    )


@tool(
    given.GetRecentlyModified,
    needs="read",
    returns=list_of(shapes.RecentNodeShape),
    idempotent=True,
)
def get_recently_modified(call: Call, arguments: given.GetRecentlyModified) -> Reply:
    """Return the nodes modified in the last days, the latest first. Adding, replacing or deleting an observation or a \
relation of a node modifies it too."""
    since = time_ns() // 1000 - arguments.days * _DAY_US
    with open_memory(call).reading() as read:
        return list_reply([recent_shape(each) for each in read.recent(since, arguments.limit)])


@tool(given.SetSummary, needs="write", returns=shapes.SummaryReply)
def set_summary(call: Call, arguments: given.SetSummary) -> Reply:
    """Set or replace the summary of a node."""
    changed = attributes.set_summary(
        open_memory(call), arguments.name, arguments.summary, by=call.by
    )
    return object_reply(
        shapes.SummaryReply(changed.name, arguments.summary, iso_time(changed.updated_at))
    )


@tool(given.SetTags, needs="write", returns=shapes.TagsReply, idempotent=True)
def set_tags(call: Call, arguments: given.SetTags) -> Reply:
    """Replace the tags of a node."""
    changed = attributes.set_tags(open_memory(call), arguments.name, arguments.tags, by=call.by)
    return object_reply(shapes.TagsReply(changed.name, list(changed.tags)))


@tool(given.AddObservations, needs="write", returns=list_of(shapes.AddedShape))
def add_observations(call: Call, arguments: given.AddObservations) -> Reply:
    """Append observations to existing nodes. Each gets the next ordinal of its node, which never changes."""
    drafts = [
        ObservationDraft(each.entity_name, tuple(each.contents)) for each in arguments.observations
    ]
    added = ordinals.append(open_memory(call), drafts, by=call.by)
    return list_reply(
        [
            shapes.AddedShape(
                draft.entity,
                [observation_shape(each) for each in new.observations] if new else [],
                new is None,
            )
            for draft, new in zip(drafts, added, strict=True)
        ]
    )


@tool(
    given.ReplaceObservation,
    needs="write",
    returns=shapes.ReplacedReply,
    destructive=True,
    idempotent=True,
)
def replace_observation(call: Call, arguments: given.ReplaceObservation) -> Reply:
    """Replace a single observation of a node by its ordinal, which it keeps."""
    name, ordinal, text = arguments.entity_name, arguments.ordinal, arguments.new_content
    old = ordinals.replace(open_memory(call), name, ordinal, text, by=call.by)
    return object_reply(shapes.ReplacedReply(name, ordinal, old.text, text))


@tool(
    given.DeleteObservations,
    needs="write",
    returns=list_of(shapes.DeletedOrdinalsShape),
    destructive=True,
    idempotent=True,
)
def delete_observations(call: Call, arguments: given.DeleteObservations) -> Reply:
    """Delete observations of nodes by their ordinals. The remaining ones keep theirs."""
    drafts = [OrdinalDraft(each.entity_name, tuple(each.ordinals)) for each in arguments.deletions]
    deleted = ordinals.delete(open_memory(call), drafts, by=call.by)
    return list_reply(
        [
            shapes.DeletedOrdinalsShape(each.entity, list(each.deleted), list(each.missing))
            for each in deleted
        ]
    )


@tool(
    given.QueryObservations,
    needs="read",
    returns=list_of(shapes.ScoredObservationShape),
    idempotent=True,
)
def query_observations(call: Call, arguments: given.QueryObservations) -> Reply:
    """Search the observations of one node, best first: by meaning (embedding, the default) or by words (text). Scores \
of the text mode are keyword weights."""
    memory = open_memory(call)
    if arguments.mode == "text":
        found = nearest.observations_by_words(memory, arguments.entity_name, arguments.query)
    else:
        found = nearest.observations_by_meaning(
            memory, arguments.entity_name, arguments.query, defaults=DEFAULT_PERSPECTIVES
        )
    return list_reply(
        [
            shapes.ScoredObservationShape(each.passage.ordinal, each.passage.text, each.score)
            for each in found
        ]
    )


@tool(given.SearchNodes, needs="read", returns=list_of(shapes.FoundNodeShape), idempotent=True)
def search_nodes(call: Call, arguments: given.SearchNodes) -> Reply:
    """Search all nodes, best first: by the meaning of their observations from every perspective (embedding, the \
default), or by words in them (text): words, "phrases", prefix*, AND, OR, NOT. Scores of the text mode are keyword \
weights."""
    memory = open_memory(call)
    if arguments.mode == "text":
        found = nearest.entities_by_words(memory, arguments.query, limit=arguments.limit)
    else:
        found = nearest.entities_by_meaning(
            memory, arguments.query, limit=arguments.limit, defaults=DEFAULT_PERSPECTIVES
        )
    return list_reply(
        [
            shapes.FoundNodeShape(
                each.passage.entity,
                each.passage.type,
                each.summary,
                each.passage.text,
                each.perspective,
                each.score,
            )
            for each in found
        ],
        note=matching_notes(memory, arguments.query),
    )
