"""Group commit: every writer gets its own result, independently of the others."""

import threading
from collections.abc import Callable, Iterator
from contextlib import closing
from pathlib import Path

import apsw
import pytest

from polymnia.stores.sqlite.commit import GroupCommit
from polymnia.stores.sqlite.store import SqliteStore

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


def test_writers_that_fail_in_a_group_undo_only_their_own_work(
    commit: GroupCommit, path: str
) -> None:
    def fail(first: int) -> None:
        for number in range(first, first + 50):
            with pytest.raises(ZeroDivisionError), commit.transaction() as connection:
                connection.execute("INSERT INTO numbers VALUES (?)", (number,))
                raise ZeroDivisionError

    works = [_with(lambda first: _insert_all(commit, first), 1000 * number) for number in range(4)]
    assert _run_together([*works, *[_with(fail, 1000 * number) for number in range(4, 8)]]) == 0
    assert {number // 1000 for number in _numbers(path)} == {0, 1, 2, 3}
    assert len(_numbers(path)) == 4 * 50


def _insert_all(commit: GroupCommit, first: int) -> None:
    for number in range(first, first + 50):
        with commit.transaction() as connection:
            connection.execute("INSERT INTO numbers VALUES (?)", (number,))


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
