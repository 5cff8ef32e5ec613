"""Following other servers' changes ends with the workspaces, even if a client still listens."""

from pathlib import Path
from threading import enumerate as all_threads

import pytest

from polymnia.engine.workspaces import open_workspaces
from tests.processes import TIMEOUT_S


@pytest.mark.parametrize("place", ["memory.db", "directory/"])
def test_closing_ends_the_thread_that_follows(place: str, tmp_path: Path) -> None:
    workspaces = open_workspaces(f"{tmp_path}/{place}")
    before = set(all_threads())
    workspaces.follow(lambda workspace, change: None, lambda: True)
    (follower,) = [
        thread for thread in set(all_threads()) - before if thread.name == "polymnia-follower"
    ]
    workspaces.close()
    follower.join(TIMEOUT_S)
    assert not follower.is_alive()
