"""Check the benchmarks: short runs, and the verdicts on wrong, failing and slow servers."""

import sys
from functools import partial
from pathlib import Path

import msgspec
import pytest

from bench import floor, lists, long_calls, postgres, postgres_size, projects
from bench.__main__ import main
from bench.budgets import Verdict, judge
from bench.dataset import token, write_dataset
from bench.figures import Figures, Key
from bench.http.__main__ import TITLES
from bench.http.__main__ import main as http_main
from bench.rounds import Limits, take_rounds
from bench.vault import main as vault_main

FLOOR_COMMAND = f"{sys.executable} {floor.__file__}"


def test_a_quick_run_measures_and_judges(tmp_path: Path) -> None:
    report = tmp_path / "numbers.json"
    arguments = ["--quick", "--servers", "sqlite,jsonl,floor"]
    where = ["--cache", str(tmp_path), "--json", str(report)]
    assert main([*arguments, *where]) == 0
    numbers = msgspec.json.decode(report.read_bytes())
    assert {figure["server"] for figure in numbers["figures"]} == {
        "sqlite",
        "jsonl",
        "floor",
        "probe",
    }
    assert numbers["budgets"]


def test_a_wrong_reply_stops_the_run(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    arguments = ["--quick", "--servers", "jsonl", "--cache", str(tmp_path)]
    assert main([*arguments, "--polymnia-command", FLOOR_COMMAND]) == 1
    assert "answered open_nodes wrongly" in capsys.readouterr().err


def test_a_server_that_ends_stops_the_run(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    failing = f"{sys.executable} -c 'raise SystemExit(3)'"
    arguments = ["--quick", "--servers", "jsonl", "--cache", str(tmp_path)]
    assert main([*arguments, "--polymnia-command", failing]) == 1
    assert "gave no reply to initialize" in capsys.readouterr().err


def test_the_floor_alone_can_be_measured(tmp_path: Path) -> None:
    assert main(["--quick", "--servers", "floor", "--cache", str(tmp_path)]) == 0


def test_a_quick_run_over_http_measures_every_server(capsys: pytest.CaptureFixture[str]) -> None:
    assert http_main(["--entities", "20", "--seconds", "0.05", "--rounds", "1"]) == 0
    printed = capsys.readouterr().out
    assert all(title in printed for title in TITLES.values())
    assert printed.count("at 32 connections >= 0.2x the echo") == 2


def test_every_verb_that_takes_a_list_is_measured_by_its_length(
    capsys: pytest.CaptureFixture[str],
) -> None:
    lists.main(["--sizes", "5", "10", "--rounds", "1"])
    printed = capsys.readouterr().out
    assert [verb for verb in lists.VERBS if f"| {verb} " not in printed] == []


def test_a_verb_that_grows_faster_than_its_list_fails(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(lists, "_cost", lambda *_: 5.0)
    assert lists.main([]) == 0
    monkeypatch.setattr(lists, "_cost", lambda verb, size, *_: 5.0 if size < 10_000 else 6.6)
    assert lists.main([]) == 1


def test_long_calls_are_listed_with_their_progress(capsys: pytest.CaptureFixture[str]) -> None:
    # The status says whether calls took long without progress, which depends on the machine.
    long_calls.main(["--entities", "300", "--dialects", "graph,vault"])
    printed = capsys.readouterr()
    assert "| graph   | export_graph" in printed.out
    assert "cancelled" not in printed.err


def test_the_size_of_a_memory_in_postgresql_is_measured(
    capsys: pytest.CaptureFixture[str],
) -> None:
    assert postgres_size.main(["--facts", "60"]) == 0
    rows = capsys.readouterr().out.splitlines()
    assert any(row.startswith("| `words` |") for row in rows)
    assert rows[-1].startswith("| all |")


def test_postgresql_is_measured_beside_the_bare_driver(capsys: pytest.CaptureFixture[str]) -> None:
    postgres.main(
        ["--sizes", "60,120", "--workspaces", "3", "--seconds", "0.05", "--vectors", "150"]
    )
    output = capsys.readouterr()
    assert (
        "| ms, median (least) | 60 observations | 120 observations | most / fewest |" in output.out
    )
    assert "point write beside one-row commit, least: " in output.out
    assert "| database: cores in use (processor ms of a call) |" in output.out
    assert "two servers with a client each beside one: " in output.out
    assert "recall@20 of vectors: 1.00 (budget 0.98): met" in output.out


def test_projects_are_measured_in_directories_of_several_sizes(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    projects.main(["--sizes", "2,3", "--seconds", "0.05", "--cache", str(tmp_path)])
    output = capsys.readouterr()
    assert output.err == ""
    assert "| ms, median | 2 projects | 3 projects | most / fewest |" in output.out
    assert "| open files |" in output.out


def test_a_budget_is_met_at_its_limit_and_missed_above_it() -> None:
    assert empty_start(0.3).met is True
    assert empty_start(0.31).met is False


def test_a_budget_that_was_not_measured_has_no_verdict() -> None:
    figures = Figures({Key("start", "npm", 0): [1.0], Key("start", "npm", 1000): [1.0]})
    assert all(verdict.met is None for verdict in judge(figures))


def test_every_sampler_runs_in_every_round() -> None:
    order: list[str] = []

    def sample(name: str) -> float:
        order.append(name)
        return 1.0

    samplers = {name: partial(sample, name) for name in "ab"}
    take_rounds(samplers, Limits(least=2, most=2, seconds=1.0, rounds=2))
    assert sorted(order[:2]) == sorted(order[2:]) == ["a", "b"]


def test_a_slow_sampler_still_takes_the_minimum_number_of_samples() -> None:
    limits = Limits(least=3, most=100, seconds=0.0)
    assert len(take_rounds({"slow": lambda: 1.0}, limits)["slow"]) >= 3


def test_the_dataset_is_deterministic(tmp_path: Path) -> None:
    first, again = (write_dataset(50, tmp_path / name).path for name in "ab")
    assert first.read_bytes() == again.read_bytes()


def test_a_token_occurs_once(tmp_path: Path) -> None:
    text = write_dataset(500, tmp_path / "dataset.jsonl").path.read_text()
    assert all(text.count(token(index)) == 1 for index in range(500))


def empty_start(seconds: float) -> Verdict:
    """Return the verdict on a start of `seconds` where the npm server takes one second."""
    figures = Figures(
        {
            Key("start", "sqlite", 0): [seconds],
            Key("start", "npm", 0): [1.0],
            Key("start", "sqlite", 1000): [seconds],
        }
    )
    return judge(figures)[0]


def test_searching_notes_is_measured_by_words_and_by_both(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    size = ["--notes", "60", "--dimension", "8", "--rounds", "1"]
    assert vault_main([*size, "--cache", str(tmp_path)]) == 0
    printed = capsys.readouterr().out
    assert "60 notes, 8 numbers a vector" in printed
    assert [line.split()[0] for line in printed.splitlines()[3:-1]] == [
        "2",
        "5",
        "10",
        "20",
        "50",
        "100",
        "1000",
    ]
