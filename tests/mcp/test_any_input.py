"""Whatever comes in, JSON or not: nothing makes the server fail, and a request gets its reply."""

import json
from typing import Any

from hypothesis import given, settings
from hypothesis import strategies as st

from polymnia.mcp.session import cancelled_request, parse
from tests.mcp.conversation import JSON, envelope, new_session
from tests.mcp.raw import greeted, say

METHODS = st.sampled_from(
    [
        "ping",
        "initialize",
        "server/discover",
        "tools/list",
        "tools/call",
        "resources/list",
        "resources/templates/list",
        "resources/read",
        "resources/subscribe",
        "resources/unsubscribe",
        "prompts/list",
        "prompts/get",
        "completion/complete",
        "logging/setLevel",
        "subscriptions/listen",
        "notifications/cancelled",
        "notifications/initialized",
    ]
)
VALUES = st.recursive(
    st.none()
    | st.booleans()
    | st.integers()
    | st.floats(allow_nan=False, allow_infinity=False)
    | st.text(max_size=8),
    lambda inner: (
        st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=6), inner, max_size=3)
    ),
    max_leaves=8,
)
IDENTIFIERS = st.text(max_size=8) | st.integers() | st.floats(allow_nan=False, allow_infinity=False)
PARAMS = st.fixed_dictionaries(
    {},
    optional={
        "_meta": VALUES | st.just(envelope()),
        "name": st.sampled_from(["measure", "nothing", "greeting", "explode"]) | VALUES,
        "arguments": VALUES | st.just({"howMany": 3}),
        "uri": st.sampled_from(["test://names", "test://entity/A"]) | VALUES,
        "protocolVersion": st.sampled_from(["2025-03-26", "2025-11-25"]) | VALUES,
        "requestId": VALUES,
        "cursor": VALUES,
        "level": VALUES,
        "notifications": st.just({}) | VALUES,
    },
)
REQUESTS = st.fixed_dictionaries(
    {"id": IDENTIFIERS, "method": METHODS | st.text(max_size=8)},
    optional={
        "jsonrpc": st.just("2.0") | VALUES,
        "params": PARAMS | VALUES,
        "result": VALUES,
        "extra": VALUES,
    },
)
MESSAGES = REQUESTS | st.fixed_dictionaries(
    {},
    optional={
        "jsonrpc": st.just("2.0"),
        "id": VALUES,
        "method": METHODS | VALUES,
        "params": PARAMS | VALUES,
    },
)


@settings(deadline=None)
@given(MESSAGES | VALUES | st.lists(MESSAGES, max_size=4), st.booleans())
def test_no_json_makes_the_server_fail(message: Any, ascii_only: bool) -> None:
    session = new_session()
    cancelled_request(parse(json.dumps(message, ensure_ascii=ascii_only).encode()))
    session.handle(json.dumps(message, ensure_ascii=ascii_only).encode())
    session.close()


@settings(deadline=None)
@given(
    st.binary(max_size=64)
    | st.builds(bytes.__add__, st.sampled_from([b"{", b"[", b'{"id":']), st.binary(max_size=32))
)
def test_no_bytes_make_the_server_fail(line: bytes) -> None:
    session = greeted("2025-03-26")
    cancelled_request(parse(line))
    session.handle(line)


@settings(deadline=None)
@given(REQUESTS)
def test_every_request_gets_one_reply_with_its_id(message: JSON) -> None:
    reply = say(new_session(), message)
    if message["method"] == "subscriptions/listen" and reply is None:
        return  # answered when the stream ends
    assert reply["id"] == message["id"]
    assert ("result" in reply) != ("error" in reply)
