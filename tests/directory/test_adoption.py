"""Check that the data directory of an earlier project server opens with all its projects and keeps
its files.
"""

from pathlib import Path

import apsw
import pytest

from polymnia.engine.graph import entities
from polymnia.engine.history import trash
from polymnia.errors import StoreBusy, StoreForeign
from polymnia.model import Relation
from polymnia.stores.directory import adoption
from polymnia.stores.sqlite.store import SqliteStore
from tests.directory.directories import Crash, names_in, on_disk, opened, write
from tests.directory.earlier import earlier_directory


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
    assert [
        (workspace.id, workspace.name, workspace.status) for workspace in workspaces.find_all()
    ] == [
        ("p2", "done", "archived"),
        ("p1", "work", "active"),
    ]
    assert workspaces.find("work").created_at == 1_704_067_200_000_000
    workspaces.close()


def test_entities_facts_and_relations_are_migrated(directory: Path) -> None:
    workspaces = opened(directory)
    graph = entities.read_all(workspaces.memory("work"))
    assert [(entity.id, entity.name, entity.type, entity.texts) for entity in graph.entities] == [
        ("e1", "Alice", "person", ("likes tea", "writes Go")),
        ("e2", "Go", "technology", ("has channels",)),
        ("e4", "Bob", "person", ("the new Bob",)),
    ]
    assert [(relation.source, relation.target, relation.type) for relation in graph.relations] == [
        ("Alice", "Go", "uses"),
        ("Alice", "Bob", "knows"),
    ]
    assert graph.entities[0].created_at == 1_704_164_645_000_000
    assert graph.relations[0] == Relation("Alice", "Go", "uses", 1_704_412_800_000_000)
    workspaces.close()


def test_rows_deleted_there_are_in_the_trash(directory: Path) -> None:
    rows(
        directory / "projects" / "p1.db",
        "INSERT INTO relations VALUES ('r8', 'e3', 'e2', 'uses', '2024-01-06', "
        "'2024-03-01 00:00:00')",
    )
    workspaces = opened(directory)
    bob, coffee = trash.items(workspaces.memory("work"))
    (entity,) = bob.rows.entities
    assert (bob.id, entity.name, entity.texts) == ("e3", "Bob", ("the old Bob",))
    assert [relation.key for relation in bob.rows.relations] == [("Bob", "Go", "uses")]
    assert [fact.facts[0].text for fact in coffee.rows.facts] == ["likes coffee"]
    assert coffee.rows.facts[0].facts[0].created_at == 1_704_240_000_000_000
    workspaces.close()


def test_rows_deleted_there_can_be_restored(directory: Path) -> None:
    workspaces = opened(directory)
    memory = workspaces.memory("work")
    entities.delete(memory, ["Bob"], by="test")
    trash.restore(memory, "e3", by="test")
    trash.restore(memory, "e1/2", by="test")
    found = {
        entity.name: entity.texts
        for entity in entities.open_named(memory, ["Alice", "Bob"]).entities
    }
    assert (found["Alice"], found["Bob"]) == (
        ("likes tea", "likes coffee", "writes Go"),
        ("the old Bob",),
    )
    workspaces.close()


def test_a_deletion_does_not_change_the_update_time(directory: Path) -> None:
    workspaces = opened(directory)
    alice, go, bob = entities.read_all(workspaces.memory("work")).entities
    assert [alice.updated_at, go.updated_at, bob.updated_at] == [
        1_706_843_045_000_000,
        1_704_164_646_000_000,
        1_709_337_600_000_000,
    ]
    workspaces.close()


def test_names_and_relations_that_were_deleted_again_and_again_are_all_kept(
    directory: Path,
) -> None:
    path = directory / "projects" / "p1.db"
    rows(
        path,
        "INSERT INTO entities VALUES ('e6', 'Bob', 'robot', '2024-01-01', '2024-01-01', "
        "'2024-01-02');"
        "INSERT INTO observations VALUES ('o7', 'e6', 'a third Bob', '2024-01-01', '2024-01-02');"
        "INSERT INTO relations VALUES ('r5', 'e1', 'e2', 'knows', '2024-01-01', '2024-01-02'),"
        " ('r6', 'e1', 'e2', 'knows', '2024-02-01', '2024-02-02')",
    )
    workspaces = opened(directory)
    found = trash.items(workspaces.memory("work"))
    assert {item.id for item in found if item.rows.entities} == {"e3", "e6"}
    lone = [item.rows.relations[0] for item in found if item.id.startswith("relation/")]
    assert [(item.key, item.created_at) for item in lone] == [
        (("Alice", "Go", "knows"), 1_706_745_600_000_000)
    ]
    workspaces.close()


def test_rows_without_an_entity_are_reported(
    directory: Path, caplog: pytest.LogCaptureFixture
) -> None:
    rows(
        directory / "projects" / "p1.db",
        "INSERT INTO observations VALUES ('o8', 'nobody', 'lost', '2024-01-01', NULL);"
        "INSERT INTO relations VALUES ('r7', 'e1', 'nobody', 'knows', '2024-01-01', NULL)",
    )
    workspaces = opened(directory)
    workspaces.memory("work")
    workspaces.close()
    assert "2 rows belong to no entity" in caplog.text
    assert rows(
        directory / "projects" / "p1.db.bak", "SELECT content FROM observations WHERE id = 'o8'"
    ) == [("lost",)]


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
        assert [item.name for item in read.containing("tea")] == ["Alice"]
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
    assert (workspaces.find_all(), on_disk(directory)) == ([], [])
    workspaces.close()


def test_nothing_is_migrated_while_the_earlier_server_runs(
    directory: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    running = apsw.Connection(str(directory / "projects" / "p1.db"))
    running.execute("SELECT count(*) FROM entities").fetchall()
    workspaces = opened(directory)
    with monkeypatch.context() as patch, pytest.raises(StoreBusy, match="stop that first"):
        patch.setattr(adoption, "BUSY_TIMEOUT_MS", 50)
        workspaces.memory("work")
    assert running.execute("SELECT count(*) FROM entities").fetchall() == [(5,)]
    running.close()
    assert names_in(workspaces, "work") == ["Alice", "Go", "Bob"]
    workspaces.close()


@pytest.mark.parametrize("step", ["write_store", "keep_backup", "fsync_directory"])
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
