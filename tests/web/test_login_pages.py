"""Logging in and out in a browser: a token, a one-time link, and what a reader sees."""

import signal
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest
from playwright.sync_api import expect

from tests.processes import TIMEOUT_S, end_with_parent, polymnia_command
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
