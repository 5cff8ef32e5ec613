"""What people see in a browser: their invitation, the login, and the question of a program."""

import json
from collections.abc import Iterator
from pathlib import Path
from urllib.parse import urlsplit

import pytest
from playwright.sync_api import expect

from tests.auth.oauth import LoginServer, ScriptedClient
from tests.cli.commands import run
from tests.web.browser import DESK, PHONE
from tests.web.conftest import NewVisit

PASSWORD = "correct horse battery"


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[LoginServer]:
    store = f"{tmp_path_factory.mktemp('people')}/"
    with LoginServer(store, "--embedder", "none", can="admin") as server:
        yield server


def invite(server: LoginServer, name: str) -> str:
    """Return the path of a person's link."""
    words = ("user", "invite", name, "--store", server.store, "--json")
    done = run(*words, directory=Path())
    return "/ui/join?" + urlsplit(str(json.loads(done.stdout)[0]["link"])).query


@pytest.mark.parametrize(("name", "theme"), [("ada", "light"), ("bea", "dark")])
def test_a_person_joins_logs_in_and_lets_a_program_in(
    server: LoginServer, visit: NewVisit, name: str, theme: str
) -> None:
    viewport = DESK if theme == "light" else PHONE
    visitor = visit(server.issuer, theme=theme, viewport=viewport)
    page = visitor.open(invite(server, name))
    visitor.audit()
    page.get_by_label("Password").fill(PASSWORD)
    page.get_by_role("button", name="Set the password").click()
    expect(page).to_have_url(f"{server.issuer}/ui/")

    page.context.clear_cookies()
    client = ScriptedClient(server)
    client.register(f"{server.issuer}/ui/start", client_name="A program")
    location = client.authorize().headers["location"]
    page.goto(location)
    visitor.audit()
    page.get_by_label("Name").fill(name)
    page.get_by_label("Password").fill(PASSWORD)
    page.get_by_role("button", name="Log in", exact=True).click()
    expect(page.get_by_role("heading")).to_have_text("Allow A program?")
    visitor.audit()
    visitor.fits()
    page.get_by_role("button", name="Allow").click()
    page.wait_for_url("**/ui/start?iss=*")

    page = visitor.open("/ui/more")
    row = page.get_by_role("row").filter(has_text="A program")
    visitor.audit()
    row.get_by_role("button", name="End").click()
    expect(row).to_have_count(0)


def test_an_administrator_manages_a_person(server: LoginServer, visit: NewVisit) -> None:
    admin = visit(server.issuer, viewport=PHONE)
    admin.log_in(server.token)
    page = admin.open("/ui/access")
    page.get_by_label("Name").fill("cleo")
    page.get_by_role("button", name="Invite person").click()
    expect(page.locator("#link")).to_contain_text("/ui/join?code=")
    admin.audit()
    page.get_by_role("link", name="Manage of cleo").click()
    expect(page.get_by_role("dialog")).to_contain_text("The invitation was not used yet")
    admin.audit("dialog")
    page.get_by_role("button", name="Remove").click()
    expect(page.get_by_role("link", name="Manage of cleo")).to_have_count(0)
