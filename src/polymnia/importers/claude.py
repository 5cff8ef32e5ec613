"""Claude.ai: the conversations, projects and memories of a data export."""

import re
from collections.abc import Iterator
from typing import Any

from polymnia.engine.transfer.intake import Item
from polymnia.importers.base import (
    Importer,
    Report,
    dicts_in,
    first_keys,
    make_entity,
    make_observations,
    objects,
    text_of,
    texts_of,
    time_of,
)
from polymnia.importers.conversation import Conversation, Turn, conversation_entity
from polymnia.importers.source import Source
from polymnia.model import Entity

# Recent exports have an archive for each kind, and a file for each project, named by its id.
_FILES = re.compile(
    r"(?:.*/)?(?:(?:conversations|memories|projects)(?:-\d+)?|(?:projects|memories)/[^/]+"
    r"|[0-9a-f]{8}-[0-9a-f-]{27})\.json"
)
_SPEAKERS = {"human": "user", "assistant": "assistant"}


def recognizes(source: Source) -> bool:
    """Return True if one of the files has conversations, memories or projects of Claude.ai."""
    return any(_kind(first_keys(source.elements(name))) for name in source.matching(_FILES))


def read(source: Source, report: Report) -> Iterator[Item]:
    """Yield an entity for each conversation and project, and one for what Claude remembered."""
    for name in source.matching(_FILES):
        for place, value in objects(source.elements(name), report, name):
            entity = _entity(value, report, place)
            if entity is None:
                report.drop_part(place, "without content")
            else:
                yield entity


def _entity(value: dict[str, Any], report: Report, place: str) -> Entity | None:
    kind = _kind(set(value))
    if kind == "conversation":
        identity = text_of(value, "uuid") or place
        at = time_of(value.get("created_at"))
        return conversation_entity(
            Conversation("claude", identity, text_of(value, "name"), at, text_of(value, "summary")),
            _turns(value),
            report,
        )
    entity = _project(value) if kind == "project" else _memories(value)
    return entity and report.screen_entity(entity)


def _kind(keys: set[str]) -> str:
    if {"uuid", "chat_messages"} <= keys:
        return "conversation"
    if {"conversations_memory", "project_memories"} & keys:
        return "memory"
    return "project" if {"uuid", "name", "docs"} <= keys else ""


def _turns(value: dict[str, Any]) -> Iterator[Turn]:
    for message in dicts_in(value.get("chat_messages")):
        speaker = _SPEAKERS.get(text_of(message, "sender"))
        # What was said and attached, without the steps and results of tools.
        texts = []
        for block in dicts_in(message.get("content")):
            if block.get("type", "text") == "text":
                texts.append(text_of(block, "text"))
        if not any(texts):
            texts = [text_of(message, "text")]
        for file in dicts_in(message.get("attachments")):
            texts.append(f"[{text_of(file, 'file_name')}]\n{text_of(file, 'extracted_content')}")
        text = "\n\n".join(filter(None, texts))
        if speaker and text:
            yield Turn(speaker, text, time_of(message.get("created_at")))


def _project(value: dict[str, Any]) -> Entity | None:
    name, summary = text_of(value, "name"), text_of(value, "description")
    texts = texts_of(text_of(value, "prompt_template"))
    for document in dicts_in(value.get("docs")):
        if content := text_of(document, "content"):
            texts.append(f"{text_of(document, 'filename')}: {content}")
    if not name or not (texts or summary):
        return None
    at = time_of(value.get("created_at"))
    facts = make_observations(texts, f"claude:{text_of(value, 'uuid')}", at)
    return make_entity(name, "project", facts, summary=summary or None, created_at=at)


def _memories(value: dict[str, Any]) -> Entity | None:
    memories = [value.get("conversations_memory")]
    projects = value.get("project_memories")
    if isinstance(projects, dict):
        memories += projects.values()
    texts: list[str] = []
    for memory in texts_of(memories):
        paragraphs = [part.strip() for part in re.split(r"\n\s*\n", memory)]
        texts += filter(None, paragraphs)
    if not texts:
        return None
    return make_entity("Claude memory", "memory", make_observations(texts, "claude:memories"))


IMPORTER = Importer("claude", "Claude.ai data export", recognizes, read)
