"""What a session is tied to: its path, and the workspaces that its subscriptions name."""

import json
import subprocess
from http.client import HTTPConnection
from pathlib import Path

import pytest

from tests.processes import polymnia_command
from tests.transports.running import Legacy, Running, Talk, creation, listening, request

GRAPH_URI = "memory://knowledge-graph"


def test_a_session_is_valid_only_on_the_path_it_was_opened_on(tmp_path: Path) -> None:
    with Running(tmp_path / "memory.db", "--also", "graph") as server:
        talk = Talk(server.port)
        assert talk.post(request("ping"), "/mcp/").status == 200
        assert talk.post(request("ping"), "/graph/mcp").status == 404
        assert talk.post(request("ping"), f"/sse/messages/?session_id={talk.id}").status == 404


def test_a_session_of_a_stream_is_not_valid_elsewhere(tmp_path: Path) -> None:
    with Running(tmp_path / "memory.db") as server, Legacy(server.port) as legacy:
        talk = Talk(server.port)
        talk.headers["Mcp-Session-Id"] = legacy.place.partition("session_id=")[2]
        assert talk.post(request("ping")).status == 404


def test_a_subscription_is_for_the_workspace_that_its_request_names(tmp_path: Path) -> None:
    store = f"{tmp_path / 'data'}/"
    command = polymnia_command("workspace", "create", "other", "--store", store)
    subprocess.run(command, check=True, capture_output=True)
    with Running(store) as server:
        talk = Talk(server.port)
        answer = talk.post(
            request("resources/subscribe", uri=GRAPH_URI), X_Memory_Workspace="other"
        )
        assert "result" in answer.json, answer.json
        with listening(talk) as events:
            talk.call(
                "create_entities", **creation("Ada")
            )  # in the default workspace: no notification
            talk.headers["X-Memory-Workspace"] = "other"
            talk.call("create_entities", **creation("Bob"))
            assert events.message()["params"] == {"uri": GRAPH_URI}
            talk.call("create_entities", **creation("Eve"))
            assert events.message()["params"] == {"uri": GRAPH_URI}


@pytest.mark.parametrize(
    "headers", [{}, {"Mcp-Session-Id": "unknown"}, {"Mcp-Protocol-Version": "2026-07-28"}]
)
def test_what_cannot_be_parsed_has_one_status_whoever_sends_it(
    tmp_path: Path, headers: dict[str, str]
) -> None:
    with Running(tmp_path / "memory.db") as server, Legacy(server.port) as legacy:
        for place in ("/mcp", legacy.place):
            connection = HTTPConnection("127.0.0.1", server.port)
            connection.request(
                "POST", place, b'{"jsonrpc":', {"Content-Type": "application/json", **headers}
            )
            response = connection.getresponse()
            assert (response.status, json.loads(response.read())["error"]["code"]) == (400, -32700)
            connection.close()
