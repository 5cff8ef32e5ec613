"""Ends in the middle: of a client, of a server, of a worker. Work in hand is finished, a write is whole or absent."""

import json
import os
import select
import signal
import socket
from pathlib import Path
from typing import Any

import pytest

from polymnia.auth.tokens import Tokens
from polymnia.stores.sqlite.store import SqliteStore
from tests.transports.raw_http import head, status_of, wait_until
from tests.transports.running import (
    PATIENCE,
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
    rest_of,
    stateless,
)

MANY = 20_000
LISTEN = request("subscriptions/listen", notifications={"resourceSubscriptions": ["memory://knowledge-graph"]})
GRAPH = "memory://knowledge-graph"


def large_write() -> bytes:
    return json.dumps(call("create_entities", **creation(*(f"e{number}" for number in range(MANY)), text="x"))).encode()


def begin_large_write(server: Running, talk: Talk) -> socket.socket:
    """A connection on which a write has begun that takes a while."""
    body = large_write()
    connection = socket.create_connection(("127.0.0.1", server.port), timeout=2 * PATIENCE)
    connection.sendall(head("/mcp", f"Mcp-Session-Id: {talk.id}", f"Content-Length: {len(body)}") + body)
    wait_until(server.port, lambda metrics: "polymnia_requests_in_hand 1" in metrics)
    return connection


def entities(store: Path) -> int:
    opened = SqliteStore(str(store))
    with opened.reading() as read:
        count = read.counts().entities
    opened.close()
    return count


def test_a_write_whose_client_leaves_is_whole_or_absent(tmp_path: Path) -> None:
    with Running(tmp_path / "memory.db", "--metrics") as server:
        talk = Talk(server.port)
        begin_large_write(server, talk).close()
        wait_until(server.port, lambda metrics: "polymnia_requests_in_hand 0" in metrics)
        graph = talk.call("read_graph")["structuredContent"]
        assert len(graph["entities"]) in (0, MANY)
        assert not talk.call("create_entities", **creation("after")).get("isError")
        talk.close()


def test_a_server_that_is_asked_to_stop_finishes_the_work_in_hand(tmp_path: Path) -> None:
    with Running(tmp_path / "memory.db", "--metrics") as server:
        talk = Talk(server.port)
        connection = begin_large_write(server, talk)
        server.popen.send_signal(signal.SIGTERM)
        answer = rest_of(connection)
        connection.close()
        talk.close()
        assert server.wait() == 0
    assert status_of(answer) == 200
    assert answer.count(b"entityType") >= MANY
    assert entities(tmp_path / "memory.db") == MANY
    assert "in hand" not in server.log


def test_a_server_that_is_asked_to_stop_ends_every_stream_with_its_last_words(tmp_path: Path) -> None:
    with Running(tmp_path / "memory.db") as server:
        talk, web = Talk(server.port), Web(server.port)
        message, headers = stateless(LISTEN)
        with listening(talk) as session_events, Legacy(server.port) as legacy:
            listen_events = Events(web.open("POST", "/mcp", json.dumps(message).encode(), **headers))
            assert listen_events.message()["method"] == "notifications/subscriptions/acknowledged"
            server.popen.send_signal(signal.SIGTERM)
            assert session_events.next() is None
            assert legacy.events.next() is None
            assert listen_events.message()["result"]["resultType"] == "complete"
            assert listen_events.next() is None
        web.close()
        talk.close()
        assert server.wait() == 0


@pytest.mark.parametrize("transport", ["http", "tcp"])
def test_idle_and_half_said_connections_do_not_keep_a_server_from_stopping(tmp_path: Path, transport: str) -> None:
    with Running(tmp_path / "memory.db", transport=transport) as server:
        idle = [socket.create_connection(("127.0.0.1", server.port), timeout=PATIENCE) for _ in range(20)]
        for each in idle[:10]:
            each.sendall(b"POST /mcp HTT" if transport == "http" else b'{"jsonrpc"')
        assert server.stop() == 0
        for each in idle:
            each.close()


def test_a_client_that_does_not_read_does_not_keep_a_server_from_stopping(tmp_path: Path) -> None:
    with Running(tmp_path / "memory.db") as server:
        talk = Talk(server.port)
        for part in range(8):
            talk.call("create_entities", **creation(*(f"{part}-{number}" for number in range(900)), text="x" * 1000))
        body = json.dumps(call("read_graph")).encode()
        with socket.socket() as slow:
            slow.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)
            slow.settimeout(PATIENCE)
            slow.connect(("127.0.0.1", server.port))
            slow.sendall(head("/mcp", f"Mcp-Session-Id: {talk.id}", f"Content-Length: {len(body)}") + body)
            assert status_of(slow.recv(100)) == 200
            talk.close()
            assert server.stop() == 0


def workers_of(server: Running) -> list[int]:
    """The processes behind the first one."""
    return [
        int(each) for each in Path(f"/proc/{server.popen.pid}/task/{server.popen.pid}/children").read_text().split()
    ]


def talks_of_both(port: int, token: str | None = None) -> tuple[Talk, Talk]:
    """A session in each of two workers."""
    found: dict[str, Talk] = {}
    while len(found) < 2:
        talk = Talk(port, token)
        kept = found.setdefault(talk.id[:2], talk)
        if kept is not talk:
            talk.close()
    return found["0-"], found["1-"]


@pytest.fixture
def crew(tmp_path: Path) -> Any:
    """A server of two workers."""
    with Running(tmp_path / "memory.db", "--workers", "2") as running:
        yield running
        assert "Traceback" not in running.log


def elsewhere(port: int, headers: dict[str, str]) -> Web:
    """Another connection with the same headers."""
    web = Web(port)
    web.headers = headers
    return web


def test_every_request_of_a_session_reaches_the_worker_that_has_it(crew: Running) -> None:
    for number, talk in enumerate(talks_of_both(crew.port)):
        for _ in range(10):  # on new connections, which either worker may take
            with elsewhere(crew.port, talk.headers) as web:
                assert web.post(call("open_nodes", names=["x"])).status == 200
        with listening(talk) as events:
            talk.ask("resources/subscribe", uri=GRAPH)
            with elsewhere(crew.port, talk.headers) as web:
                assert not web.post(call("create_entities", **creation(f"by {number}"))).json["result"].get("isError")
            assert events.message()["params"] == {"uri": GRAPH}
        with elsewhere(crew.port, talk.headers) as web:
            assert web.send("DELETE", "/mcp").status == 204
        for _ in range(5):
            with elsewhere(crew.port, talk.headers) as web:
                assert web.post(call("read_graph")).status == 404
        talk.close()


def test_posts_of_the_older_transport_reach_the_worker_that_has_the_stream(crew: Running) -> None:
    for _ in range(6):
        with Legacy(crew.port) as legacy:
            assert "result" in legacy.ask(initialize())
            for number in range(6):
                with Web(crew.port) as web:
                    assert web.post(call("open_nodes", number, names=["x"]), legacy.place).status == 202
                assert legacy.events.message()["id"] == number


def test_a_change_in_one_worker_reaches_subscribers_in_the_other_once(crew: Running) -> None:
    one, other = talks_of_both(crew.port)
    with listening(one) as heard_one, listening(other) as heard_other:
        for talk in (one, other):
            talk.ask("resources/subscribe", uri=GRAPH)
        for number in range(3):
            one.call("create_entities", **creation(f"e{number}"))
        other.ask("resources/unsubscribe", uri="memory://nothing")
        for events in (heard_one, heard_other):
            assert [events.message()["params"] for _ in range(3)] == [{"uri": GRAPH}] * 3
        other.call("create_entities", **creation("last"))
        assert heard_one.message()["method"] == "notifications/resources/updated"
    one.close()
    other.close()


def test_a_worker_that_is_killed_is_replaced_and_only_its_sessions_are_gone(crew: Running) -> None:
    lost, kept = talks_of_both(crew.port)
    kept.call("create_entities", **creation("before"))
    doomed = next(each for each in workers_of(crew) if is_worker(each, 0))
    os.kill(doomed, signal.SIGKILL)
    crew.wait_for("worker 0 ended with status -9")
    for _ in range(5):
        with elsewhere(crew.port, kept.headers) as web:
            assert names(web.post(call("read_graph")).json) == ["before"]
    wait_for_worker(crew)
    for _ in range(5):
        with elsewhere(crew.port, lost.headers) as web:
            assert web.post(call("read_graph")).status == 404
    one, other = talks_of_both(crew.port)
    for talk in (lost, kept, one, other):
        talk.close()
    assert crew.stop() == 0


def is_worker(process: int, number: int) -> bool:
    """Whether the process is the worker of that number: it listens at a place named so."""
    held = {str(each.readlink()) for each in Path(f"/proc/{process}/fd").iterdir()}
    inodes = {each.removeprefix("socket:[").removesuffix("]") for each in held if each.startswith("socket:")}
    lines = [line.split() for line in Path("/proc/net/unix").read_text().splitlines() if f"/worker-{number}" in line]
    return any(line[6] in inodes for line in lines)


def wait_for_worker(crew: Running) -> None:
    """Until two workers are there, and sessions are opened by both."""
    for talk in talks_of_both(crew.port):
        talk.close()


def names(reply: Any) -> list[str]:
    return [each["name"] for each in reply["result"]["structuredContent"]["entities"]]


def test_workers_go_with_the_process_that_started_them(crew: Running) -> None:
    wait_for_worker(crew)
    workers = workers_of(crew)
    assert len(workers) == 2
    ends = [os.pidfd_open(each) for each in workers]
    crew.popen.kill()
    for end in ends:
        assert select.select([end], [], [], PATIENCE)[0]
        os.close(end)
    crew.wait()


def test_workers_that_cannot_start_say_why_and_the_server_ends(tmp_path: Path) -> None:
    (tmp_path / "memory.db").write_bytes(b"SQLite format 3\x00" + b"\xff" * 4096)
    with Running(tmp_path / "memory.db", "--workers", "2", ready=False) as server:
        assert server.wait() == 1
    assert "damaged" in server.log
    assert "no worker could be kept running" in server.log
    assert "Traceback" not in server.log


def test_a_session_id_made_up_of_digits_harms_no_worker(crew: Running) -> None:
    for identifier in ("9" * 5000, "1", "0-", "1-", "7-x", "-1-x", "٣-x".encode().decode("latin-1")):
        with Web(crew.port, **{"Mcp-Session-Id": identifier}) as web:
            for _ in range(4):
                assert web.post(call("read_graph")).status == 404


def test_who_has_no_token_is_not_handed_on(tmp_path: Path) -> None:
    token = Tokens(tmp_path / "memory.db.tokens").create("alice", can="write")
    with Running(tmp_path / "memory.db", "--workers", "2") as server:
        for talk in talks_of_both(server.port, token):
            for _ in range(4):
                with Web(server.port, **{"Mcp-Session-Id": talk.id}) as web:
                    assert web.post(call("read_graph")).status == 401
            talk.close()


def test_a_tcp_server_finishes_the_work_in_hand(tmp_path: Path) -> None:
    with Running(tmp_path / "memory.db", transport="tcp") as server:
        with Line(server.port) as line:
            line.ask(initialize())
            line.socket.sendall(large_write() + b"\n")
            line.socket.sendall(b"")
            with Line(server.port) as other:
                other.ask(initialize())  # the first is being read by now, or was
            server.popen.send_signal(signal.SIGTERM)
            reply = line.hear()
        assert server.wait() == 0
    assert entities(tmp_path / "memory.db") == (MANY if reply is not None else 0)
