"""Logging in and out in a browser: a token, a one-time link, and what a reader sees."""

import signal
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest
from playwright.sync_api import expect

from tests.processes import TIMEOUT_S, end_with_parent, polymnia_command
from tests.ui.client import make_token
from tests.ui.pages import harbour
from tests.web.conftest import NewVisit


@pytest.fixture
def link(tmp_path: Path) -> Iterator[str]:
    """Run `polymnia ui` and yield the link that it prints."""
    command = polymnia_command("ui", "--no-browser", "--store", str(tmp_path / "memory.db"))
    process = subprocess.Popen(
        command, stdout=subprocess.PIPE, text=True, preexec_fn=end_with_parent
    )
    assert process.stdout is not None
    yield process.stdout.readline().strip()
    process.send_signal(signal.SIGINT)
    process.wait(TIMEOUT_S)
    process.stdout.close()


def test_the_link_opens_the_interface_once(link: str, visit: NewVisit) -> None:
    origin, path = link[: link.index("/ui/")], link[link.index("/ui/") :]
    first = visit(origin)
    first.open(path)
    expect(first.page.locator("h1")).to_have_text("This memory is empty")
    first.audit()
    second = visit(origin)
    second.open(path, status=403)
    expect(second.page.locator("main")).to_contain_text("This link was used already")
    second.audit()
    first.page.get_by_role("button", name="Log out").click()
    expect(first.page.locator("h1")).to_have_text("Log in")
    first.open("/ui/")
    expect(first.page.locator("h1")).to_have_text("Log in")


def test_a_reader_logs_in_and_sees_nothing_that_writes(tmp_path: Path, visit: NewVisit) -> None:
    with harbour(tmp_path) as (running, _):
        token = make_token(str(tmp_path / "memory.db"), "reader", "read")
        reader = visit(f"http://127.0.0.1:{running.port}")
        page = reader.open("/ui/?q=redis")
        reader.audit()
        page.locator("#token").fill(token)
        page.keyboard.press("Enter")
        expect(page.locator("#hits")).to_contain_text("billing-worker")
        expect(page.locator(".side footer")).to_contain_text("may read")
        for path in (
            "/ui/?q=redis",
            "/ui/entity?name=billing-worker",
            "/ui/history",
            "/ui/history?trash=1",
        ):
            reader.open(path)
            for name in (
                "Edit",
                "Delete",
                "Undo",
                "Restore",
                "Merge",
                "Move",
                "Tag",
                "Add",
                "Relate",
            ):
                assert page.get_by_role("button", name=name, exact=True).count() == 0, (path, name)
                assert page.get_by_role("link", name=name, exact=True).count() == 0, (path, name)
            reader.audit()


def test_a_wrong_token_is_refused_at_the_field(tmp_path: Path, visit: NewVisit) -> None:
    with harbour(tmp_path) as (running, _):
        make_token(str(tmp_path / "memory.db"), "reader", "read")
        guest = visit(f"http://127.0.0.1:{running.port}")
        guest.expected.add(403)
        page = guest.open("/ui/")
        page.locator("#token").fill("ply_wrong_token")
        page.keyboard.press("Enter")
        expect(page.get_by_role("alert")).to_contain_text("Unknown token.")
        guest.audit()
