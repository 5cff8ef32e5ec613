"""Programs of others log in: a person in Chromium lets them in, from the login to the last click.

Each program prints the address to open, waits for the browser, uses the memory, and tells by its
exit status whether all went well.
"""

import os
import re
import socket
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest
from playwright.sync_api import Browser, Page

from tests.auth.internet import Internet, make_certificate
from tests.auth.oauth import LoginServer
from tests.interop import install
from tests.processes import TIMEOUT_S
from tests.web.browser import TIMEOUT_MS

MCPJAM_ID = "https://www.mcpjam.com/client.json"
PREDEFINED = "a-program"


@pytest.fixture(scope="module")
def cache(pytestconfig: pytest.Config) -> Path:
    return pytestconfig.rootpath / ".test-cache"


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[LoginServer]:
    store = tmp_path_factory.mktemp("login") / "memory.db"
    with Internet(make_certificate(tmp_path_factory.mktemp("internet"))).running() as internet:
        internet.describe(
            MCPJAM_ID, client_name="MCPJam", redirect_uris=["http://127.0.0.1/callback"]
        )
        clients = {"POLYMNIA_OAUTH_CLIENTS": f"{PREDEFINED}=http://127.0.0.1/callback"}
        settings = {**internet.settings, **clients}
        with LoginServer(store, program="tests.auth.internet", settings=settings) as server:
            yield server


@pytest.fixture(scope="module")
def person(browser: Browser, server: LoginServer) -> Iterator[Page]:
    """Return the browser of a person who has not logged in yet."""
    context = browser.new_context()
    context.set_default_timeout(TIMEOUT_MS)
    yield context.new_page()
    context.close()


def allow(person: Page, server: LoginServer, address: str) -> None:
    """Open the address as the program would, log in if asked, and let the program in."""
    person.goto(address)
    if person.get_by_label("Token").count():
        person.get_by_label("Token").fill(server.token)
        person.get_by_role("button", name="Log in").click()
    with person.expect_response(re.compile(r"/callback\?")) as back:
        person.get_by_role("button", name="Allow").click()
    assert back.value.ok


def run(person: Page, server: LoginServer, *command: str, **environment: str) -> str:
    """Run a program until it ends well, and return what it printed."""
    begun = subprocess.Popen(
        command,
        env={**os.environ, "DO_NOT_TRACK": "1", **environment},
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        encoding="utf-8",
    )
    assert begun.stdout is not None
    printed = ""
    try:
        for line in begun.stdout:
            printed += line
            address = re.search(rf"{re.escape(server.issuer)}/authorize\?[^\s\"]+", line)
            if address is not None:
                allow(person, server, address[0])
        assert begun.wait(TIMEOUT_S) == 0, printed
    finally:
        begun.kill()
        begun.wait()
    return printed


def test_the_python_sdk_logs_in(person: Page, server: LoginServer) -> None:
    script = Path(__file__).with_name("python_login.py")
    run(person, server, sys.executable, str(script), f"{server.issuer}/mcp")


@pytest.mark.parametrize("sdk", ["v1", "v2"])
def test_the_typescript_sdk_logs_in(
    person: Page, server: LoginServer, cache: Path, sdk: str
) -> None:
    home = install.node_packages(cache)
    run(person, server, install.node(), str(home / "login.mjs"), sdk, f"{server.issuer}/mcp")


def test_the_inspector_logs_in(
    person: Page, server: LoginServer, cache: Path, tmp_path: Path
) -> None:
    judges = install.judges(cache)
    inspector = "node_modules/@modelcontextprotocol/inspector/clients/launcher/build/index.js"
    command = (install.node_of(judges), str(judges / inspector), "--cli", f"{server.issuer}/mcp")
    options = ("--method", "tools/list", "--callback-url", "http://127.0.0.1:0/oauth/callback")
    environment = {"MCP_AUTO_OPEN_ENABLED": "true", "HOME": str(tmp_path)}
    assert "read_graph" in run(person, server, *command, *options, **environment)


def test_the_conformance_suite_finds_nothing_wrong_with_the_authorization_server(
    person: Page, server: LoginServer, cache: Path
) -> None:
    judges = install.judges(cache)
    with socket.create_server(("127.0.0.1", 0)) as free:
        port = str(free.getsockname()[1])
    suite = judges / "node_modules/conformance-0.2/dist/index.js"
    command = (install.node_of(judges), str(suite), "authorization", "--url", server.issuer)
    resource = ("--client-id", PREDEFINED, "--resource", f"{server.issuer}/mcp", "--port", port)
    assert "3 passed, 0 failed" in run(person, server, *command, *resource)


@pytest.mark.parametrize(
    ("revision", "registration", "client_id"),
    [
        ("2025-03-26", "dcr", ""),
        ("2025-06-18", "dcr", ""),
        ("2025-11-25", "dcr", ""),
        ("2025-11-25", "preregistered", PREDEFINED),
        ("2025-11-25", "cimd", MCPJAM_ID),
    ],
)
def test_mcpjam_finds_nothing_wrong_with_a_login(
    person: Page,
    server: LoginServer,
    cache: Path,
    revision: str,
    registration: str,
    client_id: str,
) -> None:
    script = install.mcpjam(cache) / "oauth.mjs"
    command = (install.node_of(install.judges(cache)), str(script), f"{server.issuer}/mcp")
    run(person, server, *command, revision, registration, client_id)
