"""Host, Origin and CORS: foreign pages and rebound host names are refused."""

import json
from collections.abc import Iterator
from pathlib import Path

import pytest

from polymnia.errors import SettingsError
from polymnia.transports.address import host_of, is_origin, require_hosts, require_origins
from tests.transports.running import Running, Web, initialize, raw

NAMED, PAGE = "memory.example.com", "https://app.example.com"


@pytest.fixture(scope="module")
def port(tmp_path_factory: pytest.TempPathFactory) -> Iterator[int]:
    """A server that only this machine can reach."""
    with Running(tmp_path_factory.mktemp("local") / "memory.db", "--metrics") as server:
        yield server.port


@pytest.fixture(scope="module")
def named(tmp_path_factory: pytest.TempPathFactory) -> Iterator[int]:
    """A server with an allowed host and origin, both set in an unusual spelling."""
    flags = (
        "--allow-host",
        "Memory.Example.COM:443",
        "--allow-origin",
        "HTTPS://App.example.com:443/",
    )
    with Running(tmp_path_factory.mktemp("named") / "memory.db", *flags) as server:
        yield server.port


GOOD_HOSTS = [
    "localhost",
    "LOCALHOST:1",
    "localhost.",
    "127.0.0.1:80",
    "127.9.9.9",
    "[::1]:8765",
    "[::1]",
    "192.0.2.7:80",
]
OTHER_HOSTS = [
    "evil.com",
    "localhost.evil.com",
    "127.0.0.1.evil.com",
    "evil.com:80",
    "127.1",
    "0x7f000001",
    NAMED,
]
NO_HOSTS = [
    "",
    "localhost@evil.com",
    "evil.com@localhost",
    "localhost/evil.com",
    "::1",
    "[::1",
    "localhost:80:80",
    "a b",
]


def status_for(
    port: int, *hosts: str, version: str = "1.1", origin: str | None = None, path: str = "/mcp"
) -> int:
    """The status of a request with these Host headers."""
    body = b'{"jsonrpc":"2.0","id":1,"method":"ping"}'
    head = [f"POST {path} HTTP/{version}", *(f"Host: {host}" for host in hosts)]
    head += [f"Origin: {origin}"] if origin is not None else []
    head += [
        "Content-Type: application/json",
        f"Content-Length: {len(body)}",
        "Connection: close",
        "",
        "",
    ]
    answer = raw(port, "\r\n".join(head).encode() + body)
    return int(answer.split(b" ", 2)[1])


@pytest.mark.parametrize("host", GOOD_HOSTS)
def test_local_hosts_and_ip_addresses_are_served(port: int, host: str) -> None:
    assert status_for(port, host) == 400  # admitted, but without a session


@pytest.mark.parametrize("path", ["/mcp", "/sse/messages/", "/reference/mcp"])
@pytest.mark.parametrize("host", OTHER_HOSTS)
def test_other_hosts_are_refused(port: int, host: str, path: str) -> None:
    assert status_for(port, host, path=path) == 421


@pytest.mark.parametrize("host", NO_HOSTS)
def test_a_malformed_host_is_refused(port: int, host: str) -> None:
    assert status_for(port, host) == 400
    assert b"Host" in raw_answer(port, host)


def raw_answer(port: int, host: str) -> bytes:
    return raw(port, f"GET /mcp HTTP/1.1\r\nHost: {host}\r\nConnection: close\r\n\r\n".encode())


@pytest.mark.parametrize(
    "hosts", [["localhost", "evil.com"], ["evil.com", "localhost"], ["localhost", "localhost"]]
)
def test_two_hosts_are_refused(port: int, hosts: list[str]) -> None:
    assert status_for(port, *hosts) == 400


@pytest.mark.parametrize(("count", "status"), [(150, b"400"), (5_000, b"431")])
def test_a_head_has_a_bounded_number_of_headers(port: int, count: int, status: bytes) -> None:
    fields = "".join(f"X{number}: y\r\n" for number in range(count))
    head = f"GET /mcp HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n{fields}\r\n"
    answer = raw(port, head.encode())
    assert answer.split()[1] == status


def initialize_at(port: int, target: str, host: str = "localhost") -> bytes:
    """Return the response to a handshake whose request line has this target."""
    body = json.dumps(initialize()).encode()
    lines = [
        f"POST {target} HTTP/1.1",
        f"Host: {host}",
        "Content-Type: application/json",
        f"Content-Length: {len(body)}",
        "Connection: close",
    ]
    return raw(port, "\r\n".join([*lines, "", ""]).encode() + body)


def test_a_whole_url_with_the_host_of_the_header_is_served(port: int) -> None:
    assert initialize_at(port, "http://LOCALHOST/mcp").startswith(b"HTTP/1.1 200 ")


@pytest.mark.parametrize(
    "target", ["http://evil.com/mcp", "http://localhost@evil.com/mcp", "http://localhost:1/mcp"]
)
def test_a_whole_url_with_another_host_is_refused(port: int, target: str) -> None:
    assert initialize_at(port, target).startswith(b"HTTP/1.1 400 ")


@pytest.mark.parametrize("version", ["1.0", "1.1"])
def test_a_request_without_a_host_is_refused(port: int, version: str) -> None:
    assert status_for(port, version=version) == 400


@pytest.mark.parametrize("host", [NAMED, "MEMORY.example.com", f"{NAMED}:9999", f"{NAMED}."])
def test_an_allowed_host_is_served_in_any_spelling(named: int, host: str) -> None:
    assert status_for(named, host) == 400
    assert status_for(named, f"x{host}") == 421


LOCAL_PAGES = [
    "http://localhost:3000",
    "http://127.0.0.1",
    "https://localhost",
    "http://[::1]:6274",
]
STRANGE_PAGES = [
    "https://evil.com",
    "http://localhost.evil.com",
    "http://localhost@evil.com",
    "http://evil.com@localhost",
    "http://localhost/",
    "http://localhost/evil",
    "http://localhost\\@evil.com",
    "null",
    "",
    "localhost",
    "file://",
    "chrome-extension://localhost",
    "ftp://localhost",
    "http://LOCALHOST:80",
    PAGE,
]


@pytest.mark.parametrize("origin", LOCAL_PAGES)
def test_local_pages_may_use_a_local_server(port: int, origin: str) -> None:
    assert status_for(port, "localhost", origin=origin) == 400


@pytest.mark.parametrize("path", ["/mcp", "/sse/messages/"])
@pytest.mark.parametrize("origin", STRANGE_PAGES)
def test_other_pages_are_refused(port: int, origin: str, path: str) -> None:
    assert status_for(port, "localhost", origin=origin, path=path) == 403


def test_a_server_that_others_reach_refuses_local_pages(tmp_path: Path) -> None:
    with Running(tmp_path / "memory.db", "--bind", "0.0.0.0:0", "--insecure") as server:
        assert status_for(server.port, "localhost", origin="http://localhost:3000") == 403
        assert status_for(server.port, "localhost") == 400


def test_an_allowed_origin_may_read_responses(named: int) -> None:
    with Web(named) as web:
        answer = web.post(initialize(), Origin=PAGE)
    assert answer.status == 200
    assert answer.headers["access-control-allow-origin"] == PAGE
    assert "mcp-session-id" in answer.headers["access-control-expose-headers"].lower()


def preflight(port: int, origin: str, method: str = "POST") -> tuple[int, dict[str, str]]:
    with Web(
        port,
        **{
            "Access-Control-Request-Method": method,
            "Access-Control-Request-Headers": "content-type",
        },
    ) as web:
        answer = web.send("OPTIONS", "/mcp", Origin=origin)
    return answer.status, dict(answer.headers)


@pytest.mark.parametrize("method", ["GET", "POST", "DELETE"])
def test_an_allowed_origin_passes_the_preflight(named: int, method: str) -> None:
    status, headers = preflight(named, PAGE, method)
    assert status == 200
    assert headers["access-control-allow-origin"] == PAGE
    assert "access-control-allow-credentials" not in headers


@pytest.mark.parametrize(
    "origin", ["https://evil.com", f"{PAGE}.evil.com", "https://app.example.com:444", "null"]
)
def test_other_origins_fail_the_preflight(named: int, origin: str) -> None:
    status, headers = preflight(named, origin)
    assert status in (400, 403)
    assert "access-control-allow-origin" not in headers


@pytest.mark.parametrize("origin", ["https://evil.com", "http://localhost:3000"])
def test_without_allowed_origins_there_are_no_cors_headers(port: int, origin: str) -> None:
    status, headers = preflight(port, origin)
    assert status in (403, 405)
    assert not [name for name in headers if name.startswith("access-control")]


def test_foreign_pages_cannot_read_the_metrics(port: int) -> None:
    with Web(port) as web:
        assert web.send("GET", "/metrics").status == 200
        assert web.send("GET", "/metrics", Origin="https://evil.com").status == 403
        assert web.send("GET", "/metrics", Host="evil.com").status == 421


@pytest.mark.parametrize(
    "origin", ["*", "app.example.com", "https://a b", "https://x/y", "null", ""]
)
def test_an_invalid_origin_setting_is_refused(origin: str) -> None:
    with pytest.raises(SettingsError, match="invalid origin"):
        require_origins([origin])


@pytest.mark.parametrize("host", ["*", "https://memory.example.com", "a b", "", "a/b"])
def test_an_invalid_host_setting_is_refused(host: str) -> None:
    with pytest.raises(SettingsError, match="invalid host name"):
        require_hosts([host])


def test_hosts_and_origins_are_normalised() -> None:
    assert require_hosts(["::1", "A.example:80", "[::1]:9", "b."]) == {"::1", "a.example", "b"}
    assert require_origins(["HTTP://a:80/", "https://b:443", "http://c:8080"]) == {
        "http://a",
        "https://b",
        "http://c:8080",
    }
    assert host_of("[FE80::1%25eth0]:1") == "fe80::1%25eth0"
    assert not is_origin("https://A")
