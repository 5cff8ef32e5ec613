"""The calls that every client makes, and the replies of the reference catalogue."""

import json
from dataclasses import dataclass
from typing import Any

JSON = dict[str, Any]

GRAPH_URI = "memory://knowledge-graph"

TOOLS = (
    "create_entities",
    "create_relations",
    "add_observations",
    "delete_entities",
    "delete_observations",
    "delete_relations",
    "read_graph",
    "search_nodes",
    "open_nodes",
)


@dataclass(frozen=True, slots=True)
class Call:
    """One tool call."""

    tool: str
    arguments: JSON


@dataclass(frozen=True, slots=True)
class Step:
    """A call that the server accepts, and its whole reply."""

    call: Call
    text: str
    structured: JSON


@dataclass(frozen=True, slots=True)
class Refusal:
    """A call with invalid arguments, and the parts of the path that its error must name."""

    call: Call
    path: tuple[str, ...]


def entity(name: str, entity_type: str, *facts: str) -> JSON:
    return {"name": name, "entityType": entity_type, "observations": list(facts)}


def relation(source: str, target: str, relation_type: str) -> JSON:
    return {"from": source, "to": target, "relationType": relation_type}


def pretty(value: object) -> str:
    """Return the text of a reply: JSON as `JSON.stringify(value, null, 2)` writes it."""
    return json.dumps(value, indent=2, ensure_ascii=False)


def _written(tool: str, arguments: JSON, key: str, values: list[JSON]) -> Step:
    return Step(Call(tool, arguments), pretty(values), {key: values})


def _deleted(tool: str, arguments: JSON, message: str) -> Step:
    return Step(Call(tool, arguments), message, {"success": True, "message": message})


def _read(tool: str, arguments: JSON, entities: list[JSON], relations: list[JSON]) -> Step:
    graph = {"entities": entities, "relations": relations}
    return Step(Call(tool, arguments), pretty(graph), graph)


_ADA = entity("Ada Lovelace", "person", "Wrote the first program")
_ADA_WITH_TWO = entity(
    "Ada Lovelace", "person", "Wrote the first program", 'Said "naïve" \\ 数学 🦊\n'
)
_ADA_WITH_ONE = entity("Ada Lovelace", "person", 'Said "naïve" \\ 数学 🦊\n')
_ENGINE = entity("Analytical Engine", "machine", "Never finished")
_TOKYO = entity("東京", "city")
_PROGRAMS = relation("Ada Lovelace", "Analytical Engine", "programs")
_AWAITS = relation("Ada Lovelace", "Nobody yet", "awaits")
_DRAWS = relation("東京", "Ada Lovelace", "draws")

STEPS = (
    _read("read_graph", {}, [], []),
    _written("create_entities", {"entities": [_ADA, _ENGINE]}, "entities", [_ADA, _ENGINE]),
    _written(
        "create_entities",
        {"entities": [entity("Ada Lovelace", "twin"), _TOKYO]},
        "entities",
        [_TOKYO],
    ),
    _written(
        "create_relations",
        {"relations": [_PROGRAMS, _AWAITS, _DRAWS]},
        "relations",
        [_PROGRAMS, _AWAITS, _DRAWS],
    ),
    _written("create_relations", {"relations": [_PROGRAMS]}, "relations", []),
    _written(
        "add_observations",
        {
            "observations": [
                {"entityName": "Ada Lovelace", "contents": _ADA_WITH_TWO["observations"]}
            ]
        },
        "results",
        [{"entityName": "Ada Lovelace", "addedObservations": _ADA_WITH_ONE["observations"]}],
    ),
    _read("search_nodes", {"query": "LOVELACE"}, [_ADA_WITH_TWO], [_PROGRAMS, _AWAITS, _DRAWS]),
    _read("search_nodes", {"query": "数学"}, [_ADA_WITH_TWO], [_PROGRAMS, _AWAITS, _DRAWS]),
    _read("open_nodes", {"names": ["東京", "ada lovelace", "missing"]}, [_TOKYO], [_DRAWS]),
    _deleted(
        "delete_observations",
        {
            "deletions": [
                {
                    "entityName": "Ada Lovelace",
                    "observations": ["Wrote the first program", "never said"],
                },
                {"entityName": "missing", "observations": ["anything"]},
            ]
        },
        "Observations deleted successfully",
    ),
    _deleted("delete_relations", {"relations": [_DRAWS]}, "Relations deleted successfully"),
    _deleted(
        "delete_entities",
        {"entityNames": ["Analytical Engine", "missing"]},
        "Entities deleted successfully",
    ),
    _read("read_graph", {"unknown": "ignored"}, [_ADA_WITH_ONE, _TOKYO], [_AWAITS]),
)

MISSING_ENTITY = Call(
    "add_observations",
    {
        "observations": [
            {"entityName": "東京", "contents": ["must not be kept"]},
            {"entityName": "Nobody yet", "contents": ["anything"]},
        ]
    },
)
MISSING_ENTITY_TEXT = "Entity with name Nobody yet not found"

REFUSALS = (
    Refusal(
        Call("create_entities", {"entities": [entity("Kept out", "person"), {**_ADA, "name": 7}]}),
        ("entities[1].name",),
    ),
    Refusal(
        Call("create_entities", {"entities": [{"name": "Kept out"}]}), ("entities[0]", "entityType")
    ),
    Refusal(
        Call(
            "add_observations",
            {"observations": [{"entityName": "東京", "contents": ["kept out", None]}]},
        ),
        ("observations[0].contents[1]",),
    ),
    Refusal(Call("delete_entities", {"entityNames": "東京"}), ("entityNames",)),
    Refusal(Call("search_nodes", {}), ("query",)),
)

LAST = STEPS[-1]
"""The last call is repeated at the end, to show that failed calls changed nothing."""

CALLS = (
    *(step.call for step in STEPS),
    MISSING_ENTITY,
    *(refusal.call for refusal in REFUSALS),
    LAST.call,
)

WRITES = tuple(
    Call("create_entities", {"entities": [entity(name, "moment")]})
    for name in ("before", "during", "after")
)
"""The writes before, during and after a subscription."""
