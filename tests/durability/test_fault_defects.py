"""Defects that a fault at every step has found, one by one."""

import errno
import os
import shutil
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path
from typing import Any

import apsw
import pytest

from polymnia.errors import StoreError, StoreFull, StoreStopped
from polymnia.stores import check_catalogue, open_store
from polymnia.stores.backup import back_up
from polymnia.stores.directory import files
from polymnia.stores.directory import registry as registry_module
from polymnia.stores.directory.registry import Registry
from polymnia.stores.sqlite.connection import require_writable
from tests.directory.directories import Crash, crash_at, write
from tests.directory.directories import opened as opened_directory
from tests.durability.disks import SqliteDisk
from tests.durability.graphs import create, names, opened


@pytest.fixture
def disk() -> Iterator[SqliteDisk]:
    disk = SqliteDisk()
    try:
        yield disk
    finally:
        disk.unregister()


@pytest.fixture
def database(tmp_path: Path) -> Path:
    path = tmp_path / "memory.db"
    with opened(path) as memory:
        create(memory, "first")
    return path


@pytest.mark.parametrize("writes", range(8))
def test_a_store_whose_first_write_failed_can_be_used(
    database: Path, disk: SqliteDisk, writes: int
) -> None:
    with opened(database) as memory:
        disk.writes_left = writes  # the first of them begin the log
        try:
            create(memory, "second")
        except StoreError:
            create(memory, "second")
        assert names(memory) == ["first", "second"]


def test_a_log_that_cannot_be_read_is_an_error_of_the_store(database: Path) -> None:
    Path(f"{database}-wal").mkdir()
    with pytest.raises(StoreError, match="Is a directory"):
        open_store(str(database))


def test_an_archived_workspace_is_not_reported_as_a_failure(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    workspaces = opened_directory(tmp_path / "data")
    workspaces.create("one")
    relocate = Registry.relocate

    def fail_once(self: Registry, *arguments: Any) -> None:
        monkeypatch.setattr(Registry, "relocate", relocate)
        raise StoreFull("no space left; nothing was changed")

    monkeypatch.setattr(Registry, "relocate", fail_once)
    assert workspaces.archive("one").status == "archived"
    workspaces.close()


def test_a_change_that_cannot_be_settled_now_says_so(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    workspaces = opened_directory(tmp_path / "data")
    workspaces.create("one")

    def fail(self: Registry, *arguments: Any) -> None:
        raise StoreFull("no space left; nothing was changed")

    with monkeypatch.context() as patch:
        patch.setattr(Registry, "relocate", fail)
        with pytest.raises(StoreError, match=r"was interrupted .* completes or undoes it"):
            workspaces.archive("one")
    workspaces.close()
    workspaces = opened_directory(tmp_path / "data")
    assert workspaces.find("one").status == "archived"
    workspaces.close()


def test_doctor_accepts_a_file_that_was_sealed_by_a_process_that_died(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    workspaces = opened_directory(tmp_path / "data")
    workspaces.create("one")
    crash_at(monkeypatch, "archive", "seal", "after")
    with pytest.raises(Crash):
        workspaces.archive("one")
    problems = [item.problems for item in check_catalogue(f"{tmp_path}/data/")]
    assert problems == [(), ()]


def test_the_logs_of_an_archived_file_are_gone_for_good_before_it_is_registered(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    workspaces = opened_directory(tmp_path / "data")
    workspaces.create("one")
    write(workspaces.memory("one"), "a name")  # and so the log stays in use
    synced: list[tuple[str, set[str]]] = []

    def sync(directory: Path) -> None:
        synced.append((directory.name, {file.suffix for file in directory.iterdir()}))

    monkeypatch.setattr(files, "fsync_directory", sync)
    workspaces.archive("one")
    assert synced[-1] == ("projects", set())
    workspaces.close()


def test_the_next_change_removes_an_unfinished_copy_of_the_registry(tmp_path: Path) -> None:
    data = tmp_path / "data"
    opened_directory(data).close()
    leftover = data / "_meta.json.0123456789abcdef.tmp"
    leftover.touch()
    workspaces = opened_directory(data)
    workspaces.create("one")
    workspaces.close()
    assert not leftover.exists()


def test_a_copy_of_the_registry_that_the_disk_does_not_confirm_does_no_harm(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def fail(path: Path, chunks: list[bytes]) -> None:
        raise StoreStopped("the disk did not confirm a write")

    monkeypatch.setattr(registry_module, "replace_file", fail)
    workspaces = opened_directory(tmp_path / "data")
    assert workspaces.create("one").name == "one"
    workspaces.close()


def test_a_backup_that_fails_leaves_no_copy(
    path: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with opened(path) as memory:
        create(memory, "first")
    copies = tmp_path / "copies"
    copies.mkdir()
    real_open = os.open

    def fail(file: Any, *arguments: Any, **options: Any) -> int:
        if Path(file) == copies:
            raise OSError(errno.EIO, os.strerror(errno.EIO))
        return real_open(file, *arguments, **options)

    target = copies / f"copy{path.suffix}"
    with monkeypatch.context() as patch:
        patch.setattr(os, "open", fail)
        with pytest.raises(StoreError):
            back_up(str(path), str(target))
    assert not target.exists()


def test_a_backup_is_complete_even_if_its_temporary_name_stays(
    path: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with opened(path) as memory:
        create(memory, "first")
    target = tmp_path / f"copy{path.suffix}"

    def fail(self: Path, missing_ok: bool = False) -> None:
        if self.suffix == ".new":
            raise OSError(errno.EIO, os.strerror(errno.EIO))
        os.unlink(self)  # noqa: PTH108  # Path.unlink is replaced

    with monkeypatch.context() as patch:
        patch.setattr(Path, "unlink", fail)
        back_up(str(path), str(target))
    copy = tmp_path / f"moved{path.suffix}"
    shutil.copy(target, copy)  # one name only: a store with two is refused
    with opened(copy) as memory:
        assert names(memory) == ["first"]


def test_a_connection_that_can_only_read_is_refused_if_the_file_can_be_written(
    database: Path,
) -> None:
    # SQLite opens a file like this if opening it for writing fails once.
    reader = apsw.Connection(str(database), flags=apsw.SQLITE_OPEN_READONLY)
    with closing(reader), pytest.raises(apsw.CantOpenError):
        require_writable(reader, str(database))


def test_undoing_a_seal_overwrites_one_that_only_the_log_has(database: Path) -> None:
    log = Path(f"{database}-wal")
    with opened(database) as memory:
        create(memory, "second")
        before = log.read_bytes()
        files.unseal(database)
        assert log.read_bytes() != before


def test_a_restored_copy_does_not_depend_on_its_log(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    unseal = files.unseal

    def keep_log(path: Path) -> None:
        """Undo the seal, and fail to bring the log into the file when it is closed."""
        sealed = path.read_bytes()
        with closing(apsw.Connection(str(path))) as connection:
            connection.pragma("application_id")
            unseal(path)
            log = Path(f"{path}-wal").read_bytes()
        path.write_bytes(sealed)
        Path(f"{path}-wal").write_bytes(log)

    workspaces = opened_directory(tmp_path / "data")
    workspaces.create("one")
    workspaces.archive("one")
    monkeypatch.setattr(files, "unseal", keep_log)
    workspaces.restore("one")
    write(workspaces.memory("one"), "fact")
    workspaces.close()
