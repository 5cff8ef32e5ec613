"""Check a data directory.

Projects are created, archived, restored and deleted while other processes use them.
"""

import os
import re
import threading
from collections.abc import Iterator
from pathlib import Path
from time import time

import apsw
import pytest

from polymnia.engine.graph import entities
from polymnia.engine.history import trash
from polymnia.engine.workspaces import Workspaces, first_workspace, open_workspaces
from polymnia.errors import (
    BadInput,
    SettingsError,
    StoreBusy,
    StoreDamaged,
    StoreError,
    StoreSealed,
    WorkspaceArchived,
    WorkspaceNotFound,
)
from polymnia.model import Change, EntityDraft
from polymnia.stores import open_store
from polymnia.stores.directory import files
from polymnia.stores.sqlite import connection as sqlite_connection
from polymnia.stores.sqlite.store import SqliteStore
from tests.directory.directories import ME, names_in, on_disk, opened, write


@pytest.fixture
def directory(tmp_path: Path) -> Path:
    return tmp_path / "data"


@pytest.fixture
def workspaces(directory: Path) -> Iterator[Workspaces]:
    workspaces = opened(directory)
    yield workspaces
    workspaces.close()


@pytest.fixture
def others(directory: Path) -> Iterator[Workspaces]:
    """Open the same directory a second time, as another process does."""
    others = opened(directory)
    yield others
    others.close()


def test_a_project_has_a_row_in_the_registry_and_a_file(
    workspaces: Workspaces, directory: Path
) -> None:
    created = workspaces.create("alpha", "the first")
    assert (created.name, created.description, created.status) == ("alpha", "the first", "active")
    assert created.created_at == created.updated_at > 0
    assert on_disk(directory) == [f"projects/{created.id}.db"]
    registry = apsw.Connection(str(directory / "_meta.db"))
    assert registry.execute("SELECT name, db_path, status FROM projects").fetchall() == [
        ("alpha", f"projects/{created.id}.db", "active")
    ]
    registry.close()


def test_projects_are_isolated_from_each_other(workspaces: Workspaces) -> None:
    for name in ("alpha", "beta"):
        workspaces.create(name)
        write(workspaces.memory(name), f"in {name}")
    assert (names_in(workspaces, "alpha"), names_in(workspaces, "beta")) == (
        ["in alpha"],
        ["in beta"],
    )


def test_projects_are_listed_by_name_and_status(workspaces: Workspaces) -> None:
    for name in ("beta", "alpha", "gamma"):
        workspaces.create(name)
    workspaces.archive("beta")
    assert [workspace.name for workspace in workspaces.find_all("active")] == ["alpha", "gamma"]
    assert [workspace.name for workspace in workspaces.find_all("archived")] == ["beta"]
    assert [workspace.name for workspace in workspaces.find_all()] == ["alpha", "beta", "gamma"]


@pytest.mark.parametrize(
    "name",
    [
        "",
        " ",
        "my project",
        "../x",
        "a/b",
        "a\\b",
        ".hidden",
        "-x",
        "x\n",
        "x\x00",
        "x" * 101,
        "a:b",
        "con.",
        "_x",
        "~",
    ],
)
def test_an_invalid_name_is_rejected_and_leaves_no_files(
    workspaces: Workspaces, directory: Path, name: str
) -> None:
    with pytest.raises(BadInput):
        workspaces.create(name)
    assert (workspaces.find_all(), on_disk(directory)) == ([], [])


@pytest.mark.parametrize(
    "name", ["alpha", "Alpha-2", "v1.2_x", "проект", "हिन्दी", "ภาษาไทย", "தமிழ்", "x" * 100, "0"]
)
def test_a_name_may_have_letters_digits_and_some_punctuation(
    workspaces: Workspaces, name: str
) -> None:
    assert workspaces.create(name).name == name


def test_the_error_for_an_invalid_name_suggests_a_valid_one(workspaces: Workspaces) -> None:
    with pytest.raises(BadInput, match="for example 'my-great-project'"):
        workspaces.create("My great/project")


@pytest.mark.parametrize("other", ["alpha", "ALPHA", "Alpha"])
def test_names_are_not_case_sensitive(workspaces: Workspaces, other: str) -> None:
    workspaces.create("alpha")
    with pytest.raises(BadInput, match="there is a project alpha already"):
        workspaces.create(other)


def test_the_name_of_an_archived_project_cannot_be_reused(workspaces: Workspaces) -> None:
    workspaces.create("alpha")
    workspaces.archive("alpha")
    with pytest.raises(BadInput, match=r"already \(archived\)"):
        workspaces.create("alpha")


def test_the_error_for_a_missing_project_says_how_to_create_it(workspaces: Workspaces) -> None:
    with pytest.raises(WorkspaceNotFound, match="polymnia workspace create ghost"):
        workspaces.memory("ghost")


def test_an_archived_project_is_a_single_file(workspaces: Workspaces, directory: Path) -> None:
    project = workspaces.create("alpha").id
    write(workspaces.memory("alpha"), "kept")
    assert workspaces.archive("alpha").status == "archived"
    assert on_disk(directory) == [f"archive/{project}.db"]
    with pytest.raises(WorkspaceArchived):
        workspaces.memory("alpha")


def test_a_restored_project_has_all_its_data(workspaces: Workspaces, directory: Path) -> None:
    project = workspaces.create("alpha", "described").id
    write(workspaces.memory("alpha"), "kept")
    workspaces.archive("alpha")
    restored = workspaces.restore("alpha")
    assert (restored.id, restored.description, restored.status) == (project, "described", "active")
    assert names_in(workspaces, "alpha") == ["kept"]
    assert [path for path in on_disk(directory) if path.endswith(".db")] == [
        f"projects/{project}.db"
    ]


def test_a_restored_file_keeps_its_permissions(workspaces: Workspaces, directory: Path) -> None:
    path = directory / "projects" / f"{workspaces.create('alpha').id}.db"
    path.chmod(0o640)
    workspaces.archive("alpha")
    workspaces.restore("alpha")
    assert path.stat().st_mode & 0o777 == 0o640


def test_a_deleted_project_leaves_no_files(workspaces: Workspaces, directory: Path) -> None:
    for name in ("alpha", "beta"):
        workspaces.create(name)
        write(workspaces.memory(name), "gone")
    workspaces.archive("beta")
    workspaces.delete("alpha")
    workspaces.delete("beta")
    assert (workspaces.find_all(), on_disk(directory)) == ([], [])
    assert workspaces.create("alpha").name == "alpha"
    assert names_in(workspaces, "alpha") == []


def test_a_renamed_project_keeps_its_data(workspaces: Workspaces) -> None:
    project = workspaces.create("alpha").id
    write(workspaces.memory("alpha"), "kept")
    assert workspaces.rename("alpha", "Alpha").id == project
    assert names_in(workspaces, "Alpha") == ["kept"]
    with pytest.raises(WorkspaceNotFound):
        workspaces.memory("alpha")


def test_a_description_can_be_changed(workspaces: Workspaces) -> None:
    workspaces.create("alpha", "old")
    assert workspaces.describe("alpha", "new").description == "new"


@pytest.mark.parametrize("change", ["archive", "restore", "delete"])
def test_a_project_that_does_not_exist_cannot_be_changed(
    workspaces: Workspaces, change: str
) -> None:
    with pytest.raises(WorkspaceNotFound):
        getattr(workspaces, change)("ghost")


def test_a_change_that_is_already_in_effect_is_an_error(workspaces: Workspaces) -> None:
    workspaces.create("alpha")
    with pytest.raises(BadInput, match="not archived"):
        workspaces.restore("alpha")
    workspaces.archive("alpha")
    with pytest.raises(WorkspaceArchived):
        workspaces.archive("alpha")


def test_other_processes_get_an_error_after_a_project_is_archived(
    workspaces: Workspaces, others: Workspaces
) -> None:
    workspaces.create("alpha")
    write(others.memory("alpha"), "kept")
    workspaces.archive("alpha")
    with pytest.raises(WorkspaceArchived):
        others.memory("alpha")


def test_a_running_call_cannot_write_to_an_archived_project(
    workspaces: Workspaces, others: Workspaces
) -> None:
    workspaces.create("alpha")
    memory = others.memory("alpha")
    write(memory, "kept")
    workspaces.archive("alpha")
    with pytest.raises(StoreSealed):
        write(memory, "lost")
    workspaces.restore("alpha")
    with pytest.raises(StoreSealed):
        write(memory, "lost")
    assert names_in(workspaces, "alpha") == ["kept"]


def test_a_sealed_file_rejects_writes(workspaces: Workspaces, directory: Path) -> None:
    project = workspaces.create("alpha").id
    memory = workspaces.memory("alpha")
    files.seal(directory / "projects" / f"{project}.db")
    with pytest.raises(StoreSealed):
        write(memory, "lost")
    files.unseal(directory / "projects" / f"{project}.db")
    write(memory, "kept")
    assert names_in(workspaces, "alpha") == ["kept"]


def test_other_processes_can_use_a_project_again_after_it_is_restored(
    workspaces: Workspaces, others: Workspaces
) -> None:
    workspaces.create("alpha")
    write(others.memory("alpha"), "one")
    workspaces.archive("alpha")
    workspaces.restore("alpha")
    write(workspaces.memory("alpha"), "two")
    write(others.memory("alpha"), "three")
    assert names_in(workspaces, "alpha") == ["one", "two", "three"]


def test_closing_a_store_whose_file_was_replaced_keeps_the_wal_of_the_new_file(
    workspaces: Workspaces, others: Workspaces
) -> None:
    workspaces.create("alpha")
    stale = others.memory("alpha")
    write(stale, "one")
    with stale.reading(), stale.reading():
        pass  # it has two idle connections now
    workspaces.archive("alpha")
    workspaces.restore("alpha")
    write(workspaces.memory("alpha"), "two")
    assert others.memory("alpha") is not stale
    del stale  # the last reference: its connections are closed now
    write(workspaces.memory("alpha"), "three")
    assert names_in(others, "alpha") == ["one", "two", "three"]


def test_a_project_cannot_be_archived_while_a_read_is_running(
    workspaces: Workspaces, others: Workspaces, monkeypatch: pytest.MonkeyPatch
) -> None:
    for module in (sqlite_connection, files):
        monkeypatch.setattr(module, "BUSY_TIMEOUT_MS", 50)
    workspaces.create("alpha")
    write(workspaces.memory("alpha"), "one")
    with others.memory("alpha").reading() as read:
        assert read.counts().entities == 1
        write(workspaces.memory("alpha"), "two")
        with pytest.raises(StoreBusy):
            workspaces.archive("alpha")
    write(workspaces.memory("alpha"), "three")
    assert names_in(others, "alpha") == ["one", "two", "three"]
    workspaces.archive("alpha")


def test_a_foreign_file_at_the_target_path_is_not_used_as_the_project(
    workspaces: Workspaces, directory: Path
) -> None:
    project = workspaces.create("alpha").id
    write(workspaces.memory("alpha"), "kept")
    (directory / "archive").mkdir()
    (directory / "archive" / f"{project}.db").write_bytes(b"somebody's")
    with pytest.raises(StoreError, match="in the way"):
        workspaces.archive("alpha")
    assert names_in(workspaces, "alpha") == ["kept"]


def test_the_error_for_a_missing_file_names_it(workspaces: Workspaces, directory: Path) -> None:
    project = workspaces.create("alpha").id
    (directory / "projects" / f"{project}.db").unlink()
    with pytest.raises(StoreError, match=f"missing.*{project}"):
        workspaces.memory("alpha")
    workspaces.delete("alpha")
    assert workspaces.find_all() == []


def test_a_damaged_project_can_still_be_deleted(workspaces: Workspaces, directory: Path) -> None:
    project = workspaces.create("alpha").id
    (directory / "projects" / f"{project}.db").write_bytes(b"no database at all" * 100)
    with pytest.raises(StoreDamaged):
        workspaces.archive("alpha")
    workspaces.delete("alpha")
    assert (workspaces.find_all(), on_disk(directory)) == ([], [])


def test_restoring_a_damaged_archive_names_the_archive(
    workspaces: Workspaces, directory: Path
) -> None:
    project = workspaces.create("alpha").id
    workspaces.archive("alpha")
    archived = directory / "archive" / f"{project}.db"
    archived.write_bytes(b"no database at all" * 100)
    with pytest.raises(StoreDamaged, match=f"{re.escape(str(archived))} is damaged"):
        workspaces.restore("alpha")
    assert on_disk(directory) == [f"archive/{project}.db"]


def test_retention_skips_projects_that_another_process_has_archived(
    directory: Path, others: Workspaces
) -> None:
    workspaces = opened(directory, trash_days=1)
    for name in ("alpha", "beta"):
        workspaces.create(name)
        write(workspaces.memory(name), "kept")
    others.archive("alpha")
    workspaces.apply_retention()
    assert names_in(workspaces, "beta") == ["kept"]
    workspaces.close()


def test_a_registry_row_that_points_outside_the_directory_is_rejected(
    workspaces: Workspaces, directory: Path
) -> None:
    workspaces.create("alpha")
    SqliteStore(str(directory.parent / "outside.db")).close()
    registry = apsw.Connection(str(directory / "_meta.db"))
    registry.execute("UPDATE projects SET db_path = '../outside.db'")
    registry.close()
    with pytest.raises(StoreError, match="outside its directory"):
        workspaces.delete("alpha")
    assert (directory.parent / "outside.db").exists()


def test_file_handles_stay_few_however_many_projects_are_used(directory: Path) -> None:
    workspaces = opened(directory, max_open=4)
    for number in range(40):
        workspaces.create(f"p{number}")
        write(workspaces.memory(f"p{number}"), "x")
    in_use = [
        path
        for path in map(_target, Path("/proc/self/fd").iterdir())
        if str(directory / "projects") in path
    ]
    assert 0 < len({path.removesuffix("-wal").removesuffix("-shm") for path in in_use}) <= 4
    workspaces.close()


def _target(link: Path) -> str:
    try:
        return os.readlink(link)  # noqa: PTH115  # a path that may be gone, as text
    except OSError:
        return ""


def test_a_store_is_not_closed_under_a_call_that_runs(directory: Path) -> None:
    workspaces = opened(directory, max_open=1)
    for name in ("alpha", "beta"):
        workspaces.create(name)
    with workspaces.memory("alpha").writing("create_entities", ME) as transaction:
        write(workspaces.memory("beta"), "meanwhile")
        assert transaction.read.counts().entities == 0
    memory = workspaces.memory("alpha")
    workspaces.memory("beta")
    write(memory, "kept")
    assert names_in(workspaces, "alpha") == ["kept"]
    workspaces.close()


def test_listeners_are_told_which_project_changed(workspaces: Workspaces) -> None:
    heard: list[tuple[str, str]] = []
    workspaces.on_change(lambda name, change: heard.append((name, change.operation)))
    for name in ("alpha", "beta"):
        workspaces.create(name)
        write(workspaces.memory(name), "x")
    assert heard == [("alpha", "create_entities"), ("beta", "create_entities")]


def test_threads_can_create_and_use_projects_concurrently(workspaces: Workspaces) -> None:
    failures: list[Exception] = []

    def work(number: int) -> None:
        try:
            workspaces.create(f"p{number}")
            for place in range(5):
                write(workspaces.memory(f"p{number}"), f"x{place}")
            workspaces.archive(f"p{number}")
            workspaces.restore(f"p{number}")
        except (BadInput, StoreError) as exc:
            failures.append(exc)

    threads = [threading.Thread(target=work, args=(number,)) for number in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert failures == []
    assert [len(names_in(workspaces, f"p{number}")) for number in range(4)] == [5, 5, 5, 5]


def test_two_processes_that_create_the_same_name_concurrently_create_one_project(
    workspaces: Workspaces, others: Workspaces
) -> None:
    outcome: list[str] = []

    def create(where: Workspaces) -> None:
        try:
            outcome.append(where.create("alpha").name)
        except BadInput:
            outcome.append("refused")

    threads = [threading.Thread(target=create, args=(where,)) for where in (workspaces, others)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert sorted(outcome) == ["alpha", "refused"]


def test_retention_reaches_every_open_project(
    directory: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    workspaces = opened(directory, trash_days=1)
    for name in ("alpha", "beta"):
        workspaces.create(name)
        write(workspaces.memory(name), "old")
        entities.delete(workspaces.memory(name), ["old"], by=ME)
    with monkeypatch.context() as patch:
        patch.setattr(trash, "time", lambda: time() + 2 * 86_400)
        workspaces.apply_retention()
    assert [trash.items(workspaces.memory(name)) for name in ("alpha", "beta")] == [[], []]
    workspaces.close()


def test_a_directory_as_store_url_has_many_workspaces(directory: Path) -> None:
    workspaces = open_workspaces(f"{directory}/")
    assert (workspaces.sole, workspaces.find_all()) == (None, [])
    workspaces.close()
    assert open_workspaces(str(directory)).find_all() == []
    with pytest.raises(SettingsError, match="--workspace"):
        open_store(str(directory))


def test_a_default_project_is_created_for_clients_that_cannot_choose(
    workspaces: Workspaces,
) -> None:
    assert first_workspace(workspaces, "", may_choose=True) is None
    assert first_workspace(workspaces, "", may_choose=False) == "default"
    assert [workspace.name for workspace in workspaces.find_all()] == ["default"]


def test_a_read_only_server_says_that_its_default_project_is_missing(
    workspaces: Workspaces,
) -> None:
    with pytest.raises(WorkspaceNotFound, match="'default'"):
        first_workspace(workspaces, "", may_choose=False, read_only=True)
    assert workspaces.find_all() == []


def test_a_project_requested_by_name_must_exist(workspaces: Workspaces) -> None:
    with pytest.raises(WorkspaceNotFound):
        first_workspace(workspaces, "typo", may_choose=False)
    workspaces.create("alpha")
    assert first_workspace(workspaces, "alpha", may_choose=True) == "alpha"


@pytest.mark.parametrize("change", ["create", "archive", "restore", "delete"])
def test_the_error_of_a_store_with_one_workspace_says_how_to_get_several(
    tmp_path: Path, change: str
) -> None:
    workspaces = open_workspaces(str(tmp_path / "one.db"))
    with pytest.raises(BadInput, match="data directory"):
        getattr(workspaces, change)("default")
    assert [workspace.name for workspace in workspaces.find_all()] == ["default"]
    assert workspaces.find_all("archived") == []
    workspaces.close()


def test_a_directory_with_other_files_is_rejected(tmp_path: Path) -> None:
    other = apsw.Connection(str(tmp_path / "_meta.db"))
    other.execute("CREATE TABLE settings (x)")
    other.close()
    with pytest.raises(StoreError, match="not a registry"):
        opened(tmp_path)


def test_a_change_names_its_author_in_each_project(workspaces: Workspaces) -> None:
    workspaces.create("alpha")
    memory = workspaces.memory("alpha")
    heard: list[Change] = []
    memory.on_change(heard.append)
    entities.create(memory, [EntityDraft("A", "x")], by="ann")
    assert [change.actor for change in heard] == ["ann"]
