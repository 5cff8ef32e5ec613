"""What other programs have left on this machine, which can be imported."""

from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any, Literal

from msgspec import Struct

from polymnia.clients.configuration import read_servers
from polymnia.clients.table import CLIENTS, SCOPES, is_polymnia
from polymnia.errors import PolymniaError
from polymnia.importers import claude_code, codex, copilot, gemini
from polymnia.importers.registry import find_importer
from polymnia.importers.sessions import Format
from polymnia.importers.source import Source
from polymnia.settings import ClientRoots

SESSION_FORMATS: Mapping[str, Format] = {
    module.FORMAT.kind: module.FORMAT for module in (claude_code, codex, copilot, gemini)
}
# Files of other memory servers that a client's configuration may name.
_MEMORY_KINDS = ("memory-json", "memory-service", "memory-service-db", "mempalace", "basic-memory")


class PastSource(Struct, frozen=True):
    """A file or a folder to import: what it is, its files, and their size in bytes.

    `place` says whose memory it belongs to. Each session belongs to the project of its directory.
    """

    title: str
    kind: str
    path: Path
    files: tuple[Path, ...]
    size: int
    place: Literal["sessions", "personal", "project"]


def find_past_sources(roots: ClientRoots, project: Path) -> list[PastSource]:
    """Return the transcripts, instructions and memories of other programs, without reading them."""
    sources = [*find_past_sessions(roots), *_find_instructions(roots, project)]
    sources += _find_memories(roots, project)
    return sources


def find_past_sessions(roots: ClientRoots) -> Iterator[PastSource]:
    """Yield the folders that have transcripts, without reading them."""
    folders = (
        ("Claude Code", claude_code, roots.claude / "projects"),  # with CLAUDE_CONFIG_DIR
        ("Claude Code", claude_code, roots.claude / ".claude" / "projects"),
        ("Codex", codex, roots.codex / "sessions"),
        ("GitHub Copilot CLI", copilot, roots.copilot / "session-state"),
        ("Gemini CLI", gemini, roots.home / ".gemini" / "tmp"),
    )
    for program, module, folder in folders:
        files = sorted(folder.rglob("*.jsonl"))
        title = f"{program} sessions"
        yield from _source(title, module.FORMAT.kind, folder, files, "sessions")


def _find_instructions(roots: ClientRoots, project: Path) -> Iterator[PastSource]:
    instructions = ("CLAUDE.md", "AGENTS.md", "GEMINI.md")
    of_user = (
        roots.claude / ".claude" / "CLAUDE.md",
        roots.codex / "AGENTS.md",
        roots.home / ".gemini" / "GEMINI.md",
    )
    for path in of_user:
        yield from _source("your instructions", "instructions", path, [path], "personal")
    for name in instructions:
        path = project / name
        yield from _source("the project's instructions", "instructions", path, [path], "project")


def _find_memories(roots: ClientRoots, project: Path) -> Iterator[PastSource]:
    """Yield files that an entry of another memory server names in its arguments or environment."""
    paths: dict[Path, str] = {}
    for client in CLIENTS.values():
        for scope in SCOPES:
            file = client.path(scope, roots, project)
            try:
                servers = read_servers(client, file) if file is not None else {}
            except PolymniaError:  # a configuration that its own program cannot read either
                continue
            for name, entry in servers.items():
                if not is_polymnia(entry):
                    paths |= dict.fromkeys(_paths_in(entry), name)
    for path, name in paths.items():
        kind = _memory_kind(path)
        if kind:
            files = [path] if path.is_file() else sorted(path.rglob("*.md"))
            yield from _source(f"the memory of the server {name}", kind, path, files, "personal")


def _paths_in(entry: Any) -> list[Path]:
    """Return the absolute paths in the arguments and the environment of a server."""
    values: list[Any] = []
    for member in ("args", "command", "env", "environment"):
        value = entry.get(member) if isinstance(entry, dict) else None
        if isinstance(value, dict):
            value = list(value.values())
        values += value if isinstance(value, list) else []
    paths = []
    for value in values:
        if isinstance(value, str) and value.startswith(("/", "~")) and "\0" not in value:
            paths.append(Path(value).expanduser())
    return [path for path in paths if path.exists()]


def _memory_kind(path: Path) -> str:
    """Return the format of another program's memory; empty if it is something else."""
    if path.is_dir() and not (path / ".basic-memory").exists():
        return ""  # a folder of the user's files, which may be large
    try:
        kind = find_importer(Source(str(path))).kind
    except (PolymniaError, OSError):
        return ""
    return kind if kind in _MEMORY_KINDS else ""


def _source(
    title: str,
    kind: str,
    path: Path,
    files: list[Path],
    place: Literal["sessions", "personal", "project"],
) -> Iterator[PastSource]:
    """Yield the source with the files that exist; nothing if none does."""
    existing, size = [], 0
    for file in files:
        try:
            size += file.stat().st_size
        except OSError:  # missing, or removed meanwhile
            continue
        existing.append(file)
    if size:
        yield PastSource(title, kind, path, tuple(existing), size, place)
