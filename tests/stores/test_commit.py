"""Group commit: every writer gets its own result, independently of the others."""

import threading
from collections.abc import Callable, Iterator
from contextlib import closing
from pathlib import Path

import apsw
import pytest

from polymnia.errors import StoreBusy
from polymnia.stores.sqlite.commit import GroupCommit
from polymnia.stores.sqlite.store import SqliteStore

_ROUNDS = 200
_SHORT_TIMEOUT_S = 0.002
# Only a writer that waits forever reaches this.
_TIMEOUT_S = 60


@pytest.fixture
def commit(path: str) -> Iterator[GroupCommit]:
    """The writing connection of a store with a table of numbers."""
    store = SqliteStore(path)
    with store._commit.transaction() as connection:
        connection.execute("CREATE TABLE numbers (number INTEGER PRIMARY KEY)")
    yield store._commit
    store.close()


def test_a_writer_does_not_leave_its_commit_to_one_that_gives_up(
    commit: GroupCommit, path: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    lock = _LastMomentLock()
    monkeypatch.setattr(commit, "_lock", lock)

    def write() -> None:
        with commit.transaction() as connection:
            connection.execute("INSERT INTO numbers VALUES (1)")
            assert lock.waiting.wait(_TIMEOUT_S)

    def give_up() -> None:
        with pytest.raises(StoreBusy):
            _insert(commit, 2, _SHORT_TIMEOUT_S)

    assert _run_together([write, give_up]) == 0
    assert _numbers(path) == [1]


def test_writers_that_give_up_and_writers_that_wait_all_come_back(
    commit: GroupCommit, path: str
) -> None:
    done: list[int] = []
    gave_up: list[int] = []

    def write(first: int) -> None:
        for number in range(first, first + _ROUNDS):
            _insert(commit, number, None)
            done.append(number)

    def write_or_give_up(first: int) -> None:
        for number in range(first, first + _ROUNDS):
            try:
                _insert(commit, number, _SHORT_TIMEOUT_S)
                done.append(number)
            except StoreBusy:
                gave_up.append(number)

    waiting = _run_together(
        [lambda: write(0), *[_with(write_or_give_up, 1000 * number) for number in range(1, 5)]]
    )
    assert waiting == 0
    assert len(done) + len(gave_up) == 5 * _ROUNDS
    assert sorted(done) == _numbers(path)


def test_a_writer_that_gives_up_changes_nothing(commit: GroupCommit, path: str) -> None:
    with commit.transaction() as connection:
        connection.execute("INSERT INTO numbers VALUES (1)")
        with pytest.raises(StoreBusy, match="try again"):
            _insert(commit, 2, 0.0)
    assert _numbers(path) == [1]


def test_a_bounded_writer_can_take_over_the_commit_of_others(
    commit: GroupCommit, path: str
) -> None:
    """Unbounded writers wait, so the first leaves its commit; bounded ones may come in between."""
    works = [
        _with(lambda first: _insert_all(commit, first, None), 1000 * number) for number in range(4)
    ]
    works += [
        _with(lambda first: _insert_all(commit, first, _TIMEOUT_S), 1000 * number)
        for number in range(4, 8)
    ]
    assert _run_together(works) == 0
    assert len(_numbers(path)) == 8 * 50


def test_writers_that_fail_in_a_group_undo_only_their_own_work(
    commit: GroupCommit, path: str
) -> None:
    def fail(first: int) -> None:
        for number in range(first, first + 50):
            with pytest.raises(ZeroDivisionError), commit.transaction() as connection:
                connection.execute("INSERT INTO numbers VALUES (?)", (number,))
                raise ZeroDivisionError

    works = [
        _with(lambda first: _insert_all(commit, first, None), 1000 * number) for number in range(4)
    ]
    assert _run_together([*works, *[_with(fail, 1000 * number) for number in range(4, 8)]]) == 0
    assert {number // 1000 for number in _numbers(path)} == {0, 1, 2, 3}
    assert len(_numbers(path)) == 4 * 50


class _LastMomentLock:
    """A lock whose bounded wait fails only after the holder has checked for waiting writers."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._released = threading.Event()
        self.waiting = threading.Event()

    def acquire(self, blocking: bool = True, timeout: float = -1) -> bool:
        if timeout < 0:
            return self._lock.acquire(blocking)
        self.waiting.set()
        self._released.wait(_TIMEOUT_S)
        return False

    def release(self) -> None:
        self._lock.release()
        self._released.set()


def _insert(commit: GroupCommit, number: int, timeout: float | None) -> None:
    with commit.transaction(timeout=timeout) as connection:
        connection.execute("INSERT INTO numbers VALUES (?)", (number,))


def _insert_all(commit: GroupCommit, first: int, timeout: float | None) -> None:
    for number in range(first, first + 50):
        _insert(commit, number, timeout)


def _with(work: Callable[[int], None], first: int) -> Callable[[], None]:
    return lambda: work(first)


def _run_together(works: list[Callable[[], None]]) -> int:
    """Run each in a thread; return how many never ended."""
    threads = [threading.Thread(target=work, daemon=True) for work in works]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(_TIMEOUT_S)
    return sum(thread.is_alive() for thread in threads)


def _numbers(path: str) -> list[int]:
    assert Path(path).is_file()
    with closing(apsw.Connection(path)) as connection:
        return [
            int(str(number))
            for (number,) in connection.execute("SELECT number FROM numbers ORDER BY number")
        ]
