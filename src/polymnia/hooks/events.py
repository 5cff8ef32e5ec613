"""The events of Claude Code and Codex, which have the same names and fields, and our answers."""

from pathlib import Path
from typing import Any

from msgspec import DecodeError
from msgspec.json import decode, encode

from polymnia.errors import BadInput
from polymnia.settings import Settings, sessions_directory

BRIEFED = ("SessionStart",)
PROMPTED = ("UserPromptSubmit",)
# The first comes before a long conversation is replaced by a summary, the second after each answer.
SAVED = ("PreCompact", "Stop", "SessionEnd")
EVENTS = (*BRIEFED, *PROMPTED, *SAVED)


def answer_hook(settings: Settings, event: str, data: bytes) -> str:
    """Return what the program expects on standard output; empty if there is nothing to say.

    Raise BadInput for an event that is not known, and StoreError.
    """
    fields = _parse(data)
    directory = Path(fields.get("cwd") or ".")
    session = fields.get("session_id", "")
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
    fields = value.items() if isinstance(value, dict) else ()
    return {name: field for name, field in fields if isinstance(field, str) and "\0" not in field}


def _context(event: str, text: str) -> str:
    """Return the text as additional context for the model."""
    if not text:
        return ""
    return encode(
        {"hookSpecificOutput": {"hookEventName": event, "additionalContext": text}}
    ).decode()
