"""Facts that hold for a time, in every form of a dump, and fields of other programs that have no
place here.
"""

import json
from pathlib import Path
from typing import Any

import apsw
import pytest

from polymnia.engine.transfer.intake import Item
from polymnia.importers.base import ReasonPlaces, Report, make_entity, time_of
from polymnia.model import Entity, Fact, Relation
from tests.importers.samples import GOLDEN, SAMPLES, make_memory_service_file, read_items

GRAPHITI: dict[str, list[dict[str, Any]]] = json.loads(
    (SAMPLES / "graphiti.json").read_text("utf-8")
)
_OTHER = ("nodes", "edges", "episodes")


def told(items: list[Item]) -> dict[str, tuple[str, ...]]:
    return {item.name: item.texts for item in items if isinstance(item, Entity) and item.texts}


def left(report: Report) -> dict[str, int]:
    return {field.reason: field.count for field in report.dropped_fields}


def exported_by_neo4j(value: dict[str, Any], kind: str) -> dict[str, Any]:
    """Return an element as `apoc.export.json` writes it, with attributes among the properties."""
    properties = {
        name: item
        for name, item in value.items()
        if name not in ("labels", "attributes", "source_node_uuid")
    }
    properties |= value.get("attributes") or {}
    if kind != "edges":
        return {
            "type": "node",
            "id": "1",
            "labels": value["labels"] or ["Episodic"],
            "properties": properties,
        }
    properties.pop("target_node_uuid")
    ends = {
        side: {"id": "1", "labels": ["Entity"], "properties": {"uuid": value[field]}}
        for side, field in (("start", "source_node_uuid"), ("end", "target_node_uuid"))
    }
    return {
        "type": "relationship",
        "id": "2",
        "label": "RELATES_TO",
        "properties": properties,
        **ends,
    }


FORMS = {
    "one array": json.dumps([item for key in _OTHER for item in GRAPHITI[key]]),
    "edges first": json.dumps({key: GRAPHITI[key] for key in reversed(_OTHER)}),
    "lines": "\n".join([json.dumps(item) for key in _OTHER for item in GRAPHITI[key]]),
    "neo4j": "\n".join(
        [json.dumps(exported_by_neo4j(item, key)) for key in _OTHER for item in GRAPHITI[key]]
    ),
}


@pytest.mark.parametrize("form", FORMS)
def test_every_form_of_a_graphiti_dump_says_the_same(form: str, tmp_path: Path) -> None:
    (tmp_path / "input").write_text(FORMS[form], "utf-8")
    kind, items, _ = read_items(tmp_path / "input")
    expected = {
        node["name"]: node
        for node in json.loads((GOLDEN / "graphiti-graphiti.json").read_text())
        if "name" in node
    }
    assert kind == "graphiti"
    assert set(told(items)["Ada"]) == {item["text"] for item in expected["Ada"]["facts"]}
    assert [item.key for item in items if isinstance(item, Relation)] == [
        ("Ada", "Munich", "LIVES_IN")
    ]
    assert len(told(items)["Episodes of shop"]) == 2


def test_a_fact_that_will_end_still_holds(tmp_path: Path) -> None:
    dump = json.loads(json.dumps(GRAPHITI))
    dump["edges"][1]["invalid_at"] = "2999-01-01T00:00:00Z"
    (tmp_path / "input").write_text(json.dumps(dump), "utf-8")
    _, items, _ = read_items(tmp_path / "input")
    assert "Ada lives in Munich (until 2999-01-01)" in told(items)["Ada"]
    assert ("Ada", "Munich", "LIVES_IN") in [
        item.key for item in items if isinstance(item, Relation)
    ]


def test_fields_without_a_place_are_counted_and_named() -> None:
    reports = {
        name: read_items(SAMPLES / name)[2]
        for name in ("mem0.json", "mempalace.sqlite3", "graphiti.json")
    }
    assert {name: left(report) for name, report in reports.items()} == {
        "mem0.json": {"metadata.category": 1},
        "mempalace.sqlite3": {"properties.score": 1, "confidence": 1},
        "graphiti.json": {"attributes.profile": 1, "episodes": 2},
    }
    assert reports["mem0.json"].dropped_fields == [
        ReasonPlaces("metadata.category", 1, ["memories[0]"])
    ]


def test_metadata_of_the_memory_service_become_facts_unless_it_measures_them(
    tmp_path: Path,
) -> None:
    path = make_memory_service_file(tmp_path / "memories.db")
    metadata = {
        "source": "chat",
        "ports": [80, 443],
        "quality_score": 0.5,
        "nested": {"a": 1},
        "empty": "",
    }
    connection = apsw.Connection(str(path))
    connection.execute(
        "UPDATE memories SET metadata = ?, store = 'work' WHERE id = 1", (json.dumps(metadata),)
    )
    connection.close()
    _, items, report = read_items(path)
    first = items[0]
    assert isinstance(first, Entity)
    assert first.texts == ("Use ruff", "source: chat", "ports: 80, 443")
    assert first.tags == ("style", "python", "work")
    assert left(report) == {"metadata.quality_score": 1, "metadata.nested": 1, "similarity": 1}


def test_the_other_owners_of_a_memory_of_mem0_are_named(tmp_path: Path) -> None:
    memory = {
        "id": "1",
        "memory": "Likes tea",
        "user_id": "zoe",
        "run_id": "r1",
        "categories": ["food"],
        "score": 0.4,
    }
    (tmp_path / "input").write_text(json.dumps([memory]), "utf-8")
    _, items, report = read_items(tmp_path / "input")
    assert told(items) == {"zoe": ("Likes tea",)}
    assert left(report) == {"run_id": 1, "categories": 1}


@pytest.mark.parametrize("ended", [False, True])
def test_facts_before_1970_keep_their_times(ended: bool, tmp_path: Path) -> None:
    dump = json.loads(json.dumps(GRAPHITI))
    (edge, *_) = dump["edges"]
    edge |= {
        "valid_at": "1815-12-10T00:00:00Z",
        "invalid_at": "1852-11-27T00:00:00Z" if ended else None,
    }
    edge |= {"fact": "Ada lives in London", "name": "LIVED_IN", "expired_at": None}
    (tmp_path / "input").write_text(json.dumps(dump), "utf-8")
    _, items, _ = read_items(tmp_path / "input")
    facts = [fact for item in items if isinstance(item, Entity) for fact in item.facts]
    (fact,) = [fact for fact in facts if fact.text.startswith("Ada lives in London")]
    assert fact.valid_at == time_of("1815-12-10") < 0
    assert fact.text.endswith("(until 1852-11-27)") == ended
    assert any(item.type == "LIVED_IN" for item in items if isinstance(item, Relation)) == (
        not ended
    )


@pytest.mark.parametrize(
    "time", ["9999-12-31T23:59:59-14:00", "0001-01-01T00:00:00+14:00", -1, "2026", 1e300]
)
def test_a_time_that_is_none_is_unknown(time: object) -> None:
    assert time_of(time) == 0


@pytest.mark.parametrize("is_array", [False, True])
def test_fields_that_the_reference_server_does_not_have_are_reported(
    is_array: bool, tmp_path: Path
) -> None:
    entity = {
        "type": "entity",
        "name": "A",
        "entityType": "t",
        "observations": ["x"],
        "version": 3,
        "tags": ["y"],
    }
    (tmp_path / "memory.json").write_text(json.dumps([entity] if is_array else entity), "utf-8")
    _, _, report = read_items(tmp_path / "memory.json")
    assert left(report) == {"version": 1}


def test_a_text_of_more_than_a_megabyte_is_left_out_and_reported() -> None:
    report = Report()
    facts = [Fact(1, "x" * 1_000_001), Fact(2, "short")]
    (entity,) = report.screen_items([make_entity("Ada", "person", facts)])
    assert isinstance(entity, Entity)
    assert entity.texts == ("short",)
    assert [part.places for part in report.dropped_parts] == [["Ada"]]
