"""Changes of a client's file by several programs at a time."""

import json
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from polymnia.clients.configuration import change_servers, change_text
from polymnia.clients.table import CLIENTS, is_polymnia


@pytest.fixture(autouse=True)
def _own_runtime_directory(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("XDG_RUNTIME_DIR", str(tmp_path))


def test_simultaneous_changes_keep_every_entry(tmp_path: Path) -> None:
    path = tmp_path / "mcp.json"
    names = [f"server-{number}" for number in range(16)]

    def add(name: str) -> None:
        change_servers(CLIENTS["cursor"], path, {name: {"command": name}})

    with ThreadPoolExecutor(8) as pool:
        list(pool.map(add, names))
    assert set(json.loads(path.read_text("utf-8"))["mcpServers"]) == set(names)


def test_what_another_program_writes_meanwhile_stays(tmp_path: Path) -> None:
    path = tmp_path / "rules.md"
    path.write_text("one\n", "utf-8")
    calls: list[str] = []

    def change(text: str) -> str:
        calls.append(text)
        if len(calls) == 1:
            path.write_text("one\ntwo\n", "utf-8")
        return f"{text}ours\n"

    change_text(path, change)
    assert calls == ["one\n", "one\ntwo\n"]
    assert path.read_text("utf-8") == "one\ntwo\nours\n"


def test_an_entry_with_our_token_or_at_our_address_is_ours() -> None:
    url = "https://memory.example.com/mcp"
    codex, cursor = CLIENTS["codex"], CLIENTS["cursor"]
    assert is_polymnia(codex.remote_entry(url, "ply_1_2"))
    assert is_polymnia(cursor.remote_entry(url, ""), url)
    assert not is_polymnia(cursor.remote_entry(url, "other"))


def test_only_the_last_former_file_is_kept(tmp_path: Path) -> None:
    path = tmp_path / "mcp.json"
    path.write_text('{"mcpServers": {}}', "utf-8")
    mine = tmp_path / "mcp.json.bak-mine"
    mine.write_text("{}", "utf-8")
    for name in ("one", "two", "three"):
        change_servers(CLIENTS["cursor"], path, {name: {"command": name}})
    kept = {found.name for found in tmp_path.glob("mcp.json.bak-*")} - {mine.name}
    assert len(kept) == 1
    assert set(json.loads((tmp_path / kept.pop()).read_text("utf-8"))["mcpServers"]) == {
        "one",
        "two",
    }


def test_removing_the_only_server_leaves_no_empty_object(tmp_path: Path) -> None:
    path = tmp_path / "mcp.json"
    path.write_text('{"theme": "dark"}\n', "utf-8")
    change_servers(CLIENTS["cursor"], path, {"memory": {"command": "polymnia"}})
    change_servers(CLIENTS["cursor"], path, {"memory": None})
    assert json.loads(path.read_text("utf-8")) == {"theme": "dark"}
