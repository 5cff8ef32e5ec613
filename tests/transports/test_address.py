"""Addresses to listen on, and the public URL: what is accepted, and what a mistake is called."""

import subprocess
from pathlib import Path

import pytest

from polymnia.errors import SettingsError
from polymnia.transports.address import (
    is_loopback,
    listen,
    parse_bind,
    parse_public_path,
    require_protection,
)
from tests.processes import TIMEOUT_S, polymnia_command


@pytest.mark.parametrize("host", ["127.0.0.1", "127.9.9.9", "::1", "localhost"])
def test_loopback_is_known(host: str) -> None:
    assert is_loopback(host)


@pytest.mark.parametrize(
    "bind", ["nonsense", "127.0.0.1", "127.0.0.1:", "127.0.0.1:http", "127.0.0.1:70000"]
)
def test_an_invalid_bind_address_is_refused_with_an_example(bind: str) -> None:
    with pytest.raises(SettingsError, match="HOST:PORT"):
        parse_bind(bind)


def test_addresses_are_read_with_and_without_brackets() -> None:
    assert parse_bind("[::1]:80") == ("::1", 80)
    assert parse_bind(":8080") == ("127.0.0.1", 8080)


@pytest.mark.parametrize(
    "host", ["nonsense.invalid", "no address", "1.2.3.4.5", "300.1.1.1", "http://127.0.0.1"]
)
def test_a_host_that_is_no_address_is_called_that(host: str) -> None:
    with pytest.raises(SettingsError, match=r"is not an address: .* such as 127\.0\.0\.1:8080"):
        parse_bind(f"{host}:8080")


@pytest.mark.parametrize("transport", ["http", "tcp"])
def test_binding_to_nonsense_is_no_question_of_protection(transport: str, tmp_path: Path) -> None:
    command = polymnia_command(
        "serve", "--dialect", "reference", "--store", str(tmp_path / "memory.db")
    )
    command += ["--transport", transport, "--bind", "nonsense.invalid"]
    done = subprocess.run(command, capture_output=True, text=True, timeout=TIMEOUT_S, check=False)
    assert done.returncode == 1
    assert "'nonsense.invalid' is not an address" in done.stderr
    assert "--insecure" not in done.stderr


def test_a_name_counts_as_reachable_from_other_machines() -> None:
    with pytest.raises(SettingsError, match="--insecure"):
        require_protection("example.org:80", "example.org", protected=False, insecure=False)


def test_a_public_server_behind_a_proxy_on_this_machine_needs_credentials() -> None:
    public = ("127.0.0.1:80", "127.0.0.1", "https://example.org/memory")
    with pytest.raises(SettingsError, match="polymnia user invite"):
        require_protection(*public, protected=False, insecure=False)
    require_protection(*public, protected=True, insecure=False)
    require_protection(*public, protected=False, insecure=True)
    local = ("127.0.0.1:80", "127.0.0.1", "http://localhost:8080")
    require_protection(*local, protected=False, insecure=False)


@pytest.mark.parametrize(
    ("url", "path"),
    [
        ("", ""),
        ("https://example.org", ""),
        ("https://example.org/", ""),
        ("https://example.org/memory", "/memory"),
        ("https://example.org:8443/team/memory/", "/team/memory"),
    ],
)
def test_the_path_of_a_public_url_is_found(url: str, path: str) -> None:
    assert parse_public_path(url) == path


@pytest.mark.parametrize(
    "url",
    [
        "example.org/memory",
        "ftp://example.org",
        "https://",
        "https://a/b?c",
        "https://a/b#c",
        "https://a/b\nc",
    ],
)
def test_an_invalid_public_url_is_refused(url: str) -> None:
    with pytest.raises(SettingsError, match=r"invalid public_url .*: expected a URL such as"):
        parse_public_path(url)


def test_a_busy_port_is_refused_with_advice() -> None:
    with listen("127.0.0.1", 0) as first:
        port = first.getsockname()[1]
        with pytest.raises(SettingsError, match="choose another one with --port"):
            listen("127.0.0.1", port)
