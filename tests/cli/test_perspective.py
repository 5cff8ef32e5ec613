"""`polymnia perspective`: list, set and remove, and what `polymnia index` then embeds."""

import json
from collections.abc import Callable
from pathlib import Path

import pytest

from polymnia.cli.main import main
from tests.cli.commands import fill
from tests.embedders.ollama import serve_ollama

Run = Callable[..., tuple[int, str, str]]


@pytest.fixture
def run(capsys: pytest.CaptureFixture[str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Run:
    """Return a function that runs a command over a store with two facts of the same text."""
    monkeypatch.chdir(tmp_path)
    fill("memory.db")

    def command(*arguments: str) -> tuple[int, str, str]:
        status = main([*arguments, "--store", "memory.db"])
        said = capsys.readouterr()
        return status, said.out, said.err

    return command


def test_a_perspective_is_set_embedded_listed_and_removed(run: Run) -> None:
    with serve_ollama() as ollama:
        embedder = ("--embedder", f"ollama:bag@{ollama.url}")
        status, said, _ = run(
            "perspective", "set", "named", "--document", "{name}: {text}", *embedder
        )
        assert status == 0
        assert said.startswith("memory.db: set named: 2 of 2 still need vectors; ")
        assert run("index", *embedder)[:2] == (0, "memory.db: 4 passages embedded\n")
        assert run("index", *embedder)[1] == "memory.db: everything is embedded already\n"
        assert run("perspective", "list", *embedder)[1].splitlines() == [
            "text   2/2  {text}          {query}",
            "named  2/2  {name}: {text}  {query}",
            "2 perspectives of memory.db",
        ]
        assert (
            run("perspective", "set", "named", "--query", "who {query}", *embedder)[1]
            == "memory.db: set named\n"
        )
        assert json.loads(run("perspective", "list", "--json", *embedder)[1])[1] == {
            "name": "named",
            "document": "{name}: {text}",
            "query": "who {query}",
            "embedded": 2,
            "total": 2,
        }
        assert run("perspective", "set", "general", *embedder)[1] == "memory.db: set general\n"
        assert run("perspective", "remove", "named", *embedder)[:2] == (
            0,
            "memory.db: removed named\n",
        )
        assert [line.split()[0] for line in run("perspective", "list")[1].splitlines()[:-1]] == [
            "text",
            "general",
        ]


def test_what_cannot_be_set_or_removed_is_said(run: Run) -> None:
    assert run("perspective", "set", "x", "--document", "{name}")[::2] == (
        1,
        "polymnia: document template: '{name}' must contain {text}\n",
    )
    assert "there is no perspective 'x'" in run("perspective", "remove", "x")[2]
    assert "cannot be removed" in run("perspective", "remove", "text")[2]
