"""A server whose public URL has a path: a proxy serves it below that path."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.groups import mostly_matrix
from tests.transports.running import Legacy, Running, Talk, Web, initialize, request

PREFIX = "/memory"


@pytest.fixture
def server(tmp_path: Path) -> Iterator[Running]:
    settings = {"POLYMNIA_PUBLIC_URL": f"https://example.org{PREFIX}"}
    bind = ("--bind", "127.0.0.1:0", "--also", "graph", "--log-level", "info", "--insecure")
    with Running(tmp_path / "memory.db", *bind, settings=settings) as running:
        yield running


@pytest.mark.parametrize("path", ["/sse", "/graph/sse"])
def test_the_endpoint_event_carries_the_prefix(server: Running, path: str) -> None:
    with Legacy(server.port, path=path) as legacy:
        assert legacy.place.startswith(f"{PREFIX}{path}/messages/?session_id=")


@pytest.mark.parametrize("path", mostly_matrix(["/sse", "/graph/sse"], unmarked=["/sse"]))
@pytest.mark.parametrize("is_prefix_removed", [True, False])
def test_messages_arrive_whether_or_not_the_proxy_removes_the_prefix(
    server: Running, path: str, is_prefix_removed: bool
) -> None:
    with Legacy(server.port, path=path if is_prefix_removed else PREFIX + path) as legacy:
        if is_prefix_removed:
            legacy.place = legacy.place.removeprefix(PREFIX)
        assert "result" in legacy.ask(initialize())
        assert legacy.ask(request("ping"))["result"] == {}


def test_every_path_is_also_below_the_prefix(server: Running) -> None:
    talk = Talk(server.port, path=f"{PREFIX}/mcp")
    assert talk.ask("ping")["result"] == {}
    talk.close()
    with Web(server.port) as web:
        assert web.send("GET", f"{PREFIX}/healthz").status == 200
        assert web.send("GET", f"{PREFIX}y/healthz").status == 404


def test_a_prefix_that_is_also_a_path_hides_nothing(tmp_path: Path) -> None:
    settings = {"POLYMNIA_PUBLIC_URL": "https://example.org/mcp"}
    with Running(tmp_path / "memory.db", "--insecure", settings=settings) as server:
        for path in ("/mcp", "/mcp/", "/mcp/mcp"):
            talk = Talk(server.port, path=path)
            assert talk.ask("ping")["result"] == {}
            talk.close()
