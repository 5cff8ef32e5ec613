"""Logins over every transport, and their end when the token is revoked or expires."""

import json
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from polymnia.auth.tokens import Tokens, file_tokens
from tests.auth.signing import AUDIENCE, ISSUER, RSA, pem, signed
from tests.transports.running import (
    Events,
    Legacy,
    Line,
    Running,
    Talk,
    Web,
    call,
    initialize,
    is_refused,
    listening,
    request,
    stateless,
    text_of,
)

LISTEN = request(
    "subscriptions/listen", notifications={"resourceSubscriptions": ["memory://knowledge-graph"]}
)


@pytest.fixture(scope="module")
def store(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A server that requires a token."""
    path = tmp_path_factory.mktemp("admission") / "memory.db"
    file_tokens(Path(f"{path}.tokens")).create("first", can="read")
    return path


@pytest.fixture
def tokens(store: Path) -> Iterator[Tokens]:
    """The server's tokens; those that a test creates are revoked at its end."""
    kept = file_tokens(Path(f"{store}.tokens"))
    yield kept
    for item in kept.all():
        if item.name != "first" and item.revoked_at is None:
            kept.revoke(item.name)


@pytest.fixture(scope="module")
def server(store: Path) -> Iterator[Running]:
    with Running(store) as running:
        yield running


@pytest.fixture(scope="module")
def line_server(store: Path) -> Iterator[Running]:
    """The same over TCP."""
    with Running(store, transport="tcp") as running:
        yield running


@pytest.mark.parametrize("path", ["/mcp", "/sse/messages/", "/reference/mcp"])
@pytest.mark.parametrize(
    "authorization", [None, "Bearer", "Bearer ", "Bearer nonsense", "Basic YTpi", "bearer ply_a_b"]
)
def test_requests_without_a_valid_token_are_rejected(
    server: Running, path: str, authorization: str | None
) -> None:
    with Web(server.port) as web:
        headers = {} if authorization is None else {"Authorization": authorization}
        answer = web.post(initialize(), path, **headers)
    assert answer.status == 401
    assert answer.headers["www-authenticate"].startswith("Bearer")
    assert "result" not in answer.json


@pytest.mark.parametrize("path", ["/mcp", "/sse"])
def test_without_a_token_no_stream_is_opened(server: Running, path: str) -> None:
    with Web(server.port) as web:
        assert web.send("GET", path).status == 401


def test_the_bearer_scheme_is_case_insensitive(server: Running, tokens: Tokens) -> None:
    text = tokens.create("alice", can="read")
    with Web(server.port) as web:
        assert web.post(initialize(), Authorization=f"bEARER   {text} ").status == 200


def test_two_tokens_in_one_request_are_rejected(server: Running, tokens: Tokens) -> None:
    text = tokens.create("alice", can="read")
    with Web(server.port, text, authorization=f"Bearer {text}") as web:
        assert web.post(initialize()).status == 400


def test_a_token_in_the_query_string_does_not_count(server: Running, tokens: Tokens) -> None:
    text = tokens.create("alice", can="read")
    with Web(server.port) as web:
        assert web.post(initialize(), f"/mcp?access_token={text}").status == 401


def test_tcp_requests_without_a_token_are_rejected(line_server: Running) -> None:
    with Line(line_server.port) as line:
        for message in (initialize(), request("ping"), call("read_graph"), request("tools/list")):
            assert line.ask(message)["error"]["code"] == -32001


def test_a_token_sent_over_tcp_lasts_for_the_connection(
    line_server: Running, tokens: Tokens
) -> None:
    text = tokens.create("alice", can="read")
    with Line(line_server.port) as line:
        line.say(request("ping", _meta={"polymnia/token": text}))
        assert line.hear()["result"] == {}
        line.say(call("read_graph"))
        assert not is_refused(line.hear())


def test_a_wrong_token_sent_over_tcp_replaces_the_right_one(
    line_server: Running, tokens: Tokens
) -> None:
    text = tokens.create("alice", can="read")
    with Line(line_server.port) as line:
        line.say(request("ping", _meta={"polymnia/token": text}))
        line.hear()
        line.say(request("ping", _meta={"polymnia/token": "nonsense"}))
        assert line.hear()["error"]["code"] == -32001
        line.say(call("read_graph"))
        assert line.hear()["error"]["code"] == -32001


def test_every_message_of_a_tcp_batch_needs_the_token(line_server: Running) -> None:
    with Line(line_server.port) as line:
        line.say([call("read_graph", 1), call("read_graph", 2)])
        heard = line.hear()
    assert "error" in heard if isinstance(heard, dict) else all("error" in item for item in heard)


def test_the_next_request_after_a_revocation_is_rejected(server: Running, tokens: Tokens) -> None:
    talk = Talk(server.port, tokens.create("alice", can="write"))
    assert not talk.call("read_graph").get("isError")
    tokens.revoke("alice")
    answer = talk.post(call("read_graph"))
    assert answer.status == 401
    assert "alice is revoked" in answer.json["error"]["message"]
    talk.close()


def test_a_new_token_of_the_same_name_does_not_inherit_the_session(
    server: Running, tokens: Tokens
) -> None:
    talk = Talk(server.port, tokens.create("alice", can="write"))
    tokens.revoke("alice")
    talk.headers["Authorization"] = f"Bearer {tokens.create('alice', can='write')}"
    assert talk.post(call("read_graph")).status == 404
    talk.close()


def test_another_token_cannot_use_the_session(server: Running, tokens: Tokens) -> None:
    alice = Talk(server.port, tokens.create("alice", can="admin"))
    mallory = tokens.create("mallory", can="admin")
    with Web(server.port, mallory, **{"Mcp-Session-Id": alice.id}) as web:
        assert web.post(call("read_graph")).status == 404
        assert web.send("GET", "/mcp").status == 404
        assert web.send("DELETE", "/mcp").status == 404
    assert not alice.call("read_graph").get("isError")
    alice.close()


def test_another_token_cannot_use_the_legacy_session(server: Running, tokens: Tokens) -> None:
    with Legacy(server.port, tokens.create("alice", can="admin")) as alice:
        with Web(server.port, tokens.create("mallory", can="admin")) as web:
            assert web.post(call("read_graph"), alice.place).status == 404
        assert not is_refused(alice.ask(call("read_graph")))


def test_a_notification_stream_ends_with_its_token(server: Running, tokens: Tokens) -> None:
    talk = Talk(server.port, tokens.create("alice", can="read"))
    with listening(talk) as events:
        tokens.revoke("alice")
        assert events.next() is None
    talk.close()


def test_a_legacy_stream_ends_with_its_token(server: Running, tokens: Tokens) -> None:
    with Legacy(server.port, tokens.create("alice", can="read")) as legacy:
        tokens.revoke("alice")
        assert legacy.events.next() is None


def test_a_listen_stream_ends_with_its_token(server: Running, tokens: Tokens) -> None:
    message, headers = stateless(LISTEN)
    with Web(server.port, tokens.create("alice", can="read")) as web:
        events = Events(web.open("POST", "/mcp", json.dumps(message).encode(), **headers))
        assert events.message()["method"] == "notifications/subscriptions/acknowledged"
        tokens.revoke("alice")
        ended = list(iter(events.message, None))
    assert [item.get("method") for item in ended] == [None]
    assert ended[0]["result"]["resultType"] == "complete"


def test_a_tcp_connection_ends_with_its_token(line_server: Running, tokens: Tokens) -> None:
    with Line(line_server.port, tokens.create("alice", can="read")) as line:
        assert "result" in line.ask(initialize())
        tokens.revoke("alice")
        assert line.hear() is None


def test_revoking_one_token_does_not_affect_the_others(server: Running, tokens: Tokens) -> None:
    alice = Talk(server.port, tokens.create("alice", can="read"))
    bob = Talk(server.port, tokens.create("bob", can="write"))
    with listening(alice) as gone, listening(bob) as stays:
        bob.ask("resources/subscribe", uri="memory://knowledge-graph")
        tokens.revoke("alice")
        assert gone.next() is None
        bob.call("create_entities", entities=[{"name": "x", "entityType": "t", "observations": []}])
        assert stays.message()["method"] == "notifications/resources/updated"
    alice.close()
    bob.close()


def test_streams_without_a_token_end_when_one_becomes_required(tmp_path: Path) -> None:
    tokens = file_tokens(tmp_path / "memory.db.tokens")
    with Running(tmp_path / "memory.db") as server:
        talk = Talk(server.port)
        with listening(talk) as events:
            tokens.create("alice", can="read")
            assert events.next() is None
        assert talk.post(call("read_graph")).status == 401
        talk.close()


def test_with_a_damaged_token_file_all_logins_are_rejected_and_the_log_says_why(
    tmp_path: Path,
) -> None:
    path = tmp_path / "memory.db.tokens"
    text = file_tokens(path).create("alice", can="admin")
    with Running(tmp_path / "memory.db") as server:
        path.write_bytes(b"{")
        with Web(server.port, text) as web:
            answer = web.post(initialize())
        assert answer.status == 401
        assert str(path) not in answer.body.decode()
        server.wait_for("is not a token file")


@pytest.mark.parametrize("transport", ["http", "tcp"])
def test_a_server_with_tokens_may_listen_on_other_addresses(tmp_path: Path, transport: str) -> None:
    text = file_tokens(tmp_path / "memory.db.tokens").create("alice", can="read")
    with Running(tmp_path / "memory.db", "--bind", "0.0.0.0:0", transport=transport) as server:
        if transport == "tcp":
            with Line(server.port, text) as line:
                assert "result" in line.ask(initialize())
            return
        with Web(server.port, text) as web:
            assert web.post(initialize()).status == 200
        with Web(server.port) as web:
            assert web.post(initialize()).status == 401


@pytest.fixture(scope="module")
def provided(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Running]:
    """A server that trusts an identity provider."""
    directory = tmp_path_factory.mktemp("provided")
    key = directory / "key.pem"
    key.write_text(pem(RSA))
    settings = {
        "POLYMNIA_JWT_ISSUER": ISSUER,
        "POLYMNIA_JWT_AUDIENCE": AUDIENCE,
        "POLYMNIA_JWT_KEY": str(key),
    }
    public = {"POLYMNIA_PUBLIC_URL": "https://memory.example.com/"}
    with Running(
        directory / "memory.db", "--also", "graph", settings={**settings, **public}
    ) as running:
        yield running


BASE = "https://memory.example.com"
METADATA = "/.well-known/oauth-protected-resource"


@pytest.mark.parametrize("path", ["/mcp", "/graph/mcp", "/sse"])
def test_a_rejected_login_says_where_to_get_a_token_for_that_path(
    provided: Running, path: str
) -> None:
    with Web(provided.port) as web:
        refused = web.send("GET", path) if path == "/sse" else web.post(initialize(), path)
        assert refused.status == 401
        assert (
            refused.headers["www-authenticate"]
            == f'Bearer resource_metadata="{BASE}{METADATA}{path}"'
        )
        document = web.send("GET", f"{METADATA}{path}")
    assert document.status == 200
    assert document.json["resource"] == f"{BASE}{path}"
    assert document.json["authorization_servers"] == [ISSUER]
    assert document.json["scopes_supported"] == [
        "polymnia:read",
        "polymnia:write",
        "polymnia:admin",
    ]


def test_a_wrong_token_is_reported_as_invalid(provided: Running) -> None:
    with Web(provided.port, signed(aud="another")) as web:
        challenge = web.post(initialize()).headers["www-authenticate"]
    assert challenge.startswith('Bearer error="invalid_token", resource_metadata=')


def test_the_metadata_document_is_also_at_the_root_and_nowhere_else(provided: Running) -> None:
    with Web(provided.port) as web:
        assert web.send("GET", METADATA).json["resource"] == f"{BASE}/mcp"
        assert web.send("GET", f"{METADATA}/elsewhere").status == 404


def test_without_a_place_to_log_in_the_metadata_names_none(server: Running) -> None:
    with Web(server.port) as web:
        document = f"http://127.0.0.1:{server.port}{METADATA}/mcp"
        challenge = web.post(initialize()).headers["www-authenticate"]
        assert challenge == f'Bearer resource_metadata="{document}"'
        assert "authorization_servers" not in web.send("GET", f"{METADATA}/mcp").json


def test_a_server_that_needs_no_token_has_no_metadata_document(tmp_path: Path) -> None:
    with Running(tmp_path / "memory.db") as running, Web(running.port) as web:
        assert web.send("GET", METADATA).status == 404


def test_a_token_of_the_provider_opens_a_session_with_its_rights(provided: Running) -> None:
    reader = Talk(provided.port, signed(scope="polymnia:read"))
    writer = Talk(provided.port, signed())
    entity = {"name": "x", "entityType": "t", "observations": []}
    assert "may only read" in text_of(
        reader.ask("tools/call", name="create_entities", arguments={"entities": [entity]})
    )
    assert not writer.call("create_entities", entities=[entity]).get("isError")
    reader.close()
    writer.close()


def test_a_session_continues_with_a_renewed_token_but_not_with_other_rights(
    provided: Running,
) -> None:
    talk = Talk(provided.port, signed())
    talk.headers["Authorization"] = f"Bearer {signed(exp=int(time.time()) + 900)}"
    assert talk.post(call("read_graph")).status == 200
    talk.headers["Authorization"] = f"Bearer {signed(scope='polymnia:read')}"
    assert talk.post(call("read_graph")).status == 404
    talk.close()


def test_a_stream_ends_when_its_token_expires(provided: Running) -> None:
    talk = Talk(provided.port, signed(exp=int(time.time()) + 3))
    with listening(talk) as events:
        assert events.next() is None
    assert talk.post(call("read_graph")).status == 401
    talk.close()
