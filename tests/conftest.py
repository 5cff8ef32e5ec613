"""What all tests share.

The groups they run in, Hypothesis profiles, and a memory on every kind of store.
"""

import os
import sys
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from functools import cache
from pathlib import Path

import pytest
from hypothesis import HealthCheck, settings
from xdist.scheduler import LoadScopeScheduling, Scheduling, WorkStealingScheduling

from polymnia.engine.memory import Memory
from polymnia.stores import open_store
from tests.groups import EVERY_STORE, MARKED, ONE_AT_A_TIME, UNMARKED
from tests.postgres import new_database, new_workspace, shared_by_test_run, shared_server

HERE = Path(__file__).parent

# No test depends on how busy the machine is: examples have no deadline and may be slow to generate.
# Every run takes the same examples; `--hypothesis-profile=explore` takes new ones.
settings.register_profile(
    "repeatable", derandomize=True, deadline=None, suppress_health_check=[HealthCheck.too_slow]
)
settings.register_profile("explore", settings.get_profile("repeatable"), derandomize=False)
settings.load_profile("repeatable")

# The URL of each kind of store, given an empty directory.
STORES: dict[str, Callable[[Path], str]] = {
    "jsonl": lambda directory: str(directory / "memory.jsonl"),
    "binlog": lambda directory: str(directory / "memory.mcpmem"),
    "sqlite": lambda directory: str(directory / "memory.db"),
    "sqlite in memory": lambda directory: ":memory:",
    "postgres": lambda directory: new_workspace(),
}
ON_DISK = ("jsonl", "binlog", "sqlite")
# The stores that keep a history, notes and vectors.
VERSIONED = ("sqlite", "sqlite in memory", "postgres")
# How many examples of a property an unmarked test tries.
FEW_EXAMPLES = 20
# How fixtures and parameters name kinds of stores. Most tests run on the first, others are slower.
STORES_BY_SPEED = (
    "sqlite in memory",
    "sqlite",
    "directory",
    "single file",
    "jsonl",
    "binlog",
    "postgres",
)

# What ends with the test run.
_RUN = pytest.StashKey[ExitStack]()

# The tests start hundreds of programs, which take twice as long without bytecode.
os.environ.pop("PYTHONDONTWRITEBYTECODE", None)
sys.dont_write_bytecode = False

# Servers that tests start load no embedding model; tests of semantic search say which embedder they
# want.
os.environ["POLYMNIA_EMBEDDER"] = "none"
# Nor do they leave a process behind that holds a model.
os.environ["POLYMNIA_SHARE_EMBEDDER"] = "false"


def pytest_configure(config: pytest.Config) -> None:
    """Select the unmarked tests, unless the command line names markers, keywords or paths."""
    if selects_unmarked_tests(config):
        config.option.markexpr = UNMARKED
    config.stash[_RUN] = ExitStack()
    config.stash[_RUN].enter_context(shared_by_test_run())


def selects_unmarked_tests(config: pytest.Config) -> bool:
    has_paths = config.args_source is not pytest.Config.ArgsSource.TESTPATHS
    return not (has_paths or config.option.markexpr or config.option.keyword)


def pytest_unconfigure(config: pytest.Config) -> None:
    """Stop the PostgreSQL server of the test run."""
    config.stash[_RUN].close()


def pytest_ignore_collect(collection_path: Path, config: pytest.Config) -> bool | None:
    """Do not even import modules whose tests are all marked if only unmarked ones are wanted."""
    if config.option.markexpr == UNMARKED and markers_of(collection_path):
        return True
    return None


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """Mark the tests below the paths in MARKED, and the variants of a test on further stores.

    A test that runs on several stores is unmarked on the first of STORES_BY_SPEED and has the
    marker `matrix` on the others, except below the paths in EVERY_STORE. A property that is tried
    with many examples is tried with a few among the unmarked tests, and with all in the matrix.
    """
    fastest: dict[str, int] = {}
    variants: list[tuple[pytest.Item, str, int]] = []
    for item in items:
        for marker in markers_of(item.path):
            item.add_marker(marker)
        function = getattr(item, "obj", None)
        given = getattr(function, "_hypothesis_internal_use_settings", None)
        if given and given.max_examples > FEW_EXAMPLES:
            if config.option.markexpr == UNMARKED:
                few = settings(given, max_examples=FEW_EXAMPLES)
                function.__dict__["_hypothesis_internal_use_settings"] = few
            else:
                item.add_marker("matrix")
        stores = stores_of(item)
        if stores and not is_below(item.path, EVERY_STORE):
            test = item.nodeid
            for store in stores:
                test = test.replace(store, "store", 1)
            slowness = sum(STORES_BY_SPEED.index(store) for store in stores)
            fastest[test] = min(slowness, fastest.get(test, slowness))
            variants.append((item, test, slowness))
    for item, test, slowness in variants:
        if slowness > fastest[test]:
            item.add_marker("matrix")
    # Modules that take long begin first, and short ones fill the time until all workers are done.
    items.sort(key=lambda item: not {"slow", "interop"} & set(markers_of(item.path)))


def stores_of(item: pytest.Item) -> list[str]:
    """Return the kinds of stores among a test's parameters."""
    parameters = (
        item.callspec.params.values()
        if isinstance(item, pytest.Function) and hasattr(item, "callspec")
        else ()
    )
    return [value for value in parameters if value in STORES_BY_SPEED]


@cache
def markers_of(path: Path) -> tuple[str, ...]:
    """Return the markers that MARKED gives to all tests below a path."""
    return tuple(marker for marker, paths in MARKED.items() if is_below(path, paths))


def is_below(path: Path, folders: tuple[str, ...]) -> bool:
    return any(path.is_relative_to(HERE / folder) for folder in folders)


class ModuleScheduling(LoadScopeScheduling):  # type: ignore[misc]  # xdist has no type hints
    """Give each worker whole modules, so that module fixtures run once, and ONE_AT_A_TIME to a
    single worker.
    """

    def _split_scope(self, nodeid: str) -> str:
        module = nodeid.partition("::")[0].removeprefix("tests/")
        return "one at a time" if module in ONE_AT_A_TIME else module


def pytest_xdist_auto_num_workers() -> int:
    """Start one worker more than there are cores: tests wait for programs and disks."""
    return len(os.sched_getaffinity(0)) + 1


def pytest_xdist_make_scheduler(config: pytest.Config, log: object) -> Scheduling:
    """Schedule marked tests by module. A worker that is done takes unmarked tests from another."""
    if config.option.markexpr == UNMARKED:
        return WorkStealingScheduling(config, log)
    # The order of collection, not modules with many tests first: those take the least time.
    config.option.loadscopereorder = False
    return ModuleScheduling(config, log)


@pytest.fixture(params=STORES)
def memory(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Memory]:
    """Yield an empty memory on each kind of store."""
    store = open_store(STORES[request.param](tmp_path))
    yield Memory(store)
    store.close()


@pytest.fixture(params=["sqlite", "postgres"])
def versioned_url(request: pytest.FixtureRequest, tmp_path: Path) -> str:
    """Return an unused URL for each kind of store with a history, notes and vectors that several
    servers may open.
    """
    return STORES[request.param](tmp_path)


@pytest.fixture(params=ON_DISK)
def store_path(request: pytest.FixtureRequest, tmp_path: Path) -> str:
    """Return an unused path for each kind of store that is kept on disk."""
    return STORES[request.param](tmp_path)


@pytest.fixture
def postgres_database() -> Iterator[str]:
    """Yield the URL of an empty PostgreSQL database."""
    with new_database(shared_server()) as url:
        yield url
