"""The events of coding agents and our answers.

Claude Code, Codex and Gemini CLI have the same fields and the same form of an answer. Cursor, whose
events begin with a small letter, has others. Copilot CLI and our plugin for OpenCode send the
fields of Claude Code and take a flat answer.
"""

from pathlib import Path
from time import sleep
from typing import Any

from msgspec import DecodeError
from msgspec.json import decode, encode

from polymnia.errors import BadInput
from polymnia.settings import Settings, client_roots, sessions_directory

BRIEFED = ("SessionStart", "sessionStart")
# The second is Gemini CLI's.
PROMPTED = ("UserPromptSubmit", "BeforeAgent", "beforeSubmitPrompt")
# Before a long conversation is replaced by a summary, after each answer, and at the end. Gemini CLI
# has other names for the first two.
SAVED = ("PreCompact", "PreCompress", "Stop", "AfterAgent", "SessionEnd")
FLAT_ANSWERS = ("copilot", "opencode")
# Programs that send the turns with the event, because they keep no transcript in a file.
TURN_PROGRAMS = ("opencode",)
# Copilot CLI writes what was said a moment after it runs the hook for it.
LATE_PROGRAM, ANSWERED, MAX_WAITS, WAIT_S = "copilot", "Stop", 8, 0.1
CURSOR_EVENTS = ("sessionStart", "beforeSubmitPrompt")
EVENTS = (*BRIEFED, *PROMPTED, *SAVED)


def answer_hook(settings: Settings, event: str, data: bytes, program: str = "") -> str:
    """Return what the program expects on standard output; empty if there is nothing to say.

    Raise BadInput for an event that is not known, and StoreError.
    """
    fields = _parse(data)
    directory = Path(fields.get("cwd") or fields.get("workspace_root") or ".")
    if event in BRIEFED:
        from polymnia.hooks.briefing import briefing_text  # each event imports only what it needs
        from polymnia.hooks.session import remove_old_files

        remove_old_files(sessions_directory())
        return _context(event, briefing_text(settings, directory), program)
    if event in PROMPTED:
        from polymnia.hooks.prompts import prompt_context

        session = _session_of(fields)
        text = prompt_context(settings, fields.get("prompt", ""), session, directory)
        return _context(event, text, program)
    if event not in SAVED:
        raise BadInput(f"there is nothing to do for the event {event!r}; use {', '.join(EVENTS)}")
    if settings.checkpoints and not settings.read_only:
        is_late = program == LATE_PROGRAM and event == ANSWERED
        _save(settings, fields, data, directory, program, is_late=is_late)
    return ""


def _save(
    settings: Settings,
    fields: dict[str, str],
    data: bytes,
    directory: Path,
    program: str,
    *,
    is_late: bool,
) -> None:
    """Store what was said: the turns in the event itself, or those of a transcript.

    Wait for a transcript that is written late. Store nothing if the user switched the memory off
    for the session.
    """
    session = _session_of(fields)
    transcript = _transcript_of(fields, program)
    if not transcript and program not in TURN_PROGRAMS:
        return
    from polymnia.hooks.checkpoint import save_checkpoint, save_turns
    from polymnia.hooks.session import SessionFile

    if SessionFile(sessions_directory(), session).is_off:
        return
    if transcript:
        waits = MAX_WAITS if is_late else 0
        while not save_checkpoint(settings, transcript, directory) and waits:
            sleep(WAIT_S)
            waits -= 1
    elif session:
        save_turns(settings, program, session, data, directory)


def _transcript_of(fields: dict[str, str], program: str) -> Path | None:
    """Return the transcript of the session. Copilot CLI does not name it when a session ends."""
    path = fields.get("transcript_path")
    if path:
        return Path(path)
    session = Path(_session_of(fields)).name
    if program == "copilot" and session:
        return client_roots().copilot / "session-state" / session / "events.jsonl"
    return None


def _session_of(fields: dict[str, str]) -> str:
    return fields.get("session_id") or fields.get("conversation_id", "")


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


def _context(event: str, text: str, program: str) -> str:
    """Return the text as additional context for the model."""
    if not text:
        return ""
    if program in FLAT_ANSWERS:
        return encode({"additionalContext": text}).decode()
    if event in CURSOR_EVENTS:
        return encode({"additional_context": text}).decode()
    return encode(
        {"hookSpecificOutput": {"hookEventName": event, "additionalContext": text}}
    ).decode()
