"""`polymnia backup` and `polymnia restore` while servers use the store."""

import shutil
import stat
from pathlib import Path

import apsw
import pytest

from polymnia.cli.main import main
from polymnia.engine import notes
from polymnia.engine.memory import Memory
from polymnia.errors import BadInput, StoreDamaged, StoreError, StoreForeign, StoreTooNew
from polymnia.model import VAULT, Note, NoteScope
from polymnia.stores import check_catalogue, open_catalogue
from polymnia.stores.backup import back_up, back_up_now, find_backups, restore
from tests.durability.graphs import create, names, names_at, opened, problems_at
from tests.durability.servers import ServerProcess, creation, names_in, text_of, tool_call

_READ = tool_call("read_graph", {})


@pytest.fixture
def backup(tmp_path: Path, path: Path) -> Path:
    """Where a backup of the store will be; nothing is there yet."""
    return tmp_path / f"backup{path.suffix}"


@pytest.fixture
def database(tmp_path: Path) -> Path:
    """A SQLite store with one entity, closed."""
    path = tmp_path / "memory.db"
    with opened(path) as memory:
        create(memory, "first")
    return path


def test_a_backup_has_everything_that_was_acknowledged(path: Path, backup: Path) -> None:
    with ServerProcess(path) as server:
        for number in range(10):
            server.ask(creation(f"entity {number}"))
        assert main(["backup", str(backup), "--store", str(path)]) == 0
        server.ask(creation("later"))
    assert names_at(backup) == [f"entity {number}" for number in range(10)]
    assert problems_at(backup) == []


def test_a_backup_of_a_store_that_is_being_written_is_one_state(path: Path, backup: Path) -> None:
    calls = [creation(f"entity {number}") for number in range(60)]
    with ServerProcess(path) as server:
        server.ask(creation("first"))
        server.send(calls)
        back_up(str(path), str(backup))
        server.replies(len(calls))
    found = names_at(backup)
    assert found == ["first", *[f"entity {number}" for number in range(len(found) - 1)]]


def test_a_backup_is_private_and_one_file(path: Path, backup: Path) -> None:
    _fill(path, "first")
    before = {file.name for file in path.parent.iterdir()}
    back_up(str(path), str(backup))
    new = {file.name for file in path.parent.iterdir()} - before
    assert new - {f"{path.name}.lock"} == {backup.name}
    assert stat.S_IMODE(backup.stat().st_mode) == 0o600


def test_a_backup_overwrites_only_by_force(path: Path, backup: Path) -> None:
    _fill(path, "first")
    backup.write_bytes(b"precious")
    with pytest.raises(BadInput, match="--force"):
        back_up(str(path), str(backup))
    assert backup.read_bytes() == b"precious"
    assert main(["backup", "--force", str(backup), "--store", str(path)]) == 0
    assert names_at(backup) == ["first"]


def test_a_backup_without_a_name_gets_the_time_and_overwrites_nothing(path: Path) -> None:
    _fill(path, "first")
    assert main(["backup", "--store", str(path)]) == 0
    made = [back_up_now(str(path)) for _ in range(2)]
    found = find_backups(str(path))
    assert len(found) == 3
    assert set(made) < set(found)
    assert found[0].parent == path.with_name(f"{path.name}.backups")
    assert [names_at(item) for item in found] == [["first"]] * 3


def test_backups_go_to_the_configured_folder(
    path: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    _fill(path, "first")
    monkeypatch.setenv("POLYMNIA_BACKUPS", str(tmp_path / "safe"))
    assert main(["backup", "--store", str(path)]) == 0
    (tmp_path / "safe" / "other.txt").write_text("not a backup")
    (found,) = find_backups(str(path), str(tmp_path / "safe"))
    assert (found.parent, find_backups(str(path))) == (tmp_path / "safe", [])


def test_a_store_is_not_backed_up_onto_itself(path: Path) -> None:
    _fill(path, "first")
    with pytest.raises(BadInput, match="the store itself"):
        back_up(str(path), str(path), overwrite=True)
    assert names_at(path) == ["first"]


def test_a_missing_store_cannot_be_backed_up(path: Path, backup: Path) -> None:
    with pytest.raises(BadInput, match="no memory"):
        back_up(str(path), str(backup))
    assert not path.exists()


def test_a_damaged_store_gives_no_backup(database: Path, tmp_path: Path) -> None:
    data = database.read_bytes()
    database.write_bytes(data[: 8 * 4096] + b"\xff" * 4096 * 8 + data[16 * 4096 :])
    with pytest.raises(StoreDamaged, match=r"memory\.db"):
        back_up(str(database), str(tmp_path / "backup.db"))
    assert not list(tmp_path.glob("backup.db*"))


def test_a_restored_store_has_what_was_backed_up_and_the_former_is_kept(
    path: Path, backup: Path
) -> None:
    _fill(path, "first")
    back_up(str(path), str(backup))
    _fill(path, "later")
    assert main(["restore", str(backup), "--store", str(path)]) == 0
    assert names_at(path) == ["first"]
    assert problems_at(path) == []
    (kept,) = path.parent.glob(f"{path.name}.bak-*[0-9]Z")
    restore(str(path), str(kept))
    assert names_at(path) == ["first", "later"]


def test_the_former_store_is_kept_with_what_was_only_in_its_log(
    database: Path, tmp_path: Path
) -> None:
    backup = tmp_path / "backup.db"
    back_up(str(database), str(backup))
    with ServerProcess(database) as server:
        server.ask(creation("later"))
        kept = restore(str(database), str(backup))
        server.kill()
    assert kept is not None
    assert names_at(database) == ["first"]
    restore(str(database), str(kept))
    assert names_at(database) == ["first", "later"]


def test_a_backup_can_be_restored_where_nothing_is(path: Path, backup: Path) -> None:
    _fill(path, "first")
    back_up(str(path), str(backup))
    elsewhere = path.parent / "elsewhere" / path.name
    assert restore(str(elsewhere), str(backup)) is None
    assert names_at(elsewhere) == ["first"]


def test_a_running_server_refuses_to_go_on_after_a_restore(database: Path, tmp_path: Path) -> None:
    backup = tmp_path / "backup.db"
    with ServerProcess(database) as server:
        server.ask(creation("second"))
        back_up(str(database), str(backup))
        server.ask(creation("later"))
        restore(str(database), str(backup))
        for call in (_READ, creation("too late")):
            assert "start the server again" in text_of(server.ask(call))
    with ServerProcess(database) as server:
        assert names_in(server.ask(_READ)) == ["first", "second"]
    assert not list(tmp_path.glob("*orphan*"))


@pytest.mark.parametrize("name", ["memory.jsonl", "memory.mcpmem"])
def test_a_running_server_on_a_file_continues_with_what_was_restored(
    tmp_path: Path, name: str
) -> None:
    path, backup = tmp_path / name, tmp_path / f"backup{Path(name).suffix}"
    with ServerProcess(path) as server:
        server.ask(creation("first"))
        back_up(str(path), str(backup))
        server.ask(creation("second"))
        restore(str(path), str(backup))
        server.ask(creation("third"))
        assert names_in(server.ask(_READ)) == ["first", "third"]
    assert names_at(path) == ["first", "third"]


def test_no_write_is_acknowledged_and_lost_in_a_restore(database: Path, tmp_path: Path) -> None:
    """Writers that wait while the file is replaced must not write to the former file."""
    backup = tmp_path / "backup.db"
    back_up(str(database), str(backup))
    calls = [creation(f"entity {number}") for number in range(60)]
    with ServerProcess(database) as server:
        server.ask(creation("before"))
        server.send(calls[:30])
        kept = restore(str(database), str(backup))
        server.send(calls[30:])
        replies = server.replies(len(calls))
    acknowledged = [
        number for number, reply in enumerate(replies) if not reply["result"].get("isError")
    ]
    assert kept is not None
    restore(str(tmp_path / "kept.db"), str(kept))
    former = names_at(tmp_path / "kept.db")
    assert [number for number in acknowledged if f"entity {number}" not in former] == []
    assert names_at(database) == ["first"]


def test_a_restored_store_keeps_its_mode_and_a_link_to_it(database: Path, tmp_path: Path) -> None:
    back_up(str(database), str(tmp_path / "backup.db"))
    _fill(database, "later")
    database.chmod(0o640)
    link = tmp_path / "link.db"
    link.symlink_to(database)
    restore(str(link), str(tmp_path / "backup.db"))
    assert link.is_symlink()
    assert stat.S_IMODE(database.stat().st_mode) == 0o640
    assert names_at(database) == ["first"]


def test_a_damaged_store_can_be_replaced(database: Path, tmp_path: Path) -> None:
    back_up(str(database), str(tmp_path / "backup.db"))
    database.write_bytes(b"not a database any more" * 1000)
    kept = restore(str(database), str(tmp_path / "backup.db"))
    assert names_at(database) == ["first"]
    assert kept is not None
    assert kept.read_bytes().startswith(b"not a database")


@pytest.mark.parametrize(
    ("statement", "error"),
    [
        ("PRAGMA user_version = 1000", StoreTooNew),
        ("PRAGMA application_id = 7", StoreForeign),
        (f"PRAGMA application_id = {0x504C5953}", StoreError),
    ],
    ids=["later schema", "another program", "archived"],
)
def test_a_file_that_is_no_backup_is_not_restored(
    database: Path, tmp_path: Path, statement: str, error: type[StoreError]
) -> None:
    backup = tmp_path / "backup.db"
    back_up(str(database), str(backup))
    connection = apsw.Connection(str(backup))
    connection.execute(statement)
    connection.close()
    before = database.read_bytes()
    with pytest.raises(error):
        restore(str(database), str(backup))
    assert database.read_bytes() == before
    assert sorted(file.name for file in tmp_path.iterdir()) == ["backup.db", "memory.db"]


@pytest.mark.parametrize("name", ["memory.db", "memory.mcpmem"])
def test_a_damaged_backup_is_not_restored(tmp_path: Path, name: str) -> None:
    path, backup = tmp_path / name, tmp_path / f"backup{Path(name).suffix}"
    _fill(path, "first")
    backup.write_bytes(b"\xff\xfe\xfd" * 5000)
    before = path.read_bytes()
    with pytest.raises(StoreError):
        restore(str(path), str(backup))
    assert path.read_bytes() == before


def test_a_backup_of_another_kind_is_not_restored(database: Path, tmp_path: Path) -> None:
    other = tmp_path / "memory.jsonl"
    _fill(other, "elsewhere")
    with pytest.raises(BadInput, match="import"):
        restore(str(database), str(other))
    assert names_at(database) == ["first"]


def test_a_store_in_memory_cannot_be_backed_up(tmp_path: Path) -> None:
    with pytest.raises(BadInput, match="no file"):
        back_up("memory:", str(tmp_path / "backup.db"))


def test_a_backup_of_a_directory_has_all_workspaces(tmp_path: Path) -> None:
    data, backup = tmp_path / "data", tmp_path / "backup"
    _make_workspaces(data)
    assert main(["backup", str(backup), "--store", f"{data}/"]) == 0
    assert _workspaces(backup) == {"archived": None, "one": ["first"], "two": ["second"]}


def test_a_backup_of_a_directory_is_private(tmp_path: Path) -> None:
    data, backup = tmp_path / "data", tmp_path / "backup"
    _make_workspaces(data)
    back_up(f"{data}/", str(backup))
    modes = {
        file.is_dir(): stat.S_IMODE(file.stat().st_mode) for file in (backup, *backup.rglob("*"))
    }
    assert modes == {True: 0o700, False: 0o600}


def test_a_restored_directory_has_the_workspaces_of_the_backup(tmp_path: Path) -> None:
    data, backup = tmp_path / "data", tmp_path / "backup"
    _make_workspaces(data)
    back_up(f"{data}/", str(backup))
    catalogue = open_catalogue(f"{data}/")
    assert catalogue is not None
    catalogue.delete("one")
    catalogue.create("three")
    catalogue.update("archived", status="active")
    catalogue.close()
    kept = restore(f"{data}/", str(backup))
    assert _workspaces(data) == {"archived": None, "one": ["first"], "two": ["second"]}
    assert kept is not None
    assert _workspaces(kept) == {"archived": [], "three": [], "two": ["second"]}


def test_a_directory_can_be_restored_where_nothing_is(tmp_path: Path) -> None:
    _make_workspaces(tmp_path / "data")
    back_up(f"{tmp_path / 'data'}/", str(tmp_path / "backup"))
    shutil.rmtree(tmp_path / "data")
    assert restore(f"{tmp_path / 'data'}/", str(tmp_path / "backup")) is None
    assert _workspaces(tmp_path / "data") == {"archived": None, "one": ["first"], "two": ["second"]}


def test_whoever_uses_a_directory_refuses_to_go_on_after_a_restore(tmp_path: Path) -> None:
    data, backup = tmp_path / "data", tmp_path / "backup"
    _make_workspaces(data)
    back_up(f"{data}/", str(backup))
    catalogue = open_catalogue(f"{data}/")
    assert catalogue is not None
    store = catalogue.open("one")
    restore(f"{data}/", str(backup))
    with pytest.raises(StoreError, match="start the server again"):
        create(Memory(store), "too late")
    with pytest.raises(StoreError, match="start the server again"):
        names(Memory(store))
    with pytest.raises(StoreError):
        catalogue.create("late")
    store.close()
    catalogue.close()
    assert _workspaces(data) == {"archived": None, "one": ["first"], "two": ["second"]}


def _fill(path: Path, *created: str) -> None:
    with opened(path) as memory:
        create(memory, *created)


def _make_workspaces(directory: Path) -> None:
    catalogue = open_catalogue(f"{directory}/")
    assert catalogue is not None
    for name, entity in (("one", "first"), ("two", "second")):
        catalogue.create(name)
        store = catalogue.open(name)
        create(Memory(store), entity)
        store.close()
    catalogue.create("archived")
    catalogue.update("archived", status="archived")
    catalogue.close()


def _workspaces(directory: Path) -> dict[str, list[str] | None]:
    """Return the workspaces with their entities; None for an archived one."""
    catalogue = open_catalogue(f"{directory}/")
    assert catalogue is not None
    found: dict[str, list[str] | None] = {
        workspace.name: None for workspace in catalogue.find_all()
    }
    for workspace in catalogue.find_all("active"):
        store = catalogue.open(workspace.name)
        found[workspace.name] = names(Memory(store))
        store.close()
    assert not any(item.problems for item in check_catalogue(f"{directory}/"))
    catalogue.close()
    return found


def test_a_backup_has_no_text_of_a_session(database: Path, tmp_path: Path) -> None:
    with opened(database) as memory:
        notes.commit(
            memory,
            Note("key", "xyzzyplugh", scope=NoteScope("one", "ann")),
            by="ann",
            member="conversation",
        )
        notes.commit(memory, Note("key", "kept"), by="ann")
        back_up(str(database), str(tmp_path / "backup.db"))
    assert b"xyzzyplugh" not in (tmp_path / "backup.db").read_bytes()
    with opened(tmp_path / "backup.db") as memory:
        assert [note.content for note in notes.page(memory, VAULT)] == ["kept"]


def test_a_backup_whose_name_tells_another_kind_is_refused(path: Path, tmp_path: Path) -> None:
    with opened(path) as memory:
        create(memory, "first")
    for name in ("copy.txt", "copy.db" if path.suffix != ".db" else "copy.jsonl"):
        with pytest.raises(BadInput, match=f"needs the suffix {path.suffix} to be recognized"):
            back_up(str(path), str(tmp_path / name))
        assert not (tmp_path / name).exists()
