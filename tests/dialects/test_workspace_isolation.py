"""Two workspaces with the same names never mix.

The short form of `python -m tests.dialects.isolation`.
"""

from pathlib import Path

import pytest

from tests.dialects.isolation import run
from tests.dialects.workspace import RETURNS


@pytest.fixture(params=["directory", "postgres"])
def store(request: pytest.FixtureRequest) -> str | None:
    return (
        None if request.param == "directory" else str(request.getfixturevalue("postgres_database"))
    )


def test_no_reply_contains_the_text_of_another_workspace(tmp_path: Path, store: str | None) -> None:
    report = run(tmp_path, 800, seed=1, store=store)
    assert report.leaks == []
    assert {tool.removesuffix(", refused") for tool in report.calls} == set(RETURNS)
    assert report.calls.total() == 800
