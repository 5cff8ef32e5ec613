"""What the workspace tools return, as their specification says it, and a conversation that uses
every tool.
"""

import re
from collections.abc import Mapping
from typing import Any

from polymnia.dialects.workspace.tools import DEFAULT_PERSPECTIVES
from polymnia.embedders import open_embedder
from polymnia.engine.graph import entities, relations
from polymnia.engine.semantic import perspectives
from polymnia.engine.semantic.meaning import Meaning, SharedEmbedder
from polymnia.engine.workspaces import open_workspaces
from polymnia.model import EntityDraft, Relation

TEAM = "team"
_TIME = re.compile(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d(\.\d+)?Z")


class Time:
    """A time as ISO 8601 in UTC."""


class Maybe:
    """A value of a shape, or null."""

    def __init__(self, shape: Any) -> None:
        self.shape = shape


RELATION = {"from": str, "to": str, "relation_type": str}
OBSERVATION = {"ordinal": int, "content": str}

# Field for field from the specification's catalogue.
RETURNS: dict[str, Any] = {
    "create_entities": [{"name": str, "entity_type": str, "created_at": Time}],
    "delete_entities": {"deleted": [str], "not_found": [str]},
    "open_nodes": {
        "entities": [
            {
                "name": str,
                "entity_type": str,
                "summary": Maybe(str),
                "tags": [str],
                "observations": [OBSERVATION],
                "created_at": Time,
                "updated_at": Time,
            }
        ],
        "relations": [RELATION],
        "not_found": [str],
    },
    "get_nodes_by_type": [
        {"name": str, "entity_type": str, "summary": Maybe(str), "tags": [str], "updated_at": Time}
    ],
    "get_recently_modified": [
        {"name": str, "entity_type": str, "summary": Maybe(str), "updated_at": Time}
    ],
    "set_summary": {"name": str, "summary": str, "updated_at": Time},
    "set_tags": {"name": str, "tags": [str]},
    "add_observations": [{"entity_name": str, "added": [OBSERVATION], "not_found": bool}],
    "replace_observation": {
        "entity_name": str,
        "ordinal": int,
        "old_content": str,
        "new_content": str,
    },
    "delete_observations": [
        {"entity_name": str, "deleted_ordinals": [int], "not_found_ordinals": [int]}
    ],
    "query_observations": [{"ordinal": int, "content": str, "score": float}],
    "create_relations": {"created": [RELATION], "already_existed": [RELATION], "not_found": [str]},
    "delete_relations": {"deleted": int, "not_found": int},
    "update_relation_type": {
        "from_entity": str,
        "to_entity": str,
        "old_type": str,
        "new_type": str,
    },
    "get_relations_between": [RELATION],
    "get_neighborhood": {
        "nodes": [{"name": str, "entity_type": str, "summary": Maybe(str), "tags": [str]}],
        "relations": [RELATION],
    },
    "get_path": {"found": bool, "path": [str], "relations": [RELATION]},
    "get_orphans": [{"name": str, "entity_type": str, "summary": Maybe(str), "updated_at": Time}],
    "get_relation_gaps": [{"node": str, "referenced_name": str, "reference_count": int}],
    "find_similar_nodes": [
        {"node_a": str, "node_b": str, "similarity": float, "node_a_type": str, "node_b_type": str}
    ],
    "search_nodes": [
        {
            "name": str,
            "entity_type": str,
            "summary": Maybe(str),
            "matched_observation": str,
            "matched_perspective": Maybe(str),
            "score": float,
        }
    ],
    "get_consolidation_report": {
        "stale_summaries": [
            {
                "name": str,
                "entity_type": str,
                "last_modified": Time,
                "observation_count": int,
                "draft_summary": Maybe(str),
            }
        ],
        "relation_candidates": [
            {"node_a": str, "node_b": str, "similarity_score": float, "rationale": Maybe(str)}
        ],
        "orphaned_nodes": [{"name": str, "entity_type": str, "updated_at": Time}],
        "cluster_summary": [{"cluster_id": int, "node_names": [str], "centroid_label": Maybe(str)}],
        "event_summary": {"since": Time, "creates": int, "updates": int, "deletes": int},
    },
    "get_pending_consolidation": [
        {
            "name": str,
            "entity_type": str,
            "observation_count": int,
            "last_observation_at": Maybe(Time),  # a node may have no observations
            "summary_updated_at": Maybe(Time),
        }
    ],
    "get_stats": {
        "node_count": int,
        "observation_count": int,
        "relation_count": int,
        "embedding_coverage": float,
        "workspace": str,
    },
}

# Parameters and their defaults; ... stands for a required one.
PARAMETERS: dict[str, dict[str, Any]] = {
    "create_entities": {"entities": ...},
    "delete_entities": {"entity_names": ...},
    "open_nodes": {"names": ...},
    "get_nodes_by_type": {"entity_type": ...},
    "get_recently_modified": {"days": 7, "limit": 20},
    "set_summary": {"name": ..., "summary": ...},
    "set_tags": {"name": ..., "tags": ...},
    "add_observations": {"observations": ...},
    "replace_observation": {"entity_name": ..., "ordinal": ..., "new_content": ...},
    "delete_observations": {"deletions": ...},
    "query_observations": {"entity_name": ..., "query": ..., "mode": "embedding"},
    "create_relations": {"relations": ...},
    "delete_relations": {"relations": ...},
    "update_relation_type": {
        "from_entity": ...,
        "to_entity": ...,
        "old_type": ...,
        "new_type": ...,
    },
    "get_relations_between": {"entity_a": ..., "entity_b": ...},
    "get_neighborhood": {"name": ..., "depth": 1},
    "get_path": {"from_entity": ..., "to_entity": ...},
    "get_orphans": {},
    "get_relation_gaps": {},
    "find_similar_nodes": {"limit": 20, "min_score": 0.75},
    "search_nodes": {"query": ..., "limit": 10, "mode": "embedding"},
    "get_consolidation_report": {},
    "get_pending_consolidation": {},
    "get_stats": {},
}

# Two services that say nearly the same, a third that names one of them, an orphan, a chain of
# relations and a circle.
BEFORE = (
    EntityDraft(
        "billing",
        "service",
        ("charges the card of a customer every month", "written in Go"),
        "Charges cards",
    ),
    EntityDraft(
        "invoicing", "service", ("charges the card of a customer every month", "written in Go")
    ),
    EntityDraft(
        "gateway", "service", ("routes requests to billing and to search",), None, ("edge",)
    ),
    EntityDraft("search", "service", ("answers questions with an index",)),
    EntityDraft("Ann", "person", ("adopted a puppy", "works on the gateway")),
    EntityDraft("Dora", "group"),
    EntityDraft("Emil", "group"),
    EntityDraft("Fay", "group"),
)
BEFORE_RELATIONS = (
    Relation("gateway", "search", "calls"),
    Relation("search", "billing", "logs to"),
    Relation("Dora", "Emil", "knows"),
    Relation("Emil", "Fay", "knows"),
    Relation("Fay", "Dora", "knows"),
)

# One call of every tool, in an order in which each finds something to return.
CALLS: tuple[tuple[str, dict[str, Any]], ...] = (
    (
        "create_entities",
        {
            "entities": [
                {
                    "name": "Ben",
                    "entity_type": "person",
                    "observations": ["likes tea", "plays chess"],
                    "tags": ["new"],
                },
                {"name": "Cem", "entity_type": "person", "summary": "A person"},
            ]
        },
    ),
    (
        "create_relations",
        {
            "relations": [
                {"from_entity": "Ben", "to_entity": "Ann", "relation_type": "knows"},
                {"from_entity": "gateway", "to_entity": "search", "relation_type": "calls"},
                {"from_entity": "Ben", "to_entity": "nobody", "relation_type": "knows"},
            ]
        },
    ),
    (
        "add_observations",
        {
            "observations": [
                {"entity_name": "Ben", "contents": ["swims", "likes tea"]},
                {"entity_name": "nobody", "contents": ["x"]},
            ]
        },
    ),
    ("replace_observation", {"entity_name": "Ben", "ordinal": 2, "new_content": "plays go"}),
    ("delete_observations", {"deletions": [{"entity_name": "Ben", "ordinals": [1, 9]}]}),
    ("set_summary", {"name": "Ben", "summary": "Plays and swims"}),
    ("set_tags", {"name": "Ben", "tags": ["a", "b"]}),
    ("open_nodes", {"names": ["Ben", "nobody"]}),
    ("get_nodes_by_type", {"entity_type": "service"}),
    ("get_recently_modified", {}),
    ("query_observations", {"entity_name": "Ann", "query": "dog"}),
    (
        "update_relation_type",
        {"from_entity": "Ben", "to_entity": "Ann", "old_type": "knows", "new_type": "met"},
    ),
    ("get_relations_between", {"entity_a": "Ann", "entity_b": "Ben"}),
    ("get_neighborhood", {"name": "search"}),
    ("get_path", {"from_entity": "gateway", "to_entity": "billing"}),
    ("get_orphans", {}),
    ("get_relation_gaps", {}),
    ("find_similar_nodes", {}),
    ("search_nodes", {"query": "dog"}),
    ("get_consolidation_report", {}),
    ("get_pending_consolidation", {}),
    ("get_stats", {}),
    (
        "delete_relations",
        {
            "relations": [
                {"from_entity": "Ben", "to_entity": "Ann", "relation_type": "met"},
                {"from_entity": "Ben", "to_entity": "Ann", "relation_type": "knows"},
            ]
        },
    ),
    ("delete_entities", {"entity_names": ["Ben", "nobody"]}),
)


def check_shape(value: Any, shape: Any, path: str = "$", *, may_be_empty: bool = False) -> None:
    """Fail unless the value has exactly the fields of the shape.

    Only lists within the items of a list may be empty.
    """
    if isinstance(shape, Maybe):
        if value is not None:
            check_shape(value, shape.shape, path)
    elif isinstance(shape, list):
        assert isinstance(value, list), f"{path}: {value!r} is no list"
        assert value or may_be_empty, f"{path}: nothing to check"
        for number, each in enumerate(value):
            check_shape(each, shape[0], f"{path}[{number}]", may_be_empty=True)
    elif isinstance(shape, Mapping):
        assert isinstance(value, dict), f"{path}: {value!r} is no object"
        assert list(value) == list(shape), path
        for name, below in shape.items():
            check_shape(value[name], below, f"{path}.{name}", may_be_empty=may_be_empty)
    elif shape is Time:
        assert isinstance(value, str), f"{path}: {value!r} is no time"
        assert _TIME.fullmatch(value), f"{path}: {value!r} is no time in UTC"
    elif shape is float:
        assert type(value) in (float, int), f"{path}: {value!r} is no number"
    else:
        assert type(value) is shape, f"{path}: {value!r} is no {shape}"


def prepare_workspaces(url: str, embedder: str, *names: str) -> str:
    """Create workspaces that hold BEFORE, embedded in the default perspectives; return the URL."""
    meaning = Meaning(SharedEmbedder(embedder, open_embedder))
    workspaces = open_workspaces(url, meaning=meaning)
    for name in names:
        workspaces.create(name)
        memory = workspaces.memory(name)
        perspectives.ensure(memory, DEFAULT_PERSPECTIVES)
        entities.create(memory, BEFORE, by="test")
        relations.create(memory, BEFORE_RELATIONS, by="test")
        meaning.index(memory.store)
    workspaces.close()
    return url
