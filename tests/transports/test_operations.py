"""What operators see.

Health, readiness, metrics, and a log that holds neither content nor secrets.
"""

import asyncio
import re
from pathlib import Path

import pytest

from polymnia.auth.tokens import file_tokens
from polymnia.transports.http.serve import measure_lag
from tests.transports.running import (
    Legacy,
    Running,
    Talk,
    Web,
    call,
    creation,
    initialize,
    metrics_of,
)


def test_a_server_is_alive_and_ready(tmp_path: Path) -> None:
    with Running(tmp_path / "memory.db") as server, Web(server.port) as web:
        assert (web.send("GET", "/healthz").status, web.send("GET", "/readyz").status) == (200, 200)
        assert web.send("HEAD", "/healthz").body == b""


@pytest.mark.parametrize("loss", ["removed", "replaced"])
def test_a_server_whose_store_is_gone_is_alive_and_not_ready(tmp_path: Path, loss: str) -> None:
    store = tmp_path / "memory.db"
    with Running(store) as server, Web(server.port) as web:
        store.rename(tmp_path / "elsewhere.db")
        if loss == "replaced":
            store.write_bytes(b"")
        answer = web.send("GET", "/readyz")
        assert answer.status == 503
        assert str(tmp_path) not in answer.body.decode()
        assert web.send("GET", "/healthz").status == 200
        server.wait_for("was moved, deleted or replaced")
        (tmp_path / "elsewhere.db").rename(store)
        # What another process did to the files meanwhile is not known, so only a new start makes it
        # ready.
        assert web.send("GET", "/readyz").status == 503


def test_health_needs_no_token_and_no_name(tmp_path: Path) -> None:
    file_tokens(tmp_path / "memory.db.tokens").create("alice", can="read")
    with Running(tmp_path / "memory.db") as server, Web(server.port) as web:
        assert web.send("GET", "/healthz", Host="some-balancer").status == 200
        assert web.send("GET", "/readyz", Host="some-balancer").status == 200


def test_there_are_no_metrics_unless_asked_for(tmp_path: Path) -> None:
    with Running(tmp_path / "memory.db") as server, Web(server.port) as web:
        assert web.send("GET", "/metrics").status == 404


def test_metrics_count_what_was_asked_and_how_it_went(tmp_path: Path) -> None:
    with Running(tmp_path / "memory.db", "--metrics") as server:
        talk = Talk(server.port)
        for _ in range(3):
            talk.call("read_graph")
        talk.post(call("read_graph"), Mcp_Session_Id="nobody's")
        with Web(server.port) as web:
            text = web.send("GET", "/metrics").body.decode()
        talk.close()
    assert 'polymnia_http_requests_total{method="POST",status="200"} 4' in text
    assert 'polymnia_http_requests_total{method="POST",status="404"} 1' in text
    assert "polymnia_http_request_seconds_count 5" in text
    assert 'le="+Inf"} 5' in text
    assert "polymnia_sessions 1" in text
    assert "polymnia_requests_running 0" in text
    assert all(
        re.fullmatch(r"# TYPE \w+ \w+|\w+(\{[^}]*\})? [0-9.]+", line) for line in text.splitlines()
    )


def test_metrics_count_the_calls_of_each_tool_by_outcome(tmp_path: Path) -> None:
    with Running(tmp_path / "memory.db", "--metrics") as server:
        talk = Talk(server.port, revision="2025-03-26")
        talk.call("read_graph")
        talk.post([call("read_graph", 1), call("read_graph", 2)])
        talk.call("open_nodes", names=5)
        talk.post(call(SECRET))
        talk.close()
        with Legacy(server.port) as legacy:
            legacy.ask(initialize())
            legacy.ask(call("read_graph"))
        found = metrics_of(server)
    assert found['polymnia_tool_calls_total{tool="read_graph",outcome="ok"}'] == 4
    assert found['polymnia_tool_calls_total{tool="open_nodes",outcome="error"}'] == 1
    for tool in ("read_graph", "open_nodes"):
        labels = f'tool="{tool}"'
        calls = found[f"polymnia_tool_seconds_count{{{labels}}}"]
        assert calls > 0
        assert found[f"polymnia_tool_seconds_sum{{{labels}}}"] > 0
        assert found[f'polymnia_tool_seconds_bucket{{{labels},le="+Inf"}}'] == calls
        assert found[f'polymnia_tool_seconds_bucket{{{labels},le="0.001"}}'] <= calls
    assert len([item for item in found if item.startswith("polymnia_tool_calls_total")]) == 2


def test_metrics_count_rejected_logins_but_not_requests_without_a_token(tmp_path: Path) -> None:
    token = file_tokens(tmp_path / "memory.db.tokens").create("alice", can="read")
    with Running(tmp_path / "memory.db", "--metrics") as server:
        for given in ("wrong", "wrong too", token, None):
            with Web(server.port, given) as web:
                web.post(initialize())
        assert metrics_of(server)["polymnia_rejected_logins_total"] == 2


@pytest.mark.parametrize("name", ["memory.db", "memory.jsonl", "data/"])
def test_metrics_tell_the_size_of_the_store(tmp_path: Path, name: str) -> None:
    with Running(f"{tmp_path}/{name}", "--metrics") as server:
        talk = Talk(server.port)
        talk.call("create_entities", **creation("x", text="y" * 100_000))
        talk.close()
        found = metrics_of(server)["polymnia_store_bytes"]
    assert found > 100_000


def test_a_store_in_memory_has_no_size(tmp_path: Path) -> None:
    with Running("memory:", "--metrics") as server:
        assert "polymnia_store_bytes" not in metrics_of(server)


def test_metrics_tell_how_late_the_event_loop_is(tmp_path: Path) -> None:
    with Running(tmp_path / "memory.db", "--metrics") as server:
        assert metrics_of(server)["polymnia_event_loop_lag_seconds"] >= 0


def test_the_lag_of_the_event_loop_is_what_a_sleep_takes_too_long() -> None:
    times = iter([10.0, 12.5])
    assert asyncio.run(measure_lag(0, lambda: next(times))) == 2.5


SECRET = "the-secret-of-the-house"


def test_the_log_has_no_content_no_queries_no_tokens_and_no_lines_of_a_client(
    tmp_path: Path,
) -> None:
    tokens = file_tokens(tmp_path / "memory.db.tokens")
    token = tokens.create("alice", can="write")
    with Running(tmp_path / "memory.db", "--log-level", "info") as server:
        talk = Talk(server.port, token)
        talk.call("create_entities", **creation(SECRET, text=SECRET))
        talk.call("search_nodes", query=SECRET)
        talk.call("open_nodes", names=[SECRET], wrong=SECRET)
        talk.ask(SECRET)
        talk.post(call("read_graph"), f"/mcp?{SECRET}={token}")
        talk.send("GET", f"/{SECRET}/{token}")
        talk.send("GET", "/%0apolymnia:%20ERROR:%20forged")
        talk.send("POST", "/mcp", SECRET.encode())
        with Legacy(server.port, token) as legacy:
            legacy.ask(initialize(name=SECRET))
        with Web(server.port, SECRET) as web:
            web.post(initialize())
        session = talk.id
        talk.close()
        assert server.stop() == 0
    assert "POST /mcp 200" in server.log
    assert "POST /sse/messages/ 202" in server.log
    assert "GET (another path) 404" in server.log
    for hidden in (SECRET, token, session, "forged"):
        assert hidden not in server.log


@pytest.mark.parametrize("level", ["warning", "error"])
def test_ordinary_requests_log_no_warnings(tmp_path: Path, level: str) -> None:
    with Running(tmp_path / "memory.db", ready=False) as server:
        talk = Talk(server.port)
        talk.call("create_entities", **creation("x"))
        talk.call("read_graph")
        talk.close()
        assert server.stop() == 0
    assert len(server.log.splitlines()) == 1
