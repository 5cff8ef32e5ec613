"""The tools that show where the graph needs attention."""

from polymnia.dialects.base import Call, Reply, StrictArguments, tool
from polymnia.dialects.replies import array_reply, json_reply
from polymnia.dialects.workspace import shapes
from polymnia.dialects.workspace.perspectives import open_memory
from polymnia.dialects.workspace.shapes import entity_shape, list_of
from polymnia.engine.curation.findings import orphans, pending, relation_gaps
from polymnia.engine.curation.report import consolidation_report
from polymnia.engine.curation.similar import similar_pairs
from polymnia.engine.semantic import perspectives
from polymnia.search.times import iso_time


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
