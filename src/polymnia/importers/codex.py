"""Codex: the transcripts of its sessions ("rollouts"), `~/.codex/sessions/**/*.jsonl`."""

from typing import Any

from polymnia.importers.base import text_of, time_of
from polymnia.importers.conversation import Turn
from polymnia.importers.sessions import Format, Line, joined_texts, make_importer
from polymnia.importers.source import replace_unstorable

_TYPES = ("session_meta", "response_item", "event_msg", "turn_context", "compacted", "world_state")
_SPEAKERS = ("user", "assistant")
_TEXT_BLOCKS = ("input_text", "output_text", "text")
# How messages begin that the program writes in the name of the user.
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
    return value.get("type") in _TYPES and isinstance(value.get("payload"), dict)


def read_line(value: dict[str, Any]) -> Line | None:
    """Return what a line tells; None for what nobody said."""
    payload = value.get("payload")
    if not isinstance(payload, dict):
        return None
    if value.get("type") == "session_meta":
        at, directory = time_of(payload.get("timestamp")), text_of(payload, "cwd")
        return Line(session=text_of(payload, "id"), started_at=at, directory=directory)
    speaker = payload.get("role")
    if value.get("type") != "response_item" or payload.get("type") != "message" or speaker not in _SPEAKERS:
        return None
    text = joined_texts(payload.get("content"), _TEXT_BLOCKS).strip()
    if not text or text.startswith(_BY_PROGRAM):
        return None
    return Line(Turn(str(speaker), replace_unstorable(text), time_of(value.get("timestamp"))))


FORMAT = Format("codex", "Codex session transcripts (a file or a folder of .jsonl)", is_line, read_line)
IMPORTER = make_importer(FORMAT)
