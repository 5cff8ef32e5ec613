"""What lists leave out and say of facts: expiry, authors, and what supersedes them."""

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.dialects.conversation import Client
from tests.dialects.golden import golden_clients


@pytest.fixture
def clients(tmp_path: Path) -> Iterator[tuple[Client, Client]]:
    with golden_clients(tmp_path) as pair:
        yield pair


def remember(client: Client, name: str, *facts: object, **more: Any) -> str:
    """Return the receipt of an entity with facts."""
    return client.text("remember", {"entities": [{"name": name, "facts": list(facts), **more}]})


def test_a_list_has_no_facts_that_expired(clients: tuple[Client, Client]) -> None:
    gone = {"text": "Is on leave", "expires": "2020-01-01"}
    remember(clients[0], "Ines Rocha", "Approves migrations", gone, type="approver")
    text = clients[0].text("recall", {"types": ["approver"]})
    assert text.splitlines()[1] == "Ines Rocha (approver)"
    assert "on leave" not in text


def test_a_list_has_no_entity_whose_facts_all_expired(clients: tuple[Client, Client]) -> None:
    remember(clients[0], "lunch order", "Two soups", type="order", expires="2020-01-01")
    assert clients[0].text("recall", {"types": ["order"]}).startswith("Nothing with types order")


def test_a_question_for_a_type_lists_no_entity_whose_facts_all_expired(
    clients: tuple[Client, Client],
) -> None:
    remember(clients[0], "lunch", "Two soups", type="order", expires="2020-01-01")
    remember(clients[0], "dinner", "One soup", type="order")
    text = clients[0].text("recall", {"query": "list all orders"})
    assert "dinner (order)" in text
    assert "lunch" not in text


def test_a_hit_on_a_name_says_that_its_facts_expired(clients: tuple[Client, Client]) -> None:
    remember(clients[0], "lunch order", "Two soups", expires="2020-01-01")
    text = clients[0].text("recall", {"query": "lunch order"})
    assert "lunch order (thing): all its facts expired; open shows them" in text


def test_a_list_says_what_supersedes_an_entity(clients: tuple[Client, Client]) -> None:
    text = clients[0].text("recall", {"types": ["decision"]})
    notes = "[Thu 5 Nov 2020; superseded by ADR-7 batch size]"
    assert f"  #1 Batch defer takes at most 1000 jobs per call {notes}" in text


def test_a_list_says_which_facts_are_by_others(clients: tuple[Client, Client]) -> None:
    lines = clients[0].text("recall", {"types": ["component", "decision"]}).splitlines()
    assert lines[0].endswith("In shop, by claude-code, unless noted.")
    assert "  #2 Heartbeat interval is 15 s [Tue 10 Nov 2020; by codex]" in lines
    assert "  #1 Heartbeat is updated every 10 s [Mon 2 Nov 2020]" in lines
