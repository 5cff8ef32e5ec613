"""The Python API: its documented examples, its errors, threads, and what importing it costs."""

import doctest
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor
from datetime import UTC, datetime
from pathlib import Path

import pytest

import polymnia
import polymnia.api
from polymnia.errors import BadInput, EntityNotFound, NotSupported, PolymniaError, StoreError

ROOT = Path(__file__).parent.parent


def test_the_examples_of_the_page_work(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    text = (
        (ROOT / "docs" / "python.md")
        .read_text("utf-8")
        .replace("```pycon\n", "")
        .replace("```\n", "")
    )
    examples = doctest.DocTestParser().get_doctest(text, {}, "docs/python.md", "docs/python.md", 0)
    assert len(examples.examples) > 20
    report: list[str] = []
    doctest.DocTestRunner().run(examples, out=report.append)
    assert "".join(report) == ""


def test_the_package_has_the_names_of_the_api() -> None:
    assert {*polymnia.__all__} == {*polymnia.api.__all__, "__version__"}
    assert [name for name in polymnia.__all__ if not hasattr(polymnia, name)] == []
    assert set(polymnia.__all__) <= set(dir(polymnia))


def test_every_public_method_is_on_the_page() -> None:
    page = (ROOT / "docs" / "python.md").read_text("utf-8")
    methods = [name for name in vars(polymnia.LocalMemory) if not name.startswith("_")]
    assert [name for name in methods if f"{name}" not in page] == []


def test_an_unknown_name_is_an_attribute_error() -> None:
    with pytest.raises(AttributeError, match="no attribute 'memorize'"):
        polymnia.memorize  # type: ignore[attr-defined]  # noqa: B018


def test_importing_the_package_loads_nothing_else() -> None:
    program = (
        "import sys, polymnia; "
        "print(sorted(name for name in sys.modules if name.startswith('polymnia.')))"
    )
    assert (
        subprocess.run(
            [sys.executable, "-c", program], capture_output=True, text=True, check=True
        ).stdout
        == "[]\n"
    )


@pytest.mark.parametrize("name", ["memory.db", "memory.jsonl", "memory.mcpmem"])
def test_what_is_remembered_is_there_the_next_time(name: str, tmp_path: Path) -> None:
    with polymnia.open(tmp_path / name) as memory:
        memory.remember("Ada", "likes tea", type="person")
        memory.remember("Ada", "LIKES  tea", "plays chess")
    with polymnia.open(tmp_path / name) as memory:
        assert (memory.open("Ada").type, memory.open("Ada").texts) == (
            "person",
            ("likes tea", "plays chess"),
        )


def test_times_are_datetimes(tmp_path: Path) -> None:
    said_at = datetime(2026, 5, 4, 12, tzinfo=UTC)
    with polymnia.open(tmp_path / "memory.db") as memory:
        (fact,) = memory.remember("Ada", "moved to Turin", valid_at=said_at).facts
    assert fact.valid_at == said_at
    assert fact.recorded_at is not None
    assert fact.recorded_at > said_at


def test_a_question_with_a_former_name_finds_the_entity() -> None:
    with polymnia.open(":memory:") as memory:
        memory.remember("Kestrel", "flies at dawn")
        memory.revise("Kestrel", rename="Osprey")
        assert {hit.name for hit in memory.recall("Kestrel")} == {"Osprey"}


def test_a_hit_says_whether_it_is_weak() -> None:
    with polymnia.open("memory:") as memory:
        memory.remember("Ada", "likes green tea")
        asked = ("green tea", "tea with penguins near glaciers and volcanoes")
        assert [memory.recall(item)[0].is_weak for item in asked] == [False, True]


def test_only_some_types_can_be_recalled() -> None:
    with polymnia.open("memory:") as memory:
        memory.remember("Ada", "likes tea", type="person")
        memory.remember("Samovar", "makes tea", type="machine")
        assert {hit.name for hit in memory.recall("tea", types=["machine"])} == {"Samovar"}


def test_relating_to_an_unknown_entity_is_an_error_and_changes_nothing() -> None:
    with polymnia.open("memory:") as memory:
        memory.remember("Ada")
        with pytest.raises(EntityNotFound):
            memory.relate("Ada", "knows", "Charles")
        assert memory.open("Ada").relations == ()


def test_an_fact_is_superseded_and_the_history_says_so(tmp_path: Path) -> None:
    with polymnia.open(tmp_path / "memory.db", by="planner") as memory:
        memory.remember("Ada", "lives in London")
        assert memory.revise("Ada", supersede={1: "lives in Turin"}).texts == ("lives in Turin",)
        latest = memory.history("Ada", limit=1)[0]
        assert (latest.actor, latest.operation) == ("planner", "revise")
        assert any("lives in Turin" in line for line in latest.lines)


def test_forgetting_can_be_tried_first(tmp_path: Path) -> None:
    with polymnia.open(tmp_path / "memory.db") as memory:
        memory.remember("Ada", "likes tea", "plays chess")
        tried = memory.forget(facts={"Ada": ["likes tea"]}, dry_run=True)
        assert (tried.facts, tried.change, memory.open("Ada").texts) == (
            1,
            0,
            ("likes tea", "plays chess"),
        )
        memory.forget(facts={"Ada": [1]})
        assert memory.open("Ada").texts == ("plays chess",)
        assert memory.forget("Nobody").unknown == ("Nobody",)


def test_an_undo_does_not_overwrite_what_was_changed_since(tmp_path: Path) -> None:
    with polymnia.open(tmp_path / "memory.db") as memory:
        memory.remember("Ada", "likes tea")
        first = memory.history(limit=1)[0].id
        memory.revise("Ada", replace={1: "likes coffee"})
        with pytest.raises(BadInput, match="cannot undo"):
            memory.undo(first)
        assert memory.open("Ada").texts == ("likes coffee",)


def test_notes_are_kept_found_and_deleted(tmp_path: Path) -> None:
    with polymnia.open(tmp_path / "memory.db") as memory:
        memory.notes.put("deploy", "run the checks", tags=["ops"])
        assert [note.key for note in memory.notes.search("checks", tags=["ops"])] == ["deploy"]
        assert (memory.notes.delete("deploy"), memory.notes.delete("deploy")) == (True, False)
        assert memory.notes.get("deploy") is None


def test_a_store_without_history_says_so(tmp_path: Path) -> None:
    with polymnia.open(tmp_path / "memory.jsonl") as memory:
        memory.remember("Ada")
        with pytest.raises(NotSupported):
            memory.history()
        with pytest.raises(NotSupported):
            memory.notes.put("key", "text")


def test_a_memory_that_is_read_only_is_not_changed(tmp_path: Path) -> None:
    polymnia.open(tmp_path / "memory.db").close()
    with (
        polymnia.open(tmp_path / "memory.db", read_only=True) as memory,
        pytest.raises(PolymniaError),
    ):
        memory.remember("Ada")


def test_a_closed_memory_says_so(tmp_path: Path) -> None:
    memory = polymnia.open(tmp_path / "memory.db")
    memory.close()
    memory.close()
    with pytest.raises(BadInput, match="the memory is closed"):
        memory.recall("tea")


def test_a_path_that_cannot_be_opened_is_our_error(tmp_path: Path) -> None:
    (tmp_path / "memory.db").write_bytes(b"not a database at all, but long enough to be one")
    with pytest.raises(StoreError):
        polymnia.open(tmp_path / "memory.db")


def test_several_threads_use_one_memory(tmp_path: Path) -> None:
    with polymnia.open(tmp_path / "memory.db") as memory, ThreadPoolExecutor(8) as pool:
        list(pool.map(lambda number: memory.remember("Ada", f"fact {number}"), range(64)))
        assert sorted(memory.open("Ada").texts) == sorted(f"fact {number}" for number in range(64))
        assert len(memory.history("Ada", limit=100)) == 64


def test_meaning_finds_what_words_do_not(tmp_path: Path) -> None:
    with polymnia.open(tmp_path / "memory.db", embedder="local") as memory:
        memory.remember("Ada", "likes tea")
        memory.index()
        assert memory.recall("favourite hot drink")[0].text == "likes tea"


def test_facts_may_be_given_as_a_list(tmp_path: Path) -> None:
    with polymnia.open(tmp_path / "memory.db", embedder="none") as memory:
        assert memory.remember("Ada", ["likes tea", "lives in Paris"]).texts == (
            "likes tea",
            "lives in Paris",
        )
        with pytest.raises(BadInput, match="a fact is a text"):
            memory.remember("Ada", [1])  # type: ignore[list-item]
        assert repr(memory) == f"<LocalMemory in {tmp_path / 'memory.db'}>"
