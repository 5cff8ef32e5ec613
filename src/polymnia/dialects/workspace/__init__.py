"""The `workspace` dialect: 24 tools over named workspaces that a team shares."""

from polymnia.dialects.base import Dialect, catalogue
from polymnia.dialects.workspace import consolidation, graph, nodes

_INSTRUCTIONS = """\
A team's shared memory: nodes with a type, a summary, tags and numbered observations, and typed \
relations between them.
Look before you answer: search_nodes finds by meaning or by words, open_nodes opens by exact name, \
get_neighborhood shows what a node is related to."""
_WRITE_INSTRUCTIONS = """\
Keep what you learn: create_entities, add_observations with one fact each, create_relations \
between existing nodes.
Now and then look at get_pending_consolidation and write summaries with set_summary."""

DIALECT = Dialect(
    name="workspace",
    server_name="memory-mcp-server",
    server_version="1.0.0",
    instructions=_INSTRUCTIONS,
    write_instructions=_WRITE_INSTRUCTIONS,
    any_store=False,
    requires_workspace=True,
    tools=catalogue(
        nodes.create_entities,
        nodes.delete_entities,
        nodes.open_nodes,
        nodes.get_nodes_by_type,
        nodes.get_recently_modified,
        nodes.set_summary,
        nodes.set_tags,
        nodes.add_observations,
        nodes.replace_observation,
        nodes.delete_observations,
        nodes.query_observations,
        graph.create_relations,
        graph.delete_relations,
        graph.update_relation_type,
        graph.get_relations_between,
        graph.get_neighborhood,
        graph.get_path,
        consolidation.get_orphans,
        consolidation.get_relation_gaps,
        consolidation.find_similar_nodes,
        nodes.search_nodes,
        consolidation.get_consolidation_report,
        consolidation.get_pending_consolidation,
        consolidation.get_stats,
    ),
)
