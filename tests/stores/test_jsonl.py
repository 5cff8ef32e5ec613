"""The content of a `memory.jsonl`: what the store writes, and what it reads."""

import json
from pathlib import Path

import pytest

from polymnia.engine.facts.revise import Revision, revise
from polymnia.engine.graph import entities, facts, relations
from polymnia.engine.memory import Memory
from polymnia.model import EntityDraft, Relation
from polymnia.stores import open_store
from polymnia.stores.files.jsonl import adopt_legacy


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "memory.jsonl"


def opened(path: Path) -> Memory:
    return Memory(open_store(str(path)))


def test_no_file_is_created_before_the_first_change(path: Path) -> None:
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
    assert [(entity.name, entity.type) for entity in entities.read_all(memory).entities] == [
        ("A", "x")
    ]


def test_many_lines_are_written_and_read_back(path: Path) -> None:
    memory = opened(path)
    entities.create(
        memory, [EntityDraft(f"e{number}", "x", ("o",)) for number in range(5000)], by="test"
    )
    assert len([json.loads(line) for line in path.read_text().split("\n")]) == 5000
    assert entities.read_all(opened(path)).entities[4999].name == "e4999"


def test_a_relation_on_two_lines_is_one_at_the_first_place(path: Path) -> None:
    memory = opened(path)
    entities.create(memory, [EntityDraft("A", "x")], by="test")
    known = [Relation("A", target, "r") for target in ("B", "C")]
    relations.create(memory, known, by="test")
    lines = path.read_text().split("\n")
    path.write_text("\n".join([*lines, lines[1]]))
    again = opened(path)
    assert [relation.key for relation in entities.open_named(again, ["A"]).relations] == [
        item.key for item in known
    ]
    assert [relation.key for relation in entities.read_all(again).relations] == [
        item.key for item in known
    ]


def test_relations_are_the_same_however_often_they_are_read(path: Path) -> None:
    memory = opened(path)
    entities.create(memory, [EntityDraft(name, "x") for name in ("A", "B", "C")], by="test")
    relations.create(
        memory,
        [Relation("A", "B", "r"), Relation("C", "A", "s"), Relation("B", "B", "t")],
        by="test",
    )
    again = opened(path)
    answers = [
        [relation.key for relation in entities.open_named(again, ["A"]).relations]
        for _ in range(10)
    ]
    assert answers == [[("A", "B", "r"), ("C", "A", "s")]] * 10
    assert [relation.key for relation in entities.open_named(again, ["B"]).relations] == [
        ("A", "B", "r"),
        ("B", "B", "t"),
    ]


def test_a_former_name_is_dropped_because_the_format_has_no_aliases(path: Path) -> None:
    memory = opened(path)
    entities.create(memory, [EntityDraft("Ada", "person")], by="test")
    revise(memory, "Ada", Revision(name="Ada Lovelace"), by="test")
    with memory.reading() as read:
        assert [entity.aliases for entity in read.entities()] == [()]


def test_a_change_by_another_program_is_noticed(path: Path) -> None:
    memory = opened(path)
    entities.create(memory, [EntityDraft("A", "x")], by="test")
    path.write_text('{"type":"entity","name":"B","entityType":"x","observations":[]}')
    assert [entity.name for entity in entities.read_all(memory).entities] == ["B"]


def test_a_file_that_was_deleted_is_an_empty_memory(path: Path) -> None:
    memory = opened(path)
    entities.create(memory, [EntityDraft("A", "x")], by="test")
    path.unlink()
    assert entities.read_all(memory).entities == []


def test_a_link_to_the_file_stays_a_link_with_the_permissions_of_the_file(
    path: Path, tmp_path: Path
) -> None:
    real = tmp_path / "real.jsonl"
    path.symlink_to(real)
    real.write_text("")
    real.chmod(0o640)
    entities.create(opened(path), [EntityDraft("A", "x")], by="test")
    assert path.is_symlink()
    assert b'"A"' in real.read_bytes()
    assert real.stat().st_mode & 0o777 == 0o640
    files = sorted(file.name for file in tmp_path.iterdir())
    assert files == ["memory.jsonl", "real.jsonl", "real.jsonl.lock"]


# What npm's server writes for texts with half of a surrogate pair.
HALF_PAIRS = [
    rb'{"type":"entity","name":"A","entityType":"x","observations":["cut \ud83d","whole"]}',
    b'{"type":"entity","name":"\\udc00B\xc3\xa9\\n","entityType":"\\ud800",'
    b'"observations":["\\ud800","\\ud801","\xef\xbf\xbd"]}',
    rb'{"type":"entity","name":"\ud800","entityType":"x","observations":[]}',
    rb'{"type":"entity","name":"\ud801","entityType":"x","observations":[]}',
    rb'{"type":"relation","from":"\ud800","to":"\ud801","relationType":"\udfff r"}',
]


def test_half_of_a_surrogate_pair_is_readable_and_different_texts_stay_different(
    path: Path,
) -> None:
    path.write_bytes(b"\n".join(HALF_PAIRS))
    memory = opened(path)
    graph = entities.read_all(memory)
    assert graph.entities[0].texts == ("cut \ufffd", "whole")
    assert len({entity.name for entity in graph.entities}) == 4
    assert len(set(graph.entities[1].texts)) == 3
    assert graph.entities[1].texts[2] == "\ufffd"
    (relation,) = graph.relations
    assert (relation.source, relation.target) == (graph.entities[2].name, graph.entities[3].name)
    assert memory.store.check() == []


def test_a_write_leaves_half_of_a_surrogate_pair_as_it_was(path: Path) -> None:
    path.write_bytes(b"\n".join(HALF_PAIRS))
    memory = opened(path)
    entities.create(memory, [EntityDraft("new", "x")], by="test")
    facts.remove(memory, [("A", ("whole",))], by="test")
    new = b'{"type":"entity","name":"new","entityType":"x","observations":[]}'
    first = HALF_PAIRS[0].replace(b',"whole"', b"")
    assert path.read_bytes().split(b"\n") == [first, *HALF_PAIRS[1:4], new, HALF_PAIRS[4]]
    facts.remove(memory, [("A", ("cut \ufffd",))], by="test")
    assert b"cut" not in path.read_bytes()
    assert not Path(f"{path}.rejected").exists()


def test_a_line_of_another_type_is_no_warning(path: Path, caplog: pytest.LogCaptureFixture) -> None:
    path.write_text('{"new":"data"}\n')
    with caplog.at_level("INFO"):
        assert entities.read_all(opened(path)).entities == []
    assert [record.levelname for record in caplog.records] == ["INFO"]


def test_a_legacy_file_with_bad_lines_is_migrated_as_far_as_it_can_be_read(
    path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    good = '{"type":"entity","name":"A","entityType":"x","observations":[]}'
    path.with_suffix(".json").write_text(f'{good}\n{{"type":"note"}}\n{{"type":"entity","na')
    adopt_legacy(path)
    assert "2 of its lines cannot be read" in caplog.text
    memory = opened(path)
    assert [entity.name for entity in entities.read_all(memory).entities] == ["A"]
    entities.create(memory, [EntityDraft("B", "x")], by="test")
    assert Path(f"{path}.rejected").read_text() == '{"type":"note"}\n{"type":"entity","na\n'
    assert not path.with_suffix(".json").exists()


@pytest.mark.parametrize(
    "content", ['{\n  "compilerOptions": {}\n}', "hello", '[{"type":"entity"}]']
)
def test_a_legacy_file_without_a_readable_line_is_left_alone(path: Path, content: str) -> None:
    legacy = path.with_suffix(".json")
    legacy.write_text(content)
    adopt_legacy(path)
    assert (legacy.read_text(), path.exists()) == (content, False)


def test_a_legacy_file_is_left_alone_beside_a_newer_one(path: Path) -> None:
    path.write_text("")
    legacy = path.with_suffix(".json")
    legacy.write_text('{"type":"entity","name":"A","entityType":"x","observations":[]}')
    adopt_legacy(path)
    assert legacy.exists() and path.read_text() == ""
