"""Which messages a transport may handle where it reads them: those that need no store."""

import pytest
from msgspec.json import encode

from polymnia.mcp.message import INVALID_REQUEST
from polymnia.mcp.methods import MAX_INLINE_BYTES, METHODS
from polymnia.mcp.params import BATCHES
from polymnia.mcp.session import Session, parse
from tests.mcp.conversation import new_session
from tests.transports.running import call, request

WITHOUT_STORE = {
    "initialize",
    "server/discover",
    "ping",
    "tools/list",
    "resources/templates/list",
    "prompts/list",
}


@pytest.fixture
def session() -> Session:
    return new_session()


def is_inline(session: Session, message: object) -> bool:
    body = encode(message)
    return session.is_inline(parse(body), len(body))


def test_the_methods_without_a_store_are_inline() -> None:
    assert {name for name, method in METHODS.items() if method.is_inline} == WITHOUT_STORE


def test_a_message_is_inline_if_its_method_is(session: Session) -> None:
    assert is_inline(session, request("tools/list"))
    assert not is_inline(session, request("resources/list"))


def test_no_tool_runs_inline(session: Session) -> None:
    for tool in session.server.dialect.tools:
        assert not is_inline(session, call(tool))


def test_an_unknown_method_is_refused_inline(session: Session) -> None:
    assert is_inline(session, request("tools/guess"))


def test_parameters_that_do_not_fit_are_refused_inline(session: Session) -> None:
    assert is_inline(session, {"jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": []})


def test_a_long_message_is_not_inline(session: Session) -> None:
    message = parse(encode(request("ping")))
    assert session.is_inline(message, MAX_INLINE_BYTES)
    assert not session.is_inline(message, MAX_INLINE_BYTES + 1)


@pytest.mark.parametrize("batch", [[], [request("ping")]])
def test_a_batch_is_not_inline(session: Session, batch: list[object]) -> None:
    session.revision = BATCHES
    assert not is_inline(session, batch)


def test_a_batch_in_a_revision_without_batches_is_refused_inline(session: Session) -> None:
    batch = [request("ping")]
    assert is_inline(session, batch)
    assert session.handle(encode(batch)).error_code == INVALID_REQUEST
