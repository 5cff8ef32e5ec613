"""A real server on a port, and clients that send it plain bytes and requests."""

import http.client
import json
import os
import signal
import socket
import subprocess
import sys
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from types import TracebackType
from typing import Any, Self

from msgspec import Struct

from tests.processes import TIMEOUT_S, Log, end_with_parent

JSON = dict[str, Any]

LATEST = "2025-11-25"
STATELESS = "2026-07-28"
ACCEPT = "application/json, text/event-stream"
PREFIX = "io.modelcontextprotocol/"


class Running:
    """`polymnia serve` in its own process, with more flags and settings in its environment."""

    def __init__(
        self,
        store: Path | str,
        *flags: str,
        transport: str = "http",
        dialect: str = "reference",
        program: str = "polymnia",
        ready: bool = True,
        settings: Mapping[str, str] | None = None,
    ) -> None:
        command = [
            sys.executable,
            "-m",
            program,
            "serve",
            "--store",
            str(store),
            "--dialect",
            dialect,
        ]
        command += [
            "--transport",
            transport,
            *([] if "--bind" in flags else ["--bind", "127.0.0.1:0"]),
            *flags,
        ]
        environment = {**os.environ, "POLYMNIA_CONFIG": os.devnull + ".none", **(settings or {})}
        self.popen = subprocess.Popen(
            command, stderr=subprocess.PIPE, env=environment, preexec_fn=end_with_parent
        )
        self._log = Log(self.popen.stderr)
        try:
            self.port = self._log.port
            if ready and transport == "http":
                with Web(self.port) as web:
                    assert web.send("GET", "/healthz").status == 200
        except BaseException:
            self.popen.kill()
            self.popen.wait()
            raise

    @property
    def log(self) -> str:
        """Return what the server has written to standard error so far."""
        return self._log.text

    def wait_for(self, *texts: str) -> str:
        """Wait for a log line with one of the texts and return it; fail when none comes."""
        return self._log.wait_for(*texts)

    def stop(self) -> int:
        """Ask the server to stop and return its exit status."""
        self.popen.send_signal(signal.SIGTERM)
        return self.wait()

    def wait(self) -> int:
        """Wait until the server has ended and return its exit status."""
        status = self.popen.wait(2 * TIMEOUT_S)
        self._log.join()
        return status

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, exc: BaseException | None, tb: TracebackType | None
    ) -> None:
        if self.popen.poll() is None:
            self.popen.terminate()
            try:
                self.popen.wait(TIMEOUT_S)
            except subprocess.TimeoutExpired:
                self.popen.kill()
                self.popen.wait()
        self._log.join()


class Answer(Struct):
    """The response to one HTTP request."""

    status: int
    headers: Mapping[str, str]
    body: bytes

    @property
    def json(self) -> Any:
        """Return the JSON of the body, or of the last event in the body."""
        if self.headers.get("content-type", "").startswith("text/event-stream"):
            return events(self.body)[-1]
        return json.loads(self.body)


class Web:
    """A client that keeps one HTTP connection open."""

    def __init__(self, port: int, token: str | None = None, **headers: str) -> None:
        self._connection = http.client.HTTPConnection("127.0.0.1", port, timeout=TIMEOUT_S)
        self.headers = {"Content-Type": "application/json", "Accept": ACCEPT, **headers}
        if token is not None:
            self.headers["Authorization"] = f"Bearer {token}"

    def send(self, method: str, path: str, body: bytes | None = None, **headers: str) -> Answer:
        """Send one request and return the whole response."""
        response = self.open(method, path, body, **headers)
        return Answer(response.status, _lower(response), response.read())

    def open(
        self, method: str, path: str, body: bytes | None = None, **headers: str
    ) -> http.client.HTTPResponse:
        """Send one request and return a response whose body is still to be read."""
        given = {name.replace("_", "-"): value for name, value in headers.items()}
        self._connection.request(method, path, body, {**self.headers, **given})
        return self._connection.getresponse()

    def post(self, message: Any, path: str = "/mcp", **headers: str) -> Answer:
        return self.send("POST", path, json.dumps(message).encode(), **headers)

    def close(self) -> None:
        self._connection.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, exc: BaseException | None, tb: TracebackType | None
    ) -> None:
        self.close()


class Talk(Web):
    """A client with a session, opened when the client is created."""

    def __init__(
        self,
        port: int,
        token: str | None = None,
        *,
        path: str = "/mcp",
        revision: str = LATEST,
        **headers: str,
    ) -> None:
        super().__init__(port, token, **headers)
        self.path = path
        self.greeting = self.post(initialize(revision), path)
        if "mcp-session-id" in self.greeting.headers:
            self.headers["Mcp-Session-Id"] = self.greeting.headers["mcp-session-id"]
            self.headers["Mcp-Protocol-Version"] = revision

    @property
    def id(self) -> str:
        return self.headers["Mcp-Session-Id"]

    def ask(self, method: str, **params: Any) -> Any:
        """Send a request and return its reply."""
        return self.post(request(method, **params), self.path).json

    def call(self, tool: str, **arguments: Any) -> Any:
        """Call a tool and return its result."""
        reply = self.ask("tools/call", name=tool, arguments=arguments)
        assert "result" in reply, reply
        return reply["result"]


class Line:
    """A client on a TCP connection, one JSON message a line."""

    def __init__(self, port: int, token: str | None = None) -> None:
        self.socket = socket.create_connection(("127.0.0.1", port), timeout=TIMEOUT_S)
        self._lines = self.socket.makefile("rb")
        self._meta = {} if token is None else {"polymnia/token": token}

    def ask(self, message: JSON) -> Any:
        """Send a request and return its reply; skip the notifications before it."""
        message = {
            **message,
            "params": {
                **message["params"],
                "_meta": {**message["params"].get("_meta", {}), **self._meta},
            },
        }
        self.say(message)
        return next(item for item in iter(self.hear, None) if "id" in item)

    def say(self, message: Any) -> None:
        self.socket.sendall(json.dumps(message).encode() + b"\n")

    def hear(self) -> Any:
        """Return the next message; None when the server has closed the connection."""
        try:
            line = self._lines.readline()
        except ConnectionError:
            return None
        return json.loads(line) if line else None

    def close(self) -> None:
        self._lines.close()
        self.socket.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, exc: BaseException | None, tb: TracebackType | None
    ) -> None:
        self.close()


class Events:
    """A stream of server-sent events, read as they come."""

    def __init__(self, response: http.client.HTTPResponse) -> None:
        self.response = response
        # The id of the last event.
        self.id = ""

    def next(self) -> tuple[str, str] | None:
        """Return the name and data of the next event; None when the stream has ended."""
        name, data = "", ""
        while True:
            try:
                line = self.response.readline().decode()
            except (ConnectionError, http.client.IncompleteRead):
                return None
            if not line:
                return None
            if line == "\n" and data:
                return name, data
            field, _, value = line.rstrip("\n").partition(": ")
            self.id = value if field == "id" else self.id
            name, data = (value if field == "event" else name), (value if field == "data" else data)

    def message(self) -> Any:
        """Return the message in the next event; None when the stream has ended."""
        found = self.next()
        return None if found is None else json.loads(found[1])


class Legacy:
    """A client of the HTTP+SSE transport: a stream, and posts to the path that the stream names."""

    def __init__(
        self, port: int, token: str | None = None, *, path: str = "/sse", **headers: str
    ) -> None:
        self.web = Web(port, token, **headers)
        self._stream = Web(port, token, Accept="text/event-stream", **headers)
        self.response = self._stream.open("GET", path)
        self.events = Events(self.response)
        self.place = ""
        if self.response.status == 200:
            named = self.events.next()
            assert named is not None
            assert named[0] == "endpoint"
            self.place = named[1]

    def ask(self, message: Any, **headers: str) -> Any:
        """Send a request and return its reply; skip the notifications before it."""
        answer = self.post(message, **headers)
        assert answer.status == 202, answer
        return next(item for item in iter(self.events.message, None) if "method" not in item)

    def post(self, message: Any, **headers: str) -> Answer:
        return self.web.post(message, self.place, **headers)

    def close(self) -> None:
        self.response.close()
        self._stream.close()
        self.web.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, exc: BaseException | None, tb: TracebackType | None
    ) -> None:
        self.close()


@contextmanager
def listening(talk: Talk) -> Iterator[Events]:
    """Open the stream of a session's notifications."""
    with Web(talk._connection.port) as web:
        web.headers = {**talk.headers, "Accept": "text/event-stream"}
        response = web.open("GET", talk.path)
        assert response.status == 200, response.read()
        yield Events(response)
        response.close()


def request(method: str, identifier: Any = 1, /, **params: Any) -> JSON:
    return {"jsonrpc": "2.0", "id": identifier, "method": method, "params": params}


def initialize(revision: str = LATEST, name: str = "tester") -> JSON:
    info = {"name": name, "version": "1"}
    return request("initialize", protocolVersion=revision, capabilities={}, clientInfo=info)


def call(tool: str, identifier: Any = 1, /, **arguments: Any) -> JSON:
    return request("tools/call", identifier, name=tool, arguments=arguments)


def creation(*names: str, text: str = "known") -> JSON:
    """Return the arguments that create entities."""
    return {
        "entities": [
            {"name": name, "entityType": "thing", "observations": [text]} for name in names
        ]
    }


def stateless(message: JSON, **meta: Any) -> tuple[JSON, dict[str, str]]:
    """Return the request as clients without a session send it, and the headers that go with it."""
    about = {
        f"{PREFIX}protocolVersion": STATELESS,
        f"{PREFIX}clientCapabilities": {},
        f"{PREFIX}clientInfo": {"name": "tester", "version": "1"},
        **meta,
    }
    params = {**message["params"], "_meta": about}
    headers = {"Mcp_Protocol_Version": STATELESS, "Mcp_Method": message["method"]}
    if (named := params.get("name", params.get("uri"))) is not None:
        headers["Mcp_Name"] = named
    return {**message, "params": params}, headers


def events(body: bytes) -> list[Any]:
    """Return the messages of a stream that has ended."""
    return [
        json.loads(line[6:])
        for line in body.decode().splitlines()
        if line.startswith("data: ") and line[6:]
    ]


def is_refused(reply: Any) -> bool:
    """Tell whether a reply is anything but a tool's success."""
    return "result" not in reply or bool(reply["result"].get("isError"))


def text_of(reply: Any) -> str:
    """Return the text of a tool's result or of an error."""
    return str(
        reply["error"]["message"] if "error" in reply else reply["result"]["content"][0]["text"]
    )


def raw(port: int, data: bytes, *, host: str = "127.0.0.1") -> bytes:
    """Send the bytes and return everything until the server closes the connection."""
    with socket.create_connection((host, port), timeout=TIMEOUT_S) as connection:
        connection.sendall(data)
        return rest_of(connection)


def rest_of(connection: socket.socket) -> bytes:
    """Read a connection to its end."""
    parts = []
    try:
        while part := connection.recv(1 << 16):
            parts.append(part)
    except ConnectionError:
        pass
    return b"".join(parts)


def _lower(response: http.client.HTTPResponse) -> dict[str, str]:
    return {name.lower(): value for name, value in response.getheaders()}


def metrics_of(server: Running, token: str | None = None) -> dict[str, float]:
    """Return the value of each metric by its name and labels."""
    with Web(server.port, token) as web:
        text = web.send("GET", "/metrics").body.decode()
    samples = [line.rpartition(" ") for line in text.splitlines() if not line.startswith("#")]
    return {name: float(value) for name, _, value in samples}
