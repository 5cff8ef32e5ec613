"""JSON-RPC at its edges: what is refused and what is ignored.

Every request gets one reply with its own id.
"""

import json
from typing import Any

import pytest

from polymnia.mcp import message as jsonrpc
from polymnia.mcp.message import MAX_SALVAGE_BYTES
from polymnia.mcp.session import Session, cancelled_request, parse
from tests.mcp.conversation import JSON
from tests.mcp.raw import (
    INVALID_PARAMS,
    INVALID_REQUEST,
    METHOD_NOT_FOUND,
    PARSE_ERROR,
    RESPONSE,
    cancellation,
    refusal,
    request,
    say,
)

CANCELLATION = cancellation(7)

NOT_JSON = {
    "half an object": b'{"jsonrpc":"2.0",',
    "a word": b"hello",
    "single quotes": b"{'jsonrpc':'2.0'}",
    "a trailing comma": b'{"jsonrpc":"2.0","method":"ping",}',
    "two messages": b'{"jsonrpc":"2.0","method":"ping"} {"jsonrpc":"2.0","method":"ping"}',
    "a comment": b'{"jsonrpc":"2.0","method":"ping"} // so',
    "a zero byte": b"\x00",
    "UTF-16": '{"jsonrpc":"2.0","method":"ping"}'.encode("utf-16"),
    "half a million opened arrays in an object": b'{"a":' + b"[" * 500_000,
    "half a million opened objects": b'{"a":' * 500_000,
}


@pytest.mark.parametrize("line", NOT_JSON.values(), ids=NOT_JSON)
def test_invalid_json_is_a_parse_error_with_a_null_id(session: Session, line: bytes) -> None:
    assert refusal(session, line) == (PARSE_ERROR, None)


@pytest.mark.parametrize("line", [b"", b" ", b"\t \r\n", b"\n\n"])
def test_blank_is_no_message(session: Session, line: bytes) -> None:
    assert session.handle(line).body is None


@pytest.mark.parametrize(
    "message", [None, True, 5, 1.5, "ping", {}, {"jsonrpc": "2.0"}, {"method": 5}, {"method": None}]
)
def test_json_that_is_not_a_message_is_an_invalid_request_with_a_null_id(
    session: Session, message: Any
) -> None:
    assert refusal(session, message) == (INVALID_REQUEST, None)


@pytest.mark.parametrize(
    "method", ["", "nope", "tools", "tools/List", "tools/list ", "notifications/initialized"]
)
def test_an_unknown_method_is_not_found(session: Session, method: str) -> None:
    assert refusal(session, request(method)) == (METHOD_NOT_FOUND, 1)


IDS = [
    "0", "7", "-1", "1.5", "-0", "1E5", "1e-3", "18446744073709551616", "123456789012345678901234567890",
    '""', '"7"', '"a b"', '"é"', r'"\u00e9"', '"😀"', r'"\ud83d\ude00"', r'"\n\"\\\/"', '"null"',
]  # fmt: skip


@pytest.mark.parametrize("identifier", IDS)
@pytest.mark.parametrize("method", ["ping", "nope", "tools/call"])
def test_an_id_comes_back_exactly_as_it_was_spelled(
    session: Session, method: str, identifier: str
) -> None:
    message = f'{{"jsonrpc":"2.0","id": {identifier} ,"method":"{method}"}}'
    reply = session.handle(message.encode()).body
    assert reply is not None
    assert reply.startswith(f'{{"jsonrpc":"2.0","id":{identifier},"'.encode())


@pytest.mark.parametrize(
    "identifier", ["null", "true", "false", "[]", "[1]", "{}", '{"id":1}', "1e400", "9" * 5000]
)
def test_an_id_must_be_a_string_or_a_usable_number(session: Session, identifier: str) -> None:
    message = f'{{"jsonrpc":"2.0","id":{identifier},"method":"ping"}}'
    assert refusal(session, message.encode()) == (INVALID_REQUEST, None)


@pytest.mark.parametrize(
    "version", [{}, {"jsonrpc": "1.0"}, {"jsonrpc": 2.0}, {"jsonrpc": None}, {"jsonrpc": ["2.0"]}]
)
def test_a_request_of_another_json_rpc_is_refused_with_its_id(
    session: Session, version: JSON
) -> None:
    assert refusal(session, {**version, "id": "x", "method": "ping"}) == (INVALID_REQUEST, "x")


@pytest.mark.parametrize(
    "method", [{}, {"method": None}, {"method": 5}, {"method": ["ping"]}, {"method": {}}]
)
def test_a_request_without_a_method_is_refused_with_its_id(session: Session, method: JSON) -> None:
    assert refusal(session, {"jsonrpc": "2.0", "id": "x", **method}) == (INVALID_REQUEST, "x")


@pytest.mark.parametrize(
    "params",
    [
        {},
        {"params": {}},
        {"params": {"_meta": None}},
        {"params": None},
    ],
)
def test_params_may_be_missing_null_or_empty(session: Session, params: JSON) -> None:
    assert say(session, {"jsonrpc": "2.0", "id": 1, "method": "ping", **params})["result"] == {}


@pytest.mark.parametrize("params", [[], [1], "x", 5, True])
def test_params_that_are_no_object_are_refused(session: Session, params: Any) -> None:
    message = {"jsonrpc": "2.0", "id": 1, "method": "ping", "params": params}
    assert refusal(session, message) == (INVALID_PARAMS, 1)


def test_more_items_than_are_handled_at_once_are_refused(
    session: Session, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(jsonrpc, "MAX_ITEMS", 50)
    assert refusal(session, request("ping", later=["name"] * 52)) == (INVALID_PARAMS, 1)
    assert say(session, request("ping", later=['one, two, "three", "four"'] * 30))["result"] == {}


def test_unknown_members_are_ignored(session: Session) -> None:
    assert say(session, {**request("ping", later="?"), "trace": {"a": [1]}})["result"] == {}


def test_the_last_of_two_members_with_one_name_counts(session: Session) -> None:
    line = b'{"jsonrpc":"1.0","id":1,"method":"nope","jsonrpc":"2.0","id":2,"method":"ping"}'
    assert say(session, line) == {"jsonrpc": "2.0", "id": 2, "result": {}}


NOTIFICATIONS: dict[str, JSON] = {
    "known": {"jsonrpc": "2.0", "method": "notifications/initialized"},
    "unknown": {"jsonrpc": "2.0", "method": "notifications/nope"},
    "of a request's method": {"jsonrpc": "2.0", "method": "tools/list"},
    "of a change": {
        "jsonrpc": "2.0",
        "method": "tools/call",
        "params": {"name": "remember", "arguments": {"name": "A"}},
    },
    "cancelling nothing": CANCELLATION,
    "cancelling what no request can be called": {**CANCELLATION, "params": {"requestId": None}},
    "without what it needs": {"jsonrpc": "2.0", "method": "notifications/cancelled"},
    "with positional params": {**CANCELLATION, "params": [7]},
    "with params of a wrong kind": {**CANCELLATION, "params": "7"},
    "with null params": {**CANCELLATION, "params": None},
    "of another JSON-RPC": {"method": "notifications/initialized"},
}


@pytest.mark.parametrize("message", NOTIFICATIONS.values(), ids=NOTIFICATIONS)
def test_a_notification_is_never_answered(session: Session, message: JSON) -> None:
    assert say(session, message) is None
    assert not session.outbox


def test_a_tool_called_by_notification_does_nothing(session: Session) -> None:
    say(session, NOTIFICATIONS["of a change"])
    assert (
        say(session, request("resources/read", uri="test://names"))["result"]["contents"][0]["text"]
        == ""
    )


RESPONSES: dict[str, JSON] = {
    "a result": RESPONSE,
    "an error": {"jsonrpc": "2.0", "id": 1, "error": {"code": -1, "message": "no"}},
    "an error without an id": {"jsonrpc": "2.0", "error": {"code": -1, "message": "no"}},
    "an error for a null id": {
        "jsonrpc": "2.0",
        "id": None,
        "error": {"code": -1, "message": "no"},
    },
}


@pytest.mark.parametrize("message", RESPONSES.values(), ids=RESPONSES)
def test_a_response_is_ignored(session: Session, message: JSON) -> None:
    assert say(session, message) is None


# What no JSON has, or no program can hold.
SPOILT = {
    "NaN": b"NaN",
    "Infinity": b"Infinity",
    "-Infinity": b"-Infinity",
    "half a surrogate pair": rb'"\ud800"',
    "half a surrogate pair in a word": rb'"a\ud800bc def"',
    "the second half of a pair": rb'"\udc00"',
    "invalid UTF-8": b'"\xff"',
    "overlong UTF-8": b'"\xc0\xaf"',
    "a surrogate in UTF-8": b'"\xed\xa0\x80"',
    "a control character": b'"a\x01b"',
    "a raw tab": b'"a\tb"',
    "a number too large": b"1e999",
    "a leading zero": b"01",
    "hexadecimal": b"0x1F",
    "a bad escape": rb'"\x41"',
}


@pytest.mark.parametrize("spoilt", SPOILT.values(), ids=SPOILT)
def test_spoilt_arguments_are_refused_with_an_answer(session: Session, spoilt: bytes) -> None:
    line = b'{"jsonrpc":"2.0","id":7,"method":"tools/call","params":{"name":"remember","arguments":{"name":%b}}}'
    reply = say(session, line % spoilt)
    assert "error" in reply or reply["result"]["isError"]


ALMOST_JSON = [
    "NaN",
    "-Infinity",
    "half a surrogate pair",
    "a surrogate in UTF-8",
    "invalid UTF-8",
    "overlong UTF-8",
    "a control character",
    "a raw tab",
]


def refused_id(session: Session, identifier: str, spoilt: str) -> Any:
    """The id of the refusal of a message that would be a request if its method could be read."""
    line = b'{"jsonrpc":"2.0","id":%b,"method":%b}' % (identifier.encode(), SPOILT[spoilt])
    return refusal(session, line)[1]


@pytest.mark.parametrize("spoilt", ALMOST_JSON)
@pytest.mark.parametrize("identifier", ["7", "-1", "1.5", '"seven"', '"é"', '""'])
def test_the_error_for_almost_json_carries_the_id(
    session: Session, identifier: str, spoilt: str
) -> None:
    assert refused_id(session, identifier, spoilt) == json.loads(identifier)


def test_a_long_message_that_is_not_json_is_parsed_once(session: Session) -> None:
    """The lenient parser, which would find the id, takes seconds for tens of megabytes."""
    line = b'{"jsonrpc":"2.0","id":7,"method":NaN,"padding":"%b"}' % (b"x" * MAX_SALVAGE_BYTES)
    assert refusal(session, line) == (PARSE_ERROR, None)


@pytest.mark.parametrize("pair", [r"\ud800", r"a\ud800bc def", r"\udc00", r"\ud83d\u0041"])
def test_half_a_surrogate_pair_is_called_that(session: Session, pair: str) -> None:
    reply = say(
        session, f'{{"jsonrpc":"2.0","id":7,"method":"ping","params":{{"x":"{pair}"}}}}'.encode()
    )
    assert "one half of a surrogate pair" in reply["error"]["message"]


@pytest.mark.parametrize("spoilt", [rb'"\ud800"', b'"\xff"', b'"a\x01"', b"NaN", b"01"])
def test_an_id_that_cannot_be_read_is_answered_with_null(session: Session, spoilt: bytes) -> None:
    code, identifier = refusal(session, b'{"jsonrpc":"2.0","id":%b,"method":"ping"}' % spoilt)
    assert (code in (PARSE_ERROR, INVALID_REQUEST), identifier) == (True, None)


# Around the interpreter's recursion limit the depth at which each step gives up differs.
DEPTHS = [*range(900, 1100), 2_000, 5_000, 10_000, 50_000, 1_000_000]


@pytest.mark.parametrize("method", ["ping", "tools/call", "nope"])
def test_a_request_nested_however_deeply_is_answered(session: Session, method: str) -> None:
    for depth in DEPTHS:
        nested = b'{"name":"nothing","arguments":{"x":%b}}' % _nested(depth)
        line = b'{"jsonrpc":"2.0","id":7,"method":"%b","params":%b}' % (method.encode(), nested)
        assert say(session, line)["id"] in (7, None)


def test_a_notification_nested_however_deeply_is_survived(session: Session) -> None:
    for depth in DEPTHS:
        nested = b'{"requestId":1,"x":%b}' % _nested(depth)
        line = b'{"jsonrpc":"2.0","method":"notifications/cancelled","params":%b}' % nested
        cancelled_request(parse(line))
        session.handle(line)


def _nested(depth: int) -> bytes:
    return b"[" * depth + b"]" * depth
