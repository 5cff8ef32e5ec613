"""The `graph` dialect: the reference server's tools and more, for using the graph as a graph."""

from polymnia.dialects.base import Dialect
from polymnia.dialects.graph.tools import TOOLS

_INSTRUCTIONS = """\
A lasting memory of entities, their observations and the relations between them, used as a graph.
Look before you answer: search_nodes finds any part of a text, describe_entity returns an entity \
with everything it touches, find_path and extract_subgraph show how things are connected."""
_WRITE_INSTRUCTIONS = """\
Keep what you learn: upsert_entities is safe to repeat, create_relations connects, merge_entities \
joins duplicates."""

DIALECT = Dialect(
    name="graph",
    server_name="mcp-memory",
    server_version="0.4.0",
    instructions=_INSTRUCTIONS,
    write_instructions=_WRITE_INSTRUCTIONS,
    tools=TOOLS,
)
