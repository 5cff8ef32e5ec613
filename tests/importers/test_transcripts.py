"""Transcripts of Claude Code and Codex.

What counts as said, growing files, folders, and hostile lines.
"""

import json
from pathlib import Path
from typing import Any

import pytest

from polymnia.engine.graph import entities
from polymnia.engine.memory import Memory
from polymnia.engine.transfer.intake import take_in
from polymnia.importers.base import Report
from polymnia.importers.registry import find_importer
from polymnia.importers.source import Source
from polymnia.model import Entity
from polymnia.stores import open_store
from tests.importers.hostile import WRONG, places, replaced
from tests.importers.samples import SAMPLES, read_items
from tests.oracle import MemoryStore

KINDS = ("claude-code", "codex")


def said(
    kind: str, speaker: str, text: str, at: str = "2026-03-01T10:00:00Z", **more: object
) -> dict[str, Any]:
    """Return a line of a transcript."""
    if kind == "codex":
        block = {"type": "input_text" if speaker == "user" else "output_text", "text": text}
        payload = {"type": "message", "role": speaker, "content": [block]}
        return {"timestamp": at, "type": "response_item", "payload": payload, **more}
    message = {
        "role": speaker,
        "content": text if speaker == "user" else [{"type": "text", "text": text}],
    }
    return {"type": speaker, "sessionId": "5e55", "message": message, "timestamp": at, **more}


def write(path: Path, *lines: dict[str, Any]) -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text("".join([json.dumps(line) + "\n" for line in lines]), "utf-8")
    return path


def texts(path: Path, kind: str) -> list[str]:
    _, items, _ = read_items(path, kind)
    return [text for item in items if isinstance(item, Entity) for text in item.texts]


@pytest.mark.parametrize("mark", ["isMeta", "isSidechain", "isCompactSummary", "isApiErrorMessage"])
def test_lines_that_nobody_said_are_left_out(mark: str, tmp_path: Path) -> None:
    noise = said("claude-code", "user", "x") | {mark: True}
    path = write(tmp_path / "s.jsonl", said("claude-code", "user", "hello"), noise)
    assert texts(path, "claude-code") == ["user: hello"]


@pytest.mark.parametrize(
    ("kind", "text"),
    [
        ("claude-code", "<command-name>/clear</command-name>"),
        ("claude-code", "<local-command-stdout>done</local-command-stdout>"),
        ("claude-code", "[Request interrupted by user]"),
        ("claude-code", "<system-reminder>be quick</system-reminder>"),
        ("codex", "<environment_context><cwd>/home/ada</cwd></environment_context>"),
        ("codex", "# AGENTS.md instructions for /home/ada"),
    ],
)
def test_what_the_program_writes_for_the_user_is_left_out(
    kind: str, text: str, tmp_path: Path
) -> None:
    path = write(tmp_path / "s.jsonl", said(kind, "user", text), said(kind, "user", "hello"))
    assert texts(path, kind) == ["user: hello"]


def test_what_the_program_writes_for_the_model_is_left_out(tmp_path: Path) -> None:
    empty, synthetic = (
        said("claude-code", "assistant", "(no content)"),
        said("claude-code", "assistant", "No response"),
    )
    synthetic["message"]["model"] = "<synthetic>"
    path = write(tmp_path / "s.jsonl", said("claude-code", "user", "hello"), empty, synthetic)
    assert texts(path, "claude-code") == ["user: hello"]


@pytest.mark.parametrize(
    ("kind", "text"),
    [
        (
            "claude-code",
            "<ide_opened_file>The user opened a file.</ide_opened_file>\n\nexplain this",
        ),
        ("claude-code", "<ide_selection>lines 1 to 2:\nx = 1</ide_selection>explain this"),
        (
            "codex",
            "# Context from my IDE setup:\n\n## Active file: a.py\n\n"
            "## My request for Codex:\nexplain this",
        ),
        (
            "codex",
            "# Files mentioned by the user:\n\n## a.png: /a.png\n\n"
            "## My request for Codex:\nexplain this",
        ),
    ],
)
def test_what_an_editor_adds_to_a_turn_is_cut_out(kind: str, text: str, tmp_path: Path) -> None:
    _, items, _ = read_items(write(tmp_path / "s.jsonl", said(kind, "user", text)), kind)
    (entity,) = [item for item in items if isinstance(item, Entity)]
    assert entity.texts == ("user: explain this",)
    assert entity.name.startswith("explain this (")


def test_reminders_inside_a_turn_are_cut_out(tmp_path: Path) -> None:
    text = "one <system-reminder>x</system-reminder>two <system-reminder>open"
    assert texts(write(tmp_path / "s.jsonl", said("claude-code", "user", text)), "claude-code") == [
        "user: one two <system-reminder>open"
    ]


@pytest.mark.parametrize(
    ("line", "summary"),
    [
        ({"type": "summary", "summary": "Deploys", "leafUuid": "1"}, "Deploys"),
        ({"type": "summary", "summary": "Of another session", "leafUuid": "2"}, None),
        ({"type": "ai-title", "aiTitle": "Deploys", "sessionId": "5e55"}, "Deploys"),
        ({"type": "custom-title", "customTitle": "Deploys", "sessionId": "5e55"}, "Deploys"),
    ],
)
def test_the_title_of_a_session_is_its_summary(
    line: dict[str, Any], summary: str | None, tmp_path: Path
) -> None:
    path = write(tmp_path / "s.jsonl", line, said("claude-code", "user", "hello", uuid="1"))
    _, items, _ = read_items(path)
    assert [item.summary for item in items if isinstance(item, Entity)] == [summary]


@pytest.mark.parametrize(
    "directory", ["/home/ada/shop", "/home/ada/shop/", "C:\\ada\\shop", "shop"]
)
def test_the_directory_of_a_session_is_its_tag(directory: str, tmp_path: Path) -> None:
    path = write(tmp_path / "s.jsonl", said("claude-code", "user", "hello", cwd=directory))
    _, items, _ = read_items(path)
    assert [item.tags for item in items if isinstance(item, Entity)] == [("shop",)]


def test_what_was_typed_while_the_agent_worked_is_taken(tmp_path: Path) -> None:
    typed = {
        "type": "attachment",
        "sessionId": "5e55",
        "attachment": {"type": "queued_command", "prompt": "and tests"},
    }
    path = write(tmp_path / "s.jsonl", said("claude-code", "user", "hello"), typed)
    assert texts(path, "claude-code") == ["user: hello", "user: and tests"]


def test_the_first_turn_names_a_session_unless_it_seems_to_contain_a_secret(tmp_path: Path) -> None:
    token = "ghp_" + "a1B2c3D4e5F6" * 3
    _, items, report = read_items(
        write(tmp_path / "s.jsonl", said("claude-code", "user", f"use {token}"))
    )
    assert [item.name for item in items if isinstance(item, Entity)] == [
        "Conversation (2026-03-01, 5e55)"
    ]
    assert [place.reason for place in report.secret_places] == ["a GitHub token"]


def test_a_secret_is_left_out_where_secrets_are_refused(tmp_path: Path) -> None:
    token = "ghp_" + "a1B2c3D4e5F6" * 3
    source = Source(str(write(tmp_path / "s.jsonl", said("claude-code", "user", f"use {token}"))))
    (entity,) = find_importer(source).read(source, Report("refuse"))
    assert isinstance(entity, Entity)
    assert entity.texts == ("user: [left out: it may contain a GitHub token]",)


@pytest.mark.parametrize("kind", KINDS)
def test_a_folder_has_a_conversation_for_each_session(kind: str, tmp_path: Path) -> None:
    for number in range(3):
        write(tmp_path / "2026" / f"{number}.jsonl", said(kind, "user", f"hello {number}"))
    (tmp_path / "2026" / "notes.md").write_text("# other files are no transcripts")
    found, items, _ = read_items(tmp_path)
    assert (found, len(items)) == (kind, 3)


def test_a_turn_that_was_copied_into_another_session_is_taken_once(tmp_path: Path) -> None:
    first = said("claude-code", "user", "hello", uuid="1")
    write(tmp_path / "a.jsonl", first)
    write(
        tmp_path / "b.jsonl",
        first | {"sessionId": "f02c"},
        said("claude-code", "user", "more", uuid="2"),
    )
    assert texts(tmp_path, "claude-code") == ["user: hello", "user: more"]


@pytest.mark.parametrize("kind", KINDS)
def test_a_growing_file_adds_only_what_is_new(kind: str, tmp_path: Path) -> None:
    memory, path = Memory(MemoryStore()), tmp_path / "s.jsonl"
    lines = [said(kind, "user", "again", f"2026-03-01T10:00:0{number}Z") for number in range(4)]
    write(path, *lines[:2])
    take_in(memory, read_items(path)[1], by="test")
    write(path, *lines)
    receipt = take_in(memory, read_items(path)[1], by="test")
    assert (receipt.entities.new, receipt.entities.merged, receipt.facts) == (0, 1, 2)


def test_an_interrupted_import_of_many_sessions_continues(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for number in range(30):
        lines = [said("codex", "user", f"{number}: {turn}") for turn in range(400)]
        write(tmp_path / f"{number:02}.jsonl", *lines)
    whole, resumed = [Memory(open_store(":memory:")) for _ in range(2)]
    take_in(whole, read_items(tmp_path)[1], by="test")
    monkeypatch.setattr(resumed.store, "best_batch", 500)

    def interrupt(done: int) -> None:
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        take_in(resumed, read_items(tmp_path)[1], by="test", progress=interrupt)
    first = entities.read_all(resumed).entities
    assert 0 < len(first) < 30
    take_in(resumed, read_items(tmp_path)[1], by="test")
    found = [
        {entity.name: entity.texts for entity in entities.read_all(memory).entities}
        for memory in (whole, resumed)
    ]
    assert found[0] == found[1]
    for memory in (whole, resumed):
        memory.store.close()


@pytest.mark.parametrize("kind", KINDS)
def test_an_incomplete_last_line_is_reported(kind: str, tmp_path: Path) -> None:
    path = write(tmp_path / "s.jsonl", said(kind, "user", "hello"), said(kind, "user", "more"))
    path.write_bytes(path.read_bytes()[:-20])
    _, items, report = read_items(path)
    assert [item.texts for item in items if isinstance(item, Entity)] == [("user: hello",)]
    assert [(part.reason, part.places) for part in report.dropped_parts] == [
        ("the last line is incomplete", ["s.jsonl, line 2"])
    ]


@pytest.mark.parametrize("kind", KINDS)
def test_a_wrong_type_in_any_place_is_no_failure(kind: str, tmp_path: Path) -> None:
    lines = [
        json.loads(line) for line in (SAMPLES / f"{kind}.jsonl").read_text("utf-8").splitlines()
    ]
    wanted = {"user", "assistant", "session_meta", "response_item", "queue-operation"}
    spoiled = [
        replaced(line, place, wrong)
        for line in lines
        if line["type"] in wanted
        for place in places(line)
        for wrong in WRONG
    ]
    (tmp_path / "input").write_text("".join([json.dumps(line) + "\n" for line in spoiled]), "utf-8")
    _, items, _ = read_items(tmp_path / "input", kind)
    take_in(Memory(MemoryStore()), items, by="test")
    assert len(items) == 1


@pytest.mark.parametrize("kind", KINDS)
def test_long_lines_and_characters_that_cannot_be_stored_are_taken(
    kind: str, tmp_path: Path
) -> None:
    path = write(tmp_path / "s.jsonl", said(kind, "user", "word " * 190_000 + "\x00 \ud83d end"))
    memory = Memory(MemoryStore())
    take_in(memory, read_items(path)[1], by="test")
    ((text,),) = [entity.texts for entity in entities.read_all(memory).entities]
    assert text.endswith("\ufffd \ufffd end")


def test_noise_between_the_lines_is_reported_and_harms_nothing(tmp_path: Path) -> None:
    path = write(tmp_path / "s.jsonl", said("claude-code", "user", "hello"))
    noise = (
        b"\x00\xff" * 500
        + b"\n"
        + b"[" * 200_000
        + b"\n\n"
        + b'{"type":"user"'
        + b" " * (1 << 20)
        + b"\n[]\n7\n"
    )
    path.write_bytes(noise + path.read_bytes())
    _, items, report = read_items(path, "claude-code")
    assert [item.texts for item in items if isinstance(item, Entity)] == [("user: hello",)]
    assert [(part.reason, part.count) for part in report.dropped_parts] == [
        ("not a JSON object", 5)
    ]


def test_links_in_a_folder_of_sessions_are_not_followed(tmp_path: Path) -> None:
    outside = write(tmp_path / "outside.jsonl", said("claude-code", "user", "secret"))
    folder = tmp_path / "projects"
    write(folder / "a" / "s.jsonl", said("claude-code", "user", "hello"))
    (folder / "a" / "linked.jsonl").symlink_to(outside)
    (folder / "a" / "loop").symlink_to(folder)
    assert texts(folder, "claude-code") == ["user: hello"]


def test_an_id_with_a_path_in_it_is_only_a_name(tmp_path: Path) -> None:
    line = said("claude-code", "user", "hello") | {"sessionId": "../../etc/passwd"}
    _, items, _ = read_items(write(tmp_path / "s.jsonl", line))
    assert [item.name for item in items if isinstance(item, Entity)] == [
        "hello (2026-03-01, ../../et)"
    ]


def test_rollouts_of_the_early_form_are_read(tmp_path: Path) -> None:
    question = {
        "type": "message",
        "role": "user",
        "content": [{"type": "input_text", "text": "When do we deploy?"}],
    }
    answer = {
        "type": "message",
        "role": "assistant",
        "content": [{"type": "output_text", "text": "On Fridays."}],
    }
    start = {"id": "5973b6c0-94b8", "timestamp": "2025-05-07T17:24:21Z", "instructions": None}
    call = {"type": "function_call", "name": "shell", "arguments": "{}"}
    path = write(
        tmp_path / "rollout.jsonl", start, {"record_type": "state"}, question, call, answer
    )
    kind, items, report = read_items(path)
    (entity,) = [item for item in items if isinstance(item, Entity)]
    assert (kind, entity.name) == ("codex", "When do we deploy? (2025-05-07, 5973b6c0)")
    assert entity.texts == ("user: When do we deploy?", "assistant: On Fridays.")
    assert {fact.valid_at for fact in entity.facts} == {entity.created_at}
    assert report.dropped_parts == []


def test_a_copy_of_a_codex_session_keeps_its_own_id(tmp_path: Path) -> None:
    own, copied = [{"type": "session_meta", "payload": {"id": item}} for item in ("own", "copied")]
    path = write(tmp_path / "rollout.jsonl", own, copied, said("codex", "user", "hello"))
    _, items, _ = read_items(path)
    assert [item.facts[0].source for item in items if isinstance(item, Entity)] == ["codex:own"]


def test_codex_sessions_of_subagents_are_left_out(tmp_path: Path) -> None:
    meta = {
        "type": "session_meta",
        "payload": {"id": "1", "source": {"subagent": {"thread_spawn": {}}}},
    }
    path = write(tmp_path / "rollout.jsonl", meta, said("codex", "user", "look for tests"))
    assert texts(path, "codex") == []
