"""Sessions for tests: transcripts on disk, and the JSON that a program sends with an event."""

import json
from contextlib import closing
from pathlib import Path
from typing import Any

from polymnia.engine.transfer.intake import take_in
from polymnia.engine.workspaces import open_workspaces
from polymnia.model import Entity, Fact
from polymnia.settings import Settings


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


def store(settings: Settings, workspace: str, *entities: Entity) -> None:
    """Store entities in a new workspace, which is that of the project of the same name."""
    with closing(open_workspaces(settings.store)) as workspaces:
        workspaces.create(workspace, str(Path(settings.store).parent / workspace))
        take_in(workspaces.memory(workspace), entities, by="test")


def entity(name: str, *facts: str, kind: str = "thing", tags: tuple[str, ...] = ()) -> Entity:
    """Return an entity with these facts."""
    stored = tuple([Fact(number, fact) for number, fact in enumerate(facts, 1)])
    return Entity(name, kind, stored, next_ordinal=len(facts) + 1, tags=tags)
