"""The server under test: the command line that starts it, and where a client finds it once it runs."""

import re
import subprocess
import sys
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from tests.processes import TIMEOUT_S, end_with_parent

Command = tuple[str, ...]

NewServer = Callable[[], Command]
"""Makes a server over a store of its own, empty at first."""

NETWORK = ("http", "sse")
"""The transports whose clients need an address."""

_PLACE = re.compile(r"serving \S+ at (?P<base>http://\S+)/mcp")
# Servers of the tests are found from here, wherever the tests are started.
_ROOT = Path(__file__).parent.parent.parent


@dataclass(frozen=True, slots=True)
class Place:
    """Where a client finds the server: a command to start, or an address and a token that opens it."""

    transport: str
    command: Command = ()
    url: str = ""
    token: str = ""


NewPlace = Callable[[], Place]
"""Makes a server over a store of its own, empty at first, and says where it is."""


def polymnia(store: Path) -> Command:
    return (sys.executable, "-m", "polymnia", "serve", "--dialect", "reference", "--store", str(store))


@contextmanager
def guarded(store: Path, transport: str) -> Iterator[Place]:
    """A server on the network over the store, which asks for a token."""
    token = _new_token(store)
    with running((*polymnia(store), "--transport", "http", "--bind", "127.0.0.1:0")) as base:
        yield place(base, transport, token)


def place(base: str, transport: str, token: str = "") -> Place:
    return Place(transport, url=f"{base}/{'mcp' if transport == 'http' else 'sse'}", token=token)


@contextmanager
def running(command: Sequence[str]) -> Iterator[str]:
    """A server that says where it is; gives the address before /mcp, and stops it in order."""
    with subprocess.Popen(command, cwd=_ROOT, stderr=subprocess.PIPE, text=True, preexec_fn=end_with_parent) as process:
        try:
            assert process.stderr is not None
            said = process.stderr.readline()
            found = _PLACE.search(said)
            assert found, said + process.stderr.read()
            yield found["base"]
        finally:
            process.terminate()
            assert process.wait(TIMEOUT_S) == 0


def _new_token(store: Path) -> str:
    command = (sys.executable, "-m", "polymnia", "token", "create", "interop", "--can", "write", "--store", str(store))
    done = subprocess.run(command, capture_output=True, text=True, check=True, timeout=TIMEOUT_S)
    return done.stdout.strip()
