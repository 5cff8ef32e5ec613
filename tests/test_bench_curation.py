"""Check the curation benchmark on a small workspace."""

from pathlib import Path

import pytest

from bench import curation


def test_every_verb_is_measured(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    kept = ["--entities", "60", "--store", str(tmp_path / "memory.db")]
    assert curation.main(kept) == 0
    printed = capsys.readouterr().out
    assert "60 entities, 300 observations" in printed
    for name in curation.VERBS:
        assert f"{name}: " in printed
    judged = [line for line in printed.splitlines() if ", budget <= " in line]
    assert len(judged) == 4
    assert all(line.endswith((": met", ": missed")) for line in judged)
