"""What several commands share and no command shows quickly enough to be seen."""

import sys
from io import StringIO

import pytest

from polymnia.cli import common


class Terminal(StringIO):
    def isatty(self) -> bool:
        return True


def test_work_is_shown_on_a_terminal_and_removed_again(monkeypatch: pytest.MonkeyPatch) -> None:
    terminal = Terminal()
    monkeypatch.setattr(sys, "stderr", terminal)
    with common.show_work("copying"):
        assert terminal.getvalue() == "copying ..."
    assert terminal.getvalue().split("\r")[1:] == [" " * len("copying ..."), ""]


def test_a_log_shows_no_work(monkeypatch: pytest.MonkeyPatch) -> None:
    log = StringIO()
    monkeypatch.setattr(sys, "stderr", log)
    with common.show_work("copying"):
        pass
    assert log.getvalue() == ""
