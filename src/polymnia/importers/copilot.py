"""GitHub Copilot CLI: the events of its sessions, `~/.copilot/session-state/*/events.jsonl`."""

from typing import Any

from polymnia.importers.base import text_of, time_of
from polymnia.importers.conversation import Turn
from polymnia.importers.sessions import Format, TranscriptLine, make_importer
from polymnia.importers.source import replace_unstorable

_START = "session.start"
_SPEAKERS = {"user.message": "user", "assistant.message": "assistant"}
# What the program sends in the name of the user, and what subagents say, has one of these fields.
_NOT_SAID = ("source", "isAutopilotContinuation", "parentToolCallId")


def is_line(value: dict[str, Any]) -> bool:
    """Return True for the first event of a session, or for something that was said."""
    kind, data = value.get("type"), value.get("data")
    if not isinstance(data, dict):
        return False
    if kind == _START:
        return isinstance(data.get("sessionId"), str)
    return kind in _SPEAKERS and isinstance(data.get("messageId"), str)


def read_line(value: dict[str, Any]) -> TranscriptLine | None:
    """Return the turn of an event; None if the event is not a turn."""
    data = value.get("data")
    if not isinstance(data, dict):
        return None
    if value.get("type") == _START:
        context = data.get("context")
        return TranscriptLine(
            session=text_of(data, "sessionId"),
            started_at=time_of(data.get("startTime")),
            directory=text_of(context, "cwd") if isinstance(context, dict) else "",
        )
    speaker = _SPEAKERS.get(str(value.get("type")))
    text = text_of(data, "content").strip()
    if speaker is None or not text or value.get("agentId"):
        return None
    if any(data.get(field) for field in _NOT_SAID):
        return None
    turn = Turn(speaker, replace_unstorable(text), time_of(value.get("timestamp")))
    return TranscriptLine(turn, text_of(value, "id"))


FORMAT = Format(
    "copilot",
    "GitHub Copilot CLI session events (a file or a folder of .jsonl)",
    is_line,
    read_line,
)
IMPORTER = make_importer(FORMAT)
