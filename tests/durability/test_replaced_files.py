"""The files of a SQLite store are replaced, overwritten or deleted under it.

Nothing is mixed or lost unnoticed.
"""

import logging
import os
import shutil
import threading
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor, wait
from pathlib import Path

import apsw
import pytest

from polymnia.errors import StoreError, StoreTooNew
from polymnia.stores import open_store
from polymnia.stores.sqlite.lineage import log_path
from tests.durability.graphs import create, names, names_at, opened, problems_at
from tests.durability.servers import ServerProcess, creation, is_error, names_in, text_of, tool_call

_READ = tool_call("read_graph", {})

pytestmark = pytest.mark.skipif(os.name == "nt", reason="an open file cannot be replaced here")


@pytest.fixture
def path(tmp_path: Path) -> Path:
    """A store with one entity, closed."""
    path = tmp_path / "memory.db"
    with opened(path) as memory:
        create(memory, "first")
    return path


def _copy_pages(path: Path, target: Path) -> None:
    """Copy as `.backup` of the sqlite3 tool does."""
    source, copy = apsw.Connection(str(path)), apsw.Connection(str(target))
    with copy.backup("main", source, "main") as backup:
        backup.step(-1)
    copy.close()
    source.close()


def _vacuum_into(path: Path, target: Path) -> None:
    connection = apsw.Connection(str(path))
    connection.execute("VACUUM INTO ?", (str(target),))
    connection.close()


def _overwrite(path: Path, backup: Path) -> None:
    """Do what `cp` does: the file stays the same, its content does not."""
    path.write_bytes(backup.read_bytes())


def _rename_over(path: Path, backup: Path) -> None:
    backup.replace(path)


_RESTORES = {"cp": _overwrite, "mv": _rename_over}
restored_by = pytest.mark.parametrize("restore", _RESTORES.values(), ids=_RESTORES)
_COPIES = {"backup": _copy_pages, "vacuum": _vacuum_into}
copied_by = pytest.mark.parametrize("copy", _COPIES.values(), ids=_COPIES)
Restore = Callable[[Path, Path], None]


@restored_by
def test_a_running_server_refuses_a_file_that_was_restored_under_it(
    path: Path, restore: Restore
) -> None:
    backup = _closed_copy(path)
    with ServerProcess(path) as server:
        server.ask(creation("later"))
        restore(path, backup)
        for call in (_READ, creation("too late"), _READ):
            assert "start the server again" in text_of(server.ask(call))
    assert names_at(path) == ["first"]
    assert problems_at(path) == []


@restored_by
@copied_by
def test_a_running_server_refuses_a_copy_of_what_it_is_writing(
    path: Path, copy: Restore, restore: Restore
) -> None:
    with ServerProcess(path) as server:
        server.ask(creation("second"))
        copy(path, path.with_name("backup.db"))
        server.ask(creation("later"))
        restore(path, path.with_name("backup.db"))
        assert "start the server again" in text_of(server.ask(creation("too late")))
    assert names_at(path) == ["first", "second"]
    assert problems_at(path) == []


@restored_by
def test_a_server_that_has_only_read_refuses_a_file_that_was_restored_under_it(
    path: Path, restore: Restore
) -> None:
    backup = _closed_copy(path)
    with opened(path) as memory:
        create(memory, "second")
    with ServerProcess(path) as server:
        assert names_in(server.ask(_READ)) == ["first", "second"]
        restore(path, backup)
        assert "start the server again" in text_of(server.ask(_READ))
    assert names_at(path) == ["first"]


@restored_by
def test_a_server_that_does_not_notice_leaves_a_restored_file_alone(
    path: Path, restore: Restore
) -> None:
    backup = _closed_copy(path)
    with ServerProcess(path) as server:
        server.ask(creation("later"))
        restore(path, backup)
    assert names_at(path) == ["first"]


@restored_by
def test_the_log_of_a_killed_server_is_not_applied_to_a_restored_file(
    path: Path, restore: Restore
) -> None:
    backup = _closed_copy(path)
    _write_and_kill(path, "later")
    restore(path, backup)
    assert names_at(path) == ["first"]
    assert problems_at(path) == []


@restored_by
@copied_by
def test_the_log_of_a_killed_server_is_not_applied_to_a_copy(
    path: Path, copy: Restore, restore: Restore
) -> None:
    with ServerProcess(path) as server:
        server.ask(creation("second"))
        copy(path, path.with_name("backup.db"))
        server.ask(creation("later"))
        server.kill()
    restore(path, path.with_name("backup.db"))
    assert names_at(path) == ["first", "second"]
    assert problems_at(path) == []


def test_the_log_of_a_new_store_is_not_applied_to_a_copy(tmp_path: Path) -> None:
    """Its file was never checkpointed: everything is in the log."""
    path = tmp_path / "new.db"
    with ServerProcess(path) as server:
        server.ask(creation("first"))
        _copy_pages(path, tmp_path / "backup.db")
        server.ask(creation("later"))
        server.kill()
    _overwrite(path, tmp_path / "backup.db")
    assert names_at(path) == ["first"]


@restored_by
def test_the_log_of_a_killed_server_is_not_applied_to_another_store(
    path: Path, restore: Restore
) -> None:
    other = path.with_name("other.db")
    with opened(other) as memory:
        create(memory, "elsewhere")
    _write_and_kill(path, "later")
    restore(path, other)
    assert names_at(path) == ["elsewhere"]


def test_a_log_that_is_not_applied_is_kept_and_reported(
    path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    backup = _closed_copy(path)
    _write_and_kill(path, "later")
    log = log_path(str(path)).read_bytes()
    _overwrite(path, backup)
    with caplog.at_level(logging.WARNING):
        names_at(path)
    (kept,) = path.parent.glob("memory.db-wal.orphan-*")
    assert kept.read_bytes() == log
    assert str(kept) in caplog.text


def test_a_log_that_is_not_applied_can_be_brought_back_to_its_file(path: Path) -> None:
    backup = _closed_copy(path)
    _write_and_kill(path, "later")
    former = path.with_name("former.db")
    shutil.copy(path, former)
    _overwrite(path, backup)
    names_at(path)
    (kept,) = path.parent.glob("memory.db-wal.orphan-*")
    kept.rename(f"{former}-wal")
    assert names_at(former) == ["first", "later"]


def test_a_foreign_log_is_refused_where_nothing_may_change(path: Path) -> None:
    backup = _closed_copy(path)
    _write_and_kill(path, "later")
    _overwrite(path, backup)
    before = log_path(str(path)).read_bytes()
    with pytest.raises(StoreError, match="belongs to another file"):
        open_store(str(path), read_only=True)
    assert log_path(str(path)).read_bytes() == before


def test_a_second_server_on_a_restored_file_does_not_disturb_it(path: Path) -> None:
    """The first one still has the former log open."""
    backup = _closed_copy(path)
    with ServerProcess(path) as old:
        old.ask(creation("later"))
        _overwrite(path, backup)
        with ServerProcess(path) as new:
            new.ask(creation("new"))
            assert "start the server again" in text_of(old.ask(creation("too late")))
            assert names_in(new.ask(_READ)) == ["first", "new"]
    assert names_at(path) == ["first", "new"]


def test_a_checkpoint_that_was_cut_off_at_any_page_loses_nothing(
    path: Path, tmp_path: Path
) -> None:
    with ServerProcess(path) as server:
        for number in range(5):
            server.ask(
                creation(
                    f"later {number}", [f"fact {item} of {number} " * 20 for item in range(40)]
                )
            )
        before = path.read_bytes()
        server.kill()
    log = log_path(str(path)).read_bytes()
    names_at(path)  # closing brings the log into the file
    after = path.read_bytes()
    assert len(after) > len(before)
    states = [
        after[: page * 4096] + before[page * 4096 :] for page in range(len(after) // 4096 + 1)
    ]
    states += [
        state.ljust(len(after), b"\0") for state in states
    ]  # SQLite may extend the file first
    for number, state in enumerate(states):
        image = tmp_path / f"{number}.db"
        image.write_bytes(state)
        log_path(str(image)).write_bytes(log)
        assert len(names_at(image)) == 6
        assert problems_at(image) == []
    assert not list(tmp_path.glob("*orphan*"))


def test_a_first_checkpoint_that_was_cut_off_at_any_page_loses_nothing(tmp_path: Path) -> None:
    path = tmp_path / "new.db"
    with ServerProcess(path) as server:
        server.ask(creation("first"))
        server.kill()
    before, log = path.read_bytes(), log_path(str(path)).read_bytes()
    names_at(path)
    after = path.read_bytes()
    for page in range(len(after) // 4096 + 1):
        image = tmp_path / f"{page}.db"
        image.write_bytes((after[: page * 4096] + before[page * 4096 :]).ljust(len(after), b"\0"))
        log_path(str(image)).write_bytes(log)
        assert names_at(image) == ["first"]


def test_a_log_cut_off_anywhere_in_its_first_transaction_is_not_another_files(
    path: Path, tmp_path: Path
) -> None:
    """A power cut may leave any part of a transaction that was not acknowledged."""
    _write_and_kill(path, "later")
    file, log = path.read_bytes(), log_path(str(path)).read_bytes()
    for place in range(0, len(log), 1000):
        for rest in (b"", bytes(len(log) - place), b"\xff" * (len(log) - place)):
            image = tmp_path / "image.db"
            image.write_bytes(file)
            log_path(str(image)).write_bytes(log[:place] + rest)
            assert names_at(image) in (["first"], ["first", "later"])
    assert not list(tmp_path.glob("*orphan*"))


@pytest.mark.parametrize(
    "statement", ["SELECT 1", "VACUUM", "CREATE INDEX other ON cards (type)", "ANALYZE"]
)
def test_another_program_that_uses_the_file_raises_no_alarm(path: Path, statement: str) -> None:
    with ServerProcess(path) as server:
        server.ask(creation("second"))
        _use(path, statement)
        assert not is_error({"result": server.ask(creation("third"))})
        _use(path, statement.replace("other", "another"))
        server.kill()
    assert names_at(path) == ["first", "second", "third"]
    assert problems_at(path) == []


def test_a_backup_that_is_restored_through_sqlite_raises_no_alarm(path: Path) -> None:
    """As `.restore` of the sqlite3 tool does: it is a transaction like any other."""
    backup = _closed_copy(path)
    with ServerProcess(path) as server:
        server.ask(creation("second"))
        _use(path, "PRAGMA wal_checkpoint(RESTART)")
        source, target = apsw.Connection(str(backup)), apsw.Connection(str(path))
        with target.backup("main", source, "main") as restoring:
            restoring.step(-1)
        target.close()
        source.close()
        assert names_in(server.ask(_READ)) == ["first"]
        assert not is_error({"result": server.ask(creation("third"))})
        server.kill()
    assert names_at(path) == ["first", "third"]
    assert problems_at(path) == []


def test_checkpoints_of_other_processes_raise_no_alarm(path: Path) -> None:
    modes = ("PASSIVE", "FULL", "RESTART", "TRUNCATE")
    with ServerProcess(path) as one, ServerProcess(path) as other:
        for number, mode in enumerate(modes * 3):
            one.ask(creation(f"one {number}"))
            _use(path, f"PRAGMA wal_checkpoint({mode})")
            assert len(names_in(other.ask(_READ))) == 2 * number + 2
            assert not is_error({"result": other.ask(creation(f"other {number}"))})
        one.kill()
        other.kill()
    assert len(names_at(path)) == 25


def test_checkpoints_at_any_moment_raise_no_alarm(path: Path) -> None:
    """One thread empties the log again and again while two stores write and read."""
    is_done = threading.Event()

    def empty_log() -> None:
        while not is_done.is_set():
            _use(path, "PRAGMA wal_checkpoint(TRUNCATE)")

    def write(name: str) -> None:
        with opened(path) as memory:
            for number in range(150):
                create(memory, f"{name} {number}")
                assert f"{name} {number}" in names(memory)

    with ThreadPoolExecutor() as threads:
        emptying = threads.submit(empty_log)
        writing = [threads.submit(write, name) for name in ("one", "other")]
        wait(writing)
        is_done.set()
    for item in (*writing, emptying):
        item.result()
    assert len(names_at(path)) == 301


def test_stores_that_are_compacted_by_one_process_stay_open_in_another(path: Path) -> None:
    with ServerProcess(path) as server, opened(path) as memory:
        for number in range(3):
            create(memory, f"entity {number}")
            memory.store.compact()
            assert len(names_in(server.ask(_READ))) == number + 2
        assert not is_error({"result": server.ask(creation("last"))})
        assert len(names(memory)) == 5


@pytest.mark.parametrize("move", [shutil.move, shutil.copyfile], ids=["moved", "copied"])
def test_a_file_that_is_moved_with_its_log_keeps_everything(
    path: Path, tmp_path: Path, move: Callable[[Path, Path], object]
) -> None:
    _write_and_kill(path, "later")
    target = tmp_path / "elsewhere"
    target.mkdir()
    for name in ("memory.db", "memory.db-wal"):
        move(tmp_path / name, target / name)
    assert names_at(target / "memory.db") == ["first", "later"]


def test_a_file_that_is_touched_raises_no_alarm(path: Path) -> None:
    with ServerProcess(path) as server:
        server.ask(creation("later"))
        path.touch()
        path.chmod(0o644)
        assert names_in(server.ask(_READ)) == ["first", "later"]
        server.kill()
    path.touch()
    assert names_at(path) == ["first", "later"]


def test_a_server_without_its_log_acknowledges_nothing_and_loses_nothing(path: Path) -> None:
    with ServerProcess(path) as server:
        server.ask(creation("later"))
        log_path(str(path)).unlink()
        assert "memory.db-wal was deleted" in text_of(server.ask(creation("too late")))
        assert is_error({"result": server.ask(_READ)})
        server.kill()
    assert names_at(path) == ["first", "later"]


def test_a_write_during_which_the_log_is_deleted_is_not_acknowledged(path: Path) -> None:
    with opened(path) as memory:
        create(memory, "second")
        with pytest.raises(StoreError, match="deleted or replaced"), memory.store.writing():
            log_path(str(path)).unlink()


def test_a_server_that_has_only_read_notices_that_the_log_is_gone(path: Path) -> None:
    with opened(path) as memory:
        assert names(memory) == ["first"]
        log_path(str(path)).unlink()
        with pytest.raises(StoreError, match="deleted or replaced"):
            names(memory)


def test_a_schema_that_another_process_upgrades_is_noticed(path: Path) -> None:
    with opened(path) as memory:
        create(memory, "second")
        _use(path, "PRAGMA user_version = 1000")
        with pytest.raises(StoreTooNew, match="schema 1000"):
            create(memory, "too late")
        with pytest.raises(StoreTooNew, match="schema 1000"):
            names(memory)


def test_the_lineage_is_on_page_two_and_stays_there(path: Path) -> None:
    _use(path, "VACUUM")
    connection = apsw.Connection(str(path))
    assert connection.execute(
        "SELECT rootpage FROM sqlite_schema WHERE name = 'lineage'"
    ).fetchall() == [(2,)]
    ((state,),) = connection.execute("SELECT hex(state) FROM lineage").fetchall()
    connection.close()
    assert path.read_bytes()[4096:8192].hex().upper().endswith(str(state))


def _closed_copy(path: Path) -> Path:
    return Path(shutil.copy(path, path.with_name("backup.db")))


def _write_and_kill(path: Path, name: str) -> None:
    with ServerProcess(path) as server:
        server.ask(creation(name))
        server.kill()


def _use(path: Path, statement: str) -> None:
    connection = apsw.Connection(str(path))
    connection.set_busy_timeout(5000)
    connection.execute(statement).fetchall()
    connection.close()
