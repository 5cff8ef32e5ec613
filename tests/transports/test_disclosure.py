"""Remote clients learn nothing of the server's machine.

No paths, no commands, no lines of its log.
"""

import json
import subprocess
from pathlib import Path
from typing import Any

import pytest

from polymnia.auth.tokens import file_tokens
from tests.processes import polymnia_command
from tests.transports.process import creation as stdio_creation
from tests.transports.running import (
    Line,
    Running,
    Talk,
    Web,
    call,
    creation,
    initialize,
    listening,
    request,
    text_of,
)


def lose_store(directory: Path) -> None:
    """Make the store unusable while a server has it open."""
    (directory / "memory.db").rename(directory / "elsewhere.db")


def discloses(text: str, directory: Path) -> bool:
    return str(directory) in text or "polymnia " in text or "--" in text


def test_an_error_of_the_store_names_no_path_over_http(tmp_path: Path) -> None:
    with Running(tmp_path / "memory.db") as server:
        talk = Talk(server.port)
        lose_store(tmp_path)
        result = talk.call("create_entities", **creation("x"))
        resource = talk.ask("resources/read", uri="memory://knowledge-graph")
        talk.close()
        assert result["isError"]
        for text in (result["content"][0]["text"], resource["error"]["message"]):
            assert not discloses(text, tmp_path)
            assert "log" in text
        server.wait_for(str(tmp_path))


def test_an_error_of_the_store_names_no_path_over_tcp(tmp_path: Path) -> None:
    with Running(tmp_path / "memory.db", transport="tcp") as server, Line(server.port) as line:
        line.ask(initialize())
        lose_store(tmp_path)
        reply = line.ask(call("create_entities", **creation("x")))
        assert reply["result"]["isError"]
        assert not discloses(text_of(reply), tmp_path)


def test_an_error_of_the_store_names_the_path_over_stdio(tmp_path: Path) -> None:
    command = polymnia_command(
        "serve", "--dialect", "reference", "--store", str(tmp_path / "memory.db")
    )
    with subprocess.Popen(
        command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL
    ) as server:
        assert server.stdin is not None
        assert server.stdout is not None

        def ask(message: Any) -> Any:
            assert server.stdin is not None
            assert server.stdout is not None
            server.stdin.write(json.dumps(message).encode() + b"\n")
            server.stdin.flush()
            return json.loads(server.stdout.readline())

        ask(request("ping"))
        lose_store(tmp_path)
        assert str(tmp_path) in text_of(ask(stdio_creation(2, "x")))


def test_health_checks_push_nothing_to_clients_and_fill_no_log(tmp_path: Path) -> None:
    with Running(tmp_path / "memory.db") as server:
        talk = Talk(server.port)
        with listening(talk) as events, Web(server.port) as anonymous:
            lose_store(tmp_path)
            for _ in range(20):
                assert anonymous.send("GET", "/readyz").status == 503
            assert server.stop() == 0
            assert events.next() is None
        talk.close()
    assert server.log.count("not ready") == 1


def test_a_missing_token_is_asked_for_without_a_command(tmp_path: Path) -> None:
    file_tokens(tmp_path / "memory.db.tokens").create("alice", can="read")
    with Running(tmp_path / "memory.db") as server, Web(server.port) as web:
        answer = web.post(initialize())
        assert answer.status == 401
        assert not discloses(answer.json["error"]["message"], tmp_path)
    with Running(tmp_path / "memory.db", transport="tcp") as tcp, Line(tcp.port) as line:
        message = line.ask(initialize())["error"]["message"]
        assert "polymnia/token" in message
        assert not discloses(message, tmp_path)


@pytest.mark.parametrize("headers", [{"Host": "evil.com"}, {"Origin": "https://evil.com"}])
def test_a_refused_host_or_origin_names_no_command(tmp_path: Path, headers: dict[str, str]) -> None:
    with Running(tmp_path / "memory.db") as server, Web(server.port) as web:
        answer = web.send("POST", "/mcp", b"{}", **headers)
        assert answer.status in (421, 403)
        assert not discloses(answer.json["error"]["message"], tmp_path)


def test_a_store_of_one_workspace_names_no_path_when_asked_for_another(tmp_path: Path) -> None:
    with Running(tmp_path / "memory.db", dialect="project") as server:
        talk = Talk(server.port)
        created = talk.call("create_project", name="other")
        used = talk.post(call("search_nodes", query="x"), X_Memory_Workspace="other").json
        talk.close()
        assert created["isError"]
        for text in (created["content"][0]["text"], text_of(used)):
            assert not discloses(text, tmp_path)
