"""Sessions that coding agents have left on this machine, which can be imported."""

from pathlib import Path

from msgspec import Struct

from polymnia.settings import ClientRoots


class PastSessions(Struct, frozen=True):
    """A folder with the transcripts of a program: how many there are, and their size in bytes."""

    program: str
    folder: Path
    count: int
    size: int


def find_past_sessions(roots: ClientRoots) -> list[PastSessions]:
    """Return the folders that have transcripts in a format that `polymnia import` reads."""
    folders = (
        ("Claude Code", roots.claude / "projects"),  # with CLAUDE_CONFIG_DIR
        ("Claude Code", roots.claude / ".claude" / "projects"),
        ("Codex", roots.codex / "sessions"),
    )
    past = []
    for program, folder in folders:
        sizes = _transcript_sizes(folder)
        if sizes:
            past.append(PastSessions(program, folder, len(sizes), sum(sizes)))
    return past


def _transcript_sizes(folder: Path) -> list[int]:
    sizes = []
    for path in folder.rglob("*.jsonl"):
        try:
            sizes.append(path.stat().st_size)
        except OSError:  # removed meanwhile
            continue
    return sizes
