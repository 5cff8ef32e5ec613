"""The groups that tests run in, by their paths below tests/."""

from collections.abc import Container, Iterable
from typing import Any

import pytest

# The paths whose tests carry each marker. The default run leaves them out.
MARKED = {
    "slow": (
        "dialects/test_native_large.py",
        "directory/test_crashes.py",
        "directory/test_processes.py",
        "durability",
        "soak",
        "stores/test_postgres_faults.py",
        "stores/test_postgres_oldest.py",
        "stores/test_postgres_outage.py",
        "stores/test_postgres_processes.py",
        "stores/test_postgres_replica.py",
        "stores/test_postgres_server.py",
        "stores/test_postgres_upgrade.py",
        "test_bench.py",
        "test_bench_agents.py",
        "test_bench_curation.py",
        "test_bench_meaning.py",
        "test_bench_moving.py",
        "test_bench_peers.py",
        "test_bench_recall.py",
        "test_bench_web.py",
        "test_bench_whole.py",
        "test_newcomer.py",
        "test_rerun.py",
        "test_run.py",
        "test_wheel.py",
        "transports/test_many_sessions.py",
        "transports/test_hostile.py",
        "transports/test_stopping.py",
    ),
    "matrix": (
        "cli/test_completion.py",
        "dialects/test_workspace_isolation.py",
        "dialects/test_workspace_processes.py",
        "growth/test_postgres.py",
        "importers/test_hostile.py",
        "test_docs_scaling.py",
        "test_docs_workspaces.py",
        "transports/test_damaged_messages.py",
    ),
    "interop": ("conformance", "interop", "web"),
}
# What pytest's option -m says when nothing else is asked for.
UNMARKED = " and ".join(f"not {marker}" for marker in MARKED)

# The modules that read a server's memory or load the machine. They share one worker.
ONE_AT_A_TIME = (
    "soak/test_soak.py",
    "transports/test_many_sessions.py",
    "transports/test_hostile.py",
    "transports/test_stopping.py",
)

# The paths whose tests run unmarked on every store that they name. Elsewhere a test runs unmarked
# on SQLite, and is marked `matrix` on the other stores.
EVERY_STORE = ("behaviour/test_model.py",)


def mostly_matrix(cases: Iterable[Any], unmarked: Container[Any]) -> list[Any]:
    """Return the cases of a parametrized test, with the marker `matrix` on all but a few."""
    return [
        case if case in unmarked else pytest.param(*as_tuple(case), marks=pytest.mark.matrix)
        for case in cases
    ]


def as_tuple(case: Any) -> tuple[Any, ...]:
    return case if isinstance(case, tuple) else (case,)
