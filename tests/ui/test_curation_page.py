"""The curation page without a browser.

Findings of every kind, what can be done about each, and what was dismissed.
"""

import re
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from threading import Event
from unittest.mock import patch

import pytest

from polymnia.engine.graph import entities, facts, relations
from polymnia.engine.memory import Memory
from polymnia.model import EntityDraft, FactAddition
from polymnia.stores import open_store
from polymnia.web.findings import KINDS, CurationFinding, FindingsCache, Kind
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
    """Return a page of findings once they are computed."""
    shown = visitor.get(path)
    while "Reload" in shown.words:
        shown = visitor.get(path)
    return shown


def undo_button(shown: Shown) -> dict[str, str]:
    """Return the fields of the button Undo in a toast."""
    numbers = re.findall(r'name="change" value="(\d+)"', shown.text)
    return {"change": numbers[0]}


def test_duplicates_are_merged_into_the_richer_and_the_merge_is_undone(
    place: tuple[Visitor, Memory],
) -> None:
    visitor, memory = place
    shown = findings(visitor, "/ui/curation?kind=duplicates")
    assert re.search(r'value="billing-worker" data-key="1" checked', shown.text)
    assert "What moves to billing-worker" in shown.words
    assert "moves asked by Harbour API" in shown.words
    shown = _merge(visitor, "billing-worker")
    assert "Merged Billing Worker into billing-worker" in shown.words
    assert "asked by Harbour API" in texts(memory, "billing-worker")
    visitor.post("/ui/undo", **undo_button(shown))
    assert texts(memory, "Billing Worker") == ("asked by Harbour API",)
    assert visitor.post("/ui/curation/merge", name="billing-worker", keep="other").status == 400


def _merge(visitor: Visitor, keep: str) -> Shown:
    fields = [("name", "Billing Worker"), ("name", "billing-worker"), ("keep", keep)]
    return post_all(visitor, "/ui/curation/merge", fields)


def post_all(visitor: Visitor, path: str, fields: list[tuple[str, str]]) -> Shown:
    """Send a form with repeated fields, and follow its redirect."""
    token = visitor.get("/ui/more").form_token
    shown = visitor.post_raw(path, [("form_token", token), *fields], Origin=visitor.origin)
    return visitor.get(shown.headers["location"]) if shown.status == 303 else shown


def test_a_contradiction_is_resolved(place: tuple[Visitor, Memory]) -> None:
    visitor, memory = place
    draft = FactAddition("billing-worker", ("runs five replicas",))
    facts.add(memory, [draft], by="cursor", skip_repeats=False)
    shown = findings(visitor, "/ui/curation?kind=contradictions")
    assert "runs three replicas" in shown.words and "runs five replicas" in shown.words
    pair = [("name", "billing-worker"), ("n", "2"), ("n", "3")]
    assert post_all(visitor, "/ui/curation/resolve", [*pair, ("other", "until")]).status == 400
    shown = post_all(visitor, "/ui/curation/resolve", [*pair, ("keep", "3"), ("other", "until")])
    assert "Kept one fact of billing-worker" in shown.words
    assert texts(memory, "billing-worker")[1:] == ("runs five replicas",)
    visitor.post("/ui/undo", **undo_button(shown))
    assert "runs three replicas" in texts(memory, "billing-worker")
    post_all(visitor, "/ui/curation/resolve", [*pair, ("keep", "2"), ("other", "never")])
    assert "runs five replicas" not in texts(memory, "billing-worker")


def test_a_gap_is_closed_with_a_relation(place: tuple[Visitor, Memory]) -> None:
    visitor, memory = place
    assert "Are they related?" in findings(visitor, "/ui/curation?kind=gaps").words
    ends = {"source": "Billing Worker", "target": "Harbour API"}
    visitor.post("/ui/curation/relate", kind="gaps", type="serves", **ends)
    assert [item.key for item in relations.between(memory, "Billing Worker", "Harbour API")] == [
        ("Billing Worker", "Harbour API", "serves")
    ]
    assert "Are they related?" not in findings(visitor, "/ui/curation?kind=gaps").words
    assert visitor.post("/ui/curation/relate", source="a", target="b", type=" ").status == 400


def test_a_missing_summary_is_no_finding_but_an_old_one_is(place: tuple[Visitor, Memory]) -> None:
    visitor, memory = place
    assert "Old summaries" not in findings(visitor, "/ui/curation").words
    visitor.post("/ui/curation/summarize", name="Harbour API", summary="Answers requests.")
    draft = FactAddition("Harbour API", ("answers in 20 ms",))
    facts.add(memory, [draft], by="cursor", skip_repeats=False)
    shown = findings(visitor, "/ui/curation?kind=summaries")
    assert "Is the summary of Harbour API still true?" in shown.words
    assert visitor.post("/ui/curation/summarize", name="Harbour API", summary=" ").status == 400


def test_an_orphan_is_deleted(place: tuple[Visitor, Memory]) -> None:
    visitor, memory = place
    assert "Harbour API" in findings(visitor, "/ui/curation?kind=orphans").words
    shown = visitor.post("/ui/curation/delete", kind="orphans", name="Harbour API")
    assert "Deleted Harbour API" in shown.words
    assert entities.open_named(memory, ["Harbour API"]).entities == []


def test_a_dismissed_finding_stays_away_until_it_is_brought_back(
    place: tuple[Visitor, Memory],
) -> None:
    visitor, _ = place
    key = [("key", "duplicates"), ("key", "Billing Worker"), ("key", "billing-worker")]
    row = "Billing Worker , billing-worker the same letters"
    for path, is_shown in (("dismiss", False), ("restore", True)):
        post_all(visitor, f"/ui/curation/{path}", key)
        assert (row in findings(visitor, "/ui/curation").words) == is_shown
        assert (row in findings(visitor, "/ui/curation?dismissed=1").words) != is_shown
    assert post_all(visitor, "/ui/curation/dismiss", [("key", "nonsense")]).status == 400


def test_the_badge_counts_what_waits(place: tuple[Visitor, Memory]) -> None:
    visitor, _ = place
    shown = findings(visitor, "/ui/curation")
    badge = re.search(r'n todo num">(\d+)<', visitor.get("/ui/history").text)
    assert badge
    assert f"{badge[1]} wait" in shown.words


def test_an_unknown_kind_is_refused(place: tuple[Visitor, Memory]) -> None:
    assert place[0].get("/ui/curation?kind=similar").status == 200
    assert place[0].get("/ui/curation?kind=nonsense").status == 400


def test_a_reader_sees_findings_without_actions(tmp_path: Path) -> None:
    with harbour(tmp_path) as (running, _):
        reader = Visitor(running.port)
        reader.log_in(make_token(str(tmp_path / "memory.db"), "reader", "read"))
        for kind in KINDS:
            shown = findings(reader, f"/ui/curation?kind={kind}")
            assert 'method="post"' not in shown.text.split("<main")[1]


def test_findings_are_computed_once_for_each_state_of_a_memory(memory_of_two: Memory) -> None:
    runs: list[str] = []
    gate = Event()

    def find(kind: str, memory: Memory, among: object) -> list[CurationFinding]:
        gate.wait(TIMEOUT_S)
        runs.append("run")
        return [CurationFinding("orphans", ("one",)), CurationFinding("orphans", ("two",))]

    kinds = {"orphans": Kind("", "", "", "")}
    with (
        ThreadPoolExecutor(1) as pool,
        patch.dict(KINDS, kinds, clear=True),
        patch("polymnia.web.findings.find", find),
    ):
        cache = FindingsCache(pool)
        assert cache.latest(memory_of_two) == (None, 0, True)
        assert cache.latest(memory_of_two) == (None, 0, True)
        gate.set()
        pool.submit(int).result(TIMEOUT_S)  # the pool has one thread, so the scan has ended
        first, behind, is_running = cache.latest(memory_of_two)
        assert first is not None
        assert (len(first.of_kind("orphans")), behind, is_running) == (2, 0, False)
        assert cache.latest(memory_of_two, is_badge=True)[0] == first
        assert runs == ["run"]
        gate.clear()
        cache.decide(memory_of_two, [CurationFinding("orphans", ("one",)).id])
        entities.create(memory_of_two, [EntityDraft("three", "thing", ())], by="codex")
        former, behind, is_running = cache.latest(memory_of_two)
        assert (behind, is_running) == (1, True)
        assert former is not None
        assert former.of_kind("orphans") == [CurationFinding("orphans", ("two",))]
        gate.set()
