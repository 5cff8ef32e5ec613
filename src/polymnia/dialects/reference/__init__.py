"""The `reference` dialect: the nine tools of the reference memory server, as it has them."""

from polymnia.dialects.base import Dialect, Resource
from polymnia.dialects.reference.tools import TOOLS, graph_shape
from polymnia.dialects.replies import indented_json
from polymnia.engine.graph import entities

_INSTRUCTIONS = """\
A lasting memory of entities, their observations and the relations between them.
Before answering, look up what is known with search_nodes (any part of a name, type or \
observation) or open_nodes (exact names)."""
_WRITE_INSTRUCTIONS = """\
When you learn something worth keeping, create entities for people, organisations, projects and \
events, relate them, and add one observation per fact. create_entities skips a name that is known: \
extend that entity with add_observations.
When a fact changes, delete the old observation and add the new one."""


GRAPH = Resource(
    uri="memory://knowledge-graph",
    name="knowledge-graph",
    title="Knowledge Graph",
    description="The full knowledge graph with all entities and relations",
    read=lambda call: indented_json(graph_shape(entities.read_all(call.memory))),
    touched_by=lambda client, change: True,
)

DIALECT = Dialect(
    name="reference",
    server_name="memory",
    server_version="1.0.0",
    instructions=_INSTRUCTIONS,
    write_instructions=_WRITE_INSTRUCTIONS,
    tools=TOOLS,
    resources=(GRAPH,),
)
