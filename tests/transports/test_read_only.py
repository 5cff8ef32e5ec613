"""`--read-only`: nothing changes, over any transport, on any store; not by a call and not by
looking.
"""

import hashlib
import json
import subprocess
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from polymnia.engine.graph import entities
from polymnia.engine.memory import Memory
from polymnia.errors import StoreError
from polymnia.model import EntityDraft
from polymnia.stores import open_store
from tests.auth.arguments import made_for
from tests.processes import TIMEOUT_S, polymnia_command
from tests.transports.running import Line, Running, Talk, call, initialize, request, text_of

NAMES = {"sqlite": "memory.db", "jsonl": "memory.jsonl", "binlog": "memory.mcpmem"}
Ask = Callable[[dict[str, Any]], Any]


@pytest.fixture(params=NAMES)
def store(request: pytest.FixtureRequest, tmp_path: Path) -> Path:
    """A store with something in it."""
    path = tmp_path / NAMES[request.param]
    opened = open_store(str(path))
    entities.create(Memory(opened), [EntityDraft("known", "thing", ("fact",))], by="test")
    opened.close()
    return path


def fingerprint(path: Path) -> str:
    return hashlib.sha256(path.read_bytes()).hexdigest()


def over_stdio(store: Path, use: Callable[[Ask], None]) -> None:
    command = polymnia_command("serve", "--dialect", "graph", "--read-only", "--store", str(store))
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE) as server:
        assert server.stdin is not None
        assert server.stdout is not None
        pipes = server.stdin, server.stdout

        def ask(message: dict[str, Any]) -> Any:
            pipes[0].write(json.dumps(message).encode() + b"\n")
            pipes[0].flush()
            return json.loads(pipes[1].readline())

        use(ask)
        server.stdin.close()
        assert server.wait(TIMEOUT_S) == 0


def over_tcp(store: Path, use: Callable[[Ask], None]) -> None:
    with (
        Running(store, "--read-only", transport="tcp", dialect="graph") as server,
        Line(server.port) as line,
    ):
        use(line.ask)


def over_http(store: Path, use: Callable[[Ask], None]) -> None:
    with Running(store, "--read-only", dialect="graph") as server:
        talk = Talk(server.port)
        use(lambda message: talk.post(message).json)
        talk.close()
        assert server.stop() == 0


TRANSPORTS = {"stdio": over_stdio, "tcp": over_tcp, "http": over_http}


@pytest.mark.parametrize("transport", TRANSPORTS)
def test_every_tool_leaves_the_file_as_it_was_to_the_last_byte(store: Path, transport: str) -> None:
    before = fingerprint(store)
    beside = {path.name for path in store.parent.iterdir()}

    def use(ask: Ask) -> None:
        ask(initialize())
        listed = ask(request("tools/list"))["result"]["tools"]
        assert all(tool["annotations"]["readOnlyHint"] for tool in listed)
        for tool in listed:
            for text in ("known", "new"):
                assert "result" in ask(call(tool["name"], **made_for(tool["inputSchema"], text)))
        new = {"entities": [{"name": "new", "entityType": "t", "observations": []}]}
        for name, arguments in (
            ("create_entities", new),
            ("upsert_entities", new),
            ("delete_entities", {"entityNames": ["known"]}),
            ("compact", {}),
        ):
            assert "may only read" in text_of(ask(call(name, **arguments)))
        assert "known" in text_of(ask(call("read_graph")))

    TRANSPORTS[transport](store, use)
    assert fingerprint(store) == before
    left = {path.name for path in store.parent.iterdir()} - beside
    assert left <= {f"{store.name}-wal", f"{store.name}-shm", f"{store.name}.lock"}


@pytest.mark.parametrize("name", NAMES.values())
def test_a_store_that_is_not_there_is_not_made(tmp_path: Path, name: str) -> None:
    with pytest.raises(StoreError, match="there is no memory"):
        open_store(str(tmp_path / "below" / name), read_only=True)
    assert not list(tmp_path.iterdir())


def test_the_file_of_early_days_is_not_renamed(tmp_path: Path) -> None:
    legacy = tmp_path / "memory.json"
    legacy.write_text('{"type":"entity","name":"a","entityType":"t","observations":[]}\n')
    command = polymnia_command(
        "serve", "--dialect", "reference", "--read-only", "--store", "memory.jsonl"
    )
    done = subprocess.run(
        command,
        cwd=tmp_path,
        input="",
        capture_output=True,
        text=True,
        timeout=TIMEOUT_S,
        check=False,
    )
    assert done.returncode == 1
    assert "there is no memory at memory.jsonl" in done.stderr
    assert [path.name for path in tmp_path.iterdir()] == ["memory.json"]


def test_a_file_with_an_older_schema_is_not_migrated(tmp_path: Path) -> None:
    import apsw

    store = tmp_path / "memory.db"
    opened = open_store(str(store))
    opened.close()
    connection = apsw.Connection(str(store))
    version = connection.pragma("user_version")
    connection.pragma("user_version", 0)
    connection.close()
    before = fingerprint(store)
    with pytest.raises(StoreError, match="open it once without --read-only"):
        open_store(str(store), read_only=True)
    assert fingerprint(store) == before
    assert version


def test_an_unfinished_end_of_a_log_is_left_where_it_is(tmp_path: Path) -> None:
    store = tmp_path / "memory.mcpmem"
    opened = open_store(str(store))
    entities.create(Memory(opened), [EntityDraft("known", "thing", ())], by="test")
    opened.close()
    with store.open("ab") as file:
        file.write(b"\x01\x02\x03")
    before = fingerprint(store)
    reading = open_store(str(store), read_only=True)
    with reading.reading() as read:
        assert [entity.name for entity in read.entities()] == ["known"]
    reading.close()
    assert fingerprint(store) == before
    assert not Path(f"{store}.torn").exists()


def test_writes_of_another_process_are_seen(store: Path) -> None:
    reading = open_store(str(store), read_only=True)
    writing = open_store(str(store))
    entities.create(Memory(writing), [EntityDraft("new", "thing", ())], by="test")
    with reading.reading() as read:
        assert [entity.name for entity in read.entities()] == ["known", "new"]
    reading.close()
    writing.close()
