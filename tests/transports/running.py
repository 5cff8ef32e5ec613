"""A real server on a port, and plain clients for it."""

import http.client
import json
import os
import re
import signal
import socket
import subprocess
import sys
import threading
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from types import TracebackType
from typing import Any, Self

from msgspec import Struct

JSON = dict[str, Any]

# A test fails when it waits longer than this, in seconds.
PATIENCE = 30
LATEST = "2025-11-25"
STATELESS = "2026-07-28"
ACCEPT = "application/json, text/event-stream"
PREFIX = "io.modelcontextprotocol/"


class Running:
    """`polymnia serve` in a process of its own, with flags and environment settings."""

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
        command = [sys.executable, "-m", program, "serve", "--store", str(store), "--dialect", dialect]
        command += ["--transport", transport, *([] if "--bind" in flags else ["--bind", "127.0.0.1:0"]), *flags]
        environment = {**os.environ, "POLYMNIA_CONFIG": os.devnull + ".none", **(settings or {})}
        self.popen = subprocess.Popen(command, stderr=subprocess.PIPE, text=True, env=environment)
        self._said: list[str] = []
        self._news = threading.Condition()
        self._reader = threading.Thread(target=self._read, daemon=True)
        self._reader.start()
        try:
            self.port = self._started()
            if ready and transport == "http":
                with Web(self.port) as web:
                    assert web.send("GET", "/healthz").status == 200
        except BaseException:
            self.popen.kill()
            self.popen.wait()
            raise

    @property
    def log(self) -> str:
        """What it has written to standard error so far."""
        return "".join(self._said)

    def wait_for(self, *texts: str) -> str:
        """The first line with one of the texts; fails when none comes."""
        with self._news:
            self._news.wait_for(lambda: self._found(texts) or self._said[-1:] == [""], PATIENCE)
        line = self._found(texts)
        assert line, f"none of {texts} in: {self.log}"
        return line

    def stop(self) -> int:
        """Ask it to stop; gives its exit status."""
        self.popen.send_signal(signal.SIGTERM)
        return self.wait()

    def wait(self) -> int:
        """Its exit status, once it has ended."""
        status = self.popen.wait(2 * PATIENCE)
        self._reader.join()
        return status

    def __enter__(self) -> Self:
        return self

    def __exit__(self, kind: type[BaseException] | None, exc: BaseException | None, tb: TracebackType | None) -> None:
        if self.popen.poll() is None:
            self.popen.terminate()
            try:
                self.popen.wait(PATIENCE)
            except subprocess.TimeoutExpired:
                self.popen.kill()
                self.popen.wait()
        self._reader.join()

    def _started(self) -> int:
        """The port it says it serves on."""
        found = re.search(r"listening on .*:(\d+)|http://.*:(\d+)/mcp", self.wait_for("serving", "listening"))
        assert found, self.log
        return int(found[1] or found[2])

    def _read(self) -> None:
        assert self.popen.stderr is not None
        with self.popen.stderr as pipe:
            for line in iter(pipe.readline, ""):
                self._add(line)
        self._add("")

    def _add(self, line: str) -> None:
        with self._news:
            self._said.append(line)
            self._news.notify_all()

    def _found(self, texts: tuple[str, ...]) -> str | None:
        return next((line for line in self._said if any(text in line for text in texts)), None)


class Answer(Struct):
    """What came back for one HTTP request."""

    status: int
    headers: Mapping[str, str]
    body: bytes

    @property
    def json(self) -> Any:
        """The JSON of it, or of the last event in it."""
        if self.headers.get("content-type", "").startswith("text/event-stream"):
            return events(self.body)[-1]
        return json.loads(self.body)


class Web:
    """One client's connection, which it keeps."""

    def __init__(self, port: int, token: str | None = None, **headers: str) -> None:
        self._connection = http.client.HTTPConnection("127.0.0.1", port, timeout=PATIENCE)
        self.headers = {"Content-Type": "application/json", "Accept": ACCEPT, **headers}
        if token is not None:
            self.headers["Authorization"] = f"Bearer {token}"

    def send(self, method: str, path: str, body: bytes | None = None, **headers: str) -> Answer:
        """One request and what it gets."""
        response = self.open(method, path, body, **headers)
        return Answer(response.status, _lower(response), response.read())

    def open(self, method: str, path: str, body: bytes | None = None, **headers: str) -> http.client.HTTPResponse:
        """One request and its answer to be read bit by bit."""
        given = {name.replace("_", "-"): value for name, value in headers.items()}
        self._connection.request(method, path, body, {**self.headers, **given})
        return self._connection.getresponse()

    def post(self, message: Any, path: str = "/mcp", **headers: str) -> Answer:
        return self.send("POST", path, json.dumps(message).encode(), **headers)

    def close(self) -> None:
        self._connection.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, kind: type[BaseException] | None, exc: BaseException | None, tb: TracebackType | None) -> None:
        self.close()


class Talk(Web):
    """A client that keeps a session."""

    def __init__(
        self, port: int, token: str | None = None, *, path: str = "/mcp", revision: str = LATEST, **headers: str
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
        """The reply to a request."""
        return self.post(request(method, **params), self.path).json

    def call(self, tool: str, **arguments: Any) -> Any:
        """The result of a tool call."""
        reply = self.ask("tools/call", name=tool, arguments=arguments)
        assert "result" in reply, reply
        return reply["result"]


class Line:
    """A client on a TCP connection."""

    def __init__(self, port: int, token: str | None = None) -> None:
        self.socket = socket.create_connection(("127.0.0.1", port), timeout=PATIENCE)
        self._lines = self.socket.makefile("rb")
        self._meta = {} if token is None else {"polymnia/token": token}

    def ask(self, message: JSON) -> Any:
        """The reply to a request; notifications before it are passed over."""
        message = {
            **message,
            "params": {**message["params"], "_meta": {**message["params"].get("_meta", {}), **self._meta}},
        }
        self.say(message)
        return next(each for each in iter(self.hear, None) if "id" in each)

    def say(self, message: Any) -> None:
        self.socket.sendall(json.dumps(message).encode() + b"\n")

    def hear(self) -> Any:
        """The next message; None when the server has hung up."""
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

    def __exit__(self, kind: type[BaseException] | None, exc: BaseException | None, tb: TracebackType | None) -> None:
        self.close()


class Events:
    """A stream of events as they come."""

    def __init__(self, response: http.client.HTTPResponse) -> None:
        self.response = response

    def next(self) -> tuple[str, str] | None:
        """The name and data of the next event; None when the stream has ended."""
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
            name, data = (value if field == "event" else name), (value if field == "data" else data)

    def message(self) -> Any:
        """The message in the next event; None when the stream has ended."""
        found = self.next()
        return None if found is None else json.loads(found[1])


class Legacy:
    """A client of the older transport: a stream, and posts to the place it names."""

    def __init__(self, port: int, token: str | None = None, *, path: str = "/sse", **headers: str) -> None:
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
        """The reply to a request; notifications before it are passed over."""
        answer = self.post(message, **headers)
        assert answer.status == 202, answer
        return next(each for each in iter(self.events.message, None) if "method" not in each)

    def post(self, message: Any, **headers: str) -> Answer:
        return self.web.post(message, self.place, **headers)

    def close(self) -> None:
        self.response.close()
        self._stream.close()
        self.web.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, kind: type[BaseException] | None, exc: BaseException | None, tb: TracebackType | None) -> None:
        self.close()


@contextmanager
def listening(talk: Talk) -> Iterator[Events]:
    """The stream of a session's notifications."""
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
    """The arguments that create entities."""
    return {"entities": [{"name": each, "entityType": "thing", "observations": [text]} for each in names]}


def stateless(message: JSON, **meta: Any) -> tuple[JSON, dict[str, str]]:
    """The request as clients without a session send it, and the headers that go with it."""
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
    """The messages in a stream that has ended."""
    return [json.loads(line[6:]) for line in body.decode().splitlines() if line.startswith("data: ")]


def is_refused(reply: Any) -> bool:
    """Whether a reply is anything but a tool's success."""
    return "result" not in reply or bool(reply["result"].get("isError"))


def text_of(reply: Any) -> str:
    """What a reply says, whether it is a tool's or an error."""
    return str(reply["error"]["message"] if "error" in reply else reply["result"]["content"][0]["text"])


def raw(port: int, data: bytes, *, host: str = "127.0.0.1") -> bytes:
    """Everything that comes back for the bytes until the server hangs up."""
    with socket.create_connection((host, port), timeout=PATIENCE) as connection:
        connection.sendall(data)
        return rest_of(connection)


def rest_of(connection: socket.socket) -> bytes:
    """Everything that still comes on a connection."""
    parts = []
    try:
        while part := connection.recv(1 << 16):
            parts.append(part)
    except ConnectionError:
        pass
    return b"".join(parts)


def _lower(response: http.client.HTTPResponse) -> dict[str, str]:
    return {name.lower(): value for name, value in response.getheaders()}
