"""Hooks in the configuration of programs that have no plugin of ours: add them, or remove them.

Every entry runs `polymnia hook EVENT`. Entries of others stay as they are.
"""

from collections.abc import Mapping, Sequence
from importlib.resources import files
from pathlib import Path
from shlex import join, split
from typing import Any, Literal

from msgspec import Struct
from msgspec.json import encode

from polymnia.clients import jsonc
from polymnia.clients.configuration import change_text, read_text
from polymnia.errors import BadInput
from polymnia.settings import ClientRoots

# Gemini CLI counts milliseconds, Cursor and Copilot seconds.
_TIMEOUT_MS, _TIMEOUT_S = 5_000, 5
# The line of OpenCode's plugin that says how to start this program, and how the file begins.
_PLUGIN_COMMAND, _PLUGIN_HEAD = "const COMMAND = []", "// The plugin of Polymnia"


class HookFile(Struct, frozen=True, kw_only=True):
    """Where a program keeps its hooks, and in which form.

    `user_file` is below a field of ClientRoots, `project_file` below the project.
    """

    root: Literal["home", "copilot", "opencode"] = "home"
    user_file: str
    project_file: str
    events: tuple[str, ...] = ()
    form: Literal["gemini", "cursor", "copilot", "plugin"]
    # Members that the file needs besides the hooks.
    fixed: Mapping[str, Any] = {}

    def path(self, roots: ClientRoots, project: Path | None) -> Path:
        """Return the file of the user, or of a project."""
        if project is not None:
            return project / self.project_file
        base: Path = getattr(roots, self.root)
        return base / self.user_file

    def entry(self, command: Sequence[str], event: str) -> dict[str, Any]:
        """Return what the program keeps for one event."""
        line = join([*command, "hook", event])
        if self.form == "cursor":
            return {"command": line, "timeout": _TIMEOUT_S}
        if self.form == "copilot":
            line = f"{line} --for copilot"
            return {"type": "command", "command": line, "timeoutSec": _TIMEOUT_S}
        hook = {"type": "command", "name": "polymnia", "command": line, "timeout": _TIMEOUT_MS}
        return {"hooks": [hook]}


HOOK_FILES: Mapping[str, HookFile] = {
    "cursor": HookFile(
        user_file=".cursor/hooks.json",
        project_file=".cursor/hooks.json",
        events=("sessionStart", "beforeSubmitPrompt"),
        form="cursor",
        fixed={"version": 1},
    ),
    "gemini": HookFile(
        user_file=".gemini/settings.json",
        project_file=".gemini/settings.json",
        events=("SessionStart", "BeforeAgent", "AfterAgent", "PreCompress", "SessionEnd"),
        form="gemini",
    ),
    # With these names of events it sends the fields that Claude Code sends.
    "copilot": HookFile(
        root="copilot",
        user_file="settings.json",
        project_file=".github/hooks/polymnia.json",
        events=("SessionStart", "UserPromptSubmit", "PreCompact", "Stop", "SessionEnd"),
        form="copilot",
    ),
}
# Programs whose hooks are functions of a plugin, which is a file of its own.
PLUGIN_FILES: Mapping[str, HookFile] = {
    "opencode": HookFile(
        root="opencode",
        user_file="plugins/polymnia.js",
        project_file=".opencode/plugins/polymnia.js",
        form="plugin",
    ),
}


def plugin_text(command: Sequence[str]) -> str:
    """Return OpenCode's plugin, which runs this command."""
    text = (files("polymnia.clients") / "opencode.js").read_text("utf-8")
    return text.replace(_PLUGIN_COMMAND, f"const COMMAND = {encode(list(command)).decode()}")


def write_plugin(path: Path, text: str) -> None:
    """Write OpenCode's plugin, in place of an earlier one. Raise BadInput for another file."""
    if read_text(path) and not read_text(path).startswith(_PLUGIN_HEAD):
        raise BadInput(f"{path} is not a plugin of Polymnia; move it away first")
    change_text(path, lambda _: text)


def remove_plugin(path: Path) -> None:
    """Delete OpenCode's plugin. Raise BadInput if the file is not ours."""
    if not read_text(path).startswith(_PLUGIN_HEAD):
        raise BadInput(f"{path} is not a plugin of Polymnia")
    path.unlink()


def add_hooks(hooks: HookFile, path: Path, command: Sequence[str]) -> Path | None:
    """Add our hooks, in place of earlier ones. Return where the former file is kept, if any.

    Raise BadInput.
    """

    def add(text: str) -> str:
        present = _members(path, text)
        for name, value in hooks.fixed.items():
            if name not in jsonc.parse(text):
                text = jsonc.set_member(text, (name,), value)
        for event in hooks.events:
            ours = hooks.entry(command, event)
            listed = present.get(event, [])
            if isinstance(listed, list) and [item for item in listed if _is_ours(item)] == [ours]:
                continue  # another order of the entries would be a change without a reason
            text = jsonc.remove_items(text, ("hooks", event), _is_ours)
            text = jsonc.append_item(text, ("hooks", event), ours)
        return text

    return change_text(path, add)


def remove_hooks(hooks: HookFile, path: Path) -> Path | None:
    """Remove our hooks. Return where the former file is kept; None if there were none."""

    def remove(text: str) -> str:
        for event in _members(path, text).keys() & set(hooks.events):
            text = jsonc.remove_items(text, ("hooks", event), _is_ours)
        is_empty = jsonc.parse(text).get("hooks") == {}
        return jsonc.remove_member(text, ("hooks",)) if is_empty else text

    return change_text(path, remove)


def _members(path: Path, text: str) -> dict[str, Any]:
    members = jsonc.parse(text).get("hooks", {})
    if not isinstance(members, dict):
        raise BadInput(f"{path}: 'hooks' is not an object; correct it first")
    return members


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
