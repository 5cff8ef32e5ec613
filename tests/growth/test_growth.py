"""No call of a point kind does more work in a larger memory.

Steps of SQLite's virtual machine are counted, so the result does not depend on the machine.
"""

import os
from pathlib import Path

import pytest

from polymnia.dialects import DIALECTS, open_dialect
from tests.growth.calls import CALLS, DEBT, READS_EVERYTHING
from tests.growth.counting import count_steps, fill

SMALL, LARGE = map(int, os.environ.get("POLYMNIA_TEST_GROWTH", "300,3000").split(","))
MAX_GROWTH = 1.5
# What may be added however small a call is: a write merges parts of the text index now and then.
MAX_ADDED_STEPS = 1_500


@pytest.fixture(scope="module")
def filled(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, Path]:
    """Return a small and a large store."""
    directory = tmp_path_factory.mktemp("growth")
    small, large = directory / "small.db", directory / "large.db"
    fill(str(small), SMALL)
    fill(str(large), LARGE)
    return small, large


@pytest.mark.parametrize("dialect", DIALECTS)
def test_a_call_takes_the_same_work_in_a_large_memory(
    dialect: str, filled: tuple[Path, Path], tmp_path: Path
) -> None:
    calls = CALLS[dialect]
    in_small, in_large = (count_steps(dialect, store, tmp_path, calls) for store in filled)
    grown: dict[str, list[str]] = {}
    for (tool, arguments), small, large in zip(calls, in_small, in_large, strict=True):
        if large > MAX_GROWTH * small + MAX_ADDED_STEPS and tool not in READS_EVERYTHING[dialect]:
            grown.setdefault(tool, []).append(f"{arguments}: {small} -> {large} steps")
    new = {tool: calls for tool, calls in grown.items() if tool not in DEBT[dialect]}
    assert new == {}
    assert DEBT[dialect] - grown.keys() == set(), "no longer grows: remove it from DEBT"


@pytest.mark.parametrize("dialect", DIALECTS)
def test_every_tool_is_called(dialect: str) -> None:
    assert {tool for tool, _ in CALLS[dialect]} == set(open_dialect(dialect).tools)
