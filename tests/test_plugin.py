"""The plugin's files fit the program.

Its events, its command, and the tools that its skill names.
"""

import json
from pathlib import Path
from typing import Any

from polymnia.cli.main import COMMANDS
from polymnia.hooks.events import EVENTS

ROOT = Path(__file__).parent.parent
PLUGIN = ROOT / "packages" / "plugin"
# Other words that the skill writes as code: a type, a tag, arguments and a workspace.
PLUGIN_EVENTS = (
    "SessionStart",
    "UserPromptSubmit",
    "PreCompact",
    "Stop",
    "SessionEnd",
)


def read(path: Path) -> Any:
    return json.loads(path.read_text("utf-8"))


def test_every_hook_runs_the_command_for_its_event() -> None:
    hooks = read(PLUGIN / "hooks" / "hooks.json")["hooks"]
    commands = {
        event: [hook["command"] for group in groups for hook in group["hooks"]]
        for event, groups in hooks.items()
    }
    assert commands == {event: [f"polymnia hook {event}"] for event in PLUGIN_EVENTS}
    assert set(PLUGIN_EVENTS) < set(EVENTS)
    assert "hook" in COMMANDS


def test_both_marketplaces_name_the_plugin_and_its_folder() -> None:
    (claude,) = read(ROOT / ".claude-plugin" / "marketplace.json")["plugins"]
    (codex,) = read(ROOT / ".agents" / "plugins" / "marketplace.json")["plugins"]
    assert {claude["source"], codex["source"]["path"]} == {"./packages/plugin"}
    manifests = [
        read(PLUGIN / name / "plugin.json") for name in (".claude-plugin", ".codex-plugin")
    ]
    assert {manifest["name"] for manifest in (claude, codex, *manifests)} == {"polymnia"}
    assert len({manifest["description"] for manifest in (claude, *manifests)}) == 1
