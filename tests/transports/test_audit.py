"""Who read which facts, recorded while a server answers, and read on the command line."""

import json
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path

import pytest

from polymnia.app import open_servers
from polymnia.auth.authenticator import tokens_of
from polymnia.cli.main import main
from polymnia.dialects import open_dialect
from polymnia.engine.facts.erase import erase
from polymnia.engine.facts.forget import Unwanted
from polymnia.engine.facts.remember import EntityFacts, FactDraft, remember
from polymnia.engine.memory import Memory
from polymnia.engine.reads import reads_since
from polymnia.engine.workspaces import open_workspaces
from polymnia.errors import SettingsError
from polymnia.mcp.server import Server
from polymnia.settings import Settings
from polymnia.stores import open_store
from tests.conftest import STORES
from tests.dialects.conversation import Client
from tests.postgres import new_database, shared_server
from tests.transports.running import Running, Talk

ENTITIES = [
    {"name": "Ann", "type": "person", "facts": ["lives in Oslo", "likes the zebrawood table"]},
    {"name": "Bob", "type": "person", "facts": ["lives in Rome"]},
]


def audit(capsys: pytest.CaptureFixture[str], *arguments: str) -> list[dict[str, object]]:
    main(("audit", *arguments, "--json"))
    reads: list[dict[str, object]] = json.loads(capsys.readouterr().out)
    return reads


@pytest.fixture(params=["sqlite", "postgres"])
def store(request: pytest.FixtureRequest, tmp_path: Path) -> str:
    if request.param == "sqlite":
        return f"{tmp_path}/memory.db"
    return f"{request.getfixturevalue('database')}?workspace=team"


@pytest.fixture
def database() -> Iterator[str]:
    with new_database(shared_server()) as url:
        yield url


def test_every_fact_that_a_client_gets_is_recorded_with_its_reader(
    store: str, capsys: pytest.CaptureFixture[str]
) -> None:
    with closing(open_store(store)):
        pass
    tokens = tokens_of(store, "")
    assert tokens is not None
    alice = tokens.create("alice", can="write")
    bob = tokens.create("bob", can="read")
    tokens.close()
    settings = {"POLYMNIA_AUDIT_DAYS": "30", "POLYMNIA_EMBEDDER": "none"}
    with Running(store, dialect="native", settings=settings) as server:
        with Talk(server.port, alice) as talk:
            talk.call("remember", entities=ENTITIES)
        with Talk(server.port, bob) as talk:
            talk.call("recall", query="zebrawood")
            talk.call("open", names=["Bob"])
            talk.call("recall", query="zebrawood table")
    reads = audit(capsys, "--store", store, "--by", "bob")
    facts = [(one["tool"], one["entity"], one["ordinal"]) for one in reads]
    assert ("recall", "Ann", 2) in facts and ("open", "Bob", 1) in facts
    assert not any(one["tool"] == "open" and one["entity"] == "Ann" for one in reads)
    assert audit(capsys, "--store", store, "--by", "alice", "--since", "1d") == []
    (uses,) = [
        use["count"]
        for use in audit(capsys, "--store", store, "--count")
        if (use["entity"], use["ordinal"]) == ("Ann", 2)
    ]
    assert uses == 2
    with closing(open_store(store)) as opened:
        memory = Memory(opened)
        erase(memory, Unwanted(entities=("Bob",)), by="test")
        memory.store.record_reads([], at=1, actor="", tool="", since=0)
    assert "Bob" not in json.dumps(audit(capsys, "--store", store))
    with closing(open_store(store)) as opened:  # what is older than the setting says goes
        opened.record_reads([], at=1, actor="", tool="", since=1 << 60)
    assert audit(capsys, "--store", store) == []


def test_nothing_is_recorded_unless_a_setting_says_so(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    store = STORES["sqlite"](tmp_path)
    with Running(store, dialect="native") as server, Talk(server.port) as talk:
        talk.call("remember", entities=ENTITIES)
        talk.call("open", names=["Ann"])
    assert audit(capsys, "--store", store) == []


@pytest.mark.parametrize(
    ("dialect", "tool", "arguments"),
    [
        ("reference", "search_nodes", {"query": "zebrawood"}),
        ("reference", "read_graph", {}),
        ("graph", "search_nodes", {"query": "zebrawood"}),
        ("native", "recall", {"types": ["person"]}),
        ("native", "briefing", {}),
    ],
)
def test_reads_of_other_tools_are_recorded(
    dialect: str, tool: str, arguments: dict[str, object], tmp_path: Path
) -> None:
    with closing(open_workspaces(STORES["sqlite"](tmp_path))) as workspaces:
        memory = workspaces.memory("default")
        for name, kind in (("Ann", "person"), ("Rule", "rule")):
            facts = (FactDraft("likes the zebrawood table"),)
            remember(memory, [EntityFacts(name=name, type=kind, facts=facts)], by="test")
        server = Server(open_dialect(dialect), workspaces, audit_days=30)
        client = Client(dialect, server)
        assert "zebrawood" in str(client.call(tool, arguments))
        client.session.close()
        reads = reads_since(memory, 0)
    assert {one.tool for one in reads} == {tool}
    assert ("Rule" if tool == "briefing" else "Ann") in {one.entity for one in reads}


@pytest.mark.parametrize(("store", "flag"), [("jsonl", False), ("sqlite", True)])
def test_a_server_that_cannot_record_does_not_start(store: str, flag: bool, tmp_path: Path) -> None:
    settings = Settings(
        store=STORES[store](tmp_path), audit_days=30, read_only=flag, dialect="reference"
    )
    with pytest.raises(SettingsError, match="audit_days needs SQLite"), open_servers(settings):
        pass
