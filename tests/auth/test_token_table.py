"""Tokens in the database.

Created with the command, and known to every server that shares the database.
"""

import subprocess
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack, closing
from typing import Any

import psycopg
import pytest

from polymnia.auth.authenticator import Authenticator, tokens_of
from polymnia.auth.tokens import Tokens
from polymnia.errors import BadInput, NotAdmitted
from polymnia.model import OWNER
from polymnia.stores.postgres.database import Database
from tests.auth.oauth import LoginServer, ScriptedClient
from tests.processes import TIMEOUT_S, polymnia_command
from tests.stores.proxy import proxied
from tests.transports.running import Running, Talk, Web, initialize, listening


@pytest.fixture
def tokens(postgres_database: str) -> Iterator[Tokens]:
    opened = tokens_of(postgres_database)
    assert opened is not None
    with closing(opened):
        yield opened


def polymnia(*arguments: str) -> str:
    """Run a `polymnia token` command and return what it prints."""
    command = polymnia_command("token", *arguments)
    run = subprocess.run(command, capture_output=True, text=True, timeout=TIMEOUT_S, check=False)
    assert run.returncode == 0, run.stderr
    return run.stdout.strip()


def test_the_command_creates_a_token_in_a_new_database(postgres_database: str) -> None:
    text = polymnia("create", "alice", "--can", "write", "--store", postgres_database)
    listed = polymnia("list", "--store", postgres_database)
    assert text.startswith("ply_")
    assert "alice" in listed
    assert text not in listed
    with psycopg.connect(postgres_database) as connection:
        rows = connection.execute("SELECT t::text FROM polymnia.tokens AS t").fetchall()
    assert len(rows) == 1
    assert text.rpartition("_")[2] not in rows[0][0]


def test_a_token_keeps_its_rights_and_its_state(tokens: Tokens) -> None:
    first = tokens.create("alice", can="write", workspaces=["sales", "shop"], lifetime=3600)
    principal = tokens.recognise(first)
    assert (principal.name, principal.can) == ("alice", "write")
    assert principal.workspaces == frozenset(("sales", "shop"))
    second = tokens.rotate("alice", overlap=60)
    assert tokens.recognise(first).can == tokens.recognise(second).can == "write"
    tokens.revoke("alice")
    for text in (first, second):
        with pytest.raises(NotAdmitted, match="revoked"):
            tokens.recognise(text)
    with pytest.raises(BadInput, match="no token alice"):
        tokens.revoke("alice")


def test_a_refused_edit_changes_nothing(tokens: Tokens) -> None:
    tokens.create("alice", can="read")
    before = tokens.all()
    with pytest.raises(BadInput, match="already a token alice"):
        tokens.create("alice", can="admin")
    assert tokens.all() == before


def test_tokens_created_at_once_are_all_kept(tokens: Tokens) -> None:
    with ThreadPoolExecutor(6) as pool:
        texts = list(
            pool.map(lambda number: tokens.create(f"agent {number}", can="read"), range(12))
        )
    assert len({tokens.recognise(text).id for text in texts}) == 12


def test_a_name_is_given_once_to_those_who_ask_at_once(tokens: Tokens) -> None:
    def create(_: int) -> bool:
        try:
            tokens.create("alice", can="read")
        except BadInput:
            return False
        return True

    with ThreadPoolExecutor(6) as pool:
        assert sum(pool.map(create, range(6))) == 1


def test_the_last_use_of_a_token_is_recorded(tokens: Tokens) -> None:
    text = tokens.create("alice", can="read")
    (token,) = tokens.all()
    assert tokens.last_used(token.id) is None
    tokens.recognise(text)
    assert (tokens.last_used(token.id) or 0) >= token.created_at


def test_a_server_knows_a_token_that_another_process_created_just_now(
    tokens: Tokens, postgres_database: str
) -> None:
    following = tokens_of(postgres_database)
    assert following is not None
    with closing(following):
        following.follow()
        authenticator = Authenticator(following)
        assert authenticator.admit(None) == OWNER
        assert authenticator.admit(tokens.create("alice", can="read")) == OWNER
        following.store.find("0" * 12)  # waits until the table was read again
        with pytest.raises(NotAdmitted, match="a token is required"):
            authenticator.admit(None)


def test_a_server_keeps_to_its_tokens_while_the_database_cannot_be_reached(
    postgres_database: str,
) -> None:
    with proxied(postgres_database) as (proxy, url):
        tokens = tokens_of(url)
        assert tokens is not None
        with closing(tokens):
            text = tokens.create("alice", can="read")
            tokens.follow()
            proxy.close()
            assert tokens.recognise(text).name == "alice"
            with pytest.raises(NotAdmitted, match="unknown token"):
                tokens.recognise(f"ply_{'0' * 12}_secret")


def test_a_role_that_only_reads_can_check_tokens(tokens: Tokens, postgres_database: str) -> None:
    text = tokens.create("alice", can="read")
    reading = tokens_of(postgres_database, read_only=True)
    assert reading is not None
    with closing(reading):
        assert reading.recognise(text).name == "alice"
        assert reading.last_used(tokens.all()[0].id) is None


@pytest.mark.matrix
def test_two_servers_share_tokens(postgres_database: str) -> None:
    polymnia("create", "root", "--can", "admin", "--store", postgres_database)
    with ExitStack() as stack:
        servers = [stack.enter_context(Running(postgres_database)) for _ in range(2)]
        text = polymnia("create", "alice", "--can", "write", "--store", postgres_database)
        talks = [stack.enter_context(Talk(server.port, text)) for server in servers]
        streams = [stack.enter_context(listening(talk)) for talk in talks]
        for server in servers:
            with Web(server.port) as web:
                assert web.post(initialize()).status == 401
        polymnia("revoke", "alice", "--store", postgres_database)
        for stream in streams:
            assert stream.next() is None
        for server in servers:
            with Web(server.port, text) as web:
                assert web.post(initialize()).status == 401


def test_a_client_uses_at_once_on_one_server_what_another_gave_it(postgres_database: str) -> None:
    with LoginServer(postgres_database) as first:
        public = {"POLYMNIA_PUBLIC_URL": first.issuer}
        with Running(postgres_database, settings=public) as second, closing(first.tokens):
            client = ScriptedClient(first)
            client.register()
            # The answer of the person reaches a server that has not seen the question.
            tokens = client.log_in()
            for _ in range(3):
                with Web(second.port, tokens["access_token"]) as web:
                    assert web.post(initialize()).status == 200
                tokens = client.refresh(tokens["refresh_token"]).json


def test_a_server_reads_only_the_tokens_that_changed(
    tokens: Tokens, postgres_database: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    for number in range(20):
        tokens.create(f"token {number}", can="read")
    counts = []
    ask = Database.ask

    def count_rows(database: Database, query: str, *values: object) -> list[Any]:
        rows = ask(database, query, *values)
        if query == "tokens_since":
            counts.append(len(rows))
        return rows

    monkeypatch.setattr(Database, "ask", count_rows)
    other = tokens_of(postgres_database)
    assert other is not None
    with closing(other):
        assert len(other.all()) == 20
        tokens.revoke("token 7")
        assert [token.name for token in other.all() if token.revoked_at] == ["token 7"]
        assert counts == [20, 1, 1]  # the last two are of the editor and of the reader
        with tokens.store.edit(other.all()[3].id) as edited:
            assert len(edited) == 1
            edited.clear()
        assert len(other.all()) == 19


def test_a_token_that_an_earlier_version_revokes_is_noticed(
    tokens: Tokens, postgres_database: str
) -> None:
    text = tokens.create("alice", can="read")
    tokens.recognise(text)
    with psycopg.connect(postgres_database) as connection:
        connection.execute("UPDATE polymnia.token_edits SET number = number + 1")
        connection.execute("UPDATE polymnia.tokens SET revoked_at = 1")
    with pytest.raises(NotAdmitted, match="revoked"):
        tokens.recognise(text)
