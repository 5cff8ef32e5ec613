"""Check the curation benchmark on a small workspace."""

from pathlib import Path

import pytest

from bench import curation
from polymnia.engine.curation.report import ConsolidationReport
from polymnia.engine.memory import Memory
from polymnia.stores import open_store


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


def test_the_workspace_has_something_for_every_verb(tmp_path: Path) -> None:
    path = str(tmp_path / "memory.db")
    curation._fill(path, 200)
    memory = Memory(open_store(path))
    found = {
        name: verb(memory) for name, verb in curation.VERBS.items() if name != "duplicate names"
    }
    report = found.pop("consolidation report")
    assert all(found.values())
    assert isinstance(report, ConsolidationReport)
    assert report.relation_candidates
    memory.store.close()
