"""A minimal MCP client over a pipe that measures how long each reply takes.

What the client costs is small and the same for every server. The time runs from the first byte
written to the last byte of the reply; encoding the request and checking the reply are not part of
it.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from time import perf_counter
from typing import TypeVar

import msgspec

from bench.errors import BenchError
from bench.pipe import Launch, Pipe

PROTOCOL = "2025-11-25"

NOTHING = msgspec.Raw()

T = TypeVar("T", bound=msgspec.Struct)


@dataclass(frozen=True, slots=True)
class Answer:
    """The text of a tool's reply and the seconds it took."""

    tool: str
    seconds: float
    text: str


class Envelope(msgspec.Struct):
    """A JSON-RPC message from the server; only a reply has no method."""

    id: int | str | None = None
    method: str | None = None
    result: msgspec.Raw = NOTHING
    error: msgspec.Raw = NOTHING


class Content(msgspec.Struct):
    """One block of a tool result."""

    text: str


class ToolResult(msgspec.Struct, rename="camel"):
    """The result of tools/call."""

    content: list[Content]
    is_error: bool = False


class InitializeResult(msgspec.Struct, rename="camel"):
    """The result of initialize."""

    protocol_version: str


def open_session(launch: Launch) -> "Session":
    """Start a server and initialize a session. Raise BenchError if that fails."""
    session = Session(launch)
    try:
        session.initialize()
    except BenchError:
        session.close()
        raise
    return session


class Session:
    """A running server and the requests made of it."""

    def __init__(self, launch: Launch) -> None:
        self._launch = launch
        self._pipe = Pipe(launch)
        self._last_id = 0

    def initialize(self) -> None:
        """Initialize the session. Raise BenchError unless the server speaks our revision."""
        params = {
            "protocolVersion": PROTOCOL,
            "capabilities": {},
            "clientInfo": {"name": "bench", "version": "1"},
        }
        _, raw = self._request("initialize", params)
        revision = self._decode(raw, InitializeResult).protocol_version
        if revision != PROTOCOL:
            raise self.failure(f"speaks revision {revision}, not {PROTOCOL}")
        self._pipe.write(encode_line({"method": "notifications/initialized"}))

    def call(self, tool: str, arguments: Mapping[str, object]) -> Answer:
        """Call a tool. Raise BenchError if it fails."""
        params = {"name": tool, "arguments": arguments}
        seconds, raw = self._request("tools/call", params)
        result = self._decode(raw, ToolResult)
        text = "".join(block.text for block in result.content)
        if result.is_error:
            raise self.failure(f"answered {tool} with an error: {text[:300]}")
        return Answer(tool, seconds, text)

    def resident_bytes(self) -> int:
        """Return the resident memory of the process (VmRSS)."""
        status = Path(f"/proc/{self._pipe.pid}/status").read_text()
        line = next(line for line in status.splitlines() if line.startswith("VmRSS"))
        return int(line.split()[1]) * 1024

    def open_files(self) -> int:
        """Return how many files and pipes the process has open."""
        return len(list(Path(f"/proc/{self._pipe.pid}/fd").iterdir()))

    def close(self) -> int:
        """End the server. Return its exit status."""
        return self._pipe.close()

    def failure(self, what: str) -> BenchError:
        """Return an error that names the server and quotes the end of its log."""
        tail = self._launch.log.read_text(errors="replace").strip()[-600:]
        return BenchError(f"{self._launch.title} {what}\nIts stderr ends: {tail}")

    def _request(self, method: str, params: Mapping[str, object]) -> tuple[float, msgspec.Raw]:
        self._last_id += 1
        line = encode_line({"id": self._last_id, "method": method, "params": params})
        try:
            seconds, envelope = self._exchange(line)
        except (OSError, EOFError) as exc:  # TimeoutError is an OSError
            raise self.failure(f"gave no reply to {method}: {exc}") from exc
        return seconds, self._result(envelope, method)

    def _exchange(self, line: bytes) -> tuple[float, Envelope]:
        began = perf_counter()
        self._pipe.write(line)
        while True:
            reply = self._pipe.read_line()
            seconds = perf_counter() - began
            envelope = self._decode(reply, Envelope)
            if envelope.method is None:
                return seconds, envelope

    def _result(self, envelope: Envelope, method: str) -> msgspec.Raw:
        if envelope.id != self._last_id:
            wrong = f"answered {method} with id {envelope.id}, not {self._last_id}"
            raise self.failure(wrong)
        if bytes(envelope.error) or not bytes(envelope.result):
            reason = bytes(envelope.error)[:300].decode() or "neither result nor error"
            raise self.failure(f"answered {method} with an error: {reason}")
        return envelope.result

    def _decode(self, raw: bytes | msgspec.Raw, kind: type[T]) -> T:
        try:
            return msgspec.json.decode(raw, type=kind)
        except msgspec.DecodeError as exc:
            start = bytes(raw)[:300]
            raise self.failure(f"sent a malformed message ({exc}): {start!r}") from exc


def encode_line(message: Mapping[str, object]) -> bytes:
    """Return a JSON-RPC message as one line."""
    return msgspec.json.encode({"jsonrpc": "2.0", **message}) + b"\n"
