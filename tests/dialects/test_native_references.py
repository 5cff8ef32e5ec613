"""How native tools name facts and relations: by number, by text, and after they were replaced."""

from collections.abc import Iterator

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


def test_a_wrong_fact_without_a_new_text_is_refused_with_advice(client: Client) -> None:
    remember_cat(client)
    error = client.error("revise", {"name": "cat", "facts": [{"old": "#1", "wrong": True}]})
    assert error.endswith("give the correct text as new; to remove a wrong fact, use forget")
