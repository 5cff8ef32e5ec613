"""The `project` dialect: seven tools to manage isolated projects, nine for the graph of one."""

from polymnia.dialects.base import Dialect, catalogue
from polymnia.dialects.project import tools

_INSTRUCTIONS = """\
A lasting memory in isolated tools. Each holds entities, their observations and the relations \
between them.
Begin with list_projects, then switch_project to the one this conversation is about.
Look before you answer: search_nodes finds by words, open_nodes by exact name."""
_WRITE_INSTRUCTIONS = """\
Keep what you learn: create_entities, add_observations with one fact each, create_relations \
between existing entities."""
_ADMIN_INSTRUCTIONS = "create_project begins a new project and switches to it."

DIALECT = Dialect(
    name="project",
    server_name="memory-mcp",
    server_version="1.0.0",
    instructions=_INSTRUCTIONS,
    write_instructions=_WRITE_INSTRUCTIONS,
    admin_instructions=_ADMIN_INSTRUCTIONS,
    any_store=False,
    chooses_workspace=True,
    tools=catalogue(
        tools.list_projects,
        tools.create_project,
        tools.switch_project,
        tools.get_current_project,
        tools.archive_project,
        tools.delete_project,
        tools.restore_project,
        tools.create_entities,
        tools.add_observations,
        tools.create_relations,
        tools.search_nodes,
        tools.open_nodes,
        tools.read_graph,
        tools.delete_entities,
        tools.delete_observations,
        tools.delete_relations,
    ),
)
