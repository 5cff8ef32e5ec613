"""The curation page without a browser: findings of every kind, what can be done about each, and what was dismissed."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from polymnia.engine import entities, relations
from polymnia.engine.memory import Memory
from polymnia.model import EntityDraft, Relation
from tests.behaviour.graphs import texts
from tests.ui.client import Visitor, make_token
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


def test_duplicates_are_merged_and_the_merge_is_undone(place: tuple[Visitor, Memory]) -> None:
    visitor, memory = place
    shown = visitor.get("/ui/curation")
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
    assert "Billing Worker" in visitor.get("/ui/curation?kind=gaps").words
    visitor.post(
        "/ui/curation/relate",
        kind="gaps",
        source="Billing Worker",
        target="Harbour API",
        type="serves",
    )
    assert [each.key for each in relations.between(memory, "Billing Worker", "Harbour API")] == [
        ("Billing Worker", "Harbour API", "serves")
    ]
    assert (
        "Type of the relation from Billing Worker"
        not in visitor.get("/ui/curation?kind=gaps").words
    )
    assert visitor.post("/ui/curation/relate", source="a", target="b", type=" ").status == 400


def test_a_summary_is_written(place: tuple[Visitor, Memory]) -> None:
    visitor, memory = place
    assert "Summary of Harbour API" in visitor.get("/ui/curation?kind=summaries").words
    visitor.post(
        "/ui/curation/summarize", kind="summaries", name="Harbour API", summary="Answers requests."
    )
    (entity,) = entities.open_named(memory, ["Harbour API"]).entities
    assert entity.summary == "Answers requests."
    assert "Summary of Harbour API" not in visitor.get("/ui/curation?kind=summaries").words


def test_an_orphan_is_deleted(place: tuple[Visitor, Memory]) -> None:
    visitor, memory = place
    assert "Harbour API" in visitor.get("/ui/curation?kind=orphans").words
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
    assert "Tag all" in visitor.get("/ui/curation?kind=clusters").words
    shown = visitor.post("/ui/curation/tag", kind="clusters", name="Harbour API", tag="core")
    assert "Tagged 3 entities" in shown.words
    assert {each.tags for each in entities.open_named(memory, others).entities} == {("core",)}


def test_a_dismissed_finding_stays_away_until_it_is_brought_back(
    place: tuple[Visitor, Memory],
) -> None:
    visitor, _ = place
    token = visitor.get("/ui/more").form_token
    key = [("key", "duplicates"), ("key", "Billing Worker"), ("key", "billing-worker")]
    for path, is_shown in (("dismiss", False), ("restore", True)):
        fields = [("form_token", token), ("kind", "duplicates"), *key]
        visitor.post_raw(f"/ui/curation/{path}", fields, Origin=visitor.origin)
        assert ("Merge into billing-worker" in visitor.get("/ui/curation").words) == is_shown
        assert ("1 dismissed" in visitor.get("/ui/curation").words) != is_shown
        assert ("Bring back" in visitor.get("/ui/curation?dismissed=1").words) != is_shown


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
