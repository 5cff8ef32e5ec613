"""Several processes change one workspace at once, while backends are killed and the server is
restarted.
"""

from tests.postgres import new_workspace, running_server
from tests.stores.postgres_load import check_load, faults, prepare, run_load


def test_eight_processes_lose_nothing_and_keep_the_order() -> None:
    url = new_workspace()
    prepare(url)
    check_load(url, run_load(url, processes=8, operations=40), sure=True)


def test_eight_processes_lose_nothing_while_backends_are_killed_and_the_server_restarts() -> None:
    with running_server(fsync=True) as server:
        url = f"{server.url}?workspace=load"
        prepare(url)
        with faults(server):
            outcomes = run_load(url, processes=8, operations=30)
        check_load(url, outcomes, sure=False)
        assert all(outcome.added for outcome in outcomes)
