"""Check the benchmark of hooks and transcripts on a small memory."""

from pathlib import Path

import pytest

from bench import agents


def test_every_hook_and_the_import_are_measured(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    small = ["--entities", "20", "--turns", "450", "--rounds", "1", "--cache", str(tmp_path)]
    assert agents.main(small) == 0
    printed = capsys.readouterr().out
    assert "20 entities with 100 facts" in printed
    assert [name for name in (agents.BARE, *agents.HOOKS) if f"\n{name} " not in printed] == []
    assert f"{agents.IMPORT}: 450 turns in" in printed
    assert printed.count("  met\n") + printed.count("  over\n") == len(agents.HOOKS) + 1
