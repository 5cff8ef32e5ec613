"""Logging in to the web interface, and what ends a session."""

import re
import time
from collections.abc import Iterator
from contextlib import closing, contextmanager
from html import unescape
from pathlib import Path

import psycopg
import pytest

from polymnia.auth.authenticator import Authenticator, tokens_of
from polymnia.auth.people import People, WebSessions
from polymnia.auth.tokens import Tokens
from polymnia.errors import NotAdmitted
from polymnia.model import LINK_OWNER
from tests.transports.running import Running
from tests.ui.client import Visitor, make_token, serve


@pytest.fixture(scope="module")
def store(tmp_path_factory: pytest.TempPathFactory) -> str:
    return str(tmp_path_factory.mktemp("ui") / "memory.db")


@pytest.fixture(scope="module")
def token(store: str) -> str:
    return make_token(store, "laptop", "write")


@pytest.fixture(scope="module")
def server(store: str, token: str) -> Iterator[Running]:
    with serve(store) as running:
        yield running


@pytest.fixture
def visitor(server: Running) -> Visitor:
    return Visitor(server.port)


def test_a_page_asks_for_a_token(visitor: Visitor) -> None:
    assert "This server asks for a token" in visitor.get("/ui/more").text


def test_a_token_opens_the_page_that_was_asked_for(visitor: Visitor, token: str) -> None:
    asked = visitor.get("/ui/more?w=default")
    assert 'value="/ui/more?w=default"' in asked.text
    shown = visitor.post_raw(
        "/ui/login", {"token": token, "to": "/ui/more?w=default"}, Origin=visitor.origin
    )
    assert (shown.status, shown.headers["location"]) == (303, "/ui/more?w=default")
    assert "laptop, may write" in visitor.get("/ui/more").words


def test_after_the_login_nobody_is_sent_to_another_site(visitor: Visitor, token: str) -> None:
    for to in ("https://elsewhere.example/", "//elsewhere.example/", "/ui\\elsewhere", "/mcp"):
        shown = visitor.post_raw("/ui/login", {"token": token, "to": to}, Origin=visitor.origin)
        assert shown.headers["location"] == "/ui/"
        visitor.cookies.clear()


def test_the_cookie_is_hidden_from_scripts_and_other_sites(visitor: Visitor, token: str) -> None:
    shown = visitor.post_raw("/ui/login", {"token": token}, Origin=visitor.origin)
    cookie = shown.headers["set-cookie"]
    assert {"httponly", "samesite=strict", "path=/ui"} <= set(cookie.lower().split("; "))
    assert token not in cookie


def test_a_wrong_token_is_refused(visitor: Visitor) -> None:
    shown = visitor.post_raw("/ui/login", {"token": "ply_wrong_token"}, Origin=visitor.origin)
    assert shown.status == 403
    assert "Unknown token." in shown.words
    assert "This server asks for a token" in visitor.get("/ui/").text


def test_logging_out_ends_the_session(visitor: Visitor, token: str) -> None:
    visitor.log_in(token)
    cookies = dict(visitor.cookies)
    visitor.post("/ui/logout")
    visitor.cookies = cookies
    assert "This server asks for a token" in visitor.get("/ui/").text


def test_revoking_the_token_ends_its_sessions(server: Running, store: str) -> None:
    visitor = Visitor(server.port)
    visitor.log_in(make_token(store, "phone", "read"))
    assert "phone, may read" in visitor.get("/ui/more").words
    tokens = tokens_of(store)
    assert tokens is not None
    tokens.revoke("phone")
    assert "This server asks for a token" in visitor.get("/ui/more").text
    assert visitor.get("/ui/more", HX_Request="true").headers["hx-refresh"] == "true"


def test_what_was_written_outlives_the_session(server: Running, store: str, token: str) -> None:
    visitor = Visitor(server.port)
    visitor.log_in(token)
    visitor.post("/ui/import/check")
    form = {"form_token": "old", "name": "Elena", "text": "likes <tea>\nand rain", "w": "default"}
    visitor.cookies.clear()
    asked = visitor.post_raw("/ui/entity/observe", form, Origin=visitor.origin)
    assert (asked.status, "Your session has ended" in asked.words) == (401, True)
    kept = dict(re.findall(r'name="((?:kept\.|again)\S*)" value="([^"]*)"', asked.text))
    fields = {name: unescape(value) for name, value in kept.items()}
    assert "kept.form_token" not in fields
    wrong = visitor.post_raw("/ui/login", {"token": "x", **fields}, Origin=visitor.origin)
    assert "likes &lt;tea&gt;\nand rain" in wrong.text
    again = visitor.post_raw("/ui/login", {"token": token, **fields}, Origin=visitor.origin)
    assert "What you wrote was not saved yet. likes <tea>" in again.words
    assert 'action="/ui/entity/observe"' in again.text
    assert f'name="form_token" value="{visitor.get("/ui/more").form_token}"' in again.text


def test_nothing_is_kept_of_a_form_without_content(visitor: Visitor) -> None:
    shown = visitor.post_raw("/ui/logout", {"form_token": "old", "w": "x"}, Origin=visitor.origin)
    assert (shown.status, shown.headers["location"]) == (303, "/ui/login")


def test_an_interrupted_form_is_sent_to_no_other_site(visitor: Visitor, token: str) -> None:
    fields = {"token": token, "again": "https://elsewhere.example/", "kept.text": "secret"}
    shown = visitor.post_raw("/ui/login", fields, Origin=visitor.origin)
    assert "elsewhere" not in shown.text


def test_a_part_of_a_page_is_asked_for_again_as_a_whole(visitor: Visitor) -> None:
    headers = {"Origin": visitor.origin, "HX-Request": "true"}
    shown = visitor.post_raw("/ui/fact/edit", {"text": "x"}, **headers)
    assert (shown.status, shown.text, "hx-refresh" in shown.headers) == (401, "", False)


def test_a_link_from_another_site_keeps_the_session(visitor: Visitor) -> None:
    shown = visitor.get("/ui/more", Sec_Fetch_Site="cross-site")
    assert shown.status == 200
    assert '<meta http-equiv="refresh" content="0;url=/ui/more">' in shown.text


def test_a_server_without_tokens_needs_no_login(tmp_path: Path) -> None:
    with serve(str(tmp_path / "memory.db")) as running:
        visitor = Visitor(running.port)
        assert "This machine, may administer" in visitor.get("/ui/more").words
        assert visitor.get("/ui/login", follow=False).headers["location"] == "/ui/"


def test_a_token_that_is_created_later_is_asked_for_at_once(tmp_path: Path) -> None:
    store = str(tmp_path / "memory.db")
    with serve(store) as running:
        visitor = Visitor(running.port)
        assert visitor.get("/ui/", follow=False).status == 200
        make_token(store, "first", "read")
        assert "This server asks for a token" in visitor.get("/ui/").text


def test_servers_of_one_database_share_logins(postgres_database: str) -> None:
    token = make_token(postgres_database, "laptop", "write")
    with serve(postgres_database) as one, serve(postgres_database) as two:
        first, second = Visitor(one.port), Visitor(two.port)
        first.log_in(token)
        # A proxy gives both servers the same name; here each has a port and a cookie of its own.
        second.cookies[f"polymnia_{two.port}"] = first.cookies[f"polymnia_{one.port}"]
        form_token = first.get("/ui/more").form_token
        assert "laptop, may write" in second.get("/ui/more").words
        second.post("/ui/logout", token=form_token)
        # Another server knows it within a second, or when it meets an unknown token.
        Visitor(one.port).log_in("ply_ffffffffffff_unknown")
        assert "This server asks for a token" in first.get("/ui/more").text


@contextmanager
def two_servers(database: str) -> Iterator[tuple[Tokens, WebSessions, WebSessions]]:
    """Yield the tokens, and the sessions as two servers of a database have them."""
    one, two = tokens_of(database), tokens_of(database)
    assert one is not None
    assert two is not None
    with closing(one), closing(two):
        holds = Authenticator(one).holds
        yield one, WebSessions(holds, people=People(one)), WebSessions(holds, people=People(two))


def test_the_rights_of_a_login_are_those_that_its_token_has_now(postgres_database: str) -> None:
    with two_servers(postgres_database) as (tokens, one, two):
        ann = tokens.recognise(tokens.create("ann", can="write", workspaces=["a", "b"]))
        secret = one.open(ann)
        assert two.find(secret) == ann
        tokens.assign("ann", ["a"])
        found = two.find(secret)
        assert found is not None
        assert found.workspaces == frozenset({"a"})
        tokens.revoke("ann")
        assert two.find(secret) is None


def test_a_database_does_not_know_the_secrets_of_logins(postgres_database: str) -> None:
    with two_servers(postgres_database) as (tokens, one, _):
        secret = one.open(tokens.recognise(tokens.create("ann", can="read")))
    with psycopg.connect(postgres_database) as connection:
        rows = connection.execute("SELECT t::text FROM polymnia.tokens AS t").fetchall()
    assert len(rows) == 2
    assert secret.split("_", 2)[2] not in str(rows)


def test_the_secret_of_a_login_is_not_a_token(postgres_database: str) -> None:
    with two_servers(postgres_database) as (tokens, one, _):
        secret = one.open(tokens.recognise(tokens.create("ann", can="read")))
        with pytest.raises(NotAdmitted, match="unknown token"):
            tokens.recognise(secret)


def test_a_link_logs_in_to_its_own_server_only(postgres_database: str) -> None:
    with two_servers(postgres_database) as (_, one, two):
        secret = one.open(LINK_OWNER)
        assert one.find(secret) == LINK_OWNER
        assert two.find(secret) is None


def test_a_login_ends_when_it_is_not_used(
    postgres_database: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    with two_servers(postgres_database) as (tokens, one, two):
        ann = tokens.recognise(tokens.create("ann", can="read"))
        secret = one.open(ann)
        now = time.time()
        monkeypatch.setattr(time, "time", lambda: now + 11 * 3600)
        assert two.find(secret) == ann
        monkeypatch.setattr(time, "time", lambda: now + 22 * 3600)
        assert two.find(secret) == ann
        monkeypatch.setattr(time, "time", lambda: now + 36 * 3600)
        assert two.find(secret) is None
        one.open(ann)
        assert len(tokens.all("session")) == 1


def test_a_cookie_without_a_session_makes_no_form_token(tmp_path: Path) -> None:
    with serve(str(tmp_path / "memory.db")) as running:
        visitor = Visitor(running.port)
        usual = visitor.get("/ui/more").form_token
        visitor.cookies[f"polymnia_{running.port}"] = "chosen-by-another-site"
        assert visitor.get("/ui/more").form_token == usual
