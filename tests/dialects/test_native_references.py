"""How native tools name facts and relations: by number, by text, and after they were replaced."""

from collections.abc import Iterator
from typing import Any

import pytest

from polymnia.engine.memory import Memory
from polymnia.stores import open_store
from tests.dialects.conversation import Client


@pytest.fixture
def client() -> Iterator[Client]:
    store = open_store(":memory:")
    yield Client("native", Memory(store))
    store.close()


def remember_cat(client: Client) -> None:
    facts = ["the cat is black", "the cat is a tabby"]
    client.text("remember", {"name": "cat", "when": "2020-01-01", "facts": facts})


def test_a_wrong_fact_in_favour_of_a_stored_one_was_never_true(client: Client) -> None:
    remember_cat(client)
    edit = {"old": "#1", "new": "#2", "wrong": True}
    receipt = client.text("revise", {"name": "cat", "facts": [edit]})
    assert receipt == "default:2 cat: #1 was never true, #2 stays."
    assert "black" not in client.text("open", {"names": ["cat"], "true_on": "2020-06-01"})


def test_a_replaced_fact_was_true_before(client: Client) -> None:
    remember_cat(client)
    client.text("revise", {"name": "cat", "facts": [{"old": "#1", "new": "#2"}]})
    assert "black" in client.text("open", {"names": ["cat"], "true_on": "2020-06-01"})


def test_a_wrong_fact_comes_back_with_undo(client: Client) -> None:
    remember_cat(client)
    client.text("revise", {"name": "cat", "facts": [{"old": "#1", "new": "#2", "wrong": True}]})
    client.text("undo", {"changes": ["2"]})
    assert "#1 the cat is black" in client.text("open", {"names": ["cat"]})


def test_a_number_that_no_fact_has_may_be_the_text_of_one(client: Client) -> None:
    client.text("remember", {"name": "ports", "facts": ["8080"]})
    client.text("revise", {"name": "ports", "facts": [{"old": "8080", "new": "9090"}]})
    assert "#2 9090" in client.text("open", {"names": ["ports"]})


def test_a_number_that_a_fact_has_means_that_fact(client: Client) -> None:
    client.text("remember", {"name": "ports", "facts": ["2", "9090"]})
    receipt = client.text("forget", {"name": "ports", "facts": ["2"]})
    assert "forgot ports #2" in receipt


@pytest.mark.parametrize(
    ("tool", "arguments"),
    [
        ("revise", {"name": "cache", "facts": [{"old": "#1", "new": "uses Garnet"}]}),
        ("remember", {"name": "cache", "facts": ["uses Garnet"], "replaces": ["#1"]}),
        ("forget", {"name": "cache", "facts": ["#1"]}),
    ],
)
def test_an_error_names_the_fact_that_replaced_another(
    client: Client, tool: str, arguments: dict[str, Any]
) -> None:
    client.text("remember", {"name": "cache", "facts": ["uses Redis"]})
    for old, new in (("#1", "uses Valkey"), ("#2", "uses Dragonfly")):
        client.text("revise", {"name": "cache", "facts": [{"old": old, "new": new}]})
    error = client.error(tool, arguments)
    assert error == "#1 of cache was replaced by #3: use that number"


def test_a_relation_is_forgotten_whatever_its_case_and_accents(client: Client) -> None:
    relation = {"from": "Rui Távares", "type": "works_at", "to": "Acme"}
    call = {"entities": [{"name": "Rui Távares"}, {"name": "Acme"}], "relations": [relation]}
    client.text("remember", call)
    given = {"from": "rui tavares", "type": "Works at", "to": "acme"}
    assert "forgot 1 relation" in client.text("forget", {"relations": [given]})
