"""What a briefing shows of what others changed, of what expired and of what is superseded."""

import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from polymnia.engine.memory import Memory
from tests.dialects.conversation import Client
from tests.dialects.golden import golden_clients


@pytest.fixture
def clients(tmp_path: Path) -> Iterator[tuple[Client, Client]]:
    with golden_clients(tmp_path) as pair:
        yield pair


def remember(client: Client, name: str, *facts: object, **more: Any) -> str:
    """Return the receipt of an entity with facts."""
    return client.text("remember", {"entities": [{"name": name, "facts": list(facts), **more}]})


def changed_by_others(client: Client) -> list[str]:
    """Return the lines about changes of other clients."""
    _, _, after = client.text("briefing").partition("Changed by others since your last write\n")
    lines = []
    for line in after.splitlines():
        if not line.startswith("  "):
            break
        lines.append(re.sub(r"  [^:]+: (.+?) (?:#\d+ |(?=is ))(.+) \(\S+\)", r"\1: \2", line))
    return lines


def test_what_others_changed_is_listed(clients: tuple[Client, Client]) -> None:
    assert changed_by_others(clients[0]) == ["Worker: Heartbeat interval is 15 s"]


def test_a_change_that_was_undone_is_not_listed(clients: tuple[Client, Client]) -> None:
    receipt = remember(clients[1], "Worker", "Logs to a file")
    clients[1].text("undo", {"changes": [receipt.split()[0]]})
    assert changed_by_others(clients[0]) == ["Worker: Heartbeat interval is 15 s"]


def test_a_fact_that_was_replaced_is_not_listed(clients: tuple[Client, Client]) -> None:
    edit = {"old": "#2", "new": "Heartbeat interval is 20 s"}
    clients[1].text("revise", {"name": "Worker", "facts": [edit]})
    assert changed_by_others(clients[0]) == ["Worker: Heartbeat interval is 20 s"]


def test_a_fact_that_was_forgotten_is_not_listed(clients: tuple[Client, Client]) -> None:
    clients[1].text("forget", {"name": "Worker", "facts": ["#2"]})
    assert changed_by_others(clients[0]) == []


def test_a_fact_that_expired_is_not_listed(clients: tuple[Client, Client]) -> None:
    remember(clients[1], "Worker", {"text": "Is off today", "expires": "2020-01-01"})
    assert changed_by_others(clients[0]) == ["Worker: Heartbeat interval is 15 s"]


def test_a_fact_of_a_merged_entity_is_listed_under_its_new_name(
    clients: tuple[Client, Client],
) -> None:
    remember(clients[1], "runner", "Restarts at noon")
    clients[1].text("revise", {"name": "Worker", "merge": ["runner"]})
    assert changed_by_others(clients[0]) == [
        "Worker: Restarts at noon",
        "Worker: Heartbeat interval is 15 s",
    ]


def test_a_fact_of_a_renamed_entity_is_listed_under_its_new_name(
    clients: tuple[Client, Client],
) -> None:
    clients[1].text("revise", {"name": "Worker", "rename": "job runner"})
    assert changed_by_others(clients[0]) == ["job runner: Heartbeat interval is 15 s"]


def test_a_write_in_one_workspace_ends_the_news_of_all(clients: tuple[Client, Client]) -> None:
    entity = {"name": "user", "facts": ["Lives in Lund"]}
    clients[0].text("remember", {"entities": [entity], "workspace": "personal"})
    assert changed_by_others(clients[0]) == []


def test_what_others_closed_is_listed(clients: tuple[Client, Client]) -> None:
    clients[1].text("revise", {"name": "TODO: migration docs", "status": "done"})
    assert "  codex: TODO: migration docs is done (shop:4)" in clients[0].text("briefing")


def test_what_others_moved_in_time_is_listed(clients: tuple[Client, Client]) -> None:
    clients[1].text("revise", {"name": "TODO: migration docs", "due": "2999-11-22"})
    line = "  codex: TODO: migration docs is due Fri 22 Nov 2999 (shop:4)"
    assert line in clients[0].text("briefing")


def test_a_briefing_has_no_facts_that_expired(clients: tuple[Client, Client]) -> None:
    client = clients[0]
    remember(client, "user", "Is at the dentist", expires="2020-01-01", type="person")
    remember(client, "lunch", "Order soup", expires="2020-01-01", tags=["pinned"])
    remember(client, "visit", "Call back", expires="2020-01-01", type="todo")
    text = client.text("briefing", {"max_tokens": 4000})
    assert not [name for name in ("dentist", "soup", "visit") if name in text]


def test_a_superseded_decision_is_not_among_the_decisions(clients: tuple[Client, Client]) -> None:
    client = clients[0]
    remember(client, "ADR-8", "Queues are in Redis", type="decision")
    remember(client, "ADR-9", "Queues are in PostgreSQL", type="decision")
    relation = {"from": "ADR-9", "type": "supersedes", "to": "ADR-8"}
    client.text("remember", {"relations": [relation]})
    text = client.text("briefing", {"max_tokens": 4000})
    assert "ADR-9: Queues are in PostgreSQL" in text
    assert "Redis" not in text


def test_what_other_sections_leave_shows_more_about_the_user(memory: Memory) -> None:
    client = Client("native", memory)
    facts = [
        f"fact number {number} about the user, which is not a preference" for number in range(9)
    ]
    client.text("remember", {"entities": [{"name": "user", "type": "person", "facts": facts}]})
    text = client.text("briefing", {"max_tokens": 800})
    assert [fact for fact in facts if fact not in text] == []
    shorter = client.text("briefing", {"max_tokens": 120})
    assert facts[0] in shorter  # who it is comes before the newest facts
    assert "more)" in shorter
    rule = {"name": "deploys", "type": "rule", "facts": ["Never deploy on a Friday " * 20]}
    client.text("remember", {"entities": [rule]})
    assert "\nRules (1 more)\n" in client.text("briefing", {"max_tokens": 120})
