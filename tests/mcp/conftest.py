"""A server with one of everything, and clients of it."""

import pytest

from polymnia.mcp.server import Server
from polymnia.mcp.session import Session
from tests.mcp.conversation import STATELESS, Client, new_server


@pytest.fixture
def server() -> Server:
    return new_server()


@pytest.fixture
def client(server: Server) -> Client:
    """A client that has shaken hands."""
    return Client(server)


@pytest.fixture
def stateless(server: Server) -> Client:
    """A client that never will."""
    return Client(server, STATELESS)


@pytest.fixture
def session(server: Server) -> Session:
    """A conversation in which nothing was said yet."""
    return Session(server)
