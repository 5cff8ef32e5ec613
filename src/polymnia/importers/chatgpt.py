"""ChatGPT: the `conversations.json` of a data export, alone, in its folder or in its archive."""

import re
from collections.abc import Iterator
from typing import Any

from polymnia.engine.transfer.intake import Item
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

_FILES = re.compile(r"(?:.*/)?conversations(?:-\d+)?\.json")


def recognizes(source: Source) -> bool:
    """Return True if the conversations are trees of messages."""
    return any("mapping" in first_keys(source.elements(name)) for name in source.matching(_FILES))


def read(source: Source, report: Report) -> Iterator[Item]:
    """Yield an entity for each conversation, with the branch that was shown last."""
    for name in source.matching(_FILES):
        for place, value in objects(source.elements(name), report, name):
            identity = text_of(value, "conversation_id", "id") or place
            at = time_of(value.get("create_time")) or time_of(value.get("update_time"))
            nodes = _dict_in(value, "mapping")
            branch = _branch(nodes, value.get("current_node"))
            turns = (_turn(_dict_in(nodes[key], "message")) for key in branch)
            entity = conversation_entity(
                Conversation("chatgpt", identity, text_of(value, "title"), at),
                filter(None, turns),
                report,
            )
            if entity is None:
                report.drop_part(place, "a conversation without messages")
            else:
                yield entity


def _branch(nodes: dict[str, Any], last: Any) -> list[str]:
    """Return the keys from the root to the last message shown; all keys if that one is unknown."""
    if not isinstance(last, str) or not isinstance(nodes.get(last), dict):
        return [key for key, node in nodes.items() if isinstance(node, dict)]
    branch: dict[str, None] = {}
    key: Any = last
    # A damaged export may have a cycle.
    while isinstance(key, str) and key not in branch and isinstance(nodes.get(key), dict):
        branch[key] = None
        key = nodes[key].get("parent")
    return list(branch)[::-1]


def _turn(message: dict[str, Any]) -> Turn | None:
    # The type of message parts with what was said in voice mode.
    speech = "audio_transcription"
    # Recipients of messages shown to the user. Others are tools: code to run, a search.
    shown_recipients = ("", "all")
    speakers = ("user", "assistant")
    speaker = text_of(_dict_in(message, "author"), "role")
    if speaker not in speakers or text_of(message, "recipient") not in shown_recipients:
        return None
    if _dict_in(message, "metadata").get("is_visually_hidden_from_conversation"):
        return None
    content = _dict_in(message, "content")
    # The texts of a message, typed or spoken. Images and sounds have none.
    parts = content.get("parts")
    texts = []
    for part in parts if isinstance(parts, list) else [parts]:
        if isinstance(part, dict) and part.get("content_type") == speech:
            texts.append(part.get("text"))
        else:
            texts.append(part)
    part_texts = texts_of(texts)
    text = "\n".join(part_texts) or text_of(content, "text")
    return Turn(speaker, text, time_of(message.get("create_time"))) if text else None


def _dict_in(value: dict[str, Any], name: str) -> dict[str, Any]:
    field = value.get(name)
    return field if isinstance(field, dict) else {}


IMPORTER = Importer("chatgpt", "ChatGPT data export", recognizes, read)
