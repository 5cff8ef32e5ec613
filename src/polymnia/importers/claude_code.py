"""Claude Code: the transcripts of its sessions, `~/.claude/projects/*/*.jsonl`."""

from typing import Any

from polymnia.importers.base import text_of, time_of
from polymnia.importers.conversation import Turn
from polymnia.importers.sessions import Format, Line, joined_texts, make_importer
from polymnia.importers.source import replace_unstorable

_SPEAKERS = ("user", "assistant")
# Lines with one of these marks: notes of the program, sessions of subagents, summaries for the model, failed requests.
_NOT_SAID = ("isMeta", "isSidechain", "isCompactSummary", "isVisibleInTranscriptOnly", "isApiErrorMessage")
# How messages begin that the program writes in the name of the user.
_BY_PROGRAM = (
    "<command-",
    "<local-command-",
    "<bash-",
    "<task-notification>",
    "<user-memory-input>",
    "<teammate-message",
    "<cross-session-message",
    "<tick>",
    "[Request interrupted by user",
)
_REMINDER = ("<system-reminder>", "</system-reminder>")


def is_line(value: dict[str, Any]) -> bool:
    """Return True for a line of a session, or for the summary of one."""
    if value.get("type") == "summary":
        return isinstance(value.get("leafUuid"), str)
    return isinstance(value.get("sessionId"), str) and isinstance(value.get("type"), str)


def read_line(value: dict[str, Any]) -> Line | None:
    """Return what a line tells; None for what nobody said."""
    kind = value.get("type")
    if kind == "summary":
        return Line(summary=text_of(value, "summary"))
    message = value.get("message")
    if kind not in _SPEAKERS or not isinstance(message, dict) or any(value.get(each) is True for each in _NOT_SAID):
        return None
    text = _without_reminders(joined_texts(message.get("content"), ("text",))).strip()
    if not text or text.startswith(_BY_PROGRAM):
        return None
    turn = Turn(str(kind), replace_unstorable(text), time_of(value.get("timestamp")))
    return Line(turn, text_of(value, "uuid"), text_of(value, "sessionId"))


def _without_reminders(text: str) -> str:
    """Return the text without what the program added for the model."""
    start, end = _REMINDER
    kept: list[str] = []
    position = 0
    while (opened := text.find(start, position)) >= 0 and (closed := text.find(end, opened)) >= 0:
        kept.append(text[position:opened])
        position = closed + len(end)
    return "".join([*kept, text[position:]])


FORMAT = Format("claude-code", "Claude Code session transcripts (a file or a folder of .jsonl)", is_line, read_line)
IMPORTER = make_importer(FORMAT)
