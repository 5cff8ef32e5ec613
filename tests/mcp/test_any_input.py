"""Any input, JSON or not: nothing makes the server fail, and a request gets its reply."""

import json
import logging
from collections.abc import Iterator
from itertools import islice
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from polymnia.dialects.registry import DIALECTS, open_dialect
from polymnia.engine.workspaces import DEFAULT, open_workspaces
from polymnia.mcp.server import Server
from polymnia.mcp.session import Session, cancelled_request, parse
from tests.mcp.conversation import JSON, envelope, new_session
from tests.mcp.mutations import NUMBERS, TEXTS, damaged_messages
from tests.mcp.raw import greeted, say

DAMAGED_MESSAGES = 1500

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


@pytest.fixture
def session(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Session]:
    """A session of the dialect over a data directory with one workspace."""
    workspaces = open_workspaces(f"{tmp_path}/data/")
    workspaces.create(DEFAULT)
    server = Server(open_dialect(request.param), workspaces)
    yield Session(server)
    workspaces.close()


@pytest.mark.parametrize("session", DIALECTS, indirect=True)
def test_no_damaged_message_is_an_internal_error(
    session: Session, caplog: pytest.LogCaptureFixture
) -> None:
    messages = damaged_messages(session.server.dialect, seed=29)
    with caplog.at_level(logging.ERROR):
        for message in islice(messages, DAMAGED_MESSAGES):
            session.handle(message)
            assert caplog.records == [], message


@pytest.mark.parametrize("session", ["reference"], indirect=True)
@pytest.mark.parametrize("value", [*NUMBERS, *TEXTS])
@pytest.mark.parametrize("place", ["params", "arguments", "_meta"])
def test_a_value_that_fits_no_type_beside_a_mistake_is_no_internal_error(
    session: Session, place: str, value: bytes, caplog: pytest.LogCaptureFixture
) -> None:
    params = {
        "params": b'{"name":1,"x":%b}',
        "arguments": b'{"name":"open_nodes","arguments":{"names":1,"x":%b}}',
        "_meta": b'{"name":"open_nodes","_meta":{"progressToken":[],"x":%b}}',
    }
    message = b'{"jsonrpc":"2.0","id":1,"method":"tools/call","params":%b}'
    assert session.handle(message % (params[place] % value)).outcome == "error"
    assert caplog.records == []
