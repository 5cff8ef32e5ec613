"""Check the benchmark of hooks and transcripts on a small memory."""

from pathlib import Path

import pytest

from bench.agents import hooks, prompts, takeover, tasks


def test_every_hook_and_the_import_are_measured(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    small = ["--entities", "20", "--turns", "450", "--rounds", "1", "--cache", str(tmp_path)]
    assert hooks.main(small) == 0
    printed = capsys.readouterr().out
    assert "20 entities with 100 facts" in printed
    assert [name for name in (hooks.BARE, *hooks.HOOKS) if f"\n{name} " not in printed] == []
    assert f"{hooks.IMPORT}: 450 turns in" in printed
    assert printed.count("  met\n") + printed.count("  over\n") == len(hooks.HOOKS) + 1


def test_the_sessions_of_an_agent_are_replayed_and_judged(
    capsys: pytest.CaptureFixture[str],
) -> None:
    assert tasks.main(["--embedder", "none", "--max-tokens", "500"]) == 0
    printed = capsys.readouterr().out
    assert "101 calls in 9 sessions, 0 failed" in printed
    rows = [line.split(" | ") for line in printed.splitlines() if line.startswith("| ")]
    assert rows[-1][:2] == ["| all with an answer", "112"]
    assert float(rows[-1][2].removesuffix(" %")) > 50


def test_prompts_are_typed_and_their_lines_judged(capsys: pytest.CaptureFixture[str]) -> None:
    assert prompts.main(["--embedder", "none"]) == 0
    rows = [line.strip("| ").split(" | ") for line in capsys.readouterr().out.splitlines()]
    questions, tasks_typed = rows[2:]
    assert questions[:4] == ["questions of an agent", "words alone", "142", "112"]
    assert tasks_typed[:4] == ["tasks for an agent", "words alone", "72", "36"]
    assert tasks_typed[-1] == "met"
    assert [questions[7], tasks_typed[7]] == ["0 %", "0 %"]  # prompts without evidence
    assert int(questions[9].removesuffix(" %")) >= 60


def test_two_years_of_transcripts_are_taken_over_and_given_back(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert takeover.main(["--turns", "400", "--cache", str(tmp_path)]) == 0
    printed = capsys.readouterr().out
    assert ", 400 facts\n" in printed
    assert printed.endswith("0 facts stayed\nmet\n")
