"""Receipts and errors of native tools name the kind of a secret and never repeat it."""

from collections.abc import Iterator
from typing import Any

import pytest
from msgspec.json import encode

from polymnia.engine.memory import Memory
from polymnia.stores import open_store
from tests.dialects.conversation import Client

FIRST, SECOND = "password=Zq8-very-secret-1", "password=Zq8-very-secret-2"
CALLS: list[tuple[str, dict[str, Any]]] = [
    ("remember", {"name": "vault", "facts": [SECOND]}),
    ("remember", {"name": "safe", "facts": [SECOND]}),
    ("forget", {"name": "vault", "facts": ["nope"]}),
    ("forget", {"name": "vault", "facts": ["password=Zq8-very-secret-3"]}),
    ("revise", {"name": "vault", "facts": [{"old": "nope", "new": "empty"}]}),
    ("revise", {"name": "vault", "facts": [{"old": "#1", "new": SECOND}]}),
    ("undo", {"changes": ["1"], "dry_run": True}),
]


@pytest.fixture
def client() -> Iterator[Client]:
    store = open_store(":memory:")
    client = Client("native", Memory(store))
    client.text("remember", {"name": "vault", "facts": [FIRST]})
    yield client
    store.close()


@pytest.mark.parametrize(("tool", "arguments"), CALLS)
def test_no_receipt_and_no_error_repeats_a_secret(
    client: Client, tool: str, arguments: dict[str, Any]
) -> None:
    assert b"Zq8" not in encode(client.call(tool, arguments))


def test_a_receipt_says_that_a_similar_fact_is_hidden(client: Client) -> None:
    receipt = client.text("remember", {"name": "vault", "facts": [SECOND]})
    assert '! vault #2 may contradict #1 "[hidden: a password or token]".' in receipt


TOKEN = "ghp_" + "a1B2" * 9


@pytest.mark.parametrize(
    ("tool", "arguments"),
    [
        ("revise", {"name": "vault", "facts": [{"old": "#1", "new": TOKEN}]}),
        ("revise", {"name": "vault", "facts": [{"old": "#1", "new": TOKEN, "wrong": True}]}),
        ("revise", {"name": "vault", "summary": TOKEN}),
        ("remember", {"entities": [{"name": "safe", "summary": TOKEN}]}),
        ("remember", {"entities": [{"name": "safe", "tags": [TOKEN]}]}),
        ("remember", {"relations": [{"from": "vault", "type": "opens with", "to": TOKEN}]}),
    ],
)
def test_every_receipt_warns_of_a_secret(
    client: Client, tool: str, arguments: dict[str, Any], caplog: pytest.LogCaptureFixture
) -> None:
    assert "looks like a GitHub token. Ask the user" in client.text(tool, arguments)
    assert "stored a text that looks like a GitHub token" in caplog.text
    assert TOKEN not in caplog.text
