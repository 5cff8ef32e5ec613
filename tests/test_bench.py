"""Check the benchmarks: short runs, and the verdicts on wrong, failing and slow servers."""

import sys
from pathlib import Path

import msgspec
import pytest

from bench import (
    floor,
    lists,
    long_calls,
    postgres,
    postgres_cpu,
    postgres_many,
    postgres_size,
    projects,
)
from bench.__main__ import main
from bench.budgets import Verdict, judge
from bench.figures import Figures, Key
from bench.http.__main__ import TITLES
from bench.http.__main__ import main as http_main
from bench.vault import main as vault_main
from tests.postgres import shared_server

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


def test_a_quick_run_over_http_measures_every_server(capsys: pytest.CaptureFixture[str]) -> None:
    assert http_main(["--entities", "20", "--seconds", "0.05", "--rounds", "1"]) == 0
    printed = capsys.readouterr().out
    assert all(title in printed for title in TITLES.values())
    assert printed.count("at 32 connections >= 0.3x the echo") == 2


def test_every_verb_that_takes_a_list_is_measured_by_its_length(
    capsys: pytest.CaptureFixture[str],
) -> None:
    lists.main(["--sizes", "5", "10", "--rounds", "1"])
    printed = capsys.readouterr().out
    assert [verb for verb in lists.VERBS if f"| {verb} " not in printed] == []


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


def test_the_processor_time_of_tools_over_postgresql_is_measured(
    capsys: pytest.CaptureFixture[str],
) -> None:
    assert postgres_cpu.main(["--calls", "2", "--postgres", shared_server()]) == 0
    printed = capsys.readouterr().out
    for tool in ("open", "recall", "remember"):
        assert f"| {tool} | " in printed


def test_many_workspaces_are_measured_beside_few(capsys: pytest.CaptureFixture[str]) -> None:
    # The status depends on the machine.
    arguments = ["--few", "5", "--workspaces", "10", "--rounds", "1"]
    postgres_many.main([*arguments, "--postgres", shared_server()])
    assert "| list 1000 workspaces | " in capsys.readouterr().out


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
    assert empty_start(0.28).met is True
    assert empty_start(0.31).met is False


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
