"""What several commands share and no command shows quickly enough to be seen.

The clock of long work.
"""

import re
import sys
from io import StringIO
from threading import Event

import pytest

from polymnia.cli import common
from tests.processes import TIMEOUT_S


class Terminal(StringIO):
    """A terminal that tells when the second step has been shown twice."""

    def __init__(self) -> None:
        super().__init__()
        self.was_shown = Event()

    def isatty(self) -> bool:
        return True

    def write(self, text: str) -> int:
        written = super().write(text)
        if self.getvalue().count("step 2") >= 2:
            self.was_shown.set()
        return written


def test_long_work_shows_its_time_on_a_terminal_and_removes_it(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    terminal = Terminal()
    monkeypatch.setattr(sys, "stderr", terminal)
    with common.show_elapsed_time("copying", tick_s=0.001) as work:
        work.begin_step(2, 4, 0.2)
        assert terminal.was_shown.wait(TIMEOUT_S)
    lines = terminal.getvalue().split("\r")
    assert any(re.fullmatch(r"copying, step 2 of 4: \d+ s", line) for line in lines)
    assert (lines[-2].strip(), lines[-1]) == ("", "")


def test_short_work_shows_no_time(monkeypatch: pytest.MonkeyPatch) -> None:
    terminal = Terminal()
    monkeypatch.setattr(sys, "stderr", terminal)
    with common.show_elapsed_time("copying"):
        pass
    assert terminal.getvalue() == ""


def test_a_log_gets_no_time(monkeypatch: pytest.MonkeyPatch) -> None:
    log = StringIO()
    monkeypatch.setattr(sys, "stderr", log)
    with common.show_elapsed_time("copying", tick_s=0.0):
        pass
    assert log.getvalue() == ""


def test_long_work_tells_how_long_the_rest_takes(monkeypatch: pytest.MonkeyPatch) -> None:
    now = 0.0
    monkeypatch.setattr(common, "monotonic", lambda: now)
    work = common.ShownWork("undoing")
    now = 10.0
    work.begin_step(2, 4, 0.25)
    now = 12.0
    assert work.text == "undoing, step 2 of 4: 12 s, about 28 s left"
    now = 50.0  # longer than expected
    assert work.text == "undoing, step 2 of 4: 50 s"
