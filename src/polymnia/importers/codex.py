"""Codex: the transcripts of its sessions ("rollouts"), `~/.codex/sessions/**/*.jsonl`.

A line has its content in `payload`. Until September 2025 the line itself was the content, without
a time, and the first line was the session.
"""

from typing import Any

from polymnia.importers.base import text_of, time_of
from polymnia.importers.conversation import Turn
from polymnia.importers.sessions import Format, TranscriptLine, joined_texts, make_importer
from polymnia.importers.source import replace_unstorable

_TYPES = ("session_meta", "response_item", "event_msg", "turn_context", "compacted", "world_state")
# The start of messages that the program writes in the name of the user.
_BY_PROGRAM = (
    "<environment_context>",
    "<user_instructions>",
    "<INSTRUCTIONS>",
    "# AGENTS.md instructions",
    "<turn_aborted>",
    "<skill>",
    "<user_shell_command>",
    "<user_action>",
    "<subagent_notification>",
    "<model_switch>",
    "<collaboration_mode>",
    "<apps_instructions>",
    "<plugins_instructions>",
    "<skills_instructions>",
    "<recommended_plugins>",
    "<permissions instructions>",
)


def is_line(value: dict[str, Any]) -> bool:
    """Return True for a line of a rollout."""
    if isinstance(value.get("payload"), dict):
        return value.get("type") in _TYPES
    return _is_early_session(value)


def read_line(value: dict[str, Any]) -> TranscriptLine | None:
    """Return the turn on a line; None if the line is not a turn."""
    payload = value.get("payload")
    if not isinstance(payload, dict):
        return _session(value) if _is_early_session(value) else _message(value, 0)
    if value.get("type") == "session_meta":
        return _session(payload)
    if value.get("type") == "response_item":
        return _message(payload, time_of(value.get("timestamp")))
    return None


def _is_early_session(value: dict[str, Any]) -> bool:
    return value.keys() >= {"id", "timestamp", "instructions"} and "type" not in value


def _session(value: dict[str, Any]) -> TranscriptLine:
    source = value.get("source")
    return TranscriptLine(
        session=text_of(value, "id"),
        started_at=time_of(value.get("timestamp")),
        directory=text_of(value, "cwd"),
        is_subagent=isinstance(source, dict) and "subagent" in source,
    )


def _message(value: dict[str, Any], at: int) -> TranscriptLine | None:
    # The start of messages with the context of an editor, and the line above the user's own words.
    request = "## My request for Codex:"
    by_editor = ("# Context from my IDE setup:", "# Files mentioned by the user:")
    text_blocks = ("input_text", "output_text", "text")
    speakers = ("user", "assistant")
    speaker = value.get("role")
    if value.get("type") != "message" or speaker not in speakers:
        return None
    text = joined_texts(value.get("content"), text_blocks).strip()
    if text.startswith(by_editor):
        text = text.partition(f"\n{request}")[2].strip() or text
    if not text or text.startswith(_BY_PROGRAM):
        return None
    return TranscriptLine(Turn(str(speaker), replace_unstorable(text), at))


FORMAT = Format(
    "codex", "Codex session transcripts (a file or a folder of .jsonl)", is_line, read_line
)
IMPORTER = make_importer(FORMAT)
