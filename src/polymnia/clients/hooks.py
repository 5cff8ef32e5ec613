"""Hooks in the configuration of programs that have no plugin of ours: add them, or remove them.

Every entry runs `polymnia hook EVENT`. Entries of others stay as they are.
"""

from collections.abc import Mapping, Sequence
from pathlib import Path
from shlex import join, split
from typing import Any, Literal

from msgspec import Struct

from polymnia.clients import jsonc
from polymnia.clients.configuration import read_text, replace_text
from polymnia.errors import BadInput

_MEMBER = "hooks"
# Gemini CLI counts milliseconds, Cursor seconds.
_TIMEOUT_MS, _TIMEOUT_S = 5_000, 5


class HookFile(Struct, frozen=True, kw_only=True):
    """Where a program keeps its hooks, below the user's home or the project, and in which form."""

    file: str
    events: tuple[str, ...]
    form: Literal["gemini", "cursor"]
    # Members that the file needs besides the hooks.
    fixed: Mapping[str, Any] = {}

    def path(self, base: Path) -> Path:
        """Return the file below a home or a project."""
        return base / self.file

    def entry(self, command: Sequence[str], event: str) -> dict[str, Any]:
        """Return what the program keeps for one event."""
        line = join([*command, "hook", event])
        if self.form == "cursor":
            return {"command": line, "timeout": _TIMEOUT_S}
        hook = {"type": "command", "name": "polymnia", "command": line, "timeout": _TIMEOUT_MS}
        return {"hooks": [hook]}


HOOK_FILES: Mapping[str, HookFile] = {
    "cursor": HookFile(
        file=".cursor/hooks.json",
        events=("sessionStart", "beforeSubmitPrompt"),
        form="cursor",
        fixed={"version": 1},
    ),
    "gemini": HookFile(
        file=".gemini/settings.json",
        events=("SessionStart", "BeforeAgent"),
        form="gemini",
    ),
}


def add_hooks(hooks: HookFile, path: Path, command: Sequence[str]) -> Path | None:
    """Add our hooks, in place of earlier ones. Return where the former file is kept, if any.

    Raise BadInput.
    """
    text = _without_ours(hooks, path, read_text(path))
    for name, value in hooks.fixed.items():
        if name not in jsonc.parse(text):
            text = jsonc.set_member(text, (name,), value)
    for event in hooks.events:
        entries = [*_entries(text, event), hooks.entry(command, event)]
        text = jsonc.set_member(text, (_MEMBER, event), entries)
    return replace_text(path, text)


def remove_hooks(hooks: HookFile, path: Path) -> Path | None:
    """Remove our hooks. Return where the former file is kept; None if there were none."""
    return replace_text(path, _without_ours(hooks, path, read_text(path)))


def _without_ours(hooks: HookFile, path: Path, text: str) -> str:
    members = jsonc.parse(text).get(_MEMBER, {})
    if not isinstance(members, dict):
        raise BadInput(f"{path}: {_MEMBER!r} is not an object; correct it first")
    for event in hooks.events:
        entries = _entries(text, event)
        others = [entry for entry in entries if not _is_ours(entry)]
        if others and others != entries:
            text = jsonc.set_member(text, (_MEMBER, event), others)
        elif entries and not others:
            text = jsonc.remove_member(text, (_MEMBER, event))
    return text


def _entries(text: str, event: str) -> list[Any]:
    members = jsonc.parse(text).get(_MEMBER, {})
    entries = members.get(event, [])
    return entries if isinstance(entries, list) else []


def _is_ours(entry: Any) -> bool:
    """Return True for an entry that runs `polymnia hook`, in either form."""
    if not isinstance(entry, dict):
        return False
    nested = entry.get("hooks")
    if isinstance(nested, list):
        return bool(nested) and all(map(_is_ours, nested))
    command = entry.get("command")
    if not isinstance(command, str):
        return False
    try:
        words = split(command)
    except ValueError:  # an open quotation mark
        return False
    return "hook" in words and any(Path(word).stem == "polymnia" for word in words)
