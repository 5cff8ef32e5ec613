"""The graph catalogue put together."""

from polymnia.dialects.base import Dialect, catalogue
from polymnia.dialects.graph import changing, following, reading

_INSTRUCTIONS = """\
A lasting memory of entities, their observations and the relations between them, used as a graph.
Look before you answer: search_nodes finds by any part of a text, describe_entity gives an entity with all it touches, \
find_path and extract_subgraph show how things are connected.
Keep what you learn: upsert_entities is safe to repeat, create_relations connects, merge_entities joins duplicates."""

DIALECT = Dialect(
    name="graph",
    server_name="mcp-memory",
    server_version="0.4.0",
    instructions=_INSTRUCTIONS,
    tools=catalogue(
        changing.create_entities,
        changing.create_relations,
        changing.add_observations,
        changing.delete_entities,
        changing.delete_observations,
        changing.delete_relations,
        changing.upsert_entities,
        changing.merge_entities,
        changing.compact,
        reading.read_graph,
        reading.search_nodes,
        reading.open_nodes,
        reading.get_entity,
        reading.batch_get_entities,
        reading.graph_stats,
        reading.search_relations,
        following.find_path,
        following.find_all_paths,
        following.extract_subgraph,
        following.get_neighbors,
        following.describe_entity,
        reading.list_entity_types,
        reading.list_relation_types,
        reading.export_graph,
    ),
)
