"""The project catalogue put together."""

from polymnia.dialects.base import Dialect, catalogue
from polymnia.dialects.project import knowledge, projects

_INSTRUCTIONS = """\
A lasting memory in projects that know nothing of each other; each holds entities, their observations and the \
relations between them.
Begin with list_projects, then switch_project to the one this conversation is about, or create_project.
Look before you answer: search_nodes finds by words, open_nodes by exact name. Keep what you learn: create_entities, \
add_observations with one fact each, create_relations between entities that exist."""

DIALECT = Dialect(
    name="project",
    server_name="memory-mcp",
    server_version="1.0.0",
    instructions=_INSTRUCTIONS,
    any_store=False,
    chooses_workspace=True,
    tools=catalogue(
        projects.list_projects,
        projects.create_project,
        projects.switch_project,
        projects.get_current_project,
        projects.archive_project,
        projects.delete_project,
        projects.restore_project,
        knowledge.create_entities,
        knowledge.add_observations,
        knowledge.create_relations,
        knowledge.search_nodes,
        knowledge.open_nodes,
        knowledge.read_graph,
        knowledge.delete_entities,
        knowledge.delete_observations,
        knowledge.delete_relations,
    ),
)
