"""Check that a crash between any two steps of a change leaves a whole project or none, and loses
nothing.
"""

from collections.abc import Iterator
from pathlib import Path

import pytest

from polymnia.engine.workspaces import Workspaces
from polymnia.errors import WorkspaceArchived, WorkspaceNotFound
from polymnia.model import Workspace
from tests.directory.directories import CRASHES, Crash, crash_at, names_in, on_disk, opened, write


@pytest.fixture
def directory(tmp_path: Path) -> Path:
    return tmp_path / "data"


@pytest.fixture
def workspaces(directory: Path) -> Iterator[Workspaces]:
    workspaces = opened(directory)
    workspaces.create("other")
    yield workspaces
    workspaces.close()


def die(
    workspaces: Workspaces, change: str, monkeypatch: pytest.MonkeyPatch, step: str, when: str
) -> Workspace:
    """Begin a change to the project `p` and crash; return the project as it was before."""
    before = Workspace("", "p")
    if change != "create":
        before = workspaces.create("p")
        write(workspaces.memory("p"), "kept")
    if change == "restore":
        workspaces.archive("p")
    with monkeypatch.context() as patch:
        crash_at(patch, change, step, when)
        with pytest.raises(Crash):
            getattr(workspaces, change)("p")
    return before


def found(workspaces: Workspaces) -> str:
    """Return the status of the project, or "none"."""
    try:
        return workspaces.find("p").status
    except WorkspaceNotFound:
        return "none"


@pytest.mark.parametrize(("change", "step", "when"), CRASHES)
def test_after_a_crash_the_next_start_finds_a_whole_project_or_none(
    workspaces: Workspaces,
    directory: Path,
    monkeypatch: pytest.MonkeyPatch,
    change: str,
    step: str,
    when: str,
) -> None:
    before = die(workspaces, change, monkeypatch, step, when)
    after = opened(directory)
    status = found(after)
    home = {"active": "projects", "archived": "archive"}.get(status)
    files = [path for path in on_disk(directory) if after.find("other").id not in path]
    main = [path for path in files if not path.endswith(("-wal", "-shm"))]
    assert main == ([f"{home}/{after.find('p').id}.db"] if home else [])
    if status == "archived":
        assert files == main
        after.restore("p")
    if status != "none":
        assert names_in(after, "p") == ([] if change == "create" else ["kept"])
        assert change == "create" or after.find("p").id == before.id
        write(after.memory("p"), "more")
        assert names_in(after, "p")[-1] == "more"
    after.close()


@pytest.mark.parametrize(("change", "step", "when"), CRASHES)
def test_after_a_crash_the_change_can_be_repeated(
    workspaces: Workspaces,
    directory: Path,
    monkeypatch: pytest.MonkeyPatch,
    change: str,
    step: str,
    when: str,
) -> None:
    die(workspaces, change, monkeypatch, step, when)
    after = opened(directory)
    aim = {"create": "active", "archive": "archived", "restore": "active", "delete": "none"}[change]
    if found(after) != aim:
        getattr(after, change)("p")
    assert found(after) == aim
    if change == "restore":
        assert names_in(after, "p") == ["kept"]
    after.close()


@pytest.mark.parametrize(
    ("change", "step", "when"), [crash for crash in CRASHES if crash[0] != "create"]
)
def test_a_crash_loses_no_acknowledged_write_of_another_process(
    workspaces: Workspaces,
    directory: Path,
    monkeypatch: pytest.MonkeyPatch,
    change: str,
    step: str,
    when: str,
) -> None:
    neighbour = opened(directory)
    die(workspaces, change, monkeypatch, step, when)
    status = found(neighbour)
    if status == "active" and change != "delete":
        restarted = opened(directory)  # it repairs the crash while the other process continues
        if found(restarted) == "active":
            write(neighbour.memory("p"), "by the neighbour")
            assert names_in(restarted, "p") == ["kept", "by the neighbour"]
        restarted.close()
    neighbour.close()


def test_running_processes_repair_what_a_crash_left(
    workspaces: Workspaces, directory: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    neighbour = opened(directory)
    die(workspaces, "archive", monkeypatch, "move", "after")
    neighbour.create("next")
    assert neighbour.find("p").status == "archived"
    neighbour.close()


def test_a_project_whose_file_a_crashed_process_moved_is_repaired_on_use(
    workspaces: Workspaces, directory: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    neighbour = opened(directory)
    die(workspaces, "archive", monkeypatch, "move", "after")
    assert neighbour.find("p").status == "active"
    with pytest.raises(WorkspaceArchived):
        neighbour.memory("p")
    neighbour.restore("p")
    assert names_in(neighbour, "p") == ["kept"]
    neighbour.close()
