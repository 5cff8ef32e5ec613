"""Changes of other processes are notified over stdio, TCP and HTTP, each once."""

import json
import subprocess
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

from polymnia.engine.graph import entities
from polymnia.engine.memory import Memory
from polymnia.model import EntityDraft
from polymnia.stores.sqlite.store import SqliteStore
from tests.processes import TIMEOUT_S, polymnia_command
from tests.transports.running import (
    Events,
    Legacy,
    Line,
    Running,
    Talk,
    Web,
    call,
    creation,
    initialize,
    listening,
    request,
    stateless,
)

GRAPH = "memory://knowledge-graph"
UPDATED = "notifications/resources/updated"
SUBSCRIBE = request("resources/subscribe", uri=GRAPH)
LISTEN = request("subscriptions/listen", notifications={"resourceSubscriptions": [GRAPH]})
# Waits for the next message of a subscriber, and makes a change through it.
Ears = tuple[Callable[[], Any], Callable[[dict[str, Any]], Any]]


@contextmanager
def over_stdio(store: Path) -> Iterator[Ears]:
    command = polymnia_command("serve", "--dialect", "reference", "--store", str(store))
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE) as server:
        assert server.stdin is not None
        assert server.stdout is not None
        pipes = server.stdin, server.stdout

        def hear() -> Any:
            return json.loads(pipes[1].readline())

        def ask(message: dict[str, Any]) -> Any:
            pipes[0].write(json.dumps(message).encode() + b"\n")
            pipes[0].flush()

        for message in (initialize(), SUBSCRIBE):
            ask(message)
            assert "result" in hear()
        yield hear, ask
        server.stdin.close()
        assert server.wait(TIMEOUT_S) == 0


@contextmanager
def over_tcp(store: Path) -> Iterator[Ears]:
    with Running(store, transport="tcp") as server, Line(server.port) as line:
        for message in (initialize(), SUBSCRIBE):
            assert "result" in line.ask(message)
        yield line.hear, line.say


@contextmanager
def over_http(store: Path) -> Iterator[Ears]:
    with Running(store) as server:
        talk = Talk(server.port)
        with listening(talk) as events:
            talk.post(SUBSCRIBE)
            yield events.message, talk.post
        talk.close()


@contextmanager
def over_sse(store: Path) -> Iterator[Ears]:
    with Running(store) as server, Legacy(server.port) as legacy:
        for message in (initialize(), SUBSCRIBE):
            assert "result" in legacy.ask(message)
        yield legacy.events.message, legacy.post


@contextmanager
def over_listen(store: Path) -> Iterator[Ears]:
    with Running(store) as server, Web(server.port) as web, Web(server.port) as other:
        message, headers = stateless(LISTEN)
        events = Events(web.open("POST", "/mcp", json.dumps(message).encode(), **headers))
        assert events.message()["method"] == "notifications/subscriptions/acknowledged"

        def ask(message: dict[str, Any]) -> Any:
            whole, headers = stateless(message)
            return other.post(whole, **headers)

        yield events.message, ask


WAYS = {
    "stdio": over_stdio,
    "tcp": over_tcp,
    "http": over_http,
    "sse": over_sse,
    "listen": over_listen,
}


@pytest.mark.parametrize("way", WAYS)
def test_changes_of_this_and_of_other_processes_are_notified_once(tmp_path: Path, way: str) -> None:
    store = tmp_path / "memory.db"
    with WAYS[way](store) as (hear, ask):
        elsewhere = SqliteStore(str(store))
        memory = Memory(elsewhere)
        told = []
        for number in range(3):
            entities.create(memory, [EntityDraft(f"there {number}", "t", ())], by="another")
            told.append(hear())
            ask(call("create_entities", f"here {number}", **creation(f"here {number}")))
            told += [hear() for _ in range(2 if way in ("stdio", "tcp", "sse") else 1)]
        entities.create(memory, [EntityDraft("last", "t", ())], by="another")
        told.append(hear())
        elsewhere.close()
    updates = [item for item in told if item.get("method") == UPDATED]
    assert len(updates) == 7
    assert all(update["params"]["uri"] == GRAPH for update in updates)
    assert all(item.get("method") == UPDATED or "result" in item for item in told)


def test_an_import_from_the_command_line_is_notified(tmp_path: Path) -> None:
    file = tmp_path / "import.jsonl"
    file.write_text('{"type":"entity","name":"a","entityType":"t","observations":[]}\n')
    with over_http(tmp_path / "memory.db") as (hear, _):
        command = polymnia_command("import", str(file), "--store", str(tmp_path / "memory.db"))
        subprocess.run(command, check=True, timeout=TIMEOUT_S, capture_output=True)
        assert hear()["method"] == UPDATED


def test_a_read_only_server_notifies_of_changes_too(tmp_path: Path) -> None:
    store = tmp_path / "memory.db"
    elsewhere = SqliteStore(str(store))
    with Running(store, "--read-only") as server:
        talk = Talk(server.port)
        with listening(talk) as events:
            talk.post(SUBSCRIBE)
            entities.create(Memory(elsewhere), [EntityDraft("new", "t", ())], by="another")
            assert events.message()["method"] == UPDATED
        talk.close()
    elsewhere.close()


def made(store: SqliteStore, *names: str) -> None:
    entities.create(Memory(store), [EntityDraft(name, "t", ()) for name in names], by="test")


def test_a_store_follows_the_changes_of_others_and_not_its_own(tmp_path: Path) -> None:
    here, there = (SqliteStore(str(tmp_path / "memory.db")) for _ in range(2))
    made(there, "before")
    following = here.follow()
    made(here, "own")
    made(there, "other")
    made(here, "own again")
    assert [change.after.entities[0].name for change in following()] == ["other"]
    assert following() == []
    here.close()
    there.close()


def test_a_change_id_that_was_rolled_back_may_be_reused_by_another_process(tmp_path: Path) -> None:
    here, there = (SqliteStore(str(tmp_path / "memory.db")) for _ in range(2))
    following = here.follow()

    class Failure(Exception):
        pass

    with pytest.raises(Failure), Memory(here).writing("create", "test") as transaction:
        from polymnia.model import Entity, Rows

        transaction.apply(after=Rows(entities=(Entity("never", "t"),)))
        raise Failure
    made(there, "other")
    assert [change.after.entities[0].name for change in following()] == ["other"]
    here.close()
    there.close()


def test_two_followers_both_get_every_change(tmp_path: Path) -> None:
    here, there = (SqliteStore(str(tmp_path / "memory.db")) for _ in range(2))
    followings = [here.follow(), here.follow()]
    made(here, "own")
    made(there, "other")
    for following in followings:
        assert [change.after.entities[0].name for change in following()] == ["other"]
    here.close()
    there.close()


def test_many_changes_are_returned_in_pages_and_none_is_lost(tmp_path: Path) -> None:
    here, there = (SqliteStore(str(tmp_path / "memory.db")) for _ in range(2))
    following = here.follow()
    for number in range(250):
        made(there, f"e{number}")
    steps = [following() for _ in range(4)]
    assert [len(step) for step in steps] == [100, 100, 50, 0]
    here.close()
    there.close()
