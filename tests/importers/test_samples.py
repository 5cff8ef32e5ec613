"""Every importer reads a sample of its format as expected, recognized by content alone."""

import json
from pathlib import Path
from zipfile import ZipFile

import pytest
from msgspec.json import decode, encode

from polymnia.engine.facts.secrets import SecretRule
from polymnia.engine.graph import entities
from polymnia.engine.memory import Memory
from polymnia.engine.transfer.intake import Item, take_in
from polymnia.errors import BadInput
from polymnia.importers.base import Report
from polymnia.importers.registry import IMPORTERS, find_importer
from polymnia.importers.source import Source
from polymnia.model import Entity
from tests.importers.samples import (
    FILES,
    GOLDEN,
    SAMPLES,
    golden,
    make_memory_service_file,
    plain,
    read_items,
    sample,
)
from tests.oracle import MemoryStore


@pytest.mark.parametrize("name", FILES)
def test_a_sample_gives_the_golden_result(name: str, tmp_path: Path) -> None:
    kind, items, _ = read_items(sample(name, tmp_path))
    assert kind == FILES[name]
    assert plain(items) == golden(name, kind), f"run python -m tests.importers.samples {name}"


@pytest.mark.parametrize("name", FILES)
def test_the_parts_of_a_sample_are_counted_for_the_progress(name: str, tmp_path: Path) -> None:
    *_, report = read_items(sample(name, tmp_path))
    assert report.parts_read == report.parts_in_all
    assert report.parts_in_all > 0 or name == "reference.jsonl"  # its lines are counted


@pytest.mark.parametrize("name", FILES)
def test_taking_a_sample_in_twice_changes_nothing(name: str, tmp_path: Path) -> None:
    memory = Memory(MemoryStore())
    path = sample(name, tmp_path)
    first = take_in(memory, read_items(path)[1], by="test")
    before = entities.read_all(memory)
    again = take_in(memory, read_items(path)[1], by="test")
    assert first.entities.new > 0
    assert (again.entities.new, again.entities.merged, again.relations.new, again.changes) == (
        0,
        0,
        0,
        [],
    )
    assert entities.read_all(memory) == before


def test_every_importer_of_another_program_has_a_sample() -> None:
    ours = {"store", "document", "markdown"}
    assert {importer.kind for importer in IMPORTERS} - ours == set(FILES.values())


def test_what_was_deleted_or_replaced_there_is_reported(tmp_path: Path) -> None:
    _, _, report = read_items(make_memory_service_file(tmp_path / "memories.db"))
    assert [(part.reason, part.places) for part in report.dropped_parts] == [
        ("superseded there by a newer version", ["memory 2"]),
        ("deleted there", ["memory 4"]),
        ("an association with a memory that is not there", ["association 2"]),
    ]


@pytest.mark.parametrize("kind", ["chatgpt", "claude"])
@pytest.mark.parametrize("form", ["folder", "zip"])
def test_an_export_is_read_from_its_folder_and_its_archive(
    kind: str, form: str, tmp_path: Path
) -> None:
    data = (SAMPLES / f"{kind}.json").read_bytes()
    path = tmp_path / "export"
    if form == "folder":
        (path / "data").mkdir(parents=True)
        (path / "data" / "conversations.json").write_bytes(data)
    else:
        with ZipFile(path, "w") as archive:
            archive.writestr("../../data/conversations.json", data)
    found, items, _ = read_items(path)
    assert found == kind
    assert plain(items) == json.loads((GOLDEN / f"{kind}-{kind}.json").read_text("utf-8"))


@pytest.mark.parametrize(
    "name", [file for file in FILES if (SAMPLES / file).is_dir() and file != "instructions"]
)
def test_a_folder_is_read_from_an_archive(name: str, tmp_path: Path) -> None:
    with ZipFile(tmp_path / "input", "w") as archive:
        for path in sorted((SAMPLES / name).rglob("*")):
            archive.write(path, path.relative_to(SAMPLES / name).as_posix())
    kind, items, _ = read_items(tmp_path / "input")
    assert kind == FILES[name]
    assert sorted(map(encode, decode(encode(plain(items))))) == sorted(
        map(encode, golden(name, kind))
    )


def test_projects_and_memories_of_claude_are_read(tmp_path: Path) -> None:
    with ZipFile(tmp_path / "export.zip", "w") as archive:
        memories = [
            {
                "conversations_memory": "**Work**\n\nMaintains Polymnia.",
                "project_memories": {"p": "Use SQLite."},
            }
        ]
        archive.writestr("memories.json", json.dumps(memories))
        docs = [{"filename": "plan.md", "content": "ship it"}]
        project = {
            "uuid": "p",
            "name": "Polymnia",
            "description": "a server",
            "prompt_template": "Be brief.",
            "docs": docs,
        }
        archive.writestr("projects/p.json", json.dumps(project))
    kind, items, _ = read_items(tmp_path / "export.zip")
    told = [(item.name, item.summary, item.texts) for item in items if isinstance(item, Entity)]
    assert kind == "claude"
    assert told == [
        ("Claude memory", None, ("**Work**", "Maintains Polymnia.", "Use SQLite.")),
        ("Polymnia", "a server", ("Be brief.", "plan.md: ship it")),
    ]


def test_an_archive_of_projects_has_a_file_for_each(tmp_path: Path) -> None:
    with ZipFile(tmp_path / "projects-000.zip", "w") as archive:
        for number in range(2):
            project = {
                "uuid": str(number),
                "name": f"Plan {number}",
                "docs": [],
                "prompt_template": "Be brief.",
            }
            archive.writestr(
                f"0b6bdea6-1f6b-4d3c-8f6e-00000000000{number}.json", json.dumps(project)
            )
    kind, items, _ = read_items(tmp_path / "projects-000.zip")
    assert (kind, [item.name for item in items if isinstance(item, Entity)]) == (
        "claude",
        ["Plan 0", "Plan 1"],
    )


def test_a_folder_of_archives_is_refused_with_advice(tmp_path: Path) -> None:
    with ZipFile(tmp_path / "projects-000.zip", "w") as archive:
        archive.writestr("projects.json", "[]")
    with pytest.raises(
        BadInput,
        match="holds zip archives, which are not opened here; import each by itself",
    ):
        read_items(tmp_path)


def test_what_chatgpt_wrote_to_a_tool_is_no_turn(tmp_path: Path) -> None:
    code = {"author": {"role": "assistant"}, "recipient": "python", "content": {"text": "print(1)"}}
    said = {"author": {"role": "assistant"}, "recipient": "all", "content": {"parts": ["It is 1."]}}
    nodes = {"a": {"parent": None, "message": code}, "b": {"parent": "a", "message": said}}
    (tmp_path / "input").write_text(
        json.dumps([{"id": "c", "mapping": nodes, "current_node": "b"}]), "utf-8"
    )
    _, items, _ = read_items(tmp_path / "input")
    assert [item.texts for item in items if isinstance(item, Entity)] == [("assistant: It is 1.",)]


def test_a_turn_that_seems_to_contain_a_secret_is_reported(tmp_path: Path) -> None:
    text = (SAMPLES / "claude.json").read_text("utf-8")
    token = "ghp_" + "a1B2c3D4e5F6" * 3
    (tmp_path / "chats.json").write_text(text.replace("Twice a day.", f"It is {token}"), "utf-8")
    _, _, report = read_items(tmp_path / "chats.json")
    assert [(place.reason, place.count) for place in report.secret_places] == [
        ("a GitHub token", 1)
    ]


@pytest.mark.parametrize(("rule", "is_kept"), [("warn", False), ("refuse", False), ("off", True)])
def test_no_text_of_a_chat_export_brings_a_secret(
    rule: SecretRule, is_kept: bool, tmp_path: Path
) -> None:
    token = "ghp_" + "a1B2c3D4e5F6" * 3
    turn = {"sender": "human", "text": f"Use {token}"}
    chat = {"uuid": "c1", "name": f"Key {token}", "summary": f"They use {token}"}
    project = {"uuid": "p1", "name": "Shop", "docs": [{"filename": "env", "content": token}]}
    memory = {"conversations_memory": f"Ada deploys with {token}."}
    said = {"author": {"role": "user"}, "content": {"parts": [f"Use {token}"]}}
    tree = {"a": {"parent": None, "message": said}}
    exports = {
        "claude/conversations.json": [{**chat, "chat_messages": [turn]}],
        "claude/projects.json": [project],
        "claude/memories.json": [memory],
        "chatgpt/conversations.json": [{"id": "c2", "title": f"Key {token}", "mapping": tree}],
    }
    for name, content in exports.items():
        path = tmp_path / name
        path.parent.mkdir(exist_ok=True)
        path.write_text(json.dumps(content), "utf-8")
    report = Report(rule)
    items: list[Item] = []
    for folder in ("claude", "chatgpt"):
        source = Source(str(tmp_path / folder))
        items += find_importer(source).read(source, report)
    assert len(items) == 4
    assert [token in str(item) for item in items] == [is_kept] * 4
    counts = [(place.reason, place.count) for place in report.secret_places]
    assert counts == ([] if is_kept else [("a GitHub token", 7)])


def test_an_archive_is_opened_once(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    with ZipFile(tmp_path / "vault.zip", "w") as archive:
        for number in range(20):
            archive.writestr(f"page {number}.md", f"see [[page {number + 1}]]")
    opened: list[Path] = []

    class CountedZipFile(ZipFile):
        def __init__(self, file: Path) -> None:
            opened.append(file)
            super().__init__(file)

    monkeypatch.setattr("zipfile.ZipFile", CountedZipFile)
    kind, items, _ = read_items(tmp_path / "vault.zip")
    assert (kind, len(items), len(opened)) == ("obsidian", 40, 1)


@pytest.mark.parametrize(
    ("files", "kind"),
    [
        ({"projects/plan.md": "see [[other]]", "other.md": "text"}, "obsidian"),
        (
            {"projects/1.json": '{"uuid": "1", "name": "Plan", "docs": [], "description": "x"}'},
            "claude",
        ),
    ],
)
def test_a_folder_with_projects_is_no_store(
    files: dict[str, str], kind: str, tmp_path: Path
) -> None:
    for name, text in files.items():
        (tmp_path / name).parent.mkdir(exist_ok=True)
        (tmp_path / name).write_text(text, "utf-8")
    assert read_items(tmp_path)[0] == kind


@pytest.mark.parametrize(
    ("content", "texts"),
    [
        (
            {
                "entities": [{"name": "A", "entityType": "t", "observations": "one"}],
                "relations": [],
            },
            [("one",)],
        ),
        ({"entities": [], "relations": []}, []),
    ],
)
def test_an_object_without_our_header_is_read_as_the_reference_servers(
    content: dict[str, object], texts: list[tuple[str, ...]], tmp_path: Path
) -> None:
    (tmp_path / "memory.json").write_text(json.dumps(content), "utf-8")
    kind, items, _ = read_items(tmp_path / "memory.json")
    assert (kind, [item.texts for item in items if isinstance(item, Entity)]) == (
        "memory-json",
        texts,
    )


def test_what_was_said_in_voice_mode_of_chatgpt_is_read(tmp_path: Path) -> None:
    spoken = {"content_type": "audio_transcription", "text": "My dog is called Rex"}
    parts = [spoken, {"content_type": "audio_asset_pointer", "asset_pointer": "file"}, "and typed"]
    node = {
        "message": {
            "author": {"role": "user"},
            "content": {"content_type": "multimodal_text", "parts": parts},
        }
    }
    (tmp_path / "conversations.json").write_text(
        json.dumps([{"mapping": {"a": node}, "current_node": "a"}]), "utf-8"
    )
    _, items, _ = read_items(tmp_path / "conversations.json")
    assert [item.texts for item in items if isinstance(item, Entity)] == [
        ("user: My dog is called Rex\nand typed",)
    ]
