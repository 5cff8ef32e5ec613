"""The JSONL file itself: what is written, what is read."""

import json
from pathlib import Path

import pytest

from polymnia.engine import entities, relations
from polymnia.engine.memory import Memory
from polymnia.model import EntityDraft, Relation
from polymnia.stores.files.jsonl import JsonlStore


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "memory.jsonl"


def opened(path: Path) -> Memory:
    return Memory(JsonlStore(str(path)))


def test_nothing_is_written_before_there_is_something_to_write(path: Path) -> None:
    memory = opened(path)
    entities.read_all(memory)
    entities.delete(memory, ["Nobody"], by="test")
    assert not path.exists()


def test_each_line_is_an_object_and_entities_come_first(path: Path) -> None:
    memory = opened(path)
    entities.create(memory, [EntityDraft("A", "x", ("one",))], by="test")
    relations.create(memory, [Relation("A", "B", "r")], by="test")
    entities.create(memory, [EntityDraft("B", "x")], by="test")
    assert path.read_bytes() == (
        b'{"type":"entity","name":"A","entityType":"x","observations":["one"]}\n'
        b'{"type":"entity","name":"B","entityType":"x","observations":[]}\n'
        b'{"type":"relation","from":"A","to":"B","relationType":"r"}'
    )


def test_the_type_field_does_not_reach_the_graph(path: Path) -> None:
    path.write_text('{"type":"entity","name":"A","entityType":"x","observations":[],"extra":1}\n')
    memory = opened(path)
    assert [(each.name, each.type) for each in entities.read_all(memory).entities] == [("A", "x")]


def test_many_lines_are_written_and_read_back(path: Path) -> None:
    memory = opened(path)
    entities.create(memory, [EntityDraft(f"e{number}", "x", ("o",)) for number in range(5000)], by="test")
    assert len([json.loads(line) for line in path.read_text().split("\n")]) == 5000
    assert entities.read_all(opened(path)).entities[4999].name == "e4999"


def test_a_relation_that_comes_twice_is_one_where_it_came_first(path: Path) -> None:
    memory = opened(path)
    entities.create(memory, [EntityDraft("A", "x")], by="test")
    said = [Relation("A", target, "r") for target in ("B", "C")]
    relations.create(memory, said, by="test")
    lines = path.read_text().split("\n")
    path.write_text("\n".join([*lines, lines[1]]))
    again = opened(path)
    assert [each.key for each in entities.open_named(again, ["A"]).relations] == [each.key for each in said]
    assert [each.key for each in entities.read_all(again).relations] == [each.key for each in said]


def test_relations_are_the_same_from_the_first_question_to_the_tenth(path: Path) -> None:
    memory = opened(path)
    entities.create(memory, [EntityDraft(name, "x") for name in ("A", "B", "C")], by="test")
    relations.create(memory, [Relation("A", "B", "r"), Relation("C", "A", "s"), Relation("B", "B", "t")], by="test")
    again = opened(path)
    answers = [[each.key for each in entities.open_named(again, ["A"]).relations] for _ in range(10)]
    assert answers == [[("A", "B", "r"), ("C", "A", "s")]] * 10
    assert [each.key for each in entities.open_named(again, ["B"]).relations] == [("A", "B", "r"), ("B", "B", "t")]


def test_another_hand_on_the_file_is_noticed(path: Path) -> None:
    memory = opened(path)
    entities.create(memory, [EntityDraft("A", "x")], by="test")
    path.write_text('{"type":"entity","name":"B","entityType":"x","observations":[]}')
    assert [each.name for each in entities.read_all(memory).entities] == ["B"]


def test_a_file_that_is_taken_away_is_an_empty_memory(path: Path) -> None:
    memory = opened(path)
    entities.create(memory, [EntityDraft("A", "x")], by="test")
    path.unlink()
    assert entities.read_all(memory).entities == []


def test_a_link_to_the_file_stays_a_link(path: Path, tmp_path: Path) -> None:
    real = tmp_path / "real.jsonl"
    path.symlink_to(real)
    entities.create(opened(path), [EntityDraft("A", "x")], by="test")
    assert path.is_symlink()
    assert b'"A"' in real.read_bytes()


def test_the_files_permissions_stay(path: Path) -> None:
    path.write_text("")
    path.chmod(0o640)
    entities.create(opened(path), [EntityDraft("A", "x")], by="test")
    assert path.stat().st_mode & 0o777 == 0o640


def test_no_temporary_file_is_left(path: Path, tmp_path: Path) -> None:
    entities.create(opened(path), [EntityDraft("A", "x")], by="test")
    assert sorted(each.name for each in tmp_path.iterdir()) == ["memory.jsonl", "memory.jsonl.lock"]
