"""The client's address behind proxies: taken from trusted ones only."""

import json
from pathlib import Path

import pytest

from polymnia.errors import SettingsError
from polymnia.transports.address import parse_proxies
from tests.transports.running import Running, Talk

PROXIES = parse_proxies(["127.0.0.1", "10.0.0.0/8", "fd00::/8"])


@pytest.mark.parametrize(
    ("peer", "forwarded", "client"),
    [
        pytest.param("192.0.2.1", ["198.51.100.7"], "192.0.2.1", id="not a proxy"),
        pytest.param("127.0.0.1", [], "127.0.0.1", id="a local client"),
        pytest.param("127.0.0.1", ["198.51.100.7"], "198.51.100.7", id="one proxy"),
        pytest.param("127.0.0.1", ["198.51.100.7, 10.1.2.3"], "198.51.100.7", id="two proxies"),
        pytest.param("127.0.0.1", ["6.6.6.6, 198.51.100.7"], "198.51.100.7", id="forged"),
        pytest.param("127.0.0.1", ["6.6.6.6", "198.51.100.7"], "198.51.100.7", id="forged line"),
        pytest.param("127.0.0.1", ["unknown"], "127.0.0.1", id="no address"),
        pytest.param("127.0.0.1", ["unknown, 10.1.2.3"], "10.1.2.3", id="an address unknown"),
        pytest.param("::ffff:10.0.0.1", ["2001:db8::7"], "2001:db8::7", id="both families"),
        pytest.param("", ["198.51.100.7"], "", id="no peer"),
    ],
)
def test_the_last_address_that_no_trusted_proxy_has_is_the_clients(
    peer: str, forwarded: list[str], client: str
) -> None:
    headers = [(b"host", b"x"), *((b"x-forwarded-for", text.encode()) for text in forwarded)]
    assert PROXIES.client_of(peer, headers) == client


def test_an_invalid_proxy_is_refused() -> None:
    with pytest.raises(SettingsError, match="invalid trusted proxy 'nginx'"):
        parse_proxies(["nginx"])


@pytest.mark.parametrize(
    ("flags", "client"),
    [(["--trusted-proxy", "127.0.0.1"], "198.51.100.7"), ([], "127.0.0.1")],
)
def test_the_log_has_the_clients_address_and_the_workspace(
    tmp_path: Path, flags: list[str], client: str
) -> None:
    logged = ("--log-level", "info", "--log-format", "json")
    with Running(tmp_path / "memory.db", *logged, *flags) as server:
        forwarded = {"X-Forwarded-For": "6.6.6.6, 198.51.100.7"}
        with Talk(server.port, **forwarded) as talk:
            talk.call("read_graph")
        line = server.wait_for("read_graph")
    entry = json.loads(line)
    assert (entry["client"], entry["workspace"]) == (client, "default")
