"""The graph page without a browser: the table, the data of the drawing, and panels."""

from collections.abc import Iterator
from urllib.parse import quote

import pytest
from msgspec import json

from polymnia.engine.graph import entities, relations
from polymnia.engine.memory import Memory
from polymnia.model import EntityDraft, Relation
from tests.ui.client import Visitor
from tests.ui.pages import HOSTILE, harbour


@pytest.fixture(scope="module")
def port(tmp_path_factory: pytest.TempPathFactory) -> Iterator[int]:
    with harbour(tmp_path_factory.mktemp("graph")) as (running, memory):
        _add_team(memory)
        yield running.port


@pytest.fixture
def visitor(port: int) -> Visitor:
    return Visitor(port)


def _add_team(memory: Memory) -> None:
    team = [f"member {number}" for number in range(60)]
    entities.create(memory, [EntityDraft(name, "person") for name in ["team", *team]], by="codex")
    relations.create(memory, [Relation(name, "team", "belongs_to") for name in team], by="codex")
    relations.create(memory, [Relation("member 0", "billing-worker", "runs")], by="codex")


def test_the_best_connected_entities_are_drawn(visitor: Visitor) -> None:
    assert "60 entities of 66" in visitor.get("/ui/graph").words
    drawing = json.decode(visitor.post("/ui/graph/data").text)
    assert (len(drawing["nodes"]), drawing["entities"]) == (60, 66)
    assert drawing["nodes"][0][0] == "team"
    assert len(json.decode(visitor.post("/ui/graph/data", count="300").text)["nodes"]) == 66
    numbers = [number for _, number in drawing["types"]]
    assert len(set(numbers)) == len(numbers)


def test_what_is_around_an_entity(visitor: Visitor) -> None:
    shown = visitor.get("/ui/graph?name=billing-worker")
    assert "3 entities of 66" in shown.words
    found = json.decode(visitor.post("/ui/graph/data", name="billing-worker").text)
    assert {name: hidden for name, _, hidden in found["nodes"]} == {
        "billing-worker": 0,
        "member 0": 1,
        "Mara Lindqvist": 0,
    }
    assert sorted(found["kinds"]) == ["owns", "runs"]


def test_a_hub_shows_some_neighbours_and_counts_the_others(visitor: Visitor) -> None:
    found = json.decode(visitor.post("/ui/graph/data", name="team").text)
    assert len(found["nodes"]) == 41
    assert found["nodes"][0][2] == 20


def test_a_search_starts_a_drawing(visitor: Visitor) -> None:
    found = json.decode(visitor.post("/ui/graph/data", q="queue off Redis").text)
    assert "billing-worker" in [name for name, _, _ in found["nodes"]]


def test_a_path_is_told_step_by_step(visitor: Visitor) -> None:
    shown = visitor.get("/ui/graph?from=team&to=Mara+Lindqvist")
    assert "team belongs_to member 0 runs billing-worker owns Mara Lindqvist" in shown.words
    found = json.decode(
        visitor.post("/ui/graph/data", **{"from": "team", "to": "Mara Lindqvist"}).text
    )
    assert found["path"] == ["team", "member 0", "billing-worker", "Mara Lindqvist"]
    assert "Nothing connects them" in visitor.get("/ui/graph?from=team&to=Harbour+API").words


def test_a_panel_has_text_and_actions(visitor: Visitor) -> None:
    shown = visitor.get(f"/ui/graph/panel?name={quote(HOSTILE)}", HX_Request="true")
    assert "<script>" not in shown.text
    assert "More around it" in shown.words


def test_an_unknown_entity_is_an_error_page(visitor: Visitor) -> None:
    assert visitor.get("/ui/graph?name=nobody").status == 404


def test_the_page_of_an_entity_has_a_small_graph(visitor: Visitor) -> None:
    assert (
        "/ui/graph/mini?name=billing-worker" in visitor.get("/ui/entity?name=billing-worker").text
    )
    shown = visitor.get("/ui/graph/mini?name=billing-worker", HX_Request="true")
    assert shown.text.count("<circle") == 4
    assert "Mara Lindqvist" in shown.words
    assert (
        "Nothing is related to it"
        in visitor.get("/ui/graph/mini?name=Harbour+API", HX_Request="true").words
    )
