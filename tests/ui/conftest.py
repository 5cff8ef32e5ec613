"""A server over a small memory, and what visits it."""

from collections.abc import Iterator

import pytest

from polymnia.engine.memory import Memory
from tests.transports.running import Running
from tests.ui.client import Visitor
from tests.ui.pages import harbour


@pytest.fixture(scope="module")
def site(tmp_path_factory: pytest.TempPathFactory) -> Iterator[tuple[Running, Memory]]:
    """Yield a server, and the memory that it serves."""
    with harbour(tmp_path_factory.mktemp("ui")) as both:
        yield both


@pytest.fixture
def visitor(site: tuple[Running, Memory]) -> Visitor:
    return Visitor(site[0].port)


@pytest.fixture
def memory(site: tuple[Running, Memory]) -> Memory:
    return site[1]
