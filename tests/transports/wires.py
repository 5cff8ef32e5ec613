"""One client of each transport that exchanges raw bytes and collects the notifications between the
replies.
"""

import json
import signal
import socket
import subprocess
from collections.abc import Callable, Iterator
from http.client import HTTPConnection, HTTPResponse
from pathlib import Path
from threading import Thread
from typing import IO, Any, Protocol

from tests.processes import TIMEOUT_S, Log, end_with_parent, polymnia_command

JSON = dict[str, Any]

LISTEN = "subscriptions/listen"
_PREFIX = "io.modelcontextprotocol/"
_ON_HTTP = ("--transport", "http", "--bind", "127.0.0.1:0")
_WHERE = {
    "stdio": (),
    "tcp": ("--transport", "tcp", "--bind", "127.0.0.1:0"),
    "http": _ON_HTTP,
    "sse": _ON_HTTP,
}
_NAMED_BY = {"tools/call": "name", "prompts/get": "name", "resources/read": "uri"}


class Wire(Protocol):
    """A client of one server."""

    def ask(self, message: bytes) -> bytes:
        """Send a message and return its reply."""

    def tell(self, message: bytes) -> None:
        """Send a message that gets no reply."""

    def end(self) -> list[bytes]:
        """Disconnect, or ask the server to stop.

        Return all messages that were not replies, in order.
        """


class Server:
    """A process that serves a dialect over a store in the directory."""

    def __init__(self, directory: Path, dialect: str, transport: str) -> None:
        store = ("--dialect", dialect, "--store", str(directory / "memory.db"))
        command = polymnia_command("serve", *store, *_WHERE[transport])
        pipe = subprocess.PIPE
        self.process = subprocess.Popen(
            command, cwd=directory, stdin=pipe, stdout=pipe, stderr=pipe, preexec_fn=end_with_parent
        )
        self._log = Log(self.process.stderr)

    @property
    def port(self) -> int:
        """Return the port that the server says it listens on."""
        return self._log.port

    def stop(self) -> None:
        self.process.send_signal(signal.SIGTERM)

    def wait(self) -> int:
        """Wait until the process has ended and return its exit status."""
        return self.process.wait(TIMEOUT_S)

    def end(self) -> None:
        """Kill the process and close its pipes, in any state that the test left it in."""
        self.process.kill()
        self.process.wait()
        self._log.join()
        for pipe in (self.process.stdin, self.process.stdout):
            _there(pipe).close()


class Lines:
    """One message a line, over pipes or a socket."""

    def __init__(self, write: IO[bytes], read: IO[bytes]) -> None:
        self._write, self._read = write, read
        self._told: list[bytes] = []

    def ask(self, message: bytes) -> bytes:
        self.tell(message)
        for line in self._read:
            if _is_reply(line):
                return line.rstrip(b"\n")
            self._told.append(line.rstrip(b"\n"))
        raise AssertionError("the server closed the connection")

    def tell(self, message: bytes) -> None:
        self._write.write(message + b"\n")
        self._write.flush()

    def end(self) -> list[bytes]:
        return [*self._told, *(line.rstrip(b"\n") for line in self._read)]


class Stdio(Lines):
    def __init__(self, server: Server) -> None:
        self._input = _there(server.process.stdin)
        super().__init__(self._input, _there(server.process.stdout))

    def end(self) -> list[bytes]:
        self._input.close()
        return super().end()


class Tcp(Lines):
    def __init__(self, server: Server) -> None:
        self._server = server
        self._socket = socket.create_connection(("127.0.0.1", server.port), timeout=TIMEOUT_S)
        super().__init__(self._socket.makefile("wb"), self._socket.makefile("rb"))

    def end(self) -> list[bytes]:
        self._socket.shutdown(socket.SHUT_WR)
        told = super().end()
        for item in (self._write, self._read, self._socket):
            item.close()
        self._server.stop()
        return told


class StreamableHttp:
    """One POST for each message, and a stream for each session or request that listens."""

    def __init__(self, server: Server) -> None:
        self._server = server
        self._port = server.port
        self._session: dict[str, str] = {}
        self._told: list[bytes] = []
        self._listeners: list[Thread] = []

    def ask(self, message: bytes) -> bytes:
        response = self._post(message)
        self._note_session(response)
        if response.headers["content-type"] == "text/event-stream":
            *told, reply = events(response)
            self._told.extend(told)
            return reply
        return response.read()

    def tell(self, message: bytes) -> None:
        response = self._post(message)
        if response.headers["content-type"] == "text/event-stream":
            self._listen(response)
        else:
            assert (response.status, response.read()) == (202, b"")

    def end(self) -> list[bytes]:
        self._server.stop()
        for listener in self._listeners:
            listener.join(TIMEOUT_S)
        return self._told

    def _post(self, message: bytes) -> HTTPResponse:
        return self._request("POST", message, {**self._session, **_routing(message)})

    def _request(self, method: str, body: bytes, headers: dict[str, str]) -> HTTPResponse:
        kinds = {
            "Content-Type": "application/json",
            "Accept": "application/json, text/event-stream",
        }
        connection = HTTPConnection("127.0.0.1", self._port, timeout=TIMEOUT_S)
        connection.request(method, "/mcp", body, {**kinds, "Connection": "close", **headers})
        return connection.getresponse()

    def _note_session(self, response: HTTPResponse) -> None:
        if identifier := response.headers["mcp-session-id"]:
            self._session = {"Mcp-Session-Id": identifier}
            self._listen(self._request("GET", b"", self._session))

    def _listen(self, response: HTTPResponse) -> None:
        """Read a stream on a thread until it ends."""
        assert response.status == 200
        listener = Thread(target=lambda: self._told.extend(events(response)))
        self._listeners.append(listener)
        listener.start()


class LegacySse:
    """One stream for all messages of the server, and a path to post to."""

    def __init__(self, server: Server) -> None:
        self._server = server
        self._port = server.port
        connection = HTTPConnection("127.0.0.1", self._port, timeout=TIMEOUT_S)
        connection.request("GET", "/sse", headers={"Accept": "text/event-stream"})
        self._events = events(connection.getresponse())
        self._place = next(self._events).decode()
        self._told: list[bytes] = []

    def ask(self, message: bytes) -> bytes:
        status, body = self._post(message)
        if status == 400:  # what cannot be parsed is refused at once
            return body
        for event in self._events:
            if _is_reply(event):
                return event
            self._told.append(event)
        raise AssertionError("the server closed the connection")

    def tell(self, message: bytes) -> None:
        status, _ = self._post(message)
        assert status == 202

    def _post(self, message: bytes) -> tuple[int, bytes]:
        connection = HTTPConnection("127.0.0.1", self._port, timeout=TIMEOUT_S)
        connection.request(
            "POST",
            self._place,
            message,
            {"Content-Type": "application/json", "Connection": "close"},
        )
        response = connection.getresponse()
        body = response.read()
        connection.close()
        return response.status, body

    def end(self) -> list[bytes]:
        self._server.stop()
        return [*self._told, *self._events]


WIRES: dict[str, Callable[[Server], Wire]] = {
    "stdio": Stdio,
    "tcp": Tcp,
    "http": StreamableHttp,
    "sse": LegacySse,
}


def events(response: HTTPResponse) -> Iterator[bytes]:
    """Yield the data of each event of a stream that has any."""
    for line in response:
        data = line.removeprefix(b"data: ").rstrip(b"\n") if line.startswith(b"data: ") else b""
        if data:
            yield data


def _there(pipe: IO[bytes] | None) -> IO[bytes]:
    assert pipe is not None
    return pipe


def _is_reply(message: bytes) -> bool:
    return "method" not in json.loads(message)


def _routing(message: bytes) -> dict[str, str]:
    """Return the headers that repeat the revision, method and name of a stateless request."""
    try:
        request = json.loads(message)
        version = request["params"]["_meta"][f"{_PREFIX}protocolVersion"]
    except (ValueError, KeyError, TypeError):
        return {}
    headers = {"Mcp-Protocol-Version": version, "Mcp-Method": request["method"]}
    about = request["params"].get(_NAMED_BY.get(request["method"], ""))
    return headers | ({} if about is None else {"Mcp-Name": about})
