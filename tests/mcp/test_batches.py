"""Batches: answered in the one revision that has them, refused in the others."""

from typing import Any

import pytest

from polymnia.mcp.message import MAX_BATCH_BYTES, MAX_BATCH_ITEMS
from polymnia.mcp.session import Session
from tests.mcp.conversation import JSON
from tests.mcp.raw import (
    INVALID_REQUEST,
    PARSE_ERROR,
    RESPONSE,
    cancellation,
    greeted,
    refusal,
    request,
    say,
)


@pytest.fixture
def batching() -> Session:
    return greeted("2025-03-26")


NO_BATCHES = ["2024-11-05", "2025-06-18", "2025-11-25"]


@pytest.mark.parametrize("revision", NO_BATCHES)
@pytest.mark.parametrize("batch", [[], [request("ping")], [cancellation(7)], [1]])
def test_a_batch_is_refused_in_revisions_without_batches(revision: str, batch: list[Any]) -> None:
    assert refusal(greeted(revision), batch) == (INVALID_REQUEST, None)


def test_a_batch_before_the_handshake_is_refused(session: Session) -> None:
    assert refusal(session, [request("initialize", protocolVersion="2025-03-26")]) == (
        INVALID_REQUEST,
        None,
    )


def test_a_batch_is_answered_with_the_replies_to_its_requests_in_order(batching: Session) -> None:
    batch = [
        request("ping", "a"),
        cancellation(7),
        request("nope", "b"),
        RESPONSE,
        request("ping", "c"),
    ]
    assert [(reply["id"], "result" in reply) for reply in say(batching, batch)] == [
        ("a", True),
        ("b", False),
        ("c", True),
    ]


@pytest.mark.parametrize("batch", [[cancellation(7)], [cancellation(7), RESPONSE, cancellation(7)]])
def test_a_batch_without_requests_is_not_answered(batching: Session, batch: list[JSON]) -> None:
    assert say(batching, batch) is None


def test_an_empty_batch_is_one_invalid_request(batching: Session) -> None:
    assert refusal(batching, []) == (INVALID_REQUEST, None)


@pytest.mark.parametrize("line", [b"[", b'[{"jsonrpc":"2.0"', b"[1,]", b"[" * 500_000], ids=len)
def test_a_batch_that_is_not_json_is_one_parse_error(batching: Session, line: bytes) -> None:
    assert refusal(batching, line) == (PARSE_ERROR, None)


@pytest.mark.parametrize("odd", [1, "ping", None, {}, [], [request("ping")]])
def test_an_invalid_item_of_a_batch_is_an_invalid_request_of_its_own(
    batching: Session, odd: Any
) -> None:
    first, second = say(batching, [odd, request("ping", "p")])
    assert (first["error"]["code"], first["id"]) == (INVALID_REQUEST, None)
    assert second["id"] == "p"


def test_a_batch_of_too_many_messages_is_refused_whole(batching: Session) -> None:
    allowed = [request("ping", number) for number in range(MAX_BATCH_ITEMS)]
    assert len(say(batching, allowed)) == MAX_BATCH_ITEMS
    assert refusal(batching, [*allowed, request("ping", "one more")]) == (INVALID_REQUEST, None)


def test_a_batch_of_too_many_bytes_is_refused_before_it_is_split(batching: Session) -> None:
    assert refusal(batching, b"[" + b"1," * MAX_BATCH_BYTES + b"1]") == (INVALID_REQUEST, None)


def test_once_the_replies_to_a_batch_are_large_its_other_requests_are_refused(
    batching: Session, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("polymnia.mcp.session.MAX_BATCH_REPLY_BYTES", 100)
    replies = say(batching, [request("ping", number) for number in range(10)])
    assert [reply["id"] for reply in replies] == list(range(10))
    answered = ["result" in reply for reply in replies]
    assert answered == [True] * 3 + [False] * 7
    assert "send this request again" in replies[-1]["error"]["message"]


def test_initialize_is_refused_in_a_batch(batching: Session) -> None:
    reply, *_ = say(
        batching, [request("initialize", "i", protocolVersion="2025-11-25"), request("ping", "p")]
    )
    assert (reply["id"], reply["error"]["code"]) == ("i", INVALID_REQUEST)
