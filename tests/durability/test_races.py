"""Some orders of events in two servers; `python -m tests.durability.races` tries thousands."""

from unittest.mock import patch

import pytest

from polymnia.stores.sqlite.commit import GroupCommit, _Group
from tests.durability.races import run_seed
from tests.durability.scheduler import Deadlock, Scheduler


@pytest.mark.parametrize("seed", range(8))
def test_threads_of_two_servers_lose_nothing_in_this_order(seed: int) -> None:
    assert run_seed(seed) == []


def test_a_write_that_is_acknowledged_before_its_commit_is_noticed() -> None:
    commit = GroupCommit._commit

    def acknowledge_early(self: GroupCommit, group: _Group) -> None:
        group.done.set()
        commit(self, group)

    with patch.object(GroupCommit, "_commit", acknowledge_early):
        assert any("lacks" in problem for seed in range(40) for problem in run_seed(seed))


def test_threads_that_wait_for_one_another_are_noticed() -> None:
    scheduler = Scheduler(1)
    scheduler.run({name: lambda: scheduler.wait_until(lambda: False) for name in ("one", "two")})
    assert {type(exc) for _, exc in scheduler.failures} == {Deadlock}
