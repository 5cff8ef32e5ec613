"""Clients log in: metadata, registration, codes and tokens over HTTP."""

import json
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from msgspec.structs import replace

from polymnia.model import Token
from tests.auth.oauth import (
    METADATA,
    RESOURCE_METADATA,
    VERIFIER,
    LoginServer,
    ScriptedClient,
    query_of,
)
from tests.transports.running import Running, Talk, Web, call, initialize, text_of


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[LoginServer]:
    with LoginServer(tmp_path_factory.mktemp("login") / "memory.db", "--also", "graph") as server:
        yield server


@pytest.fixture
def client(server: LoginServer) -> ScriptedClient:
    """Return a client that has registered."""
    client = ScriptedClient(server)
    client.register(client_name="A program")
    return client


def change_grant(server: LoginServer, access_token: str, change: Callable[[Token], Token]) -> None:
    """Change the stored grant of an access token, as time would."""
    with server.tokens.store.edit() as tokens:
        for index, token in enumerate(tokens):
            if token.id == access_token.split("_")[1]:
                tokens[index] = change(token)


def error_of(answer: Any) -> str:
    assert answer.status == 400, answer.body
    return str(answer.json["error"])


@pytest.mark.parametrize("path", ["/mcp", "/graph/mcp", "/sse"])
def test_a_rejected_client_finds_the_server_where_it_can_log_in(
    client: ScriptedClient, path: str
) -> None:
    issuer = client.server.issuer
    refused = client.send("GET", path)
    document = f"{RESOURCE_METADATA}{path}"
    assert refused.status == 401
    assert refused.headers["www-authenticate"] == f'Bearer resource_metadata="{issuer}{document}"'
    about = client.send("GET", document).json
    assert (about["resource"], about["authorization_servers"]) == (issuer + path, [issuer])


@pytest.mark.parametrize("path", [METADATA, "/.well-known/openid-configuration"])
def test_the_metadata_has_what_clients_decide_by(client: ScriptedClient, path: str) -> None:
    answer = client.send("GET", path)
    about = answer.json
    assert about["issuer"] == client.server.issuer
    assert about["code_challenge_methods_supported"] == ["S256"]
    assert about["client_id_metadata_document_supported"] is True
    assert about["token_endpoint_auth_methods_supported"] == ["none", "private_key_jwt"]
    assert about["authorization_response_iss_parameter_supported"] is True
    # Cursor asks for every scope in the list.
    assert about["scopes_supported"] == ["polymnia:read", "polymnia:write", "offline_access"]
    assert answer.headers["access-control-allow-origin"] == "*"


def test_a_public_url_with_a_path_is_found_by_every_rule(tmp_path: Path) -> None:
    with LoginServer(tmp_path / "memory.db", path="/team") as server:
        client = ScriptedClient(server)
        for path in (f"{METADATA}/team", "/team/.well-known/openid-configuration"):
            assert client.send("GET", path).json["token_endpoint"] == f"{server.issuer}/token"
        about = client.send("GET", f"{RESOURCE_METADATA}/team/mcp").json
        assert about["resource"] == f"{server.issuer}/mcp"
        client.register()
        token = client.log_in()["access_token"]
        with Web(server.port, token) as web:
            assert web.post(initialize(), "/team/mcp").status == 200


def test_nothing_is_offered_without_a_public_url(tmp_path: Path, server: LoginServer) -> None:
    with (
        Running(tmp_path / "memory.db", "--tokens", str(server.tokens.path)) as running,
        Web(running.port) as web,
    ):
        assert web.send("GET", METADATA).status == 404
        assert web.send("GET", "/authorize").status == 404


def test_a_client_that_a_person_allowed_uses_the_memory(client: ScriptedClient) -> None:
    tokens = client.log_in()
    assert tokens["token_type"] == "Bearer"
    assert tokens["scope"] == "polymnia:read polymnia:write offline_access"
    talk = Talk(client.server.port, tokens["access_token"])
    assert not talk.call("read_graph").get("isError")
    talk.close()


def test_the_answer_names_the_server_and_keeps_the_state(client: ScriptedClient) -> None:
    back = client.get_code(state="a/b c&d")
    assert (back["iss"], back["state"]) == (client.server.issuer, "a/b c&d")


def test_a_person_may_deny(client: ScriptedClient) -> None:
    request = query_of(client.authorize().headers["location"])["request"]
    back = query_of(client.server.allow(request, deny=True))
    assert back["error"] == "access_denied"
    assert "code" not in back


def test_a_client_never_gets_more_than_its_person_has(client: ScriptedClient) -> None:
    request = query_of(client.authorize(scope="polymnia:admin").headers["location"])["request"]
    with pytest.raises(Exception, match="may only write"):
        client.server.allow(request, "admin")


def test_what_was_allowed_is_listed_with_its_person_and_ends_with_them(tmp_path: Path) -> None:
    with LoginServer(tmp_path / "memory.db") as server:
        client = ScriptedClient(server)
        client.register(client_name="A program")
        token = client.log_in()["access_token"]
        (grant,) = server.tokens.all("grant")
        assert grant.name == "alice: A program"
        server.tokens.revoke("alice")
        with Web(server.port, token) as web:
            assert web.post(initialize()).status == 401
        assert server.tokens.state(grant) == "revoked"


def test_a_client_that_may_only_read_learns_which_scope_would_help(client: ScriptedClient) -> None:
    talk = Talk(client.server.port, client.log_in("read")["access_token"])
    refused = talk.post(call("create_entities", entities=[]))
    assert refused.status == 403
    header = refused.headers["www-authenticate"]
    assert 'error="insufficient_scope", scope="polymnia:read polymnia:write"' in header
    talk.close()


def test_a_client_is_not_sent_to_ask_for_what_its_person_lacks(tmp_path: Path) -> None:
    with LoginServer(tmp_path / "memory.db", can="read") as server:
        client = ScriptedClient(server)
        client.register()
        talk = Talk(server.port, client.log_in("read")["access_token"])
        assert "may only read" in text_of(talk.post(call("create_entities", entities=[])).json)
        talk.close()


def test_a_session_goes_on_with_a_refreshed_token(client: ScriptedClient) -> None:
    tokens = client.log_in()
    talk = Talk(client.server.port, tokens["access_token"])
    renewed = client.refresh(tokens["refresh_token"]).json
    talk.headers["Authorization"] = f"Bearer {renewed['access_token']}"
    assert talk.post(call("read_graph")).status == 200
    talk.close()


def test_a_repeated_refresh_gives_the_same_token_for_a_while(client: ScriptedClient) -> None:
    first = client.log_in()["refresh_token"]
    once, again = client.refresh(first).json, client.refresh(first).json
    assert once["refresh_token"] == again["refresh_token"] != first
    assert once["access_token"] != again["access_token"]


def test_an_old_refresh_token_ends_the_access(client: ScriptedClient) -> None:
    tokens = client.log_in()
    first = tokens["refresh_token"]
    latest = client.refresh(first).json

    def make_old(token: Token) -> Token:
        assert token.grant is not None
        return replace(token, grant=replace(token.grant, rotated_at=token.grant.rotated_at - 60))

    change_grant(client.server, tokens["access_token"], make_old)
    assert error_of(client.refresh(first)) == "invalid_grant"
    assert error_of(client.refresh(latest["refresh_token"])) == "invalid_grant"
    with Web(client.server.port, latest["access_token"]) as web:
        assert web.post(initialize()).status == 401


def test_a_refresh_token_cannot_be_made_from_an_earlier_one(client: ScriptedClient) -> None:
    tokens = client.log_in()
    forged = tokens["refresh_token"].replace("_0.", "_1.")
    client.refresh(tokens["refresh_token"])
    assert error_of(client.refresh(forged)) == "invalid_grant"
    # A guess must not end the access of others.
    assert client.refresh(tokens["refresh_token"]).status == 200


def test_an_access_token_expires_and_its_refresh_token_does_not(client: ScriptedClient) -> None:
    tokens = client.log_in()

    def age(token: Token) -> Token:
        assert token.grant is not None
        access = tuple((digest, int(time.time()) - 1) for digest, _ in token.grant.access)
        return replace(token, grant=replace(token.grant, access=access))

    change_grant(client.server, tokens["access_token"], age)
    with Web(client.server.port, tokens["access_token"]) as web:
        assert web.post(initialize()).status == 401
    assert client.refresh(tokens["refresh_token"]).status == 200


@pytest.mark.parametrize("kind", ["access_token", "refresh_token"])
def test_a_revoked_token_ends_the_access(client: ScriptedClient, kind: str) -> None:
    tokens = client.log_in()
    form = {"Content-Type": "application/x-www-form-urlencoded"}
    assert client.send("POST", "/revoke", f"token={tokens[kind]}".encode(), **form).status == 200
    assert client.send("POST", "/revoke", b"token=unknown", **form).status == 200
    assert error_of(client.refresh(tokens["refresh_token"])) == "invalid_grant"
    with Web(client.server.port, tokens["access_token"]) as web:
        assert web.post(initialize()).status == 401


def test_one_strange_redirect_does_not_fail_a_registration(client: ScriptedClient) -> None:
    uris = ["cursor://anysphere.cursor-mcp/oauth/callback", "http://localhost:8787/callback"]
    answer = client.register(*uris, "http://example.com/x", "javascript://%0aalert(1)")
    assert answer.status == 201
    assert answer.json["redirect_uris"] == uris


@pytest.mark.parametrize(
    "metadata",
    [
        {"redirect_uris": []},
        {"redirect_uris": ["http://example.com/callback"]},
        {"redirect_uris": ["javascript:alert(1)"]},
        {"redirect_uris": ["https://user@example.com/"]},
        {"redirect_uris": ["https://example.com/#fragment"]},
        {"redirect_uris": ["https://example.com/\r\nSet-Cookie: a=b"]},
        {"redirect_uris": "https://example.com/"},
        {"redirect_uris": [7]},
        {"redirect_uris": ["https://example.com/"], "response_types": ["token"]},
        {},
    ],
)
def test_a_bad_registration_is_refused(client: ScriptedClient, metadata: Any) -> None:
    answer = client.send("POST", "/register", json.dumps(metadata).encode())
    assert error_of(answer) in ("invalid_redirect_uri", "invalid_client_metadata")


def test_a_registration_outlives_the_server(tmp_path: Path) -> None:
    with LoginServer(tmp_path / "memory.db") as server:
        client = ScriptedClient(server)
        client.register()
    with LoginServer(tmp_path / "memory.db") as again:
        client.server = again
        assert client.log_in()["access_token"]


def test_a_client_of_the_settings_logs_in(tmp_path: Path) -> None:
    client_id, uri = "our-program", "https://tools.example.com/callback?tenant=1"
    settings = {"POLYMNIA_OAUTH_CLIENTS": f"{client_id}={uri}"}
    with LoginServer(tmp_path / "memory.db", settings=settings) as server:
        client = ScriptedClient(server, client_id)
        client.redirect_uri = uri
        assert client.log_in()["access_token"]


def test_an_unknown_client_is_told_to_register_again(client: ScriptedClient) -> None:
    client.client_id = "forgotten"
    answer = client.redeem("ply_0_x")
    assert (answer.status, answer.json["error"]) == (401, "invalid_client")
    assert client.authorize().status == 400


# Attacks.


def test_a_code_is_worth_nothing_without_its_verifier(client: ScriptedClient) -> None:
    code = client.get_code()["code"]
    for verifier in (None, "w" * 64, "short", VERIFIER + "\0"):
        assert error_of(client.redeem(code, code_verifier=verifier)) == "invalid_grant"
    assert client.redeem(code).status == 200


def test_a_replayed_code_ends_the_access(client: ScriptedClient) -> None:
    code = client.get_code()["code"]
    tokens = client.redeem(code).json
    assert error_of(client.redeem(code)) == "invalid_grant"
    assert error_of(client.refresh(tokens["refresh_token"])) == "invalid_grant"


def test_a_code_is_valid_for_its_client_and_redirect_only(client: ScriptedClient) -> None:
    other = ScriptedClient(client.server)
    other.register("https://evil.example.com/callback")
    code = client.get_code()["code"]
    assert error_of(other.redeem(code, redirect_uri=client.redirect_uri)) == "invalid_grant"
    assert error_of(client.redeem(code, redirect_uri=other.redirect_uri)) == "invalid_grant"
    answer = client.redeem(code, client_id=None)
    assert (answer.status, answer.json["error"]) == (401, "invalid_client")


def test_a_refresh_token_is_valid_for_its_client_only(client: ScriptedClient) -> None:
    other = ScriptedClient(client.server)
    other.register("https://evil.example.com/callback")
    refresh_token = client.log_in()["refresh_token"]
    assert error_of(other.refresh(refresh_token)) == "invalid_grant"
    assert client.refresh(refresh_token).status == 200


@pytest.mark.parametrize(
    "changes",
    [
        {"code_challenge": None},
        {"code_challenge_method": None},
        {"code_challenge_method": "plain"},
        {"code_challenge": "short"},
    ],
)
def test_a_request_without_a_strong_challenge_is_refused(
    client: ScriptedClient, changes: dict[str, str | None]
) -> None:
    answer = client.authorize(**changes)
    back = query_of(answer.headers["location"])
    assert answer.headers["location"].startswith(client.redirect_uri)
    assert (back["error"], back["iss"]) == ("invalid_request", client.server.issuer)


@pytest.mark.parametrize(
    "redirect_uri",
    [
        "https://evil.example.com/",
        "http://127.0.0.1:7777/callback/../evil",
        "http://127.0.0.1:7777/callback?more",
        "http://127.0.0.1:7777@evil.example.com/callback",
        "http://127.0.0.1:7777\\@evil.example.com/callback",
        "http://127.0.0.1:7777/callback#x",
        "http://127.0.0.1:7777/call\r\nback",
        "https://127.0.0.1:7777/callback",
        "http://localhost:7777/callback",
        "http://127.0.0.1.evil.example.com:7777/callback",
        "//evil.example.com",
        "",
    ],
)
def test_a_browser_is_not_sent_to_a_strange_address(
    client: ScriptedClient, redirect_uri: str
) -> None:
    client.register(client.redirect_uri, "https://example.com/other")
    answer = client.authorize(redirect_uri=redirect_uri, response_type="bad")
    assert answer.status == 400
    assert "location" not in answer.headers
    assert answer.headers["content-type"].startswith("text/plain")


def test_a_loopback_redirect_may_have_any_port(client: ScriptedClient) -> None:
    client.redirect_uri = "http://127.0.0.1:50123/callback"
    assert client.log_in()["access_token"]


def test_a_token_of_one_resource_opens_no_other(client: ScriptedClient) -> None:
    token = client.log_in()["access_token"]
    with Web(client.server.port, token) as web:
        assert web.post(initialize()).status == 200
        assert web.post(initialize(), "/graph/mcp").status == 401


def test_a_token_for_another_server_is_not_given(client: ScriptedClient) -> None:
    answer = client.authorize(resource="https://other.example.com/mcp")
    assert query_of(answer.headers["location"])["error"] == "invalid_target"
    code = client.get_code()["code"]
    answer = client.redeem(code, resource="https://other.example.com/mcp")
    assert error_of(answer) == "invalid_target"


def test_a_request_for_a_decision_cannot_be_forged(client: ScriptedClient) -> None:
    request = query_of(client.authorize().headers["location"])["request"]
    text, _, signature = request.partition(".")
    for forged in (f"{text[:-4]}AAAA.{signature}", text, f"{client.client_id}", ""):
        with pytest.raises(Exception, match="connect again"):
            client.server.allow(forged)


@pytest.mark.parametrize(
    "body", [b"grant_type=a&grant_type=b", b"\xff\xfe", b"a=%FF", b"grant_type=password", b""]
)
def test_a_malformed_request_for_tokens_is_refused(client: ScriptedClient, body: bytes) -> None:
    headers = {"Content-Type": "application/x-www-form-urlencoded"}
    code = error_of(client.send("POST", "/token", body, **headers))
    assert code in ("invalid_request", "unsupported_grant_type")


def test_secrets_are_stored_as_hashes_only(client: ScriptedClient) -> None:
    back = client.get_code()
    tokens = client.redeem(back["code"]).json
    assert client.server.tokens.path is not None
    stored = client.server.tokens.path.read_text("utf-8")
    refresh_secret = tokens["refresh_token"].partition(".")[2][:64]
    for secret in (back["code"], tokens["access_token"], refresh_secret):
        assert secret.split("_", 2)[-1] not in stored
