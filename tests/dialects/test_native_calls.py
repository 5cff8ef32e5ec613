"""Every call that a reply suggests works as written, in both workspaces of an agent."""

import re
from collections.abc import Iterator
from json import JSONDecoder
from pathlib import Path
from typing import Any

import pytest

from tests.dialects.conversation import Client
from tests.dialects.golden import golden_clients

_CALL = re.compile(r"\b(revise|forget|undo|recall|open|remember) (?=\{)")
KEY = "sk_live_" + "51Habcdefghijklmnopqr"


@pytest.fixture
def client(tmp_path: Path) -> Iterator[Client]:
    with golden_clients(tmp_path) as (client, _):
        yield client


def suggested_calls(text: str) -> list[tuple[str, dict[str, Any]]]:
    calls = []
    for found in _CALL.finditer(text):
        arguments, _ = JSONDecoder().raw_decode(text, found.end())
        calls.append((found[1], arguments))
    return calls


def remember(name: str, *facts: str, **options: Any) -> dict[str, Any]:
    return {"entities": [{"name": name, "facts": list(facts), **options}]}


@pytest.mark.parametrize("workspace", ["shop", "personal"])
@pytest.mark.parametrize(
    ("first", "tool", "then"),
    [
        (remember("gate", "opens at 7"), "remember", remember("gate", "opens at 8")),
        (remember("gate", "opens at 7"), "review", {"kinds": ["contradictions"]}),
        (remember("Ada Byron", "sings"), "remember", remember("Ada Byrom", "rows")),
        (remember("Ada Byron", "sings"), "review", {"kinds": ["duplicates"]}),
        (remember("oil", "runs out", type="todo", due="2020-01-01"), "review", {}),
        (remember("CI", "CI runs on Forgejo"), "remember", remember("box", "CI runs on GitHub")),
        (remember("Ada", "sings"), "remember", remember("key", KEY)),
        (remember("Ada", "sings"), "revise", {"name": "Ada", "facts": [{"old": "#1", "new": KEY}]}),
        (remember("Ada", "sings"), "revise", {"name": "Ada", "summary": KEY}),
        (remember("user", "likes tea"), "remember", remember("user", "likes rain")),
    ],
)
def test_what_a_reply_suggests_works(
    client: Client, workspace: str, first: dict[str, Any], tool: str, then: dict[str, Any]
) -> None:
    client.text("remember", {**first, "workspace": workspace})
    if tool == "review":
        for fact in ("opens at 8", "and more"):
            client.text("remember", {**remember("gate", fact), "workspace": workspace})
        client.text("remember", {**remember("Ada Byrom", "rows"), "workspace": workspace})
    reply = client.text(tool, {**then, "workspace": workspace})
    calls = suggested_calls(reply)
    is_about_user = "user" in str(first)
    assert calls or (is_about_user and workspace == "personal"), reply
    for name, arguments in calls:
        if name == "undo" and len(calls) > 1:
            continue
        result = client.call(name, arguments)
        assert not result.get("isError"), (reply, name, arguments, result)


def test_a_move_names_the_call_that_takes_it_back(client: Client) -> None:
    client.text("remember", remember("Ada", "sings"))
    reply = client.text("revise", {"name": "Ada", "move_to": "personal"})
    ((tool, arguments),) = suggested_calls(reply)
    assert not client.call(tool, arguments).get("isError")


def test_what_was_never_true_and_has_no_correction_is_forgotten(client: Client) -> None:
    client.text("remember", remember("Ada", "sings", "rows"))
    client.text("revise", {"name": "Ada", "facts": [{"old": "#1", "wrong": True}]})
    assert "sings" not in client.text("open", {"names": ["Ada"]})


def test_a_first_name_means_the_person(client: Client) -> None:
    client.text("remember", remember("Noah Lindqvist", "is five", type="person"))
    client.text("remember", remember("Noah's birthday cake", "has a digger on it"))
    reply = client.text("revise", {"name": "Noah", "summary": "the nephew"})
    assert "taken as Noah Lindqvist" in reply


def test_an_appointment_that_is_over_is_not_overdue(client: Client) -> None:
    dentist = remember("dentist", "Dr. Roth", type="appointment", due="2020-01-01")
    client.text("remember", dentist)
    assert "dentist" not in client.text("recall", {"status": "overdue"})
    assert "dentist" not in client.text("review", {"kinds": ["overdue"]})
    assert "OVERDUE" not in client.text("recall", {"query": "dentist"})


def test_a_relation_to_an_entity_of_the_other_workspace_is_not_reported(client: Client) -> None:
    client.text("remember", {**remember("user", "sings"), "workspace": "personal"})
    relation = {"from": "Ada", "type": "married_to", "to": "user"}
    reply = client.text("remember", {**remember("Ada", "rows"), "relations": [relation]})
    assert "has no entity" not in reply


def test_ages_are_understood_in_words(client: Client) -> None:
    assert not client.call("history", {"since": "two weeks ago"}).get("isError")
