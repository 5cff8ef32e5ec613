"""Hooks in the files of programs that have no plugin of ours."""

import json
from pathlib import Path

import pytest

from polymnia.clients.hooks import (
    HOOK_FILES,
    add_hooks,
    plugin_text,
    remove_hooks,
    remove_plugin,
)
from polymnia.clients.jsonc import parse
from polymnia.errors import BadInput
from polymnia.hooks.events import EVENTS

COMMAND = ("/opt/my tools/polymnia",)
OTHERS = {
    "cursor": {"command": "./audit.sh"},
    "gemini": {"matcher": "startup", "hooks": [{"type": "command", "command": "./audit.sh"}]},
    "copilot": {"type": "command", "bash": "./audit.sh"},
}


@pytest.mark.parametrize("name", HOOK_FILES)
def test_every_event_has_an_answer(name: str) -> None:
    assert set(HOOK_FILES[name].events) <= set(EVENTS)


@pytest.mark.parametrize("name", HOOK_FILES)
def test_hooks_are_added_once_and_removed_without_a_trace(name: str, tmp_path: Path) -> None:
    hooks = HOOK_FILES[name]
    path = tmp_path / hooks.project_file
    path.parent.mkdir(parents=True)
    first = hooks.events[0]
    before = {"theme": "dark", "hooks": {first: [OTHERS[name]]}, **hooks.fixed}
    path.write_text(json.dumps(before), "utf-8")
    assert add_hooks(hooks, path, ("/old/polymnia",)) is not None
    add_hooks(hooks, path, COMMAND)
    assert add_hooks(hooks, path, COMMAND) is None
    added = json.loads(path.read_text("utf-8"))
    assert added["hooks"][first] == [OTHERS[name], hooks.entry(COMMAND, first)]
    assert set(added["hooks"]) == set(hooks.events)
    assert "'/opt/my tools/polymnia' hook" in path.read_text("utf-8")
    remove_hooks(hooks, path)
    assert json.loads(path.read_text("utf-8")) == before


@pytest.mark.parametrize("name", HOOK_FILES)
def test_a_missing_file_is_created(name: str, tmp_path: Path) -> None:
    hooks = HOOK_FILES[name]
    assert add_hooks(hooks, tmp_path / hooks.project_file, COMMAND) is None
    written = json.loads((tmp_path / hooks.project_file).read_text("utf-8"))
    assert list(written["hooks"]) == list(hooks.events)


def test_hooks_of_another_form_are_left_alone(tmp_path: Path) -> None:
    path = tmp_path / "hooks.json"
    path.write_text('{"hooks": []}', "utf-8")
    with pytest.raises(BadInput, match="'hooks' is not an object"):
        add_hooks(HOOK_FILES["cursor"], path, COMMAND)


def test_the_plugin_runs_the_command_that_was_installed(tmp_path: Path) -> None:
    path = tmp_path / "polymnia.js"
    path.write_text(plugin_text(COMMAND), "utf-8")
    assert 'const COMMAND = ["/opt/my tools/polymnia"]' in path.read_text("utf-8")
    remove_plugin(path)
    assert not path.exists()


def test_a_plugin_of_others_is_not_deleted(tmp_path: Path) -> None:
    path = tmp_path / "polymnia.js"
    path.write_text("export const Mine = () => {}", "utf-8")
    with pytest.raises(BadInput, match="is not a plugin of Polymnia"):
        remove_plugin(path)


def test_comments_between_hooks_stay(tmp_path: Path) -> None:
    path = tmp_path / "hooks.json"
    before = """{
  "version": 1,
  "hooks": {
    "sessionStart": [
      // asked for by the security team
      {"command": "./audit.sh"} // first
    ]
  }
}
"""
    path.write_text(before, "utf-8")
    add_hooks(HOOK_FILES["cursor"], path, COMMAND)
    text = path.read_text("utf-8")
    assert "// asked for by the security team" in text
    assert "// first" in text
    assert len(parse(text)["hooks"]["sessionStart"]) == 2
    remove_hooks(HOOK_FILES["cursor"], path)
    assert parse(path.read_text("utf-8")) == parse(before)
    assert "// asked for by the security team" in path.read_text("utf-8")


def test_a_value_that_is_not_a_list_is_not_replaced(tmp_path: Path) -> None:
    path = tmp_path / "hooks.json"
    path.write_text('{"hooks": {"sessionStart": "./audit.sh"}}', "utf-8")
    with pytest.raises(BadInput, match=r"hooks\.sessionStart is not a list"):
        add_hooks(HOOK_FILES["cursor"], path, COMMAND)
