"""The `workspace` dialect: 24 tools over named workspaces that a team shares."""

from polymnia.dialects.base import Dialect, catalogue
from polymnia.dialects.workspace import tools

_INSTRUCTIONS = """\
A team's shared memory: nodes with a type, a summary, tags and numbered observations, and typed \
relations between them.
Look before you answer: search_nodes finds by meaning or by words, open_nodes opens by exact name, \
get_neighborhood shows what a node is related to."""
_WRITE_INSTRUCTIONS = """\
Keep what you learn: create_entities, add_observations with one fact each, create_relations \
between existing tools.
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
        tools.create_entities,
        tools.delete_entities,
        tools.open_nodes,
        tools.get_nodes_by_type,
        tools.get_recently_modified,
        tools.set_summary,
        tools.set_tags,
        tools.add_observations,
        tools.replace_observation,
        tools.delete_observations,
        tools.query_observations,
        tools.create_relations,
        tools.delete_relations,
        tools.update_relation_type,
        tools.get_relations_between,
        tools.get_neighborhood,
        tools.get_path,
        tools.get_orphans,
        tools.get_relation_gaps,
        tools.find_similar_nodes,
        tools.search_nodes,
        tools.get_consolidation_report,
        tools.get_pending_consolidation,
        tools.get_stats,
    ),
)
