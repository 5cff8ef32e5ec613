"""The graph dialect: its 24 tools as specified, over every store."""

import json
import shutil
import subprocess
from typing import Any

import pytest

from polymnia.dialects import open_dialect
from polymnia.engine.graph import entities
from polymnia.engine.memory import Memory
from polymnia.model import EntityDraft
from tests.dialects.conversation import Client
from tests.processes import TIMEOUT_S

ALICE = {"name": "Alice", "entityType": "person", "observations": ["likes coffee", "works at Acme"]}
BOB = {"name": "Bob", "entityType": "person", "observations": []}
ACME = {"name": "Acme", "entityType": "company", "observations": ["founded in 2021"]}
KNOWS = {"from": "Alice", "to": "Bob", "relationType": "knows"}
WORKS = {"from": "Alice", "to": "Acme", "relationType": "works_at"}
BACK = {"from": "Acme", "to": "Bob", "relationType": "employs"}
STRANGE = [
    'quo"te',
    "back\\slash",
    "line\nbreak",
    "<b>&amp;</b>",
    "[x]{y}(z)|#;`",
    "",
    " ",
    "end",
    "graph",
    "日本語",
]


@pytest.fixture
def client(memory: Memory) -> Client:
    return Client("graph", memory)


@pytest.fixture
def full(client: Client) -> Client:
    client.json("create_entities", {"entities": [ALICE, BOB, ACME]})
    client.json("create_relations", {"relations": [KNOWS, WORKS, BACK]})
    return client


def test_the_catalogue_has_24_tools() -> None:
    assert len(open_dialect("graph").tools) == 24


def test_create_entities_skips_existing_names(full: Client) -> None:
    carol = {"name": "Carol", "entityType": "person", "observations": ["x"]}
    assert full.json("create_entities", {"entities": [ALICE, carol]}) == [carol]


def test_create_entities_needs_no_facts(client: Client) -> None:
    assert client.json(
        "create_entities", {"entities": [{"name": "Bob", "entityType": "person"}]}
    ) == [BOB]


def test_create_relations_skips_existing_ones(full: Client) -> None:
    likes = {**KNOWS, "relationType": "likes"}
    assert full.json("create_relations", {"relations": [KNOWS, likes]}) == [likes]


def test_add_facts_skips_existing_texts(full: Client) -> None:
    added = full.json(
        "add_observations",
        {"observations": [{"entityName": "Alice", "contents": ["likes coffee", "runs"]}]},
    )
    assert added == [{"entityName": "Alice", "addedObservations": ["runs"]}]


def test_add_facts_names_the_entity_that_is_missing(full: Client) -> None:
    arguments = {"observations": [{"entityName": "Ghost", "contents": ["x"]}]}
    assert full.error("add_observations", arguments) == "Entity with name Ghost not found"


def test_delete_entities_also_deletes_their_relations(full: Client) -> None:
    assert full.json("delete_entities", {"entityNames": ["Alice", "Ghost"]}) == {
        "deletedEntities": ["Alice"],
        "deletedRelations": 2,
    }
    assert full.json("read_graph") == {"entities": [BOB, ACME], "relations": [BACK]}


def test_deleted_entities_are_listed_in_the_order_of_the_request(full: Client) -> None:
    deleted = full.json("delete_entities", {"entityNames": ["Bob", "Acme", "Alice", "Bob"]})
    assert deleted["deletedEntities"] == ["Bob", "Acme", "Alice"]


@pytest.mark.parametrize("stored", ["Caf\u00e9", "Cafe\u0301"])
def test_accents_count_however_they_are_composed(client: Client, stored: str) -> None:
    draft = {"name": stored, "entityType": "place", "observations": []}
    client.json("create_entities", {"entities": [draft]})
    for query, count in (("caf\u00e9", 1), ("cafe\u0301", 1), ("cafe", 0)):
        assert len(client.json("search_nodes", {"query": query})["entities"]) == count


def test_delete_facts_by_text(full: Client) -> None:
    deletions = {"deletions": [{"entityName": "Alice", "observations": ["likes coffee", "other"]}]}
    assert full.json("delete_observations", deletions) == {"deletedObservations": 1}
    assert full.json("get_entity", {"name": "Alice"})["observations"] == ["works at Acme"]


def test_delete_relations_by_all_three_fields(full: Client) -> None:
    assert full.json(
        "delete_relations", {"relations": [KNOWS, {**WORKS, "relationType": "x"}]}
    ) == {"deletedRelations": 1}
    assert full.json("read_graph")["relations"] == [WORKS, BACK]


def test_upsert_entities_creates_or_adds(full: Client) -> None:
    again = {**ALICE, "entityType": "robot", "observations": ["likes coffee", "new fact"]}
    outcome = full.json(
        "upsert_entities",
        {"entities": [again, {"name": "New", "entityType": "x", "observations": ["y"]}]},
    )
    assert outcome == [
        {"name": "Alice", "created": False, "addedObservations": ["new fact"]},
        {"name": "New", "created": True, "addedObservations": ["y"]},
    ]
    assert full.json("get_entity", {"name": "Alice"})["entityType"] == "person"


def test_merge_entities_moves_everything_to_the_target(full: Client) -> None:
    assert full.json("merge_entities", {"source": "Alice", "target": "Bob"}) == {
        "source": "Alice",
        "target": "Bob",
        "movedObservations": 2,
        "addedObservations": 2,
        "redirectedRelations": 1,
    }
    graph = full.json("read_graph")
    assert [entity["name"] for entity in graph["entities"]] == ["Bob", "Acme"]
    assert {"from": "Bob", "to": "Acme", "relationType": "works_at"} in graph["relations"]


def test_compact_keeps_the_graph(full: Client) -> None:
    full.json("delete_entities", {"entityNames": ["Bob"]})
    assert full.json("compact") == {"compacted": True, "entities": 2, "relations": 1}


def test_read_graph_returns_everything(full: Client) -> None:
    assert full.json("read_graph") == {
        "entities": [ALICE, BOB, ACME],
        "relations": [KNOWS, WORKS, BACK],
    }


def test_read_graph_returns_a_page_and_the_relations_within_it(full: Client) -> None:
    assert full.json("read_graph", {"entityType": "person"}) == {
        "entities": [ALICE, BOB],
        "relations": [KNOWS],
    }
    assert full.json("read_graph", {"offset": 1, "limit": 2}) == {
        "entities": [BOB, ACME],
        "relations": [BACK],
    }


def test_search_nodes_ranks_filters_and_pages(full: Client) -> None:
    def found(**arguments: Any) -> list[str]:
        return [entity["name"] for entity in full.json("search_nodes", arguments)["entities"]]

    assert found(query="acme") == ["Acme", "Alice"]
    assert found(query="acme", entityType="person") == ["Alice"]
    assert found(query="acme", offset=1, limit=5) == ["Alice"]
    assert full.json("search_nodes", {"query": "coffee"})["relations"] == [KNOWS, WORKS]


def test_open_nodes_keeps_the_order_given(full: Client) -> None:
    opened = full.json("open_nodes", {"names": ["Acme", "Ghost", "Alice", "Acme"]})
    assert opened == {"entities": [ACME, ALICE], "relations": [KNOWS, WORKS, BACK]}


def test_get_entity_returns_it_without_relations(full: Client) -> None:
    assert full.json("get_entity", {"name": "Alice"}) == ALICE
    assert full.error("get_entity", {"name": "Ghost"}) == "Entity with name Ghost not found"


def test_batch_get_entities_keeps_the_order_and_returns_null_for_missing_ones(full: Client) -> None:
    assert full.json("batch_get_entities", {"names": ["Bob", "Ghost", "Alice", "Bob"]}) == [
        BOB,
        None,
        ALICE,
        BOB,
    ]


def test_graph_stats_counts(full: Client) -> None:
    stats = full.json("graph_stats")
    assert (stats["entities"], stats["relations"], stats["totalObservations"]) == (3, 3, 3)
    assert stats["searchIndexEntries"] == 3
    assert stats["internedStrings"] == 11
    assert stats["internedBytes"] > 0


@pytest.mark.parametrize(
    ("arguments", "found"),
    [
        ({"from": "Alice", "relationType": "knows"}, [KNOWS]),
        ({"from": "Alice", "to": ""}, [KNOWS, WORKS]),
        ({"to": "Bob"}, [KNOWS, BACK]),
        ({}, [KNOWS, WORKS, BACK]),
        ({"relationType": "none"}, []),
    ],
)
def test_search_relations_filters_by_the_given_arguments(
    full: Client, arguments: dict[str, str], found: list[Any]
) -> None:
    assert full.json("search_relations", arguments) == found


def test_find_path_follows_relations_in_both_directions(full: Client) -> None:
    full.json("create_entities", {"entities": [{"name": "Dan", "entityType": "person"}]})
    assert full.json("find_path", {"from": "Bob", "to": "Alice"}) == ["Bob", "Alice"]
    assert full.json("find_path", {"from": "Bob", "to": "Dan"}) == []
    assert (
        full.error("find_path", {"from": "Bob", "to": "Ghost"})
        == "Entity with name Ghost not found"
    )


def test_find_all_paths_returns_every_path(full: Client) -> None:
    assert full.json("find_all_paths", {"from": "Alice", "to": "Bob"}) == [
        ["Alice", "Bob"],
        ["Alice", "Acme", "Bob"],
    ]
    assert full.json("find_all_paths", {"from": "Alice", "to": "Bob", "maxDepth": 1}) == [
        ["Alice", "Bob"]
    ]


def test_find_all_paths_says_when_it_is_cut(full: Client) -> None:
    result = full.call("find_all_paths", {"from": "Alice", "to": "Bob", "maxPaths": 1})
    assert [content["text"] for content in result["content"]] == [
        '[["Alice","Bob"]]',
        "The list is cut: stopped at 1 paths, there are more.",
    ]


def test_extract_subgraph_expands_from_its_seeds(full: Client) -> None:
    assert full.json("extract_subgraph", {"names": ["Alice"], "depth": 0}) == {
        "entities": [ALICE],
        "relations": [],
    }
    assert full.json("extract_subgraph", {"names": ["Alice"]})["relations"] == [KNOWS, WORKS, BACK]


def test_get_neighbors_by_type_and_direction(full: Client) -> None:
    outward = full.json("get_neighbors", {"name": "Acme", "direction": "out"})
    assert outward == {"entities": [BOB, ACME], "relations": [BACK]}
    assert full.json("get_neighbors", {"name": "Alice", "relationType": "knows"})["entities"] == [
        ALICE,
        BOB,
    ]


def test_describe_entity_returns_everything_it_touches(full: Client) -> None:
    assert full.json("describe_entity", {"name": "Alice"}) == {
        "entity": ALICE,
        "relations": [KNOWS, WORKS],
        "neighbors": ["Bob", "Acme"],
        "degree": 2,
    }


def test_types_are_listed_with_counts(full: Client) -> None:
    assert full.json("list_entity_types") == [
        {"type": "person", "count": 2},
        {"type": "company", "count": 1},
    ]
    assert full.json("list_relation_types") == [
        {"type": "employs", "count": 1},
        {"type": "knows", "count": 1},
        {"type": "works_at", "count": 1},
    ]


def test_export_graph_as_json_is_the_whole_graph(full: Client) -> None:
    assert full.json("export_graph", {"format": "json"}) == full.json("read_graph")


def test_export_graph_as_mermaid(client: Client) -> None:
    client.json(
        "create_entities",
        {"entities": [{"name": "Alice", "entityType": "x"}, {"name": "Bob", "entityType": "x"}]},
    )
    client.json("create_relations", {"relations": [KNOWS]})
    assert client.text("export_graph", {"format": "mermaid"}) == (
        'graph LR\n  n0["Alice"]\n  n1["Bob"]\n  n0 -->|knows| n1'
    )


def test_export_graph_as_dot(client: Client) -> None:
    client.json(
        "create_entities",
        {"entities": [{"name": "Alice", "entityType": "x"}, {"name": "Bob", "entityType": "x"}]},
    )
    client.json("create_relations", {"relations": [KNOWS]})
    assert client.text("export_graph", {"format": "dot"}) == (
        'digraph G {\n  n0 [label="Alice"];\n  n1 [label="Bob"];\n  n0 -> n1 [label="knows"];\n}'
    )


def strange(client: Client) -> None:
    client.json(
        "create_entities", {"entities": [{"name": name, "entityType": "x"} for name in STRANGE]}
    )
    relations = [{"from": "Alice", "to": name, "relationType": name} for name in STRANGE]
    client.json("create_relations", {"relations": relations})


@pytest.mark.skipif(shutil.which("dot") is None, reason="Graphviz is not installed")
def test_any_name_renders_in_graphviz(client: Client) -> None:
    strange(client)
    text = client.text("export_graph", {"format": "dot"})
    done = subprocess.run(
        ["dot", "-Tjson"], input=text, capture_output=True, text=True, check=True, timeout=TIMEOUT_S
    )
    labels = [node["label"] for node in json.loads(done.stdout)["objects"]]
    assert len(labels) == len(STRANGE) + 1
    assert done.stderr == ""


def test_no_name_breaks_out_of_a_mermaid_label(client: Client) -> None:
    strange(client)
    for line in client.text("export_graph", {"format": "mermaid"}).splitlines()[1:]:
        assert line.count('"') in (0, 2), line
        assert line.startswith("  n")


@pytest.mark.parametrize(
    ("tool", "arguments", "sentence"),
    [
        ("get_entity", {"name": "Alice", "colour": "red"}, "colour: there is no such argument"),
        ("get_entity", {}, "name: required, but missing"),
        (
            "create_entities",
            {"entities": [{**ALICE, "x": 1}]},
            "entities[0].x: there is no such argument",
        ),
        ("read_graph", {"limit": -1}, "limit: expected an integer >= 0"),
        ("find_path", {"from": 1, "to": "x"}, "from: expected a string, got a number"),
        ("export_graph", {"format": "png"}, "format: 'png' is not one of dot, json, mermaid"),
        (
            "get_neighbors",
            {"name": "x", "direction": "up"},
            "direction: 'up' is not one of both, in, out",
        ),
    ],
)
def test_wrong_arguments_are_named(
    full: Client, tool: str, arguments: dict[str, Any], sentence: str
) -> None:
    assert full.error(tool, arguments) == sentence


@pytest.mark.parametrize("number", [2**63 - 1, 2**63, 10**30])
def test_a_limit_or_offset_of_any_size_is_accepted(full: Client, number: int) -> None:
    assert len(full.json("read_graph", {"limit": number})["entities"]) == 3
    assert len(full.json("search_nodes", {"query": "a", "limit": number})["entities"]) == 2
    assert full.json("read_graph", {"offset": number})["entities"] == []
    assert full.json("search_nodes", {"query": "a", "offset": number})["entities"] == []


@pytest.mark.parametrize(
    ("tool", "arguments"),
    [
        ("find_all_paths", {"from": "Alice", "to": "Bob", "maxDepth": 2.0}),
        ("find_all_paths", {"from": "Alice", "to": "Bob", "maxDepth": None, "maxPaths": None}),
        ("read_graph", {"offset": None, "limit": None, "entityType": None}),
        ("get_neighbors", {"name": "Alice", "direction": None}),
    ],
)
def test_null_means_left_out_and_a_float_without_a_fraction_is_an_integer(
    full: Client, tool: str, arguments: dict[str, Any]
) -> None:
    meant = {
        name: int(value) if isinstance(value, float) else value for name, value in arguments.items()
    }
    assert full.json(tool, arguments) == full.json(
        tool, {k: v for k, v in meant.items() if v is not None}
    )


def test_half_a_surrogate_pair_is_named_as_the_problem(full: Client) -> None:
    for text in (rb"\ud800", rb"\udc00", rb"\ud83dx", rb"a\ud800\n"):
        call = (
            b'{"jsonrpc":"2.0","id":1,"method":"tools/call",'
            b'"params":{"name":"get_entity","arguments":{"name":"%s"}}}'
        )
        reply = json.loads(full.session.handle(call % text).body or b"null")
        assert "surrogate" in reply["error"]["message"], (text, reply)


def test_a_large_reply_says_so_and_how_to_limit_it(memory: Memory) -> None:
    entities.create(
        memory, [EntityDraft(f"e{n}", "thing", ("tea " * 40,)) for n in range(200)], by="test"
    )
    client = Client("graph", memory)
    for tool, arguments in (("read_graph", {}), ("search_nodes", {"query": "tea"})):
        first, note = client.call(tool, arguments)["content"]
        assert len(json.loads(first["text"])["entities"]) == 200
        assert note["text"].startswith("This reply is large: 200 entities in ")
        assert len(client.call(tool, {**arguments, "limit": 3})["content"]) == 1
