"""Check the benchmark of the web interface on a small memory."""

import pytest

from bench import web


def test_every_page_is_measured_and_judged(capsys: pytest.CaptureFixture[str]) -> None:
    assert web.main(["--entities", "200", "--requests", "2"]) == 0
    printed = capsys.readouterr().out
    for name in ("home", "search", "entity", "history", "graph, JSON", "access", "health"):
        assert f"\n{name}: " in printed
    judged = [line for line in printed.splitlines() if ", budget <= " in line]
    assert len(judged) == 7
    assert "rows of a page: 50, budget <= 50: met" in judged[-1]
