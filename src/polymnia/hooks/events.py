"""The events of coding agents and our answers.

Claude Code, Codex and Gemini CLI have the same fields and the same form of an answer. Cursor, whose
events begin with a small letter, has others.
"""

from pathlib import Path
from typing import Any

from msgspec import DecodeError
from msgspec.json import decode, encode

from polymnia.errors import BadInput
from polymnia.settings import Settings, sessions_directory

BRIEFED = ("SessionStart", "sessionStart")
# The second is Gemini CLI's.
PROMPTED = ("UserPromptSubmit", "BeforeAgent", "beforeSubmitPrompt")
# The first comes before a long conversation is replaced by a summary, the second after each answer.
SAVED = ("PreCompact", "Stop", "SessionEnd")
CURSOR_EVENTS = ("sessionStart", "beforeSubmitPrompt")
EVENTS = (*BRIEFED, *PROMPTED, *SAVED)


def answer_hook(settings: Settings, event: str, data: bytes) -> str:
    """Return what the program expects on standard output; empty if there is nothing to say.

    Raise BadInput for an event that is not known, and StoreError.
    """
    fields = _parse(data)
    directory = Path(fields.get("cwd") or fields.get("workspace_root") or ".")
    session = fields.get("session_id") or fields.get("conversation_id", "")
    if event in BRIEFED:
        from polymnia.hooks.briefing import briefing_text  # each event imports only what it needs
        from polymnia.hooks.session import remove_old_files

        remove_old_files(sessions_directory())
        return _context(event, briefing_text(settings, directory))
    if event in PROMPTED:
        from polymnia.hooks.prompts import prompt_context

        text = prompt_context(settings, fields.get("prompt", ""), session, directory)
        return _context(event, text)
    if event not in SAVED:
        raise BadInput(f"there is nothing to do for the event {event!r}; use {', '.join(EVENTS)}")
    if settings.checkpoints and not settings.read_only and fields.get("transcript_path"):
        from polymnia.hooks.checkpoint import save_checkpoint
        from polymnia.hooks.session import SessionFile

        if not SessionFile(sessions_directory(), session).is_off:
            save_checkpoint(settings, Path(fields["transcript_path"]), directory)
    return ""


def _parse(data: bytes) -> dict[str, str]:
    """Return the text fields without NUL; none if the input is not a JSON object."""
    try:
        value: Any = decode(data)
    except (DecodeError, UnicodeDecodeError, RecursionError):
        return {}
    if not isinstance(value, dict):
        return {}
    roots = value.get("workspace_roots")
    if isinstance(roots, list) and roots:
        value["workspace_root"] = roots[0]  # Cursor has a list where others have `cwd`
    fields = value.items()
    return {name: field for name, field in fields if isinstance(field, str) and "\0" not in field}


def _context(event: str, text: str) -> str:
    """Return the text as additional context for the model."""
    if not text:
        return ""
    if event in CURSOR_EVENTS:
        return encode({"additional_context": text}).decode()
    return encode(
        {"hookSpecificOutput": {"hookEventName": event, "additionalContext": text}}
    ).decode()
