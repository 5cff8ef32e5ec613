"""Claude Code: the transcripts of its sessions, `~/.claude/projects/*/*.jsonl`."""

from typing import Any

from polymnia.importers.base import text_of, time_of
from polymnia.importers.conversation import Turn
from polymnia.importers.sessions import Format, TranscriptLine, joined_texts, make_importer
from polymnia.importers.source import replace_unstorable

# Lines with a title of the session, and its field.
_TITLES = {"ai-title": "aiTitle", "custom-title": "customTitle"}
# Marks of notes of the program, sessions of subagents, summaries for the model, failed requests.
_NOT_SAID = (
    "isMeta",
    "isSidechain",
    "isCompactSummary",
    "isVisibleInTranscriptOnly",
    "isApiErrorMessage",
)
# The start of messages that the program writes in the name of the user or the model.
_BY_PROGRAM = (
    "<command-",
    "<local-command-",
    "<bash-",
    "<task-notification>",
    "<user-memory-input>",
    "<teammate-message",
    "<cross-session-message",
    "<agent-message",
    "<tick>",
    "[Request interrupted by user",
    "(no content)",
)


def is_line(value: dict[str, Any]) -> bool:
    """Return True for a line of a session, or for the summary of one."""
    if value.get("type") == "summary":
        return isinstance(value.get("leafUuid"), str)
    return isinstance(value.get("sessionId"), str) and isinstance(value.get("type"), str)


def read_line(value: dict[str, Any]) -> TranscriptLine | None:
    """Return the turn on a line; None if the line is not a turn."""
    # What the program and the editor add to a message for the model.
    added = ("system-reminder", "ide_opened_file", "ide_selection")
    kind = value.get("type")
    if kind == "summary":  # a file may begin with the summaries of other sessions
        return TranscriptLine(
            summary=text_of(value, "summary"), last_turn=text_of(value, "leafUuid")
        )
    if isinstance(kind, str) and kind in _TITLES:
        return TranscriptLine(summary=text_of(value, _TITLES[kind]))
    speaker, content = _speech_of(value)
    text = joined_texts(content, ("text",))
    for tag in added:
        text = _without(tag, text)
    text = text.strip()
    if not text or text.startswith(_BY_PROGRAM):
        return None
    if any(value.get(mark) is True for mark in _NOT_SAID):
        return None
    turn = Turn(speaker, replace_unstorable(text), time_of(value.get("timestamp")))
    return TranscriptLine(
        turn, text_of(value, "uuid"), text_of(value, "sessionId"), directory=text_of(value, "cwd")
    )


def _speech_of(value: dict[str, Any]) -> tuple[str, Any]:
    """Return who said something and the content of the message; nothing for other lines."""
    # The model of messages that the program itself writes, such as "No response requested."
    no_model = "<synthetic>"
    speakers = ("user", "assistant")
    kind, message, attachment = value.get("type"), value.get("message"), value.get("attachment")
    if kind in speakers and isinstance(message, dict):
        return str(kind), message.get("content") if message.get("model") != no_model else None
    # What the user typed while the agent worked.
    if isinstance(attachment, dict) and attachment.get("type") == "queued_command":
        return "user", attachment.get("prompt") if not attachment.get("isMeta") else None
    return "", None


def _without(tag: str, text: str) -> str:
    """Return the text without what is between such tags."""
    start, end = f"<{tag}>", f"</{tag}>"
    kept: list[str] = []
    position = 0
    while (opened := text.find(start, position)) >= 0 and (closed := text.find(end, opened)) >= 0:
        kept.append(text[position:opened])
        position = closed + len(end)
    return "".join([*kept, text[position:]])


FORMAT = Format(
    "claude-code",
    "Claude Code session transcripts (a file or a folder of .jsonl)",
    is_line,
    read_line,
)
IMPORTER = make_importer(FORMAT)
