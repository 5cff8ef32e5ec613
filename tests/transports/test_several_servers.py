"""Several server processes on one store: on one port, and behind anything that mixes requests."""

import subprocess
from pathlib import Path
from typing import Any

from tests.mcp.conversation import STATELESS, envelope
from tests.processes import polymnia_command
from tests.transports.running import Running, Web, call, request

ASKED: dict[str, Any] = {"clientCapabilities": {"elicitation": {}}}
YES = {"action": "accept", "content": {"confirmed": True}}


def create_token(store: Path) -> str:
    command = polymnia_command("token", "create", "root", "--can", "admin", "--store", str(store))
    done = subprocess.run(
        [*command, "--all-workspaces"], capture_output=True, text=True, check=True
    )
    return done.stdout.split()[-1]


def call_stateless(web: Web, tool: str, arguments: dict[str, Any], **more: Any) -> Any:
    message = request("tools/call", name=tool, arguments=arguments, _meta=envelope(**ASKED), **more)
    headers = {"Mcp-Protocol-Version": STATELESS, "Mcp-Method": "tools/call", "Mcp-Name": tool}
    return web.post(message, **headers).json["result"]


def test_another_server_takes_the_answer_of_a_stateless_client(tmp_path: Path) -> None:
    store = tmp_path / "memory.db"
    token = create_token(store)
    ada = {"name": "Ada", "type": "person", "facts": ["plays chess", "likes tea"]}
    with (
        Running(store, dialect="native") as one,
        Running(store, dialect="native") as other,
        Web(one.port, token) as first,
        Web(other.port, token) as second,
    ):
        call_stateless(first, "remember", {"entities": [ada]})
        forget = {"name": "Ada", "whole": True}
        asked = call_stateless(first, "forget", forget)
        (key,) = asked["inputRequests"]
        answers = {"inputResponses": {key: YES}, "requestState": asked["requestState"]}
        done = call_stateless(second, "forget", forget, **answers)
    assert done["resultType"] == "complete"
    assert "isError" not in done


def test_servers_that_share_a_port_all_get_connections(tmp_path: Path) -> None:
    flags = ("--reuse-port", "--log-level", "debug")
    with Running(tmp_path / "memory.db", *flags) as one:
        address = f"127.0.0.1:{one.port}"
        with Running(tmp_path / "memory.db", *flags, "--bind", address) as other:
            for number in range(100):
                with Web(one.port) as web:
                    message = call("open_nodes", names=[f"n{number}"])
                    message["params"]["_meta"] = envelope()
                    headers = {"Mcp-Protocol-Version": STATELESS, "Mcp-Method": "tools/call"}
                    assert web.post(message, **headers, **{"Mcp-Name": "open_nodes"}).status == 200
            assert other.stop() == 0
        assert one.stop() == 0
    assert "open_nodes" in one.log
    assert "open_nodes" in other.log
