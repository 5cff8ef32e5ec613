"""The 24 tools: nodes and their observations, relations, and where the graph needs attention."""

from collections import Counter
from threading import Lock
from weakref import WeakSet

from polymnia.dialects.base import Call, Reply, StrictArguments, tool
from polymnia.dialects.replies import (
    array_reply,
    in_order,
    json_reply,
    matching_notes,
    unchanged_note,
)
from polymnia.dialects.workspace import shapes
from polymnia.dialects.workspace.shapes import (
    entity_shape,
    list_of,
    observation_shape,
    relation_shapes,
)
from polymnia.engine.curation.findings import orphans, pending, relation_gaps
from polymnia.engine.curation.report import consolidation_report
from polymnia.engine.curation.similar import similar_pairs
from polymnia.engine.facts.revise import Revision, revise
from polymnia.engine.facts.todos import DAY
from polymnia.engine.graph import entities, facts, relations, traverse
from polymnia.engine.memory import Memory
from polymnia.engine.recall import search
from polymnia.engine.semantic import perspectives
from polymnia.errors import StoreError
from polymnia.model import EntityDraft, FactAddition, Perspective, Relation
from polymnia.search.times import iso_time
from polymnia.stores.clock import now_us

# Chosen by measurement (docs/workspaces.md): what helps is the name before the text. The plain text
# finds what is said of a node elsewhere, the date finds what happened when. Every store has one of
# the three vectors anyway.
DEFAULT_PERSPECTIVES = (
    Perspective("general", "{name}: {text}", "{query}"),
    Perspective("technical", "{name}: {text}", "technical details: {query}"),
    Perspective("relational", "{text}", "{query}"),
    Perspective("temporal", "{name}, {date}: {text}", "date and time: {query}"),
    Perspective("project", "{name}: {text}", "project: {query}"),
)

_lock = Lock()
_prepared: WeakSet[Memory] = WeakSet()


def open_memory(call: Call) -> Memory:
    """Return the memory of the client's workspace, with the default perspectives.

    Raise NoWorkspace, NotAllowed, WorkspaceNotFound or WorkspaceArchived.
    """
    memory = call.memory
    with _lock:
        is_new = memory not in _prepared
        _prepared.add(memory)
    if is_new:
        try:
            perspectives.ensure(memory, DEFAULT_PERSPECTIVES)
        except StoreError:
            problem = "the perspectives of this workspace could not be set up"
            call.log("info", f"{problem}; it is searched by its text alone")
    return memory


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


@tool(
    shapes.WorkspaceRelations, needs="write", returns=shapes.CreatedRelationsReply, idempotent=True
)
def create_relations(call: Call, arguments: shapes.WorkspaceRelations) -> Reply:
    """Create directed typed relations between existing nodes. Relations with an unknown end are \
not created; not_found names the unknown ends."""
    requested = _relations(arguments)
    result = relations.create(open_memory(call), requested, by=call.by, unknown_ends="skip")
    counts = Counter(relation.key for relation in requested)
    # The second of two equal relations finds that the first exists.
    repeated = [relation for relation in result.new if counts[relation.key] > 1]
    return json_reply(
        shapes.CreatedRelationsReply(
            created=relation_shapes(result.new),
            already_existed=relation_shapes(result.existing + repeated),
            not_found=result.unknown_ends,
        )
    )


@tool(
    shapes.WorkspaceRelations,
    needs="write",
    returns=shapes.DeletedRelationsReply,
    destructive=True,
    idempotent=True,
)
def delete_relations(call: Call, arguments: shapes.WorkspaceRelations) -> Reply:
    """Delete specific relations. Returns how many were deleted and how many did not exist."""
    requested = _relations(arguments)
    deleted = len(relations.delete(open_memory(call), requested, by=call.by))
    distinct = {relation.key for relation in requested}
    return json_reply(shapes.DeletedRelationsReply(deleted, not_found=len(distinct) - deleted))


@tool(shapes.UpdateRelationType, needs="write", returns=shapes.RenamedReply, destructive=True)
def update_relation_type(call: Call, arguments: shapes.UpdateRelationType) -> Reply:
    """Rename the type of an existing relation."""
    relation = Relation(arguments.from_entity, arguments.to_entity, arguments.old_type)
    relations.rename(open_memory(call), relation, arguments.new_type, by=call.by)
    return json_reply(shapes.RenamedReply(*relation.key, arguments.new_type))


@tool(
    shapes.GetRelationsBetween,
    needs="read",
    returns=list_of(shapes.WorkspaceRelationShape),
    idempotent=True,
)
def get_relations_between(call: Call, arguments: shapes.GetRelationsBetween) -> Reply:
    """Return all relations between two nodes, in both directions."""
    between = relations.between(open_memory(call), arguments.entity_a, arguments.entity_b)
    return array_reply(relation_shapes(between), "result")


@tool(shapes.GetNeighborhood, needs="read", returns=shapes.NeighborhoodReply, idempotent=True)
def get_neighborhood(call: Call, arguments: shapes.GetNeighborhood) -> Reply:
    """Return a node and all nodes within some hops, whatever the direction, and the relations \
between them."""
    depth = arguments.depth
    graph, is_complete = traverse.neighbourhood(open_memory(call), arguments.name, depth)
    nodes = [entity_shape(shapes.NeighborShape, entity) for entity in graph.entities]
    note = None
    if not is_complete:
        note = f"Incomplete: more than {traverse.MAX_NAMES} nodes are within {depth} hops."
    return json_reply(shapes.NeighborhoodReply(nodes, relation_shapes(graph.relations)), note)


@tool(shapes.GetPath, needs="read", returns=shapes.PathReply, idempotent=True)
def get_path(call: Call, arguments: shapes.GetPath) -> Reply:
    """Find a shortest path of relations between two nodes, whatever the direction of the \
relations."""
    path = traverse.shortest_path(open_memory(call), arguments.from_entity, arguments.to_entity)
    return json_reply(
        shapes.PathReply(bool(path.names), path.names, relation_shapes(path.relations))
    )


def _relations(arguments: shapes.WorkspaceRelations) -> list[Relation]:
    return [
        Relation(shape.from_entity, shape.to_entity, shape.relation_type)
        for shape in arguments.relations
    ]


@tool(StrictArguments, needs="read", returns=list_of(shapes.RecentNodeShape), idempotent=True)
def get_orphans(call: Call, arguments: StrictArguments) -> Reply:
    """Return the nodes without relations."""
    nodes = [entity_shape(shapes.RecentNodeShape, node) for node in orphans(open_memory(call))]
    return array_reply(nodes, "result")


@tool(StrictArguments, needs="read", returns=list_of(shapes.GapShape), idempotent=True)
def get_relation_gaps(call: Call, arguments: StrictArguments) -> Reply:
    """Return nodes whose observations mention another node by name though no relation joins the \
two. This compares text: judge whether a relation is warranted."""
    gaps = []
    for gap in relation_gaps(open_memory(call), progress=call.progress, check=call.check):
        gaps.append(shapes.GapShape(gap.entity, gap.referenced, gap.count))
    return array_reply(gaps, "result")


@tool(shapes.FindSimilarNodes, needs="read", returns=list_of(shapes.SimilarShape), idempotent=True)
def find_similar_nodes(call: Call, arguments: shapes.FindSimilarNodes) -> Reply:
    """Find pairs of nodes with similar observations that no relation joins: candidates for a \
relation or a merge."""
    pairs = similar_pairs(
        open_memory(call),
        limit=arguments.limit,
        min_score=arguments.min_score,
        progress=call.progress,
        check=call.check,
    )
    shaped = []
    for pair in pairs:
        shaped.append(
            shapes.SimilarShape(pair.a, pair.b, pair.similarity, pair.a_type, pair.b_type)
        )
    return array_reply(shaped, "result")


@tool(StrictArguments, needs="read", returns=shapes.ReportReply)
def get_consolidation_report(call: Call, arguments: StrictArguments) -> Reply:
    """Return where the graph needs attention: outdated summaries, candidates for relations, nodes \
without relations, clusters, and what has changed since the last report."""
    report = consolidation_report(
        open_memory(call),
        mark=call.client.principal.may("write"),
        progress=call.progress,
        check=call.check,
    )
    stale = []
    for entity in report.stale_summaries:
        stale.append(
            shapes.StaleSummaryShape(
                name=entity.name,
                entity_type=entity.type,
                last_modified=iso_time(entity.updated_at),
                observation_count=entity.facts,
                draft_summary=None,
            )
        )
    candidates = []
    for pair in report.relation_candidates:
        candidates.append(shapes.CandidateShape(pair.a, pair.b, pair.similarity, None))
    clusters = []
    for cluster in report.clusters:
        clusters.append(shapes.ClusterShape(cluster.number, list(cluster.names), cluster.label))
    events = report.events
    return json_reply(
        shapes.ReportReply(
            stale_summaries=stale,
            relation_candidates=candidates,
            orphaned_nodes=[entity_shape(shapes.OrphanShape, entity) for entity in report.orphans],
            cluster_summary=clusters,
            event_summary=shapes.EventsShape(
                iso_time(events.since), events.creates, events.updates, events.deletes
            ),
        ),
        note=" ".join(report.notes) or None,
    )


@tool(StrictArguments, needs="read", returns=list_of(shapes.PendingShape), idempotent=True)
def get_pending_consolidation(call: Call, arguments: StrictArguments) -> Reply:
    """Return the nodes that have no summary, or observations that are newer than it."""
    memory = open_memory(call)
    nodes = []
    for entity in pending(memory, with_empty=True, progress=call.progress, check=call.check):
        nodes.append(
            shapes.PendingShape(
                name=entity.name,
                entity_type=entity.type,
                observation_count=entity.facts,
                last_observation_at=iso_time(entity.last_fact_at),
                summary_updated_at=iso_time(entity.summary_at),
            )
        )
    return array_reply(nodes, "result")


@tool(StrictArguments, needs="read", returns=shapes.StatsReply, idempotent=True)
def get_stats(call: Call, arguments: StrictArguments) -> Reply:
    """Count the nodes, observations and relations of the workspace, and tell which fraction of \
the observations is embedded, over all perspectives."""
    memory = open_memory(call)
    with memory.reading() as read:
        counts = read.counts()
    return json_reply(
        shapes.StatsReply(
            node_count=counts.entities,
            observation_count=counts.facts,
            relation_count=counts.relations,
            embedding_coverage=perspectives.coverage(memory),
            workspace=call.client.workspace or "",
        )
    )
