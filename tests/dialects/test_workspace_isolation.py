"""Two workspaces with the same names never mix: the short form of `python -m tests.dialects.isolation`."""

from pathlib import Path

from tests.dialects.isolation import run
from tests.dialects.workspace import RETURNS


def test_no_reply_contains_the_text_of_another_workspace(tmp_path: Path) -> None:
    report = run(tmp_path, 2_000, seed=1)
    assert report.leaks == []
    assert {tool.removesuffix(", refused") for tool in report.calls} == set(RETURNS)
    assert report.calls.total() == 2_000
