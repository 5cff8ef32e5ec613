"""The reference dialect as specified: section 8 case by case, over every store."""

import json
from typing import Any

import pytest

from polymnia.engine.memory import Memory
from tests.dialects.conversation import Client

STUDENT = {"name": "Alice", "entityType": "person", "observations": ["Is a student"]}
KNOWS = {"from": "Alice", "to": "Bob", "relationType": "knows"}
EMPTY: dict[str, list[Any]] = {"entities": [], "relations": []}


@pytest.fixture
def client(memory: Memory) -> Client:
    return Client("reference", memory)


def entity(name: str, kind: str = "thing", *facts: str) -> dict[str, Any]:
    return {"name": name, "entityType": kind, "observations": list(facts)}


def relation(source: str, target: str, kind: str = "r") -> dict[str, str]:
    return {"from": source, "to": target, "relationType": kind}


def create(client: Client, *entities: dict[str, Any]) -> Any:
    return client.json("create_entities", {"entities": list(entities)})


def relate(client: Client, *relations: dict[str, str]) -> Any:
    return client.json("create_relations", {"relations": list(relations)})


def graph(client: Client) -> Any:
    return client.json("read_graph")


def names(found: Any) -> list[str]:
    return [item["name"] for item in found["entities"]]


# 8.1 Entity operations


def test_create_basic_entities(client: Client) -> None:
    assert create(client, STUDENT) == [STUDENT]
    assert graph(client) == {"entities": [STUDENT], "relations": []}


def test_entity_deduplication_by_name(client: Client) -> None:
    create(client, STUDENT)
    assert create(client, entity("Alice", "robot", "other")) == []
    assert graph(client)["entities"] == [STUDENT]


def test_multiple_entities_some_duplicates(client: Client) -> None:
    create(client, STUDENT)
    assert create(client, STUDENT, entity("Bob")) == [entity("Bob")]
    assert names(graph(client)) == ["Alice", "Bob"]


def test_entity_name_matching_is_case_sensitive(client: Client) -> None:
    create(client, entity("alice"))
    assert create(client, entity("Alice")) == [entity("Alice")]
    assert names(graph(client)) == ["alice", "Alice"]


# 8.2 Relation operations


def test_create_basic_relation(client: Client) -> None:
    assert relate(client, KNOWS) == [KNOWS]


def test_relation_deduplication(client: Client) -> None:
    relate(client, KNOWS)
    assert relate(client, KNOWS) == []
    assert graph(client)["relations"] == [KNOWS]


def test_same_endpoints_different_relation_type(client: Client) -> None:
    likes = relation("Alice", "Bob", "likes")
    relate(client, KNOWS)
    assert relate(client, likes) == [likes]
    assert graph(client)["relations"] == [KNOWS, likes]


def test_directionality_matters(client: Client) -> None:
    back = relation("Bob", "Alice", "knows")
    relate(client, KNOWS)
    assert relate(client, back) == [back]
    assert graph(client)["relations"] == [KNOWS, back]


# 8.3 Observation operations


def add(client: Client, name: str, *contents: str) -> Any:
    return client.json(
        "add_observations", {"observations": [{"entityName": name, "contents": list(contents)}]}
    )


def test_add_facts_to_existing_entity(client: Client) -> None:
    create(client, STUDENT)
    assert add(client, "Alice", "Likes pizza") == [
        {"entityName": "Alice", "addedObservations": ["Likes pizza"]}
    ]
    assert graph(client)["entities"] == [entity("Alice", "person", "Is a student", "Likes pizza")]


def test_fact_deduplication(client: Client) -> None:
    create(client, STUDENT)
    added = add(client, "Alice", "Is a student", "Likes pizza")
    assert added == [{"entityName": "Alice", "addedObservations": ["Likes pizza"]}]


def test_add_facts_to_non_existent_entity(client: Client) -> None:
    create(client, STUDENT)
    both = [
        {"entityName": "Alice", "contents": ["x"]},
        {"entityName": "Nonexistent", "contents": ["anything"]},
    ]
    assert (
        client.error("add_observations", {"observations": both})
        == "Entity with name Nonexistent not found"
    )
    assert graph(client)["entities"] == [STUDENT]


def delete_observations(client: Client, name: str, *facts: str) -> str:
    deletion = {"entityName": name, "observations": list(facts)}
    return client.text("delete_observations", {"deletions": [deletion]})


def test_delete_facts(client: Client) -> None:
    create(client, entity("Alice", "person", "Is a student", "Likes pizza"))
    assert (
        delete_observations(client, "Alice", "Likes pizza") == "Observations deleted successfully"
    )
    assert graph(client)["entities"] == [STUDENT]


def test_delete_facts_from_non_existent_entity(client: Client) -> None:
    assert (
        delete_observations(client, "Nonexistent", "anything")
        == "Observations deleted successfully"
    )


# 8.4 Delete operations


def delete(client: Client, *names: str) -> str:
    return client.text("delete_entities", {"entityNames": list(names)})


def test_delete_entity_cascades_to_relations(client: Client) -> None:
    create(client, STUDENT, entity("Bob"))
    relate(client, KNOWS)
    assert delete(client, "Alice") == "Entities deleted successfully"
    assert graph(client) == {"entities": [entity("Bob")], "relations": []}


def test_delete_entity_cascades_on_the_to_side(client: Client) -> None:
    create(client, STUDENT, entity("Bob"))
    relate(client, relation("Bob", "Alice", "reports_to"))
    delete(client, "Alice")
    assert graph(client) == {"entities": [entity("Bob")], "relations": []}


def test_delete_entity_preserves_unrelated_relations(client: Client) -> None:
    create(client, entity("A"), entity("B"), entity("C"))
    relate(client, relation("A", "B"), relation("B", "C"))
    delete(client, "A")
    assert graph(client)["relations"] == [relation("B", "C")]


def test_delete_relations_by_exact_match(client: Client) -> None:
    relate(client, relation("A", "B", "knows"), relation("A", "B", "likes"))
    deleted = client.text("delete_relations", {"relations": [relation("A", "B", "knows")]})
    assert deleted == "Relations deleted successfully"
    assert graph(client)["relations"] == [relation("A", "B", "likes")]


# 8.5 Search operations


def search(client: Client, query: str) -> Any:
    return client.json("search_nodes", {"query": query})


@pytest.mark.parametrize(
    ("known", "query"),
    [
        (entity("John_Smith"), "john"),
        (entity("X", "Person"), "person"),
        (entity("X", "y", "Works at Google"), "google"),
    ],
    ids=["by name", "by type", "by observation"],
)
def test_search_is_case_insensitive(client: Client, known: dict[str, Any], query: str) -> None:
    create(client, known)
    assert search(client, query)["entities"] == [known]


def test_search_returns_connected_relations(client: Client) -> None:
    create(client, entity("A1"), entity("B2"))
    relate(client, relation("A1", "B2"))
    assert search(client, "a1") == {"entities": [entity("A1")], "relations": [relation("A1", "B2")]}


def test_search_includes_relations_where_at_least_one_endpoint_matches(client: Client) -> None:
    create(client, entity("A1"), entity("B2"), entity("C3"))
    relate(client, relation("A1", "B2"), relation("B2", "C3"), relation("A1", "C3"))
    found = search(client, "B2")
    assert (names(found), found["relations"]) == (
        ["B2"],
        [relation("A1", "B2"), relation("B2", "C3")],
    )


def test_search_with_no_matches(client: Client) -> None:
    create(client, STUDENT)
    assert search(client, "xyznonexistent") == EMPTY


# 8.6 Open nodes operations


def opened(client: Client, *names: str) -> Any:
    return client.json("open_nodes", {"names": list(names)})


def test_open_specific_nodes(client: Client) -> None:
    create(client, entity("A"), entity("B"))
    assert opened(client, "A") == {"entities": [entity("A")], "relations": []}


def test_open_nodes_returns_connected_relations(client: Client) -> None:
    create(client, entity("A"), entity("B"))
    relate(client, relation("A", "B"))
    assert opened(client, "A") == {"entities": [entity("A")], "relations": [relation("A", "B")]}


def test_open_nodes_name_matching_is_case_sensitive(client: Client) -> None:
    create(client, STUDENT)
    assert opened(client, "alice") == EMPTY


def test_open_nodes_with_multiple_names(client: Client) -> None:
    create(client, entity("A"), entity("B"), entity("C"))
    relate(client, relation("A", "B"), relation("B", "C"), relation("A", "C"))
    found = opened(client, "A", "C")
    assert names(found) == ["A", "C"]
    assert found["relations"] == [relation("A", "B"), relation("B", "C"), relation("A", "C")]


# Section 10 and the reply shapes of section 4


def test_everything_reads_empty_before_anything_is_written(client: Client) -> None:
    assert [graph(client), search(client, ""), opened(client, "A")] == [EMPTY, EMPTY, EMPTY]


def test_relations_may_name_entities_that_do_not_exist(client: Client) -> None:
    assert relate(client, relation("Ghost", "Phantom")) == [relation("Ghost", "Phantom")]


def test_text_is_json_with_two_space_indent(client: Client) -> None:
    known = entity("Zoë", "person", 'says "ja"\n')
    text = client.text("create_entities", {"entities": [known]})
    assert text == json.dumps([known], indent=2, ensure_ascii=False)


@pytest.mark.parametrize(
    ("tool", "arguments", "structured"),
    [
        ("create_entities", {"entities": [entity("N")]}, {"entities": [entity("N")]}),
        (
            "create_relations",
            {"relations": [relation("A", "N")]},
            {"relations": [relation("A", "N")]},
        ),
        (
            "add_observations",
            {"observations": [{"entityName": "A", "contents": ["x"]}]},
            {"results": [{"entityName": "A", "addedObservations": ["x"]}]},
        ),
        (
            "delete_entities",
            {"entityNames": []},
            {"success": True, "message": "Entities deleted successfully"},
        ),
        (
            "delete_observations",
            {"deletions": []},
            {"success": True, "message": "Observations deleted successfully"},
        ),
        (
            "delete_relations",
            {"relations": []},
            {"success": True, "message": "Relations deleted successfully"},
        ),
        ("read_graph", {}, {"entities": [entity("A")], "relations": []}),
        ("search_nodes", {"query": "a"}, {"entities": [entity("A")], "relations": []}),
        ("open_nodes", {"names": ["A"]}, {"entities": [entity("A")], "relations": []}),
    ],
)
def test_structured_content_carries_the_same(
    client: Client, tool: str, arguments: Any, structured: Any
) -> None:
    create(client, entity("A"))
    assert client.call(tool, arguments)["structuredContent"] == structured


def test_unknown_arguments_are_ignored(client: Client) -> None:
    assert client.json(
        "create_entities", {"entities": [{**STUDENT, "colour": "red"}], "why": 1}
    ) == [STUDENT]


def test_wrong_arguments_change_nothing_and_say_where(client: Client) -> None:
    wrong = [entity("A"), entity("B"), entity("C"), {**entity("D"), "name": 7}]
    assert (
        client.error("create_entities", {"entities": wrong})
        == "entities[3].name: expected a string, got a number"
    )
    assert graph(client) == EMPTY


def test_the_graph_can_be_read_as_a_resource(client: Client) -> None:
    create(client, STUDENT)
    (content,) = client.request("resources/read", uri="memory://knowledge-graph")["contents"]
    assert (content["uri"], content["mimeType"]) == ("memory://knowledge-graph", "application/json")
    assert json.loads(content["text"]) == {"entities": [STUDENT], "relations": []}


def test_a_subscriber_is_notified_only_of_calls_that_change_something(client: Client) -> None:
    client.request("resources/subscribe", uri="memory://knowledge-graph")
    create(client, STUDENT)
    create(client, STUDENT)
    graph(client)
    (told,) = [json.loads(message) for message in client.session.outbox]
    assert (told["method"], told["params"]) == (
        "notifications/resources/updated",
        {"uri": "memory://knowledge-graph"},
    )


def test_the_change_log_names_the_client(client: Client, memory: Memory) -> None:
    heard: list[Any] = []
    memory.on_change(heard.append)
    create(client, STUDENT)
    assert [(change.operation, change.actor) for change in heard] == [("create_entities", "test 1")]
