"""The verbs of agents on the command line: remember, revise, forget, with receipts and hints."""

import io
import json
import sys
from pathlib import Path

import pytest

from polymnia.cli.main import main


@pytest.fixture
def store(tmp_path: Path) -> str:
    return str(tmp_path / "memory.db")


def run(capsys: pytest.CaptureFixture[str], *arguments: str) -> tuple[int, str, str]:
    """Return the exit status, standard output and standard error."""
    status = main(arguments)
    printed = capsys.readouterr()
    return status, printed.out, printed.err


def facts(capsys: pytest.CaptureFixture[str], store: str, name: str) -> list[str]:
    document = json.loads(run(capsys, "show", name, "--json", "--store", store)[1])
    return [fact["text"] for fact in document["facts"]]


def test_a_person_remembers_facts_and_gets_a_receipt(
    store: str, capsys: pytest.CaptureFixture[str]
) -> None:
    words = ("remember", "Ada", "likes tea", "--type", "person", "--tag", "team")
    _, out, _ = run(capsys, *words, "--store", store)
    assert out.splitlines() == [
        f"created Ada [person] in {store}",
        "   1  likes tea",
        f"to take it back: polymnia undo 1 --store {store}",
    ]
    _, out, _ = run(capsys, "remember", "Ada", "Likes tea", "owns a cat", "--store", store)
    assert out.splitlines()[:3] == [
        f"added to Ada [person] in {store}",
        "   1  Likes tea (already known)",
        "   2  owns a cat",
    ]
    assert run(capsys, "remember", "Ada", "owns a cat", "--store", store)[1].startswith(
        "nothing new about Ada [person]"
    )


def test_facts_come_from_a_file_or_from_standard_input(
    store: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "facts.txt").write_text("one\n\n  two \n", "utf-8")
    run(capsys, "remember", "Ada", "--from", str(tmp_path / "facts.txt"), "--store", store)
    monkeypatch.setattr(sys, "stdin", io.StringIO("three\n"))
    run(capsys, "remember", "Ada", "zero", "--from", "-", "--store", store)
    assert facts(capsys, store, "Ada") == ["one", "two", "zero", "three"]


def test_a_person_revises_a_fact_and_the_entity(
    store: str, capsys: pytest.CaptureFixture[str]
) -> None:
    run(capsys, "remember", "Ada", "likes tea", "--store", store)
    _, out, _ = run(capsys, "revise", "Ada", "1", "likes coffee", "--store", store)
    assert out.splitlines()[1:3] == ["   -  likes tea", "   2  likes coffee"]
    words = ("revise", "Ada", "likes coffee", "likes cocoa", "--wrong", "--rename", "Ada L.")
    assert "it was Ada" in run(capsys, *words, "--store", store)[1]
    assert facts(capsys, store, "Ada L.") == ["likes cocoa"]
    assert "say what to change" in run(capsys, "revise", "Ada L.", "--store", store)[2]
    assert "give the newer fact too" in run(capsys, "revise", "Ada L.", "1", "--store", store)[2]


def test_a_person_forgets_a_fact_or_all_and_can_undo_it(
    store: str, capsys: pytest.CaptureFixture[str]
) -> None:
    run(capsys, "remember", "Ada", "likes tea", "owns a cat", "--store", store)
    assert "say which facts of Ada" in run(capsys, "forget", "Ada", "--store", store)[2]
    out = run(capsys, "forget", "Ada", "1", "--store", store)[1]
    assert out.splitlines()[:2] == [f"forgot 1 fact in {store}", "   1  likes tea"]
    dry = run(capsys, "forget", "Ada", "--whole", "--dry-run", "--store", store)[1]
    assert dry == f"would forget Ada in {store}, with 1 fact\n"
    run(capsys, "forget", "Ada", "--whole", "--store", store)
    assert run(capsys, "show", "Ada", "--store", store)[0] == 1
    run(capsys, "undo", "3", "--store", store)
    assert facts(capsys, store, "Ada") == ["owns a cat"]


def test_a_person_erases_a_secret_after_agreeing(
    store: str, capsys: pytest.CaptureFixture[str]
) -> None:
    run(capsys, "remember", "db", "PGPASSWORD=made-up-9x", "is in Lund", "--store", store)
    words = ("forget", "db", "1", "--erase", "--store", store)
    assert "add --yes to agree" in run(capsys, *words)[2]
    assert run(capsys, *words, "--yes")[1].startswith("erased db #1 in ")
    assert facts(capsys, store, "db") == ["is in Lund"]
    assert "made-up-9x" not in run(capsys, "history", "--store", store)[1]


@pytest.mark.parametrize("words", [("revise", "Adda", "1", "x"), ("forget", "Adda", "1")])
def test_an_unknown_entity_gets_a_suggestion(
    words: tuple[str, ...], store: str, capsys: pytest.CaptureFixture[str]
) -> None:
    run(capsys, "remember", "Ada", "likes tea", "--store", store)
    status, _, err = run(capsys, *words, "--store", store)
    assert (status, "did you mean 'Ada'?" in err) == (1, True)


def test_recall_is_search(store: str, capsys: pytest.CaptureFixture[str]) -> None:
    run(capsys, "remember", "Ada", "likes tea", "--store", store)
    words = ("tea", "--embedder", "none", "--store", store)
    assert run(capsys, "recall", *words) == run(capsys, "search", *words)


@pytest.mark.parametrize(
    ("words", "hint"),
    [
        (["search", "tea", "--limt", "3"], "did you mean --limit?"),
        (["add", "Ada"], "did you mean remember?"),
        (["search", "tea", "--limit", "0"], "must be 1 or more"),
    ],
)
def test_a_mistyped_word_gets_a_hint(
    words: list[str], hint: str, capsys: pytest.CaptureFixture[str]
) -> None:
    status, _, err = run(capsys, *words)
    assert (status, hint in err) == (2, True)


def test_help_is_a_word_too(capsys: pytest.CaptureFixture[str]) -> None:
    assert run(capsys, "help")[1].startswith("usage: polymnia ")
    assert run(capsys, "help", "undo")[1].startswith("usage: polymnia undo ")


def test_the_demo_touches_nothing_of_the_user(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("XDG_DATA_HOME", str(tmp_path / "data"))
    monkeypatch.setenv("POLYMNIA_STORE", str(tmp_path / "mine.db"))
    monkeypatch.setenv("TMPDIR", str(tmp_path))
    monkeypatch.setattr("tempfile.tempdir", None)
    status, out, _ = run(capsys, "demo")
    assert status == 0
    for line in ("$ polymnia remember ", "$ polymnia search ", "undone as change harbour:"):
        assert line in out
    # The runtime of the embedding model leaves a hidden file in the temporary directory.
    assert [path.name for path in tmp_path.iterdir() if not path.name.startswith(".")] == []


def test_a_name_alone_is_not_remembered(store: str, capsys: pytest.CaptureFixture[str]) -> None:
    status, _, err = run(capsys, "remember", "Ada Byron", "--store", store)
    assert (status, "polymnia remember 'Ada Byron' 'likes tea'" in err) == (1, True)
    assert not Path(store).exists()


def test_a_name_in_other_letters_is_shown(store: str, capsys: pytest.CaptureFixture[str]) -> None:
    run(capsys, "remember", "Ada", "likes tea", "--store", store)
    assert run(capsys, "show", "ada", "--store", store)[1].startswith("Ada [thing]")
    run(capsys, "remember", "ada", "is a language", "--store", store)
    assert "is a language" in run(capsys, "show", "ada", "--store", store)[1]
