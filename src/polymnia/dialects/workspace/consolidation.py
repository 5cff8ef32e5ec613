"""The tools that show where the graph needs attention."""

from collections.abc import Mapping, Sequence
from functools import partial
from zlib import crc32

from polymnia.dialects.base import Call, Reply, tool
from polymnia.dialects.questions import sampling
from polymnia.dialects.times import iso_time
from polymnia.dialects.workspace import arguments as given
from polymnia.dialects.workspace import shapes
from polymnia.dialects.workspace.perspectives import open_memory
from polymnia.dialects.workspace.shapes import list_of, list_reply, object_reply, recent_shape
from polymnia.engine import perspectives
from polymnia.engine.curation.drafts import Prompt, join_prompts, split_drafts
from polymnia.engine.curation.gaps import relation_gaps
from polymnia.engine.curation.orphans import orphans
from polymnia.engine.curation.pending import pending
from polymnia.engine.curation.report import ConsolidationReport, consolidation_report
from polymnia.engine.curation.similar import similar_pairs
from polymnia.errors import Unanswered

# What the client's model may write for each draft.
_DRAFT_TOKENS = 120


@tool(given.Nothing, needs="read", returns=list_of(shapes.RecentNodeShape), idempotent=True)
def get_orphans(call: Call, arguments: given.Nothing) -> Reply:
    """Return the nodes without relations."""
    return list_reply([recent_shape(each) for each in orphans(open_memory(call))])


@tool(given.Nothing, needs="read", returns=list_of(shapes.GapShape), idempotent=True)
def get_relation_gaps(call: Call, arguments: given.Nothing) -> Reply:
    """Return nodes whose observations mention another node by name though no relation joins the two. This compares \
text: judge whether a relation is warranted."""
    gaps = relation_gaps(open_memory(call), progress=call.progress, check=call.check)
    return list_reply([shapes.GapShape(each.entity, each.referenced, each.count) for each in gaps])


@tool(given.FindSimilarNodes, needs="read", returns=list_of(shapes.SimilarShape), idempotent=True)
def find_similar_nodes(call: Call, arguments: given.FindSimilarNodes) -> Reply:
    """Find pairs of nodes with similar observations that no relation joins: candidates for a relation or a merge."""
    pairs = similar_pairs(
        open_memory(call),
        limit=arguments.limit,
        min_score=arguments.min_score,
        progress=call.progress,
        check=call.check,
    )
    return list_reply(
        [
            shapes.SimilarShape(each.a, each.b, each.similarity, each.a_type, each.b_type)
            for each in pairs
        ]
    )


@tool(given.Nothing, needs="read", returns=shapes.ReportReply)
def get_consolidation_report(call: Call, arguments: given.Nothing) -> Reply:
    """Return where the graph needs attention: outdated summaries, candidates for relations, nodes without relations, \
clusters, and what has changed since the last report."""
    report = consolidation_report(
        open_memory(call),
        mark=call.client.principal.may("write"),
        write_drafts=partial(_ask_model, call) if call.may_ask("sampling") else None,
        progress=call.progress,
        check=call.check,
    )
    return object_reply(_report_shape(report), note=" ".join(report.notes) or None)


def _ask_model(call: Call, prompts: Sequence[Prompt]) -> Mapping[Prompt, str]:
    """Return what the client's model writes. It is asked once: if the memory has changed since, nothing is drafted."""
    joined = join_prompts(prompts)
    key = f"drafts-{crc32(joined.text.encode())}"
    if call.answers and key not in call.answers:
        return {}
    question = sampling(
        key, joined.text, system=joined.instructions, max_tokens=_DRAFT_TOKENS * len(prompts)
    )
    try:
        return split_drafts(call.ask(question).text, prompts)
    except Unanswered as exc:
        call.log("info", f"the client's model wrote no drafts: {exc}")
        return {}


@tool(given.Nothing, needs="read", returns=list_of(shapes.PendingShape), idempotent=True)
def get_pending_consolidation(call: Call, arguments: given.Nothing) -> Reply:
    """Return the nodes that have observations and no summary, or observations that are newer than it."""
    return list_reply(
        [
            shapes.PendingShape(
                each.name,
                each.type,
                each.observations,
                iso_time(each.last_observation_at),
                iso_time(each.summary_at),
            )
            for each in pending(open_memory(call), progress=call.progress, check=call.check)
        ]
    )


@tool(given.Nothing, needs="read", returns=shapes.StatsReply, idempotent=True)
def get_stats(call: Call, arguments: given.Nothing) -> Reply:
    """Count the nodes, observations and relations of the workspace, and tell which fraction of the observations is \
embedded, over all perspectives."""
    memory = open_memory(call)
    with memory.reading() as read:
        counts = read.counts()
    return object_reply(
        shapes.StatsReply(
            counts.entities,
            counts.observations,
            counts.relations,
            perspectives.coverage(memory),
            call.client.workspace or "",
        )
    )


def _report_shape(report: ConsolidationReport) -> shapes.ReportReply:
    events = report.events
    return shapes.ReportReply(
        [
            shapes.StaleSummaryShape(
                each.entity.name,
                each.entity.type,
                iso_time(each.entity.updated_at),
                each.entity.observations,
                each.draft,
            )
            for each in report.stale_summaries
        ],
        [
            shapes.CandidateShape(each.pair.a, each.pair.b, each.pair.similarity, each.rationale)
            for each in report.relation_candidates
        ],
        [
            shapes.OrphanShape(each.name, each.type, iso_time(each.updated_at))
            for each in report.orphans
        ],
        [
            shapes.ClusterShape(each.number, list(each.names), each.label)
            for each in report.clusters
        ],
        shapes.EventsShape(iso_time(events.since), events.creates, events.updates, events.deletes),
    )
