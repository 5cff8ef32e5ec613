"""Damaged and malicious input.

Every importer takes what is valid, reports the rest, and harms nothing.
"""

import json
import os
from pathlib import Path
from zipfile import ZIP_DEFLATED, ZipFile

import apsw
import pytest

from polymnia.engine.graph import entities
from polymnia.engine.memory import Memory
from polymnia.engine.transfer.intake import take_in
from polymnia.errors import BadInput, PolymniaError
from polymnia.importers.base import Report
from polymnia.importers.registry import KINDS, open_source
from polymnia.importers.source import MIN_BOMB_BYTES, Source
from polymnia.markdown.sync import sync_folder
from polymnia.model import Entity
from tests.importers.hostile import WRONG, places, replace_text, replaced, texts_in
from tests.importers.samples import FILES, SAMPLES, make_memory_service_file, read_items
from tests.oracle import MemoryStore

JSON_FILES = [name for name in FILES if name.endswith(".json") and "/" not in name]


@pytest.mark.parametrize("name", JSON_FILES)
def test_a_wrong_type_in_any_place_is_no_failure(name: str, tmp_path: Path) -> None:
    whole = json.loads((SAMPLES / name).read_text("utf-8"))
    kind, _, _ = read_items(SAMPLES / name)
    for place in places(whole):
        for wrong in WRONG:
            (tmp_path / "input").write_text(json.dumps(replaced(whole, place, wrong)), "utf-8")
            _, items, _ = read_items(tmp_path / "input", kind)
            take_in(Memory(MemoryStore()), items, by="test")


@pytest.mark.parametrize("name", JSON_FILES)
def test_texts_of_a_megabyte_and_characters_that_cannot_be_stored_are_taken(
    name: str, tmp_path: Path
) -> None:
    whole = json.loads((SAMPLES / name).read_text("utf-8"))
    kind, items, _ = read_items(SAMPLES / name)
    facts = [text for item in items if isinstance(item, Entity) for text in item.texts]
    stored = [text for text in texts_in(whole) if any(fact.endswith(text) for fact in facts)]
    long = "word " * 190_000 + "\x00 \ud83d end"
    changed = replace_text(whole, max(stored, key=len), long)
    (tmp_path / "input").write_text(json.dumps(changed), "utf-8")
    _, items, _ = read_items(tmp_path / "input", kind)
    memory = Memory(MemoryStore())
    take_in(memory, items, by="test")
    told = [text for entity in entities.read_all(memory).entities for text in entity.texts]
    assert any(len(item) > 900_000 and "\ufffd \ufffd end" in item for item in told)


def test_lines_that_are_no_entities_are_reported_with_their_numbers(tmp_path: Path) -> None:
    lines = [
        '{"type":"entity","name":"A","entityType":"x","observations":["' + "y" * (1 << 20) + '"]}',
        "not json",
        '{"type":"entity","name":7,"entityType":[],"observations":{"a":1}}',
        '{"type":"entity","entityType":"x"}',
        "[" * 100_000,
        '{"type":"other"}',
        "",
        '{"type":"relation","from":"A","to":"","relationType":"x"}',
    ]
    (tmp_path / "memory.json").write_text("\n".join(lines), "utf-8")
    _, items, report = read_items(tmp_path / "memory.json")
    assert [
        (item.name, item.type, len(item.facts)) for item in items if isinstance(item, Entity)
    ] == [
        ("A", "x", 1),
        ("7", "entity", 0),
    ]
    assert [(part.reason, part.places) for part in report.dropped_parts] == [
        ("not valid JSON", ["line 2", "line 5"]),
        ("neither an entity nor a relation", ["line 4", "line 6", "line 8"]),
    ]


def test_a_loop_of_messages_ends(tmp_path: Path) -> None:
    message = {"author": {"role": "user"}, "content": {"parts": ["hello"]}}
    nodes = {"a": {"parent": "b", "message": message}, "b": {"parent": "a", "message": message}}
    (tmp_path / "input").write_text(json.dumps([{"mapping": nodes, "current_node": "a"}]), "utf-8")
    _, items, _ = read_items(tmp_path / "input")
    assert [len(item.facts) for item in items if isinstance(item, Entity)] == [2]


def test_an_archive_that_unpacks_to_too_much_is_refused(tmp_path: Path) -> None:
    with ZipFile(tmp_path / "bomb.zip", "w", ZIP_DEFLATED) as archive:
        archive.writestr("conversations.json", b"[" + b" " * (MIN_BOMB_BYTES + 1) + b"]")
    with pytest.raises(BadInput, match="would unpack to 64 MB; unpack it yourself"):
        read_items(tmp_path / "bomb.zip")


def test_a_damaged_archive_is_refused(tmp_path: Path) -> None:
    with ZipFile(tmp_path / "export.zip", "w") as archive:
        archive.writestr("conversations.json", (SAMPLES / "claude.json").read_bytes())
    data = bytearray((tmp_path / "export.zip").read_bytes())
    data[100:200] = bytes(100)
    (tmp_path / "export.zip").write_bytes(data)
    with pytest.raises(BadInput, match="damaged or encrypted archive"):
        read_items(tmp_path / "export.zip")


def test_links_out_of_a_folder_are_not_followed(tmp_path: Path) -> None:
    (tmp_path / "secret.json").write_bytes((SAMPLES / "claude.json").read_bytes())
    folder = tmp_path / "export"
    folder.mkdir()
    (folder / "conversations.json").symlink_to(tmp_path / "secret.json")
    (folder / "loop").symlink_to(folder)
    source = Source(str(folder))
    assert (source.names, source.skipped) == (
        (),
        [("conversations.json", "a link or a special file")],
    )


def test_wrong_types_and_foreign_code_in_a_sqlite_file_do_no_harm(tmp_path: Path) -> None:
    path = make_memory_service_file(tmp_path / "memories.db")
    connection = apsw.Connection(str(path))
    connection.execute(
        "INSERT INTO memories (content_hash, content, tags, memory_type, created_at, deleted_at) "
        "VALUES (x'ff00', x'fe', x'00', 7, 'soon', NULL), ('n', 'text', '[[', x'01', 1e300, NULL)"
    )
    connection.close()
    before = path.read_bytes()
    _, items, report = read_items(path)
    assert [item.name for item in items if isinstance(item, Entity)][-1] == "text (n)"
    assert ("a memory without content", 1) in [
        (part.reason, part.count) for part in report.dropped_parts
    ]
    assert path.read_bytes() == before


def test_wrong_types_in_a_knowledge_graph_of_mempalace_do_no_harm(tmp_path: Path) -> None:
    path = tmp_path / "palace.sqlite3"
    path.write_bytes((SAMPLES / "mempalace.sqlite3").read_bytes())
    connection = apsw.Connection(str(path))
    connection.execute(
        "INSERT INTO entities VALUES (x'ff', x'fe', 7, x'00', 'soon'), ('z', 'Zoë', x'01', '[[', "
        "1e300), "
        "('y', 'Yan', 'person', '{\"a\": {\"b\": [1]}, \"c\": 7}', NULL)"
    )
    connection.execute(
        "INSERT INTO triples (id, subject, predicate, object, valid_from, valid_to) VALUES "
        "('1', 'z', 'knows', 'nobody', NULL, NULL), ('2', 'z', x'00', 'y', 'soon', 1e300), "
        "('3', 'z', 'knows', 'z', 7, x'01')"
    )
    connection.close()
    before = path.read_bytes()
    _, items, report = read_items(path)
    take_in(Memory(MemoryStore()), items, by="test")
    assert {item.name: item.texts for item in items if isinstance(item, Entity)}["Yan"] == ("c: 7",)
    assert [(part.reason, part.places) for part in report.dropped_parts] == [
        ("an entity without a name", ["entity 7"]),
        ("a fact without both ends and a type", ["triple 6", "triple 7"]),
    ]
    assert path.read_bytes() == before


def test_a_view_that_poses_as_a_table_is_not_read(tmp_path: Path) -> None:
    connection = apsw.Connection(str(tmp_path / "view.db"))
    connection.execute(
        "CREATE TABLE t (x); CREATE VIEW memories AS "
        "WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n) "
        "SELECT i AS content_hash, i AS content, i AS memory_type FROM n"
    )
    connection.close()
    with pytest.raises(BadInput, match="unknown format"):
        read_items(tmp_path / "view.db")


@pytest.mark.parametrize(
    "data", [b"", b"\x00\xff" * 500, b"{}", b"[]", b"hello", b'{"a":1}\n{"b":2}', b"[" * 200_000]
)
def test_an_unknown_format_is_refused(data: bytes, tmp_path: Path) -> None:
    (tmp_path / "input").write_bytes(data)
    with pytest.raises(BadInput, match=r"unknown format|is empty"):
        read_items(tmp_path / "input")


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize(
    "data", [b"", b"\x00\xff" * 500, b"{}", b"[]", b"[1]", b"hello", b"[" * 200_000]
)
def test_a_kind_that_the_input_is_not_gives_nothing_or_a_sentence(
    kind: str, data: bytes, tmp_path: Path
) -> None:
    (tmp_path / "input").write_bytes(data)
    try:
        _, items, _ = read_items(tmp_path / "input", kind)
    except PolymniaError:
        return
    assert items == []


def test_a_file_whose_name_is_not_utf_8_is_skipped_in_a_folder(tmp_path: Path) -> None:
    (tmp_path / os.fsdecode(b"Zo\xeb.md")).write_text("[[a]]", "utf-8")
    (tmp_path / "b.md").write_text("[[c]]", "utf-8")
    source, report = Source(str(tmp_path)), Report()
    assert [
        item.name for item in open_source(source, None, report)[1] if isinstance(item, Entity)
    ] == ["b"]
    assert [(part.reason, part.places) for part in report.dropped_parts] == [
        ("the name of the file is not UTF-8; rename it", ["Zo\ufffd.md"])
    ]
    with pytest.raises(BadInput, match="the name of the file is not UTF-8; rename it"):
        sync_folder(Memory(MemoryStore()), tmp_path, by="test")


def test_a_single_file_and_a_project_may_have_any_name(tmp_path: Path) -> None:
    folder = tmp_path / os.fsdecode(b"Zo\xeb")
    folder.mkdir()
    session = {
        "type": "user",
        "sessionId": "",
        "message": {"content": "hello"},
        "timestamp": "2026-03-01T10:00:00Z",
    }
    (folder / os.fsdecode(b"\xff.jsonl")).write_text(json.dumps(session), "utf-8")
    (folder / "CLAUDE.md").write_text("be brief", "utf-8")
    for path in folder.iterdir():
        _, items, _ = read_items(path)
        take_in(Memory(MemoryStore()), items, by="test")
        assert len(items) == 1
