"""The contestants: how each is started, greeted and asked."""

import os
import socket
import subprocess
import sys
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from itertools import count
from pathlib import Path
from random import Random

import msgspec

from bench.client import PROTOCOL
from bench.dataset import entity_name
from bench.errors import BenchError
from bench.http.load import CHUNK, HEAD_END, connect, http_request, is_complete
from bench.servers import POLYMNIA_VARIABLES, clean_environment

POLYMNIA, STATELESS, WRITES, ECHO, SDK = "polymnia", "stateless", "writes", "echo", "sdk"
START_TIMEOUT_S = 60.0
_TICKS_PER_S = os.sysconf("SC_CLK_TCK")
NEWEST = "2026-07-28"
META = {
    "io.modelcontextprotocol/protocolVersion": NEWEST,
    "io.modelcontextprotocol/clientCapabilities": {},
}


@dataclass(frozen=True, slots=True)
class Contestant:
    """A running server and its requests."""

    name: str
    port: int
    pid: int
    requests: Iterator[bytes]


def free_port() -> int:
    """Return a port that is not in use."""
    with socket.socket() as found:
        found.bind(("127.0.0.1", 0))
        return int(found.getsockname()[1])


def spawn(command: Sequence[str], log: Path) -> subprocess.Popen[bytes]:
    """Start a server that writes its output to a log."""
    with log.open("wb") as output:
        environment = {**clean_environment(), **POLYMNIA_VARIABLES}
        return subprocess.Popen(
            command, stdin=subprocess.DEVNULL, stdout=output, stderr=output, env=environment
        )


@contextmanager
def running(command: Sequence[str], log: Path) -> Iterator["subprocess.Popen[bytes]"]:
    """Run a server for the length of the block."""
    process = spawn(command, log)
    try:
        yield process
    finally:
        process.terminate()
        process.wait(timeout=60)


def await_port(port: int, process: subprocess.Popen[bytes], log: Path) -> None:
    """Wait until a server listens there. Raise BenchError."""
    deadline = time.monotonic() + START_TIMEOUT_S
    while time.monotonic() < deadline and process.poll() is None:
        try:
            connect(port).close()
        except OSError:
            time.sleep(0.05)
        else:
            return
    raise BenchError(f"a server did not start: {log.read_text(errors='replace')[-600:]}")


def processor_seconds(pid: int) -> float:
    """Return the processor time that a process has used."""
    fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    return (int(fields[11]) + int(fields[12])) / _TICKS_PER_S


def polymnia_command(polymnia: Sequence[str], store: str | Path, port: int) -> list[str]:
    """Return the command for Polymnia over HTTP, with the reference dialect."""
    return [
        *polymnia,
        "serve",
        "--dialect",
        "reference",
        "--transport",
        "http",
        "--port",
        str(port),
        "--store",
        str(store),
    ]


def script_command(name: str, port: int) -> list[str]:
    """Return the command for a peer beside this file."""
    return [sys.executable, "-m", f"bench.http.{name}", str(port)]


def session_of(port: int) -> dict[str, str]:
    """Initialize a session. Return the headers of later requests. Raise BenchError."""
    params = {
        "protocolVersion": PROTOCOL,
        "capabilities": {},
        "clientInfo": {"name": "bench", "version": "1"},
    }
    head = post(port, http_request(message(1, "initialize", params), {})).partition(HEAD_END)[0]
    for line in head.decode("latin-1").split("\r\n"):
        name, _, value = line.partition(": ")
        if name.lower() == "mcp-session-id":
            return {"mcp-session-id": value, "mcp-protocol-version": PROTOCOL}
    raise BenchError(f"the server gave no session: {head!r}")


def post(port: int, request: bytes) -> bytes:
    """Return the response to one request."""
    with connect(port) as connection:
        connection.sendall(request)
        answer = b""
        while not is_complete(answer):
            answer += connection.recv(CHUNK)
        return answer


def message(identifier: int, method: str, params: Mapping[str, object]) -> bytes:
    """Return one JSON-RPC request."""
    return msgspec.json.encode(
        {"jsonrpc": "2.0", "id": identifier, "method": method, "params": params}
    )


def reads(size: int, headers: dict[str, str]) -> Iterator[bytes]:
    """Yield point reads of random names."""
    rng = Random(size)
    for identifier in count(2):
        name = entity_name(rng.randrange(size))
        body = message(
            identifier, "tools/call", {"name": "open_nodes", "arguments": {"names": [name]}}
        )
        yield http_request(body, headers)


def stateless_reads(size: int) -> Iterator[bytes]:
    """Yield the same reads without a session."""
    headers = {"mcp-protocol-version": NEWEST, "mcp-method": "tools/call", "mcp-name": "open_nodes"}
    rng = Random(size)
    for identifier in count(2):
        arguments: dict[str, object] = {"names": [entity_name(rng.randrange(size))]}
        params: dict[str, object] = {"name": "open_nodes", "arguments": arguments, "_meta": META}
        yield http_request(message(identifier, "tools/call", params), headers)


def writes(headers: dict[str, str]) -> Iterator[bytes]:
    """Yield writes of one new entity each."""
    for identifier in count(2):
        new = {"name": f"http-{identifier}", "entityType": "thing", "observations": ["kept"]}
        params: dict[str, object] = {"name": "create_entities", "arguments": {"entities": [new]}}
        yield http_request(message(identifier, "tools/call", params), headers)
