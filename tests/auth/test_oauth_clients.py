"""The clients that people use log in, with the documents and redirects that they publish."""

import json
import time
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path
from typing import Any
from unittest.mock import patch

import jwt
import pytest
from hypothesis import given
from hypothesis import strategies as st
from jwt.algorithms import RSAAlgorithm

from polymnia.auth.clients import Clients
from polymnia.auth.grants import Grants
from polymnia.auth.tokens import file_tokens
from polymnia.errors import OAuthError
from tests.auth.internet import Internet, make_certificate, names_lead_here
from tests.auth.oauth import LoginServer, ScriptedClient, query_of
from tests.auth.signing import OTHER_RSA, RSA
from tests.transports.running import Web, initialize

NATIVE = {"grant_types": ["authorization_code", "refresh_token"], "response_types": ["code"]}
CLAUDE = "https://claude.ai/oauth/mcp-oauth-client-metadata"
CLAUDE_CODE = "https://claude.ai/oauth/claude-code-client-metadata"
CHATGPT = "https://chatgpt.com/oauth/kDmjx77UnKOM/client.json"
CHATGPT_KEYS = "https://chatgpt.com/oauth/jwks.json"
VSCODE = "https://vscode.dev/oauth/client-metadata.json"
ZED = "https://zed.dev/oauth/client-metadata.json"
DOCUMENTS: dict[str, dict[str, Any]] = {
    CLAUDE: {
        **NATIVE,
        "client_name": "Claude",
        "redirect_uris": [
            "https://claude.ai/api/mcp/auth_callback",
            "https://claude.com/api/mcp/auth_callback",
        ],
        "token_endpoint_auth_method": "none",
        "logo_uri": "javascript:alert(1)",
    },
    CLAUDE_CODE: {
        **NATIVE,
        "client_name": "Claude Code",
        "redirect_uris": ["http://localhost/callback", "http://127.0.0.1/callback"],
        "token_endpoint_auth_method": "none",
    },
    CHATGPT: {
        **NATIVE,
        "client_name": "ChatGPT",
        "client_uri": "https://chatgpt.com/",
        "redirect_uris": ["https://chatgpt.com/connector/oauth/kDmjx77UnKOM"],
        "token_endpoint_auth_method": "private_key_jwt",
        "token_endpoint_auth_signing_alg": "RS256",
        "jwks_uri": CHATGPT_KEYS,
    },
    VSCODE: {
        "grant_types": [
            "authorization_code",
            "refresh_token",
            "urn:ietf:params:oauth:grant-type:device_code",
        ],
        "response_types": ["code"],
        "client_name": "Visual Studio Code",
        "redirect_uris": [
            "http://127.0.0.1:33418/",
            "https://vscode.dev/redirect",
            "https://insiders.vscode.dev/redirect",
        ],
        "token_endpoint_auth_method": "none",
    },
    ZED: {
        "client_name": "Zed",
        "redirect_uris": ["http://127.0.0.1/callback", "http://[::1]/callback"],
    },
}
DESCRIBED = [
    (CLAUDE, "https://claude.ai/api/mcp/auth_callback"),
    (CLAUDE, "https://claude.com/api/mcp/auth_callback"),
    (CLAUDE_CODE, "http://localhost:58135/callback"),
    (CLAUDE_CODE, "http://127.0.0.1:3118/callback"),
    (VSCODE, "https://vscode.dev/redirect"),
    (VSCODE, "http://127.0.0.1:33418/"),
    (VSCODE, "http://127.0.0.1:60005/"),
    (ZED, "http://[::1]:50001/callback"),
]
REGISTERED = {
    "Claude": ["https://claude.ai/api/mcp/auth_callback"],
    "Codex": ["http://127.0.0.1:49152/callback"],
    "Cursor": [
        "http://localhost:8787/callback",
        "cursor://anysphere.cursor-mcp/oauth/callback",
        "https://www.cursor.com/agents/mcp/oauth/callback",
    ],
    "Cursor without a port": ["cursor://anysphere.cursor-mcp/oauth/callback"],
    "Gemini CLI MCP Client": ["http://localhost:7777/oauth/callback"],
    "Visual Studio Code": [
        "https://insiders.vscode.dev/redirect",
        "https://vscode.dev/redirect",
        "http://127.0.0.1/",
        "http://127.0.0.1:33418/",
    ],
}


@pytest.fixture(scope="module")
def internet(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Internet]:
    with Internet(make_certificate(tmp_path_factory.mktemp("internet"))).running() as internet:
        for url, document in DOCUMENTS.items():
            internet.describe(url, **document)
        internet.pages[CHATGPT_KEYS] = {"keys": [public_key(RSA, "one")]}
        yield internet


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory, internet: Internet) -> Iterator[LoginServer]:
    store = tmp_path_factory.mktemp("login") / "memory.db"
    program = "tests.auth.internet"
    with LoginServer(store, program=program, settings=internet.settings) as server:
        yield server


def public_key(key: Any, identifier: str) -> dict[str, Any]:
    return {**json.loads(RSAAlgorithm.to_jwk(key.public_key())), "kid": identifier, "use": "sig"}


def assertion(audience: str, key: Any = RSA, kid: str = "one", **changes: Any) -> dict[str, str]:
    """Return the parameters with which ChatGPT shows who it is."""
    now = int(time.time())
    claims = {
        "iss": CHATGPT,
        "sub": CHATGPT,
        "aud": audience,
        "iat": now,
        "exp": now + 300,
        "jti": "x",
        **changes,
    }
    given = {name: claim for name, claim in claims.items() if claim is not None}
    return {
        "client_assertion_type": "urn:ietf:params:oauth:client-assertion-type:jwt-bearer",
        "client_assertion": jwt.encode(given, key, algorithm="RS256", headers={"kid": kid}),
    }


def chatgpt(server: LoginServer, **assertion: str) -> ScriptedClient:
    client = ScriptedClient(server, CHATGPT, **assertion)
    client.redirect_uri = DOCUMENTS[CHATGPT]["redirect_uris"][0]
    return client


def assert_connects(client: ScriptedClient) -> None:
    tokens = client.log_in()
    with Web(client.server.port, tokens["access_token"]) as web:
        assert web.post(initialize()).status == 200
    assert client.refresh(tokens["refresh_token"]).status == 200


@pytest.mark.parametrize(("url", "redirect_uri"), DESCRIBED)
def test_a_client_with_a_document_logs_in(server: LoginServer, url: str, redirect_uri: str) -> None:
    client = ScriptedClient(server, url)
    client.redirect_uri = redirect_uri
    assert_connects(client)


@pytest.mark.parametrize("name", REGISTERED)
def test_a_client_that_registers_logs_in(server: LoginServer, name: str) -> None:
    client = ScriptedClient(server)
    metadata = {**NATIVE, "token_endpoint_auth_method": "none", "application_type": "native"}
    assert client.register(*REGISTERED[name], client_name=name, **metadata).status == 201
    assert_connects(client)


@pytest.mark.parametrize("audience", ["", "/token"])
def test_a_client_that_signs_logs_in(server: LoginServer, audience: str) -> None:
    assert_connects(chatgpt(server, **assertion(server.issuer + audience)))


@pytest.mark.parametrize("without_id", [False, True])
def test_a_client_that_must_sign_gets_nothing_without(
    server: LoginServer, without_id: bool
) -> None:
    client = chatgpt(server)
    code = client.get_code()["code"]
    changes = {"client_id": None} if without_id else {}
    answer = client.redeem(code, **changes)
    assert (answer.status, answer.json["error"]) == (401, "invalid_client")
    assert client.redeem(code, **changes, **assertion(server.issuer)).status == 200


@pytest.mark.parametrize(
    "wrong",
    [
        {"key": OTHER_RSA},
        {"kid": "two"},
        {"aud": "https://other.example.com"},
        {"iss": "https://evil.example.com/client.json"},
        {"sub": "https://evil.example.com/client.json"},
        {"exp": 1},
        {"exp": None},
    ],
)
def test_a_wrong_signature_is_refused(server: LoginServer, wrong: dict[str, Any]) -> None:
    client = chatgpt(server, **assertion(server.issuer, **wrong))
    answer = client.redeem(client.get_code()["code"])
    assert (answer.status, answer.json["error"]) == (401, "invalid_client")


def test_without_the_package_for_signatures_the_person_learns_what_is_missing(
    tmp_path: Path, internet: Internet, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("polymnia.auth.clients.find_spec", lambda name: None)
    tokens = file_tokens(tmp_path / "tokens")
    monkeypatch.setenv("SSL_CERT_FILE", internet.settings["SSL_CERT_FILE"])
    with names_lead_here(internet.port), pytest.raises(OAuthError, match=r"polymnia\[oauth\]"):
        Clients(tokens.signing_key).find(CHATGPT)


def test_a_client_that_can_do_without_signing_logs_in(
    server: LoginServer, internet: Internet
) -> None:
    url = internet.describe(
        "https://chatgpt.com/oauth/client.json",
        **{
            **DOCUMENTS[CHATGPT],
            "token_endpoint_auth_methods_supported": ["none", "private_key_jwt"],
        },
    )
    client = chatgpt(server)
    client.client_id = url
    assert_connects(client)


def test_the_person_sees_where_the_document_is_published(server: LoginServer) -> None:
    client = chatgpt(server)
    request = query_of(client.authorize().headers["location"])["request"]
    grants = Grants(server.tokens, server.issuer, Clients(server.tokens.signing_key))
    asked = grants.find_authorization(request)
    assert (asked.client, asked.host, asked.redirect_host) == (
        "ChatGPT",
        "chatgpt.com",
        "chatgpt.com",
    )


BAD = {
    "https://evil.example.com/other": ({"client_id": CLAUDE}, 400),
    "https://evil.example.com/none": (404, 400),
    "https://evil.example.com/busy": (503, 503),
    "https://evil.example.com/text": (b"<html>", 400),
    "https://evil.example.com/list": ([], 400),
    "https://evil.example.com/huge": ({"x": "y" * 6000}, 400),
    "https://evil.example.com/redirect": (CLAUDE, 400),
}


@pytest.mark.parametrize("url", BAD)
def test_a_bad_document_lets_nobody_in(server: LoginServer, internet: Internet, url: str) -> None:
    internet.pages[url], status = BAD[url]
    asked = internet.asked.count(CLAUDE)
    client = ScriptedClient(server, url)
    client.redirect_uri = "https://claude.ai/api/mcp/auth_callback"
    answer = client.authorize()
    assert answer.status == status
    assert "location" not in answer.headers
    assert internet.asked.count(CLAUDE) == asked


def test_a_document_has_only_some_strange_redirects(
    server: LoginServer, internet: Internet
) -> None:
    url = internet.describe(
        "https://evil.example.com/strange",
        client_name="  \u202e" + "Long" * 100,
        redirect_uris=["javascript:alert(1)", *[f"https://x.example.com/{n}" for n in range(49)]],
    )
    client = ScriptedClient(server, url)
    client.redirect_uri = "https://x.example.com/48"
    assert client.authorize().status == 302
    client.redirect_uri = "javascript:alert(1)"
    assert client.authorize().status == 400


ANYTHING = st.recursive(
    st.none() | st.booleans() | st.integers() | st.text(max_size=40),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=9), inner),
    max_leaves=6,
)
FIELDS = (
    "client_name",
    "redirect_uris",
    "response_types",
    "token_endpoint_auth_method",
    "token_endpoint_auth_methods_supported",
    "jwks_uri",
    "jwks",
)


@given(st.dictionaries(st.sampled_from(FIELDS), ANYTHING), st.booleans())
def test_no_metadata_breaks_the_server(metadata: dict[str, Any], is_usable: bool) -> None:
    if is_usable:
        metadata["redirect_uris"] = ["https://example.com/callback"]
    clients = Clients(lambda: b"key")
    with suppress(OAuthError):
        clients.register(metadata)
    with suppress(OAuthError), patch.object(clients.documents, "get") as published:
        published.return_value = {"client_id": CLAUDE, **metadata}
        clients.find(CLAUDE)


@pytest.mark.parametrize(
    "keys", [{}, {"keys": 5}, {"keys": ["x"]}, {"keys": [{"kty": "RSA", "n": "AA", "e": "AA"}]}]
)
def test_bad_keys_of_a_client_let_nobody_in(
    server: LoginServer, internet: Internet, keys: Any
) -> None:
    """Keys beside the metadata are published with it."""
    url = f"https://evil.example.com/keys/{json.dumps(keys).encode().hex()}"
    document = {**DOCUMENTS[CHATGPT], "jwks": keys}
    del document["jwks_uri"]
    internet.describe(url, **document)
    claims = assertion(server.issuer, iss=url, sub=url)
    client = chatgpt(server, **claims)
    client.client_id = url
    answer = client.redeem(client.get_code()["code"])
    assert (answer.status, answer.json["error"]) == (401, "invalid_client")
