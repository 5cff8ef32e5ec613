"""Sessions for tests: transcripts on disk, and the JSON that a program sends with an event."""

import json
from pathlib import Path
from typing import Any


def turn(speaker: str, text: str, number: int = 0, **more: object) -> dict[str, Any]:
    """Return a line of a transcript of Claude Code, said in a certain second."""
    message = {"role": speaker, "content": text}
    at = f"2026-03-01T10:{number // 60:02}:{number % 60:02}Z"
    return {"type": speaker, "sessionId": "5e55", "message": message, "timestamp": at, **more}


def append(path: Path, *lines: dict[str, Any]) -> Path:
    """Add lines to a transcript."""
    with path.open("a", encoding="utf-8") as file:
        file.writelines([json.dumps(line) + "\n" for line in lines])
    return path


def sent(directory: Path, transcript: Path | None = None, event: str = "Stop") -> bytes:
    """Return what a program writes to a hook."""
    fields = {"session_id": "5e55", "cwd": str(directory), "hook_event_name": event}
    return json.dumps(
        fields | ({"transcript_path": str(transcript)} if transcript else {})
    ).encode()
