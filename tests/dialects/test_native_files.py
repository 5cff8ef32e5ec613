"""Facts that name files of the project are compared with its git work tree."""

import os
import subprocess
import threading
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from polymnia.engine.facts import work_tree
from polymnia.engine.facts.briefing import brief_session
from polymnia.engine.memory import Memory
from polymnia.stores import open_store
from tests.dialects.conversation import Client

FACTS = [
    "Tokens are checked in src/auth/jwt.py",
    "Settings are in config/default.toml",
    "The queue is in src/queue.py",
    "See docs/elsewhere.md of the other project",
]


def git(root: Path, *arguments: str, at: str = "2020-01-01T00:00:00Z") -> None:
    clock = {"GIT_AUTHOR_DATE": at, "GIT_COMMITTER_DATE": at}
    identity = ("-c", "user.name=test", "-c", "user.email=test@example.com")
    command = ["git", "-C", str(root), *identity, *arguments]
    subprocess.run(command, check=True, capture_output=True, env={**os.environ, **clock})


@pytest.fixture
def root(tmp_path: Path) -> Path:
    """A project in which one file was deleted and one changed after the facts were written."""
    root = tmp_path / "shop"
    for name in ("src/auth/jwt.py", "config/default.toml", "src/queue.py"):
        (root / name).parent.mkdir(parents=True, exist_ok=True)
        (root / name).write_text("first", "utf-8")
    git(root, "init", "-q")
    git(root, "add", ".")
    git(root, "commit", "-qm", "first")
    for number in range(3):
        (root / "config/default.toml").write_text(f"{number}", "utf-8")
        git(root, "commit", "-qam", "change", at="2090-01-01T00:00:00Z")
    git(root, "rm", "-q", "src/auth/jwt.py")
    git(root, "commit", "-qm", "remove", at="2090-01-01T00:00:00Z")
    return root


@pytest.fixture
def client(tmp_path: Path, root: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Client]:
    monkeypatch.chdir(root)
    monkeypatch.setattr(work_tree, "WAIT_S", 60.0)  # however busy the machine is
    store = open_store(str(tmp_path / "memory.db"))
    client = Client("native", Memory(store))
    client.session.client.is_local = True
    entity = {"name": "code", "type": "rule", "facts": FACTS}
    client.text("remember", {"entities": [entity]})
    yield client
    store.close()


@pytest.mark.parametrize(
    ("tool", "arguments"), [("recall", {"query": "code"}), ("open", {"names": ["code"]})]
)
def test_a_fact_says_what_became_of_its_files(
    client: Client, tool: str, arguments: dict[str, object]
) -> None:
    text = client.text(tool, arguments)
    assert "jwt.py [src/auth/jwt.py is gone]" in text.replace("[noted", "").replace("; ", "[")
    assert "changed in 3 commits since]" in text
    assert "The queue is in src/queue.py\n" in text
    assert "elsewhere.md is gone" not in text


def test_the_briefing_says_it_as_well(client: Client) -> None:
    assert "jwt.py [src/auth/jwt.py is gone]" in client.text("briefing")


def test_a_review_lists_facts_about_files_that_are_gone(client: Client) -> None:
    text = client.text("review")
    assert '- file? code #1 "Tokens are checked in src/auth/jwt.py"' in text
    assert "default.toml" not in text


def test_a_file_that_is_deleted_but_not_committed_is_gone(client: Client, root: Path) -> None:
    (root / "src/queue.py").unlink()
    assert "src/queue.py is gone" in client.text("recall", {"query": "code"})


def test_a_server_for_many_clients_looks_at_no_files(client: Client) -> None:
    client.session.client.is_local = False
    text = client.text("recall", {"query": "code"})
    assert "jwt.py" in text
    assert "gone" not in text


def test_git_runs_once_for_the_paths_of_a_commit(
    root: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    runs: list[list[str]] = []
    run = subprocess.run

    def count(command: list[str], **options: Any) -> Any:
        runs.append(command)
        return run(command, **options)

    monkeypatch.setattr(work_tree, "WAIT_S", 60.0)
    monkeypatch.setattr(subprocess, "run", count)
    assert work_tree.remarks_on_files(root, [("We use Node.js, e.g. for tests", 0)]) == [""]
    assert runs == []
    facts = [(f"see src/old{number}.py", 1) for number in range(30)]
    for _ in range(3):
        assert work_tree.remarks_on_files(root, facts) == [""] * 30
    (command,) = runs
    assert len([part for part in command if "old" in part]) == work_tree.MAX_CHECKED_FACTS
    work_tree.remarks_on_files(root, [("see config/default.toml", 1)])
    assert runs[1][-1] == "config/default.toml"
    git(root, "commit", "-q", "--allow-empty", "-m", "another")
    runs.clear()
    assert work_tree.remarks_on_files(root, facts) == [""] * 30
    assert len(runs) == 1


def test_what_git_says_too_late_is_in_the_next_reply(
    root: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    answered = threading.Event()
    run = subprocess.run

    def run_late(command: list[str], **options: Any) -> Any:
        answered.wait(60)
        return run(command, **options)

    monkeypatch.setattr(subprocess, "run", run_late)
    monkeypatch.setattr(work_tree, "WAIT_S", 0.0)
    facts = [("Tokens are checked in src/auth/jwt.py", 1)]
    assert work_tree.remarks_on_files(root, facts) == [""]
    answered.set()
    assert work_tree.remarks_on_files(root, facts, wait=60) == ["src/auth/jwt.py is gone"]


def test_personal_facts_are_not_compared(root: Path) -> None:
    memory = Memory(open_store(":memory:"))
    Client("native", memory).text("remember", {"entities": [{"name": "user", "facts": FACTS[:1]}]})
    session = brief_session([("personal", memory)], by="test", max_tokens=500, root=root)
    assert "gone" not in str(session)
