"""Agents, Go to and Add without a browser."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from polymnia.engine.facts.candidates import CandidateDraft, offer_candidates
from polymnia.engine.facts.revise import Edit, Revision, revise
from polymnia.engine.graph.entities import open_named
from polymnia.engine.memory import Memory
from tests.behaviour.graphs import texts
from tests.ui.client import Visitor, make_token
from tests.ui.pages import HOSTILE, harbour


@pytest.fixture(scope="module")
def place(tmp_path_factory: pytest.TempPathFactory) -> Iterator[tuple[Visitor, Memory, Path]]:
    folder = tmp_path_factory.mktemp("agents")
    with harbour(folder) as (running, memory):
        edit = Edit(2, "runs five replicas")
        revise(memory, "billing-worker", Revision(replace=(edit,)), by="cursor")
        yield Visitor(running.port), memory, folder


def test_an_agent_shows_what_others_corrected(place: tuple[Visitor, Memory, Path]) -> None:
    visitor, _, _ = place
    shown = visitor.get("/ui/agents")
    assert all(client in shown.words for client in ("claude-code", "codex", "cursor"))
    assert "<script>" not in shown.text.split("<main")[1]
    shown = visitor.get("/ui/agents/agent?client=claude-code")
    assert "Others corrected 1 of its facts lately" in shown.words
    assert "cursor changed its fact about billing-worker" in shown.words
    uncorrected = visitor.get("/ui/agents/agent?client=codex")
    assert "Others corrected 0" in uncorrected.words
    assert "All of its changes" in uncorrected.words
    wrote = visitor.get("/ui/agents/agent?client=claude-code&show=wrote")
    assert wrote.text.count('class="chg"') == 1
    assert visitor.get("/ui/agents/agent?client=nobody").status == 400


def test_an_agent_shows_its_candidate_facts(place: tuple[Visitor, Memory, Path]) -> None:
    visitor, memory, _ = place
    draft = CandidateDraft("preference", "likes small commits")
    offer_candidates(memory, [draft], by="claude-code (token laptop)")
    shown = visitor.get("/ui/agents/agent?client=claude-code&show=waiting")
    assert "likes small commits" in shown.words
    assert (
        "likes small commits" not in visitor.get("/ui/agents/agent?client=codex&show=waiting").words
    )
    visitor.post("/ui/curation/accept", key="candidates", n="1", back="1")
    assert texts(memory, "user") == ("likes small commits",)


def test_what_an_agent_did_is_taken_back_after_a_preview(
    place: tuple[Visitor, Memory, Path],
) -> None:
    visitor, memory, _ = place
    assert "cursor" in visitor.get("/ui/history/undo?client=cursor&since=1d").words
    visitor.post("/ui/history/undo", client="cursor", since="1d")
    assert "runs three replicas" in texts(memory, "billing-worker")


def test_go_to_finds_names_actions_and_agents(place: tuple[Visitor, Memory, Path]) -> None:
    visitor, _, _ = place
    shown = visitor.get("/ui/goto?q=billing", HX_Request="true")
    assert "billing-worker" in shown.words and 'role="option"' in shown.text
    assert "Open Graph" in visitor.get("/ui/goto?q=%3Egraph").words
    assert "claude-code" in visitor.get("/ui/goto?q=%40claude").words
    assert "Nothing is called so" in visitor.get("/ui/goto?q=zzqq", HX_Request="true").words
    assert "<script>alert" not in visitor.get(f"/ui/goto?q={HOSTILE[:8]}").text


def test_an_entity_and_a_note_are_added(place: tuple[Visitor, Memory, Path]) -> None:
    visitor, memory, folder = place
    fields = {
        "name": "berth-map",
        "type": "service",
        "facts": "draws berths\n\nis new\n",
        "relation": "part_of",
        "target": "Harbour API",
        "tags": "map, ui",
    }
    shown = visitor.post("/ui/new/entity", **fields)
    assert "Added berth-map" in shown.words
    graph = open_named(memory, ["berth-map"])
    assert graph.entities[0].texts == ("draws berths", "is new")
    assert graph.entities[0].tags == ("map", "ui")
    assert [item.key for item in graph.relations] == [("berth-map", "Harbour API", "part_of")]
    assert visitor.post("/ui/new/entity", **fields).status == 400
    assert visitor.post("/ui/new/entity", name="x", type="y", target="nobody").status == 400
    note = {"key": "runbook/new", "content": "step by step"}
    assert "step by step" in visitor.post("/ui/new/note", **note).words
    assert visitor.post("/ui/new/note", **note).status == 400
    reader = Visitor(visitor.port)
    reader.log_in(make_token(str(folder / "memory.db"), "reader", "read"))
    assert reader.get("/ui/new").status == 403
    assert reader.post("/ui/new/entity", **fields).status == 403
