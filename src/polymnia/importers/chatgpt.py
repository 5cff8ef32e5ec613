"""ChatGPT: the `conversations.json` of a data export, alone, in its folder or in its zip archive."""

import re
from collections.abc import Iterator
from typing import Any

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

_FILE = re.compile(r"(?:.*/)?conversations(?:-\d+)?\.json")
_SPEAKERS = ("user", "assistant")
# To whom a message is that people read. Others are for a tool: code to run, a search.
_READERS = ("", "all")
# The parts of a message that have what was said in voice mode.
_SPEECH = "audio_transcription"


def recognizes(source: Source) -> bool:
    """Return True if the conversations are trees of messages."""
    return any("mapping" in first_keys(_list(source, name)) for name in _files(source))


def read(source: Source, report: Report) -> Iterator[Item]:
    """Yield an entity for each conversation, with the branch that was shown last."""
    for name in _files(source):
        for place, value in objects(_list(source, name), report, name):
            entity = conversation_entity(_conversation(value, place), _turns(value), report)
            if entity is None:
                report.skip(place, "a conversation without messages")
            else:
                yield entity


def _files(source: Source) -> list[str]:
    return (
        list(source.names)
        if source.is_file
        else [each for each in source.names if _FILE.fullmatch(each)]
    )


def _list(source: Source, name: str) -> list[Any]:
    outline = source.outline(name)
    return outline if isinstance(outline, list) else []


def _conversation(value: dict[str, Any], place: str) -> Conversation:
    identity = text_of(value, "conversation_id", "id") or place
    at = time_of(value.get("create_time")) or time_of(value.get("update_time"))
    return Conversation("chatgpt", identity, text_of(value, "title"), at)


def _turns(value: dict[str, Any]) -> Iterator[Turn]:
    mapping = value.get("mapping")
    nodes = mapping if isinstance(mapping, dict) else {}
    for key in _branch(nodes, value.get("current_node")):
        message = nodes[key].get("message")
        if isinstance(message, dict) and (turn := _turn(message)) is not None:
            yield turn


def _branch(nodes: dict[str, Any], last: Any) -> list[str]:
    """Return the keys of the messages from the root to the last one shown; of all messages if that one is unknown."""
    if not isinstance(last, str) or not isinstance(nodes.get(last), dict):
        return [key for key, node in nodes.items() if isinstance(node, dict)]
    branch: dict[str, None] = {}
    key: Any = last
    while isinstance(key, str) and key not in branch and isinstance(nodes.get(key), dict):
        branch[key] = None
        key = nodes[key].get("parent")
    return list(branch)[::-1]


def _turn(message: dict[str, Any]) -> Turn | None:
    author, content, metadata = [
        _object(message.get(each)) for each in ("author", "content", "metadata")
    ]
    speaker = text_of(author, "role")
    text = "\n".join(_texts_of_parts(content.get("parts"))) or text_of(content, "text")
    if speaker not in _SPEAKERS or not text or metadata.get("is_visually_hidden_from_conversation"):
        return None
    if text_of(message, "recipient") not in _READERS:
        return None
    return Turn(speaker, text, time_of(message.get("create_time")))


def _texts_of_parts(parts: Any) -> list[str]:
    """Return the texts of a message, typed or spoken. Images and sounds have none."""
    listed = parts if isinstance(parts, list) else [parts]
    return texts_of([each.get("text") if _is_speech(each) else each for each in listed])


def _is_speech(part: Any) -> bool:
    return isinstance(part, dict) and part.get("content_type") == _SPEECH


def _object(value: Any) -> dict[str, Any]:
    return value if isinstance(value, dict) else {}


IMPORTER = Importer("chatgpt", "ChatGPT data export", recognizes, read)
