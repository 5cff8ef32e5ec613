"""Servers on each kind of store and transport, and the clients that connect to them."""

from collections.abc import Iterator
from contextlib import ExitStack
from pathlib import Path

import pytest

from . import install
from .server import NETWORK, NewPlace, NewServer, Place, guarded, polymnia


@pytest.fixture(scope="module", params=["jsonl", "db"])
def new_server(
    request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory
) -> NewServer:
    return lambda: polymnia(tmp_path_factory.mktemp("store") / f"memory.{request.param}")


@pytest.fixture(scope="module", params=["stdio-jsonl", "stdio-db", "http-db", "sse-db"])
def new_place(
    request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[NewPlace]:
    """Return a function that starts a new server.

    Servers on the network run until the module's tests are done.
    """
    transport, kind = request.param.split("-")
    with ExitStack() as stack:

        def new_place() -> Place:
            store = tmp_path_factory.mktemp("store") / f"memory.{kind}"
            if transport in NETWORK:
                return stack.enter_context(guarded(store, transport))
            return Place(transport, polymnia(store))

        yield new_place


@pytest.fixture(scope="session")
def cache(pytestconfig: pytest.Config) -> Path:
    return pytestconfig.rootpath / ".test-cache"


@pytest.fixture(scope="session")
def python_with_sdk_v1(cache: Path) -> Path:
    return install.python_with_sdk_v1(cache)


@pytest.fixture(scope="session")
def python_with_fastmcp(cache: Path) -> Path:
    return install.python_with_fastmcp(cache)


@pytest.fixture(scope="session")
def node_packages(cache: Path) -> Path:
    return install.node_packages(cache)


@pytest.fixture(scope="session")
def judges(cache: Path) -> Path:
    return install.judges(cache)
