"""Check that the data directory of an earlier project server opens with all its projects and keeps its files."""

from pathlib import Path

import apsw
import pytest

from polymnia.engine import entities
from polymnia.errors import StoreBusy, StoreForeign
from polymnia.model import Relation
from polymnia.stores.projects import adoption
from polymnia.stores.sqlite.store import SqliteStore
from tests.catalogue.directories import Crash, names_in, on_disk, opened, write
from tests.catalogue.earlier import earlier_directory


@pytest.fixture
def directory(tmp_path: Path) -> Path:
    earlier_directory(tmp_path / "data")
    return tmp_path / "data"


def rows(path: Path, query: str) -> list[tuple[object, ...]]:
    connection = apsw.Connection(str(path))
    try:
        return connection.execute(query).fetchall()
    finally:
        connection.close()


def test_projects_are_listed_with_their_original_times(directory: Path) -> None:
    workspaces = opened(directory)
    assert [(each.id, each.name, each.status) for each in workspaces.listed()] == [
        ("p2", "done", "archived"),
        ("p1", "work", "active"),
    ]
    assert workspaces.find("work").created_at == 1_704_067_200_000_000
    workspaces.close()


def test_entities_observations_and_relations_are_migrated(directory: Path) -> None:
    workspaces = opened(directory)
    graph = entities.read_all(workspaces.memory("work"))
    assert [(each.id, each.name, each.type, each.texts) for each in graph.entities] == [
        ("e1", "Alice", "person", ("likes tea", "writes Go")),
        ("e2", "Go", "technology", ("has channels",)),
        ("e4", "Bob", "person", ("the new Bob",)),
    ]
    assert [(each.source, each.target, each.type) for each in graph.relations] == [
        ("Alice", "Go", "uses"),
        ("Alice", "Bob", "knows"),
    ]
    assert graph.entities[0].created_at == 1_704_164_645_000_000
    assert graph.relations[0] == Relation("Alice", "Go", "uses", 1_704_412_800_000_000)
    workspaces.close()


def test_deleted_rows_are_migrated_as_deleted(directory: Path) -> None:
    workspaces = opened(directory)
    workspaces.memory("work")
    workspaces.close()
    path = directory / "projects" / "p1.db"
    when = 1_709_251_200_000_000
    assert rows(path, "SELECT uid, name, deleted_at FROM entities WHERE deleted_at IS NOT NULL") == [
        ("e3", "Bob", when)
    ]
    assert rows(path, "SELECT content, deleted_at FROM observations WHERE deleted_at IS NOT NULL ORDER BY 1") == [
        ("likes coffee", 1_706_843_045_000_000),
        ("the old Bob", when),
    ]
    assert rows(path, "SELECT target, deleted_at FROM relations WHERE deleted_at IS NOT NULL") == [("Bob", when)]


def test_the_original_file_is_kept_beside_the_new_one(directory: Path) -> None:
    workspaces = opened(directory)
    workspaces.memory("work")
    workspaces.close()
    assert on_disk(directory)[-2:] == ["projects/p1.db", "projects/p1.db.bak"]
    assert rows(directory / "projects" / "p1.db.bak", "SELECT count(*) FROM observations") == [(6,)]


def test_a_migrated_project_can_be_written_and_searched(directory: Path) -> None:
    workspaces = opened(directory)
    write(workspaces.memory("work"), "new")
    with workspaces.memory("work").reading() as read:
        assert [each.name for each in read.containing("tea")] == ["Alice"]
    assert names_in(workspaces, "work") == ["Alice", "Go", "Bob", "new"]
    workspaces.close()


def test_an_archived_project_can_be_restored(directory: Path) -> None:
    workspaces = opened(directory)
    workspaces.restore("done")
    assert names_in(workspaces, "done") == ["Alice", "Go", "Bob"]
    workspaces.close()


def test_a_project_can_be_archived_and_deleted_before_it_is_migrated(directory: Path) -> None:
    workspaces = opened(directory)
    assert workspaces.archive("work").status == "archived"
    workspaces.restore("work")
    assert names_in(workspaces, "work") == ["Alice", "Go", "Bob"]
    workspaces.delete("work")
    workspaces.delete("done")
    assert (workspaces.listed(), on_disk(directory)) == ([], [])
    workspaces.close()


def test_nothing_is_migrated_while_the_earlier_server_runs(directory: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    running = apsw.Connection(str(directory / "projects" / "p1.db"))
    running.execute("SELECT count(*) FROM entities").fetchall()
    workspaces = opened(directory)
    with monkeypatch.context() as patch, pytest.raises(StoreBusy, match="stop that one first"):
        patch.setattr(adoption, "BUSY_WAIT", 50)
        workspaces.memory("work")
    assert running.execute("SELECT count(*) FROM entities").fetchall() == [(5,)]
    running.close()
    assert names_in(workspaces, "work") == ["Alice", "Go", "Bob"]
    workspaces.close()


@pytest.mark.parametrize("step", ["_write", "_second_name", "fsync_directory"])
@pytest.mark.parametrize("when", ["before", "after"])
def test_a_crash_during_the_migration_loses_nothing(
    directory: Path, monkeypatch: pytest.MonkeyPatch, step: str, when: str
) -> None:
    workspaces = opened(directory)
    real = getattr(adoption, step)

    def dying(*arguments: object) -> None:
        if when == "after":
            real(*arguments)
        raise Crash(step)

    with monkeypatch.context() as patch:
        patch.setattr(adoption, step, dying)
        with pytest.raises(Crash):
            workspaces.memory("work")
    after = opened(directory)
    assert names_in(after, "work") == ["Alice", "Go", "Bob"]
    after.close()
    workspaces.close()
    assert on_disk(directory)[-2:] == ["projects/p1.db", "projects/p1.db.bak"]


def test_a_file_of_another_program_is_not_changed(directory: Path) -> None:
    path = directory / "projects" / "p1.db"
    path.unlink()
    other = apsw.Connection(str(path))
    other.execute("CREATE TABLE entities (id, name)")
    other.close()
    workspaces = opened(directory)
    with pytest.raises(StoreForeign):
        workspaces.memory("work")
    assert rows(path, "SELECT name FROM sqlite_schema") == [("entities",)]
    workspaces.close()


def test_a_project_file_of_the_earlier_server_does_not_open_as_a_store(directory: Path) -> None:
    with pytest.raises(StoreForeign):
        SqliteStore(str(directory / "projects" / "p1.db"))
