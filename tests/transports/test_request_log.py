"""The log line of each request, over every transport.

Who asked, for what, how it ended and how long it took.
"""

import json
import logging
import re
import subprocess
from pathlib import Path
from typing import Any

import pytest

from polymnia.auth.tokens import file_tokens
from polymnia.mcp.message import Answer
from polymnia.model import Principal
from polymnia.transports.request_log import RequestRecord
from tests.processes import TIMEOUT_S, polymnia_command
from tests.transports.running import (
    Legacy,
    Line,
    Running,
    Talk,
    Web,
    call,
    creation,
    initialize,
    request,
)

SECRET = "the-secret-of-the-house"
ALL = ("--log-level", "info", "--log-format", "json")


def lines(log: str) -> list[dict[str, Any]]:
    """Return the log lines about requests."""
    entries = [json.loads(line) for line in log.splitlines()]
    return [entry for entry in entries if entry["logger"] == "polymnia.access"]


def line_about(log: str, **fields: object) -> dict[str, Any]:
    """Return the only log line with these fields."""
    found = [line for line in lines(log) if fields.items() <= line.items()]
    assert len(found) == 1, log
    return found[0]


def test_a_request_over_http_is_logged_with_its_fields(tmp_path: Path) -> None:
    token = file_tokens(tmp_path / "memory.db.tokens").create("alice", can="write")
    with Running(tmp_path / "memory.db", *ALL) as server:
        talk = Talk(server.port, token)
        talk.call("create_entities", **creation(SECRET))
        talk.close()
        assert server.stop() == 0
    entry = line_about(server.log, tool="create_entities")
    assert {"time", "request_id"} <= entry.keys()
    assert entry["duration_ms"] >= 0
    assert (entry["level"], entry["message"]) == ("info", "POST /mcp 200")
    assert (entry["client"], entry["token"]) == ("127.0.0.1", "alice")
    assert line_about(server.log, method="initialize")["token"] == "alice"
    assert SECRET not in server.log


def test_a_request_over_tcp_is_logged_with_its_fields(tmp_path: Path) -> None:
    token = file_tokens(tmp_path / "memory.db.tokens").create("alice", can="write")
    with Running(tmp_path / "memory.db", *ALL, transport="tcp") as server:
        with Line(server.port, token) as line:
            line.ask(initialize())
            line.ask(call("create_entities", **creation(SECRET)))
        assert server.stop() == 0
    entry = line_about(server.log, tool="create_entities")
    assert entry["duration_ms"] >= 0
    assert re.fullmatch("[0-9a-f]{16}", entry["request_id"])
    assert (entry["level"], entry["message"]) == ("info", "TCP request")
    assert (entry["client"], entry["token"]) == ("127.0.0.1", "alice")
    assert line_about(server.log, method="initialize")["token"] == "alice"
    assert SECRET not in server.log


def test_a_message_over_sse_is_logged_with_its_tool(tmp_path: Path) -> None:
    with Running(tmp_path / "memory.db", *ALL) as server:
        with Legacy(server.port) as legacy:
            legacy.ask(initialize())
            legacy.ask(call("read_graph"))
        assert server.stop() == 0
    assert line_about(server.log, tool="read_graph")["message"] == "POST /sse/messages/ 202"


@pytest.mark.parametrize("transport", ["http", "tcp"])
def test_failures_are_warnings_without_user_text(tmp_path: Path, transport: str) -> None:
    failures = [call("open_nodes", names=SECRET), call(SECRET), request(SECRET)]
    with Running(tmp_path / "memory.db", "--log-format", "json", transport=transport) as server:
        if transport == "tcp":
            with Line(server.port) as line:
                for failure in (initialize(), call("read_graph"), *failures):
                    line.ask(failure)
        else:
            talk = Talk(server.port)
            for failure in (call("read_graph"), *failures):
                talk.post(failure)
            talk.close()
        assert server.stop() == 0
    about = "POST /mcp 200" if transport == "http" else "TCP request"
    said = [
        (line["level"], line["message"], line.get("tool"), line.get("method"))
        for line in lines(server.log)
    ]
    assert said == [
        ("warning", f"{about} error", "open_nodes", None),
        ("warning", f"{about} error -32602", "(unknown)", None),
        ("warning", f"{about} error -32601", None, "(unknown)"),
    ]
    assert SECRET not in server.log


@pytest.mark.parametrize("transport", ["http", "tcp"])
def test_clients_that_are_not_admitted_cannot_fill_the_log_with_warnings(
    tmp_path: Path, transport: str
) -> None:
    file_tokens(tmp_path / "memory.db.tokens").create("alice", can="write")
    with Running(tmp_path / "memory.db", "--log-format", "json", transport=transport) as server:
        if transport == "tcp":
            with Line(server.port, "wrong") as line:
                assert "error" in line.ask(request("ping"))
        else:
            with Web(server.port, "wrong") as web:
                assert web.post(request("ping")).status == 401
                assert web.send("GET", "/nothing").status == 404
        assert server.stop() == 0
    assert lines(server.log) == []


@pytest.mark.parametrize("transport", ["http", "tcp"])
def test_a_failed_login_is_logged_with_the_address_of_the_client(
    tmp_path: Path, transport: str
) -> None:
    file_tokens(tmp_path / "memory.db.tokens").create("alice", can="write")
    with Running(tmp_path / "memory.db", "--log-format", "json", transport=transport) as server:
        if transport == "tcp":
            with Line(server.port, SECRET) as line:
                line.ask(request("ping"))
        else:
            with Web(server.port, SECRET) as web:
                web.post(request("ping"))
        entry = json.loads(server.wait_for("login failed"))
    assert (entry["level"], entry["client"]) == ("warning", "127.0.0.1")
    assert SECRET not in server.log


def test_the_request_id_of_a_client_is_logged_and_sent_back(tmp_path: Path) -> None:
    with Running(tmp_path / "memory.db", *ALL) as server:
        talk = Talk(server.port)
        answer = talk.post(call("read_graph"), X_Request_Id="trace-7.a_B")
        refused = talk.send("GET", "/nothing", X_Request_Id="trace-8")
        talk.close()
        assert server.stop() == 0
    assert (answer.headers["x-request-id"], refused.headers["x-request-id"]) == (
        "trace-7.a_B",
        "trace-8",
    )
    assert line_about(server.log, request_id="trace-7.a_B")["tool"] == "read_graph"
    assert line_about(server.log, request_id="trace-8")["message"] == "GET (another path) 404"


def test_a_request_without_a_short_token_as_its_id_gets_a_new_one(tmp_path: Path) -> None:
    others = [{"X_Request_Id": item} for item in ("", "two words", "x" * 65, "a=b", "caf\xe9")]
    with Running(tmp_path / "memory.db", *ALL) as server:
        with Web(server.port) as web:
            ids = [
                web.post(initialize(), **headers).headers["x-request-id"]
                for headers in ({}, *others)
            ]
        assert server.stop() == 0
    assert all(re.fullmatch("[0-9a-f]{16}", row_id) for row_id in ids)
    assert len(set(ids)) == len(ids)
    assert [line["request_id"] for line in lines(server.log)] == ids


def test_the_messages_of_a_batch_share_a_line_over_http(tmp_path: Path) -> None:
    with Running(tmp_path / "memory.db", *ALL) as server:
        talk = Talk(server.port, revision="2025-03-26")
        talk.post([call("read_graph", 1), call("open_nodes", 2, names=5)])
        talk.close()
        assert server.stop() == 0
    entry = line_about(server.log, method="batch")
    assert (entry["level"], entry["message"]) == (
        "warning",
        "POST /mcp 200 (1 of 2 messages failed)",
    )


@pytest.mark.parametrize(("level", "count"), [("debug", 1), ("info", 0)])
def test_requests_over_stdio_are_logged_for_debugging_only(
    tmp_path: Path, level: str, count: int
) -> None:
    command = polymnia_command(
        "serve", "--dialect", "reference", "--store", str(tmp_path / "memory.db")
    )
    command += ["--log-level", level, "--log-format", "json"]
    message = json.dumps(call("open_nodes", names=SECRET)) + "\n"
    done = subprocess.run(
        command, input=message, capture_output=True, text=True, timeout=TIMEOUT_S, check=True
    )
    found = lines(done.stderr)
    assert [(item["level"], item["tool"]) for item in found] == [("debug", "open_nodes")] * count
    assert SECRET not in done.stderr


def test_the_name_of_a_principal_cannot_forge_a_line(caplog: pytest.LogCaptureFixture) -> None:
    record = RequestRecord(client="192.0.2.7", principal=Principal(name="x\nforged", id="jwt:x"))
    record.messages.append(Answer(method="ping"))
    with caplog.at_level(logging.INFO, "polymnia.access"):
        record.log("POST /mcp 200", 0.0, is_failed=False)
    assert caplog.records[0].__dict__["token"] == r"'x\nforged'"
