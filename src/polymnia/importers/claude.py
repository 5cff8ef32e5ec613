"""Claude.ai: the conversations, projects and memories of a data export: its zip archive, its folder, or one file."""

import re
from collections.abc import Iterator
from typing import Any

from msgspec import Raw
from msgspec.json import encode

from polymnia.engine.intake import Item
from polymnia.importers.base import (
    Importer,
    Report,
    first_keys,
    objects,
    text_of,
    texts_of,
    time_of,
)
from polymnia.importers.conversation import Conversation, Turn, conversation_entity
from polymnia.importers.source import Source
from polymnia.model import Entity, Observation

# Recent exports have an archive for each kind, and a file for each project, which is named by its id.
_FILES = re.compile(
    r"(?:.*/)?(?:(?:conversations|memories|projects)(?:-\d+)?|(?:projects|memories)/[^/]+|[0-9a-f]{8}-[0-9a-f-]{27})\.json"
)
_SPEAKERS = {"human": "user", "assistant": "assistant"}
_BLANK_LINES = re.compile(r"\n\s*\n")


def recognizes(source: Source) -> bool:
    """Return True if one of the files has conversations, memories or projects of Claude.ai."""
    return any(_kind(first_keys(_list(source, name))) for name in _files(source))


def read(source: Source, report: Report) -> Iterator[Item]:
    """Yield an entity for each conversation and project, and one for what Claude remembered."""
    for name in _files(source):
        for place, value in objects(_list(source, name), report, name):
            kind = _kind(set(value))
            if kind == "conversation":
                entity = conversation_entity(_conversation(value, place), _turns(value), report)
            else:
                entity = _project(value) if kind == "project" else _memories(value)
            if entity is None:
                report.skip(place, "without content")
            else:
                yield entity


def _files(source: Source) -> list[str]:
    return (
        list(source.names)
        if source.is_file
        else [each for each in source.names if _FILES.fullmatch(each)]
    )


def _list(source: Source, name: str) -> list[Raw]:
    """Return the elements of the file, or the object that it is."""
    outline = source.outline(name)
    return [Raw(encode(outline))] if isinstance(outline, dict) else outline or []


def _kind(keys: set[str]) -> str:
    if {"uuid", "chat_messages"} <= keys:
        return "conversation"
    if {"conversations_memory", "project_memories"} & keys:
        return "memory"
    return "project" if {"uuid", "name", "docs"} <= keys else ""


def _conversation(value: dict[str, Any], place: str) -> Conversation:
    identity = text_of(value, "uuid") or place
    at = time_of(value.get("created_at"))
    return Conversation("claude", identity, text_of(value, "name"), at, text_of(value, "summary"))


def _turns(value: dict[str, Any]) -> Iterator[Turn]:
    messages = value.get("chat_messages")
    for message in messages if isinstance(messages, list) else []:
        if not isinstance(message, dict):
            continue
        text, speaker = _text(message), _SPEAKERS.get(text_of(message, "sender"))
        if text and speaker:
            yield Turn(speaker, text, time_of(message.get("created_at")))


def _text(message: dict[str, Any]) -> str:
    """Return what was said, without the steps and results of tools, and what was attached."""
    blocks = message.get("content")
    said = (
        [text_of(each, "text") for each in blocks if _is_text(each)]
        if isinstance(blocks, list)
        else []
    )
    attached = message.get("attachments")
    files = (
        [each for each in attached if isinstance(each, dict)] if isinstance(attached, list) else []
    )
    texts = [
        f"[{text_of(each, 'file_name')}]\n{text_of(each, 'extracted_content')}" for each in files
    ]
    return "\n\n".join(
        [
            each
            for each in ("\n\n".join(filter(None, said)) or text_of(message, "text"), *texts)
            if each
        ]
    )


def _is_text(block: Any) -> bool:
    return isinstance(block, dict) and block.get("type", "text") == "text"


def _project(value: dict[str, Any]) -> Entity | None:
    at, source = time_of(value.get("created_at")), f"claude:{text_of(value, 'uuid')}"
    docs = value.get("docs")
    listed = [each for each in docs if isinstance(each, dict)] if isinstance(docs, list) else []
    texts = [
        f"{text_of(each, 'filename')}: {text_of(each, 'content')}"
        for each in listed
        if text_of(each, "content")
    ]
    instructions = text_of(value, "prompt_template")
    name, summary = text_of(value, "name"), text_of(value, "description")
    if not name or not (instructions or texts or summary):
        return None
    return _entity(name, "project", [*texts_of(instructions), *texts], source, at, summary)


def _memories(value: dict[str, Any]) -> Entity | None:
    projects = value.get("project_memories")
    values = [
        value.get("conversations_memory"),
        *(projects.values() if isinstance(projects, dict) else ()),
    ]
    texts = [
        part.strip()
        for text in texts_of(values)
        for part in _BLANK_LINES.split(text)
        if part.strip()
    ]
    return _entity("Claude memory", "memory", texts, "claude:memories", 0) if texts else None


def _entity(
    name: str, kind: str, texts: list[str], source: str, at: int, summary: str = ""
) -> Entity:
    observations = tuple(
        [Observation(number, text, at, 0, source) for number, text in enumerate(texts, 1)]
    )
    return Entity(name, kind, observations, "", len(texts) + 1, summary or None, created_at=at)


IMPORTER = Importer("claude", "Claude.ai data export", recognizes, read)
