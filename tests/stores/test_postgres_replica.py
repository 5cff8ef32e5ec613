"""Searches on a replica: it answers what it has, and never hides what this process wrote."""

from collections.abc import Iterator
from contextlib import closing

import psycopg
import pytest

from polymnia.engine.facts.briefing import brief_session
from polymnia.engine.graph import entities
from polymnia.engine.memory import Memory
from polymnia.engine.recall import search
from polymnia.engine.recall.passages import recall
from polymnia.model import EntityDraft
from polymnia.stores import open_store
from polymnia.stores.open import database_gauges
from polymnia.stores.postgres.transaction import WorkspaceConnection
from tests.postgres import PostgresServer, running_server, running_standby

ME = "test"


@pytest.fixture(scope="module")
def primary() -> Iterator[PostgresServer]:
    with running_server() as server:
        open_store(server.url).close()
        yield server


@pytest.fixture(scope="module")
def standby(primary: PostgresServer) -> Iterator[PostgresServer]:
    with running_standby(primary) as server:
        yield server


def create(memory: Memory, name: str) -> None:
    entities.create(memory, [EntityDraft(name, "person", (f"{name} likes tea",))], by=ME)


def names(memory: Memory) -> list[str]:
    return sorted(entity.name for entity in search.containing(memory, "tea").entities)


def wait_until_replayed(primary: PostgresServer, standby: PostgresServer) -> None:
    """Wait, in the standby, for everything that the primary has written."""
    with psycopg.connect(primary.url) as source, psycopg.connect(standby.url) as target:
        ((position,),) = source.execute("SELECT pg_current_wal_lsn()").fetchall()
        while target.execute("SELECT pg_last_wal_replay_lsn() < %s", [position]).fetchall()[0][0]:
            target.rollback()


def test_a_search_reads_the_replica_and_other_reads_the_primary(
    primary: PostgresServer, standby: PostgresServer
) -> None:
    writer = Memory(open_store(f"{primary.url}?workspace=shop"))
    create(writer, "Ann")
    wait_until_replayed(primary, standby)
    with psycopg.connect(standby.url, autocommit=True) as control:
        control.execute("SELECT pg_wal_replay_pause()")
        create(writer, "Ben")
        url = f"{primary.url}?workspace=shop&replica=127.0.0.1:{standby.port}"
        # Other connections than the writer's: this store does not know what that one wrote.
        with closing(open_store(f"{url}&connections=3")) as store:
            reader = Memory(store)
            assert names(reader) == ["Ann"]
            assert len(entities.read_all(reader).entities) == 2
            create(reader, "Eve")
            assert names(reader) == ["Ann", "Ben", "Eve"]
        control.execute("SELECT pg_wal_replay_resume()")
    writer.store.close()


def test_recall_and_briefing_ask_the_replica_alone(
    primary: PostgresServer, standby: PostgresServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    asked = []
    send = WorkspaceConnection.send

    def record(self: WorkspaceConnection, query: str, *values: object) -> None:
        asked.append((query, bool(self._database.url.replica)))
        send(self, query, *values)

    url = f"{primary.url}?workspace=read&replica=127.0.0.1:{standby.port}"
    with closing(open_store(url)) as store:
        memory = Memory(store)
        create(memory, "Ann")
        wait_until_replayed(primary, standby)
        monkeypatch.setattr(WorkspaceConnection, "send", record)
        assert [hit.passage.entity for hit in recall(memory, "who likes tea?").hits] == ["Ann"]
        brief_session([("read", memory)], by=ME, max_tokens=500)
    assert len(asked) > 10
    assert [query for query, is_primary in asked if is_primary] == []


def test_without_the_replica_the_primary_answers(primary: PostgresServer) -> None:
    url = f"{primary.url}?workspace=alone&replica=127.0.0.1:1"
    with closing(open_store(url)) as store:
        memory = Memory(store)
        create(memory, "Ann")
        assert names(memory) == ["Ann"]


def test_monitoring_sees_whether_the_replica_answers(
    primary: PostgresServer, standby: PostgresServer
) -> None:
    gauges = database_gauges(f"{primary.url}?replica=127.0.0.1:{standby.port}")
    assert gauges["replica_up"] == 1 and gauges["replica_lag_seconds"] >= 0
    assert database_gauges(f"{primary.url}?replica=127.0.0.1:1")["replica_up"] == 0
