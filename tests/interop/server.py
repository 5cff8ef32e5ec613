"""The server under test: the command that starts it, and the address of a running one."""

import re
import subprocess
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from tests.processes import TIMEOUT_S, end_with_parent, polymnia_command

Command = Sequence[str]

NewServer = Callable[[], Command]
"""Returns the command of a server with its own empty store."""

NETWORK = ("http", "sse")
"""The transports whose clients need an address."""

_PLACE = re.compile(r"serving \S+ at (?P<base>http://\S+)/mcp")
# The working directory from which `-m tests...` finds the servers of the tests.
_ROOT = Path(__file__).parent.parent.parent


@dataclass(frozen=True, slots=True)
class Place:
    """How a client reaches the server: a command to start, or an address and a token."""

    transport: str
    command: Command = ()
    url: str = ""
    token: str = ""


NewPlace = Callable[[], Place]
"""Starts a server with its own empty store and returns how to reach it."""


def polymnia(store: Path) -> Command:
    return polymnia_command("serve", "--dialect", "reference", "--store", str(store))


@contextmanager
def guarded(store: Path, transport: str, options: Sequence[str] = ()) -> Iterator[Place]:
    """Run a server on the network that requires a token."""
    token = _new_token(store)
    command = (*polymnia(store), "--transport", "http", "--bind", "127.0.0.1:0", *options)
    with running(command) as base:
        yield place(base, transport, token)


def place(base: str, transport: str, token: str = "") -> Place:
    return Place(transport, url=f"{base}/{'mcp' if transport == 'http' else 'sse'}", token=token)


@contextmanager
def running(command: Sequence[str], log: Path | None = None) -> Iterator[str]:
    """Run a server, yield its URL without /mcp, and stop it gracefully.

    What it logged is in `log` then.
    """
    with subprocess.Popen(
        command, cwd=_ROOT, stderr=subprocess.PIPE, text=True, preexec_fn=end_with_parent
    ) as process:
        try:
            assert process.stderr is not None
            said = process.stderr.readline()
            found = _PLACE.search(said)
            assert found, said + process.stderr.read()
            yield found["base"]
        finally:
            process.terminate()
            assert process.wait(TIMEOUT_S) == 0
            if log is not None and process.stderr is not None:
                log.write_text(process.stderr.read(), "utf-8")


def _new_token(store: Path) -> str:
    command = polymnia_command(
        "token", "create", "interop", "--can", "write", "--store", str(store)
    )
    done = subprocess.run(command, capture_output=True, text=True, check=True, timeout=TIMEOUT_S)
    return done.stdout.strip()
