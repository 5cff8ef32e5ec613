"""Checking a data directory finds everything and changes nothing; a lost registry is rebuilt."""

from pathlib import Path

import apsw
import pytest

from polymnia.errors import BadInput, SettingsError, StoreDamaged, StoreError
from polymnia.stores import check_catalogue, rebuild_catalogue
from polymnia.stores.directory import files
from polymnia.stores.directory.repair import WorkspaceReport, check_directory, rebuild_registry
from tests.directory.directories import names_in, opened, snapshot, write
from tests.directory.earlier import earlier_directory


@pytest.fixture
def directory(tmp_path: Path) -> Path:
    workspaces = opened(tmp_path / "data")
    for name in ("alpha", "beta", "gamma"):
        workspaces.create(name, f"about {name}")
        write(workspaces.memory(name), f"in {name}")
    workspaces.archive("beta")
    workspaces.close()
    return tmp_path / "data"


def file_of(directory: Path, name: str) -> Path:
    workspaces = opened(directory, read_only=True)
    found = workspaces.find(name)
    workspaces.close()
    return directory / ("projects" if found.status == "active" else "archive") / f"{found.id}.db"


def change_registry(directory: Path, statement: str) -> None:
    registry = apsw.Connection(str(directory / "_meta.db"))
    registry.execute("PRAGMA ignore_check_constraints = ON")
    registry.execute(statement)
    registry.close()


def problems(reports: list[WorkspaceReport]) -> dict[str, tuple[str, ...]]:
    return {report.name: report.problems for report in reports if report.problems}


def test_a_sound_directory_has_no_problems_and_archived_workspaces_are_read_too(
    directory: Path,
) -> None:
    before = snapshot(directory)
    whole, *reports = check_catalogue(f"{directory}/")
    assert (whole.name, whole.problems) == ("", ())
    counts = {
        report.name: report.counts.entities for report in reports if report.counts is not None
    }
    assert counts == {"alpha": 1, "beta": 1, "gamma": 1}
    assert problems(reports) == {}
    assert snapshot(directory) == before


@pytest.mark.parametrize("name", ["alpha", "beta"])
def test_an_empty_a_damaged_and_a_missing_file_are_found(directory: Path, name: str) -> None:
    path = file_of(directory, name)
    whole = path.read_bytes()
    path.write_bytes(b"")
    assert "is empty" in problems(check_directory(directory))[name][0]
    path.write_bytes(whole[:4096] + b"\xff" * 4096 + whole[8192:])
    before = snapshot(directory)
    assert list(problems(check_directory(directory))) == [name]
    assert snapshot(directory) == before
    path.unlink()
    assert "is missing" in problems(check_directory(directory))[name][0]


@pytest.mark.parametrize("name", ["alpha", "gamma"])
def test_an_empty_or_damaged_file_is_not_opened_as_a_new_memory(directory: Path, name: str) -> None:
    file_of(directory, name).write_bytes(b"" if name == "alpha" else b"no database at all" * 1000)
    workspaces = opened(directory)
    with pytest.raises(StoreDamaged):
        workspaces.memory(name)
    workspaces.close()


def test_a_bad_row_does_not_hide_the_others(directory: Path) -> None:
    file_of(directory, "gamma").write_bytes(b"")
    change_registry(directory, "UPDATE projects SET db_path = '../outside.db' WHERE name = 'alpha'")
    change_registry(directory, "UPDATE projects SET status = 'odd' WHERE name = 'beta'")
    found = problems(check_directory(directory))
    assert "outside the directory" in found["alpha"][0]
    assert "the status 'odd'" in found["beta"][0]
    assert "is empty" in found["gamma"][0]
    assert "belongs to no workspace" in found[""][0]


def test_a_damaged_registry_does_not_hide_the_workspaces(directory: Path) -> None:
    file_of(directory, "alpha").write_bytes(b"")
    (directory / "_meta.db").write_bytes(b"no database at all" * 1000)
    found = check_directory(directory)
    assert "is damaged" in found[0].problems[0]
    assert len([item for item in found[1:] if item.counts is not None]) == 2
    assert len(problems(found)) == 2


def test_a_file_of_no_workspace_and_a_foreign_file_are_found(directory: Path) -> None:
    path = directory / "projects" / "stray.db"
    other = apsw.Connection(str(path))
    other.execute("CREATE TABLE something (x)")
    other.close()
    found = problems(check_directory(directory))
    assert found[""] == (f"{path} belongs to no workspace",)
    assert "another program" in found["stray.db"][0]


def test_a_sealed_file_in_use_is_found(directory: Path) -> None:
    files.seal(file_of(directory, "alpha"))
    assert "is sealed" in problems(check_directory(directory))["alpha"][0]


def test_the_files_of_an_earlier_program_are_checked_and_not_converted(tmp_path: Path) -> None:
    earlier_directory(tmp_path)
    before = snapshot(tmp_path)
    assert problems(check_directory(tmp_path)) == {}
    assert snapshot(tmp_path) == before


def test_only_a_directory_can_be_checked(tmp_path: Path) -> None:
    with pytest.raises(SettingsError, match="not a data directory"):
        check_catalogue(str(tmp_path / "memory.db"))


@pytest.mark.parametrize("content", [None, b"", b"no database at all" * 1000])
def test_a_lost_registry_is_rebuilt_with_all_names(directory: Path, content: bytes | None) -> None:
    before = opened(directory, read_only=True).find_all()
    for path in directory.glob("_meta.db*"):
        path.unlink()
    if content is not None:
        (directory / "_meta.db").write_bytes(content)
    with pytest.raises(StoreError):
        opened(directory)
    assert {item.name for item in rebuild_catalogue(f"{directory}/")} == {"alpha", "beta", "gamma"}
    workspaces = opened(directory)
    after = workspaces.find_all()
    assert [(item.id, item.name, item.description, item.status) for item in after] == [
        (item.id, item.name, item.description, item.status) for item in before
    ]
    workspaces.restore("beta")
    assert [names_in(workspaces, name) for name in ("alpha", "beta", "gamma")] == [
        ["in alpha"],
        ["in beta"],
        ["in gamma"],
    ]
    workspaces.close()
    assert problems(check_directory(directory)) == {}
    assert (directory / "_meta.db.damaged").exists() == (content is not None)


def test_without_the_copy_workspaces_get_new_names(directory: Path) -> None:
    for path in directory.glob("_meta*"):
        path.unlink()
    found = rebuild_registry(directory)
    assert len(found) == 3
    assert all(item.name.startswith("recovered-") for item in found)
    workspaces = opened(directory)
    active = [workspace.name for workspace in workspaces.find_all("active")]
    assert sorted(names_in(workspaces, name)[0] for name in active) == ["in alpha", "in gamma"]
    workspaces.close()


def test_an_interrupted_archiving_is_undone_by_the_rebuild(directory: Path) -> None:
    files.seal(file_of(directory, "alpha"))
    (directory / "_meta.db").unlink()
    rebuild_registry(directory)
    workspaces = opened(directory)
    write(workspaces.memory("alpha"), "more")
    assert names_in(workspaces, "alpha") == ["in alpha", "more"]
    workspaces.close()


def test_a_registry_that_can_be_read_is_left_alone(directory: Path) -> None:
    before = snapshot(directory)
    with pytest.raises(BadInput, match="nothing to rebuild"):
        rebuild_registry(directory)
    assert snapshot(directory).keys() - before.keys() <= {"_meta.db.lock"}


def test_a_server_notices_that_its_registry_was_replaced(directory: Path) -> None:
    workspaces = opened(directory)
    for path in directory.glob("_meta.db*"):
        path.unlink()
    rebuild_registry(directory)
    with pytest.raises(StoreError, match="replaced meanwhile"):
        workspaces.find("alpha")
    workspaces.close()
