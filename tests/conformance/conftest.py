"""The installed suites, and a server for them to test."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.conformance.suite import SERVER
from tests.interop import install
from tests.interop.server import running


@pytest.fixture(scope="session")
def judges(pytestconfig: pytest.Config) -> Path:
    return install.judges(pytestconfig.rootpath / ".test-cache")


@pytest.fixture(scope="session")
def url() -> Iterator[str]:
    with running(SERVER) as base:
        yield f"{base}/mcp"
