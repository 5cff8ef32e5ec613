"""The curation page without a browser: findings of every kind, what can be done about each, and what was dismissed."""

from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from threading import Event
from unittest.mock import patch

import pytest

from polymnia.engine.graph import entities, relations
from polymnia.engine.memory import Memory
from polymnia.model import EntityDraft, Relation
from polymnia.stores import open_store
from polymnia.web.pages.curation import KINDS, Finding, FindingsCache, Kind
from tests.behaviour.graphs import texts
from tests.processes import TIMEOUT_S
from tests.ui.client import Shown, Visitor, make_token
from tests.ui.pages import harbour


@pytest.fixture
def place(tmp_path: Path) -> Iterator[tuple[Visitor, Memory]]:
    with harbour(tmp_path) as (running, memory):
        entities.create(
            memory,
            [EntityDraft("Billing Worker", "service", ("asked by Harbour API",))],
            by="codex",
        )
        yield Visitor(running.port), memory


@pytest.fixture
def memory_of_two(tmp_path: Path) -> Iterator[Memory]:
    store = open_store(str(tmp_path / "two.db"))
    memory = Memory(store)
    entities.create(memory, [EntityDraft(name, "thing", ()) for name in ("one", "two")], by="codex")
    yield memory
    store.close()


def findings(visitor: Visitor, path: str) -> Shown:
    """Return a page of findings once they are computed: it reloads itself until then."""
    shown = visitor.get(path)
    while 'http-equiv="refresh"' in shown.text or "Show the new findings" in shown.words:
        shown = visitor.get(path)
    return shown


def test_duplicates_are_merged_and_the_merge_is_undone(place: tuple[Visitor, Memory]) -> None:
    visitor, memory = place
    shown = findings(visitor, "/ui/curation")
    assert "Merge into billing-worker" in shown.words
    shown = visitor.post(
        "/ui/curation/merge", kind="duplicates", source="Billing Worker", target="billing-worker"
    )
    assert "Merged Billing Worker into billing-worker" in shown.words
    assert "asked by Harbour API" in texts(memory, "billing-worker")
    change = shown.text.split('name="change" value="')[1].split('"')[0]
    visitor.post("/ui/undo", change=change)
    assert texts(memory, "Billing Worker") == ("asked by Harbour API",)


def test_a_gap_is_closed_with_a_relation(place: tuple[Visitor, Memory]) -> None:
    visitor, memory = place
    assert "Billing Worker" in findings(visitor, "/ui/curation?kind=gaps").words
    visitor.post(
        "/ui/curation/relate",
        kind="gaps",
        source="Billing Worker",
        target="Harbour API",
        type="serves",
    )
    assert [item.key for item in relations.between(memory, "Billing Worker", "Harbour API")] == [
        ("Billing Worker", "Harbour API", "serves")
    ]
    assert (
        "Type of the relation from Billing Worker"
        not in findings(visitor, "/ui/curation?kind=gaps").words
    )
    assert visitor.post("/ui/curation/relate", source="a", target="b", type=" ").status == 400


def test_a_summary_is_written(place: tuple[Visitor, Memory]) -> None:
    visitor, memory = place
    assert "Summary of Harbour API" in findings(visitor, "/ui/curation?kind=summaries").words
    visitor.post(
        "/ui/curation/summarize", kind="summaries", name="Harbour API", summary="Answers requests."
    )
    (entity,) = entities.open_named(memory, ["Harbour API"]).entities
    assert entity.summary == "Answers requests."
    assert "Summary of Harbour API" not in findings(visitor, "/ui/curation?kind=summaries").words


def test_an_orphan_is_deleted(place: tuple[Visitor, Memory]) -> None:
    visitor, memory = place
    assert "Harbour API" in findings(visitor, "/ui/curation?kind=orphans").words
    assert (
        "Deleted Harbour API"
        in visitor.post("/ui/curation/delete", kind="orphans", name="Harbour API").words
    )
    assert entities.open_named(memory, ["Harbour API"]).entities == []


def test_a_cluster_is_tagged(place: tuple[Visitor, Memory]) -> None:
    visitor, memory = place
    others = ["Mara Lindqvist", "billing-worker", "Harbour API"]
    relations.create(
        memory, [Relation(a, b, "knows") for a in others for b in others if a < b], by="codex"
    )
    assert "Tag all" in findings(visitor, "/ui/curation?kind=clusters").words
    shown = visitor.post("/ui/curation/tag", kind="clusters", name="Harbour API", tag="core")
    assert "Tagged 3 entities" in shown.words
    assert {entity.tags for entity in entities.open_named(memory, others).entities} == {("core",)}


def test_a_dismissed_finding_stays_away_until_it_is_brought_back(
    place: tuple[Visitor, Memory],
) -> None:
    visitor, _ = place
    token = visitor.get("/ui/more").form_token
    key = [("key", "duplicates"), ("key", "Billing Worker"), ("key", "billing-worker")]
    for path, is_shown in (("dismiss", False), ("restore", True)):
        fields = [("form_token", token), ("kind", "duplicates"), *key]
        visitor.post_raw(f"/ui/curation/{path}", fields, Origin=visitor.origin)
        assert ("Merge into billing-worker" in findings(visitor, "/ui/curation").words) == is_shown
        assert ("1 dismissed" in findings(visitor, "/ui/curation").words) != is_shown
        assert ("Bring back" in findings(visitor, "/ui/curation?dismissed=1").words) != is_shown


def test_similar_entities_need_an_embedder(place: tuple[Visitor, Memory]) -> None:
    assert place[0].get("/ui/curation?kind=similar").status == 200
    assert place[0].get("/ui/curation?kind=nonsense").status == 400


def test_a_reader_sees_findings_without_actions(tmp_path: Path) -> None:
    with harbour(tmp_path) as (running, _):
        reader = Visitor(running.port)
        reader.log_in(make_token(str(tmp_path / "memory.db"), "reader", "read"))
        for kind in ("duplicates", "gaps", "summaries", "orphans", "clusters"):
            assert (
                'method="post"'
                not in reader.get(f"/ui/curation?kind={kind}").text.split("<main")[1]
            )


def test_findings_are_computed_once_for_each_state_of_a_memory(memory_of_two: Memory) -> None:
    runs: list[str] = []
    gate = Event()

    def find(memory: Memory) -> list[Finding]:
        gate.wait(TIMEOUT_S)
        runs.append("run")
        return [Finding("orphans", ("one",))]

    with ThreadPoolExecutor(1) as pool, patch.dict(KINDS, {"orphans": Kind("", "", find)}):
        cache = FindingsCache(pool)
        assert cache.find(memory_of_two, "orphans") == (None, False)
        assert cache.find(memory_of_two, "orphans") == (None, False)
        gate.set()
        assert len(cache.wait(memory_of_two, "orphans")) == 1
        pool.submit(int).result()
        assert cache.find(memory_of_two, "orphans")[1]
        assert len(runs) <= 2
        count = len(runs)
        gate.clear()
        entities.create(memory_of_two, [EntityDraft("three", "thing", ())], by="codex")
        former, is_current = cache.find(memory_of_two, "orphans")
        assert (former, is_current, len(runs)) == ([Finding("orphans", ("one",))], False, count)
        gate.set()
