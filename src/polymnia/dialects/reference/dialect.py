"""The reference catalogue put together: tools, the graph as a resource, and how to use them."""

from polymnia.dialects.base import Call, Client, Dialect, Resource, indented
from polymnia.dialects.camel import graph_shape
from polymnia.dialects.reference.tools import TOOLS
from polymnia.engine import entities
from polymnia.model import Change

_INSTRUCTIONS = """\
A lasting memory of entities, their observations and the relations between them.
Before answering, look up what is known with search_nodes (any part of a name, type or observation) or open_nodes \
(exact names).
When you learn something worth keeping, create entities for people, organisations, projects and events, relate them, \
and add one observation per fact.
When a fact changes, delete the old observation and add the new one."""


def _read(call: Call) -> str:
    return indented(graph_shape(entities.read_all(call.memory)))


def _always(client: Client, change: Change) -> bool:
    return True


GRAPH = Resource(
    uri="memory://knowledge-graph",
    name="knowledge-graph",
    title="Knowledge Graph",
    description="The full knowledge graph with all entities and relations",
    read=_read,
    touched_by=_always,
)

DIALECT = Dialect(
    name="reference",
    server_name="memory",
    server_version="1.0.0",
    instructions=_INSTRUCTIONS,
    tools=TOOLS,
    resources=(GRAPH,),
)
