"""Gemini CLI: the chats of its sessions, `~/.gemini/tmp/*/chats/session-*.jsonl`."""

from typing import Any

from polymnia.importers.base import dicts_in, text_of, time_of
from polymnia.importers.conversation import Turn
from polymnia.importers.sessions import Format, TranscriptLine, make_importer
from polymnia.importers.source import replace_unstorable

_SPEAKERS = {"user": "user", "gemini": "assistant"}


def is_line(value: dict[str, Any]) -> bool:
    """Return True for the first line of a session, or for a message."""
    if isinstance(value.get("projectHash"), str):
        return isinstance(value.get("sessionId"), str)
    is_message = value.get("type") in _SPEAKERS and "content" in value
    return is_message and isinstance(value.get("id"), str) and "sessionId" not in value


def read_line(value: dict[str, Any]) -> TranscriptLine | None:
    """Return the turn on a line; None if the line is not a turn."""
    # What hooks add to a message.
    added = "<hook_context>"
    # The start of messages that the program writes in the name of the user.
    by_program = ("<session_context>", "<hook_context>", "/")
    if isinstance(value.get("projectHash"), str):
        return TranscriptLine(
            session=text_of(value, "sessionId"),
            started_at=time_of(value.get("startTime")),
            summary=text_of(value, "summary"),
            is_subagent=value.get("kind") == "subagent",
        )
    speaker = _SPEAKERS.get(str(value.get("type")))
    if speaker is None:
        return None
    content = value.get("content")
    if not isinstance(content, str):  # its parts
        texts = [part.get("text") for part in dicts_in(content)]
        content = "\n\n".join(text for text in texts if isinstance(text, str))
    text = content.partition(added)[0].strip()
    if not text or text.startswith(by_program):
        return None
    turn = Turn(speaker, replace_unstorable(text), time_of(value.get("timestamp")))
    return TranscriptLine(turn, text_of(value, "id"))


FORMAT = Format(
    "gemini", "Gemini CLI session chats (a file or a folder of .jsonl)", is_line, read_line
)
IMPORTER = make_importer(FORMAT)
