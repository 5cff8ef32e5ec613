"""A server over each kind of store, and the other SDKs that talk to it."""

from pathlib import Path

import pytest

from . import install
from .server import NewServer, polymnia


@pytest.fixture(scope="module", params=["jsonl", "db"])
def new_server(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> NewServer:
    return lambda: polymnia(tmp_path_factory.mktemp("store") / f"memory.{request.param}")


@pytest.fixture(scope="session")
def cache(pytestconfig: pytest.Config) -> Path:
    return pytestconfig.rootpath / ".test-cache"


@pytest.fixture(scope="session")
def python_with_sdk_v1(cache: Path) -> Path:
    return install.python_with_sdk_v1(cache)


@pytest.fixture(scope="session")
def node_packages(cache: Path) -> Path:
    return install.node_packages(cache)
