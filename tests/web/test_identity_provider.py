"""People and programs log in at a real provider of OpenID Connect, whose keys change."""

import json
import socket
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from urllib.parse import urlencode
from urllib.request import urlopen

import pytest
from msgspec import Struct
from playwright.sync_api import Browser, Page, expect

from polymnia.auth import provider as providers
from polymnia.auth.provider import Provider
from polymnia.errors import NotAdmitted
from polymnia.model import GroupRights
from tests.interop import install
from tests.processes import TIMEOUT_S
from tests.transports.running import Running, Talk
from tests.ui.client import Visitor, make_token
from tests.web.browser import TIMEOUT_MS

SECRET = "secret-of-memory"
SETTINGS = """
[groups.developers]
can = "write"
workspaces = ["shop"]

[groups.everyone]
can = "read"
"""


class Office(Struct):
    """A server whose people log in at a provider."""

    server: Running
    issuer: str
    admin: str


@pytest.fixture(scope="module")
def home(pytestconfig: pytest.Config) -> Path:
    return install.node_packages(pytestconfig.rootpath / ".test-cache")


@contextmanager
def run_provider(home: Path, port: int, redirect: str, kid: str) -> Iterator[str]:
    """Run a provider that signs with a new key of that id, and yield its URL."""
    command = [install.node(), str(home / "oidc_provider.mjs"), str(port), redirect, kid]
    begun = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL)
    try:
        assert begun.stdout is not None
        assert begun.stdout.readline() == b"ready\n"
        yield f"http://127.0.0.1:{port}"
    finally:
        begun.kill()
        begun.wait(TIMEOUT_S)


@pytest.fixture(scope="module")
def office(home: Path, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Office]:
    directory = tmp_path_factory.mktemp("office")
    store = f"{directory / 'data'}/"
    config = directory / "config.toml"
    config.write_text(SETTINGS)
    port = free_port()
    redirect = f"http://127.0.0.1:{port}/ui/login/provider/back"
    with run_provider(home, free_port(), redirect, "one") as issuer:
        settings = {
            "POLYMNIA_CONFIG": str(config),
            "POLYMNIA_JWT_ISSUER": issuer,
            "POLYMNIA_JWT_AUDIENCE": "urn:memory",
            "POLYMNIA_OIDC_CLIENT_ID": "memory",
            "POLYMNIA_OIDC_CLIENT_SECRET": SECRET,
        }
        flags = ("--bind", f"127.0.0.1:{port}", "--embedder", "none")
        with Running(store, *flags, dialect="native", settings=settings) as server:
            yield Office(server, issuer, make_token(store, "boss", "admin"))


@pytest.fixture
def person(browser: Browser) -> Iterator[Page]:
    context = browser.new_context()
    context.set_default_timeout(TIMEOUT_MS)
    yield context.new_page()
    context.close()


def log_in(person: Page, office: Office, name: str, path: str = "/ui/more") -> None:
    """Log in at the provider, and let it tell the server who the person is."""
    person.goto(f"http://127.0.0.1:{office.server.port}{path}")
    person.get_by_role("link", name="Log in with 127.0.0.1").click()
    person.locator("[name=login]").fill(name)
    person.locator("[name=password]").fill("any")
    person.get_by_role("button", name="Sign-in").click()
    person.get_by_role("button", name="Continue").click()


def test_a_person_logs_in_and_has_the_rights_of_their_groups(person: Page, office: Office) -> None:
    log_in(person, office, "ada")
    expect(person).to_have_url(f"http://127.0.0.1:{office.server.port}/ui/more")
    expect(person.get_by_role("main")).to_contain_text("ada@example.com, may write")
    person.goto(f"http://127.0.0.1:{office.server.port}/ui/access")
    expect(person.get_by_role("main")).to_contain_text("may only write")
    boss = Visitor(office.server.port)
    boss.log_in(office.admin)
    shown = boss.get("/ui/access").words
    assert "ada@example.com person" in shown
    assert "shop, personal-ada-example-com" in shown


def test_a_person_whose_groups_are_unknown_is_refused(person: Page, office: Office) -> None:
    log_in(person, office, "mallory")
    expect(person.get_by_role("alert")).to_contain_text("None of your groups")


def test_a_login_that_began_elsewhere_is_refused(office: Office) -> None:
    for cookie in ("", "7b7d", "zz"):
        visitor = Visitor(office.server.port)
        visitor.cookies[f"polymnia_{office.server.port}_login"] = cookie
        shown = visitor.get("/ui/login/provider/back?code=stolen&state=")
        assert (shown.status, "began elsewhere" in shown.words) == (403, True)


def test_a_program_uses_a_token_of_the_provider(office: Office) -> None:
    with Talk(office.server.port, get_token(office.issuer)) as program:
        told = str(program.call("remember", entities=[{"name": "Till", "facts": ["In the hall."]}]))
    assert "shop" in told


def test_a_new_key_counts_at_once_and_the_old_one_no_more(
    home: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(providers, "_KEYS_RETRY_S", 0.0)
    port, groups = free_port(), {"everyone": GroupRights(can="write")}
    with run_provider(home, port, "http://127.0.0.1/", "one") as issuer:
        provider = Provider(issuer, audience="urn:memory", groups=groups)
        old = get_token(issuer)
        assert provider.recognise(old).can == "write"
    with run_provider(home, port, "http://127.0.0.1/", "two") as issuer:
        assert provider.recognise(get_token(issuer)).name == "memory"
        with pytest.raises(NotAdmitted, match="does not publish"):
            provider.recognise(old)


def test_without_its_provider_a_server_keeps_the_keys_that_it_has(home: Path) -> None:
    groups = {"everyone": GroupRights()}
    with run_provider(home, free_port(), "http://127.0.0.1/", "one") as issuer:
        provider = Provider(issuer, audience="urn:memory", groups=groups)
        token = get_token(issuer)
        assert provider.recognise(token).can == "read"
    assert provider.recognise(token).can == "read"
    with pytest.raises(NotAdmitted, match="does not answer"):
        Provider(issuer, client_id="memory", groups=groups).login_url("", "", "", "")


def get_token(issuer: str) -> str:
    """Return a token of a program that logs in without a person."""
    form = {
        "grant_type": "client_credentials",
        "client_id": "memory",
        "client_secret": SECRET,
        "resource": "urn:memory",
    }
    with urlopen(f"{issuer}/token", urlencode(form).encode(), timeout=TIMEOUT_S) as response:
        return str(json.load(response)["access_token"])


def free_port() -> int:
    with socket.create_server(("127.0.0.1", 0)) as free:
        return int(free.getsockname()[1])
