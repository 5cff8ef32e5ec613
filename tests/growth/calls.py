"""A call of every tool of every dialect, about the same few entities in a memory of any size.

The lists below name the tools that must read everything, and the calls that still grow with the
memory although they should not.
"""

from collections.abc import Mapping
from typing import Any

NEW = {"name": "New one", "entityType": "keeper", "observations": ["keeps the new qx77jw list"]}
RELATION = {"from": "Known 1", "to": "Known 5", "relationType": "helps"}
# Stands for the change that the last receipt names.
UNDO_LAST: dict[str, Any] = {"changes": ["last"]}
# What `reference` and `graph` have in common.
PLAIN: tuple[tuple[str, dict[str, Any]], ...] = (
    ("open_nodes", {"names": ["Known 3"]}),
    ("search_nodes", {"query": "qx4jw"}),
    ("create_entities", {"entities": [NEW]}),
    (
        "add_observations",
        {"observations": [{"entityName": "Known 2", "contents": ["was seen today"]}]},
    ),
    ("create_relations", {"relations": [RELATION]}),
    ("delete_relations", {"relations": [RELATION]}),
    (
        "delete_observations",
        {"deletions": [{"entityName": "Known 2", "observations": ["was seen today"]}]},
    ),
    ("delete_entities", {"entityNames": ["New one"]}),
    ("read_graph", {}),
)
CALLS: Mapping[str, tuple[tuple[str, dict[str, Any]], ...]] = {
    "reference": PLAIN,
    "graph": (
        *PLAIN,
        ("get_entity", {"name": "Known 3"}),
        ("batch_get_entities", {"names": ["Known 3", "Known 4"]}),
        ("describe_entity", {"name": "Known 3"}),
        ("get_neighbors", {"name": "Known 3"}),
        ("search_relations", {"from": "Known 3"}),
        ("find_path", {"from": "Known 1", "to": "Known 4"}),
        ("find_all_paths", {"from": "Known 1", "to": "Known 4"}),
        ("extract_subgraph", {"names": ["Known 3"]}),
        ("upsert_entities", {"entities": [NEW]}),
        ("merge_entities", {"source": "New one", "target": "Known 6"}),
        ("graph_stats", {}),
        ("list_entity_types", {}),
        ("list_relation_types", {}),
        ("export_graph", {}),
        ("compact", {}),
    ),
    "workspace": (
        ("open_nodes", {"names": ["Known 3"]}),
        ("search_nodes", {"query": "qx4jw", "mode": "text"}),
        ("query_observations", {"entity_name": "Known 3", "query": "qx3jw", "mode": "text"}),
        ("get_neighborhood", {"name": "Known 3"}),
        ("get_path", {"from_entity": "Known 1", "to_entity": "Known 4"}),
        ("get_relations_between", {"entity_a": "Known 1", "entity_b": "Known 2"}),
        ("get_nodes_by_type", {"entity_type": "keeper"}),
        ("get_recently_modified", {}),
        (
            "create_entities",
            {"entities": [{"name": "New one", "entity_type": "keeper", "observations": ["new"]}]},
        ),
        (
            "add_observations",
            {"observations": [{"entity_name": "New one", "contents": ["was seen today"]}]},
        ),
        (
            "replace_observation",
            {"entity_name": "New one", "ordinal": 1, "new_content": "is no longer new"},
        ),
        ("delete_observations", {"deletions": [{"entity_name": "New one", "ordinals": [1]}]}),
        ("set_summary", {"name": "New one", "summary": "Keeps a list"}),
        ("set_tags", {"name": "New one", "tags": ["list"]}),
        (
            "create_relations",
            {
                "relations": [
                    {"from_entity": "New one", "to_entity": "Known 5", "relation_type": "helps"}
                ]
            },
        ),
        (
            "update_relation_type",
            {
                "from_entity": "New one",
                "to_entity": "Known 5",
                "old_type": "helps",
                "new_type": "knows",
            },
        ),
        (
            "delete_relations",
            {
                "relations": [
                    {"from_entity": "New one", "to_entity": "Known 5", "relation_type": "knows"}
                ]
            },
        ),
        ("delete_entities", {"entity_names": ["New one"]}),
        ("get_stats", {}),
        ("get_orphans", {}),
        ("get_relation_gaps", {}),
        ("find_similar_nodes", {}),
        ("get_consolidation_report", {}),
        ("get_pending_consolidation", {}),
    ),
    "project": (
        ("list_projects", {}),
        ("get_current_project", {}),
        ("open_nodes", {"names": ["Known 3"]}),
        ("search_nodes", {"query": "qx4jw"}),
        (
            "create_entities",
            {"entities": [{"name": "New one", "entity_type": "keeper", "observations": ["new"]}]},
        ),
        (
            "add_observations",
            {"observations": [{"entity_name": "New one", "contents": ["was seen today"]}]},
        ),
        (
            "create_relations",
            {"relations": [{"from": "New one", "to": "Known 5", "relation_type": "helps"}]},
        ),
        (
            "delete_relations",
            {"relations": [{"from": "New one", "to": "Known 5", "relation_type": "helps"}]},
        ),
        (
            "delete_observations",
            {"deletions": [{"entity_name": "New one", "observations": ["was seen today"]}]},
        ),
        ("delete_entities", {"names": ["New one"]}),
        ("read_graph", {}),
        ("create_project", {"name": "other"}),
        ("switch_project", {"name": "other"}),
        ("archive_project", {"name": "other"}),
        ("restore_project", {"name": "other"}),
        ("switch_project", {"name": "filled"}),
        ("delete_project", {"name": "other"}),
    ),
    "vault": (
        ("search_memories", {"query": "qx4jw"}),
        ("commit_memory", {"scope": "vault", "key": "new", "content": "the new qx78jw list"}),
        ("commit_memory", {"scope": "vault", "key": "new", "content": "the newer qx78jw list"}),
        ("prune_memory", {"scope": "vault", "key": "new"}),
        ("set_session_id", {"session_id": "growth"}),
    ),
    "native": (
        ("recall", {"query": "who keeps the qx4jw register"}),
        ("recall", {"query": "what does Known 3 keep"}),
        ("recall", {"types": ["keeper"]}),
        ("open", {"names": ["Known 3"]}),
        ("explore", {"name": "Known 3"}),
        (
            "remember",
            {"entities": [{"name": "Newer one", "type": "keeper", "facts": ["the qx78jw list"]}]},
        ),
        # Nearly every name has this word.
        ("remember", {"entities": [{"name": "Newest thing", "type": "thing", "facts": ["is it"]}]}),
        ("remember", {"entities": [{"name": "Known 2", "facts": ["was seen again"]}]}),
        ("revise", {"name": "Known 2", "facts": [{"old": "was seen again", "new": "was seen"}]}),
        ("history", {"name": "Known 2"}),
        ("history", {}),
        ("briefing", {}),
        ("forget", {"name": "Newer one", "whole": True, "confirm": True}),
        ("undo", UNDO_LAST),
        ("review", {}),
    ),
}

# The tools whose work is about the whole memory, for all arguments.
READS_EVERYTHING = {
    "reference": {"read_graph"},
    "graph": {
        "read_graph",
        "graph_stats",
        "list_entity_types",
        "list_relation_types",
        "export_graph",
        "compact",
    },
    "workspace": {
        "get_stats",
        "get_orphans",
        "get_relation_gaps",
        "find_similar_nodes",
        "get_consolidation_report",
        "get_pending_consolidation",
    },
    "project": {"read_graph"},
    "vault": set(),
    "native": {"review"},
}

# The calls that grow although they should not. The test fails when one of them no longer does.
DEBT: Mapping[str, set[str]] = {
    "reference": set(),
    "graph": set(),
    "workspace": set(),
    "project": set(),
    "vault": set(),
    "native": set(),
}
# The same for PostgreSQL, in pages and rows.
POSTGRES_DEBT: Mapping[str, set[str]] = {
    "reference": set(),
    "graph": set(),
    "workspace": set(),
    "vault": set(),
    "native": set(),
}
