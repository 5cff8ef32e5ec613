"""Check the table of other memory servers, with the ones that need no network."""

import shutil
from pathlib import Path

import pytest

from bench.peers import BEGIN, END, main


def test_the_table_has_our_figures_and_says_who_is_absent(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    git = shutil.which("git")
    assert git is not None
    programs = tmp_path / "bin"
    programs.mkdir()
    (programs / "git").symlink_to(git)
    monkeypatch.setenv("PATH", str(programs))
    monkeypatch.setenv("HOME", str(tmp_path))
    page = tmp_path / "benchmarks.md"
    page.write_text(f"above\n\n{BEGIN}\nearlier\n{END}\n\nbelow\n")
    options = ["--sizes", "20", "--only", "words,basic-memory", "--cache", str(tmp_path)]
    assert main([*options, "--page", str(page)]) == 0
    text = page.read_text()
    assert "earlier" not in text
    assert text.endswith(f"{END}\n\nbelow\n")
    assert "did not take part: there is no Python 3.12 to 3.14" in text
    answers = next(line for line in text.splitlines() if "replies with the fact" in line)
    assert "100%" in answers
    assert (tmp_path / "benchmarks" / "peers-20.svg").read_text().startswith("<svg")


def test_a_server_that_stores_too_slowly_is_not_asked(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    page = tmp_path / "benchmarks.md"
    page.write_text(f"{BEGIN}\n{END}\n")
    options = ["--sizes", "20,40", "--limit", "0", "--only", "words", "--cache", str(tmp_path)]
    assert main([*options, "--page", str(page)]) == 0
    output = capsys.readouterr().out
    assert "stored 10 facts in 0 s and was not asked at this size" in output
    assert "Polymnia, words only did not take part: storing would take" in output
