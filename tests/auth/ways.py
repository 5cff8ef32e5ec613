"""Clients over every transport and kind of session, with one interface.

Send a message, get its reply.
"""

import json
from typing import Any, Protocol

from tests.transports.running import JSON, Legacy, Line, Talk, Web, initialize, stateless

REFUSED = {"error": {"code": -32001, "message": "rejected login"}}


class Way(Protocol):
    """A client of the server."""

    def ask(self, message: JSON) -> Any:
        """Return the reply, or REFUSED."""

    def close(self) -> None:
        """Close the connections."""


class OverHttp:
    """A session; the workspace is in the header of its first request."""

    def __init__(self, port: int, token: str | None, workspace: str | None, path: str) -> None:
        headers = {} if workspace is None else {"X-Memory-Workspace": workspace}
        self._talk = Talk(port, token, path=path, **headers)
        self._talk.headers.pop("X-Memory-Workspace", None)

    def ask(self, message: JSON) -> Any:
        return answer_of(self._talk.post(message, self._talk.path))

    def close(self) -> None:
        self._talk.close()


class NamingWorkspace(OverHttp):
    """A session in which each request names a workspace in the header."""

    def __init__(self, port: int, token: str | None, workspace: str | None, path: str) -> None:
        super().__init__(port, token, None, path)
        if workspace is not None:
            self._talk.headers["X-Memory-Workspace"] = workspace


class InBatches(OverHttp):
    """A session of the only revision with batches; every message is sent in one."""

    def __init__(self, port: int, token: str | None, workspace: str | None, path: str) -> None:
        headers = {} if workspace is None else {"X-Memory-Workspace": workspace}
        self._talk = Talk(port, token, path=path, revision="2025-03-26", **headers)
        self._talk.headers.pop("X-Memory-Workspace", None)

    def ask(self, message: JSON) -> Any:
        ping = {"jsonrpc": "2.0", "id": "ping", "method": "ping"}
        replies = answer_of(self._talk.post([ping, message], self._talk.path))
        return (
            replies
            if replies is REFUSED
            else next(reply for reply in replies if reply["id"] == message["id"])
        )


class Stateless:
    """No session; the workspace is in every request's `_meta`."""

    def __init__(self, port: int, token: str | None, workspace: str | None, path: str) -> None:
        self._web = Web(port, token)
        self._path = path
        self._meta = {"polymnia/sessionId": "own"} | (
            {} if workspace is None else {"polymnia/workspace": workspace}
        )

    def ask(self, message: JSON) -> Any:
        whole, headers = stateless(message, **self._meta)
        return answer_of(self._web.post(whole, self._path, **headers))

    def close(self) -> None:
        self._web.close()


class StatelessByHeader(Stateless):
    """No session; the workspace is in every request's header."""

    def __init__(self, port: int, token: str | None, workspace: str | None, path: str) -> None:
        super().__init__(port, token, None, path)
        if workspace is not None:
            self._web.headers["X-Memory-Workspace"] = workspace


class OverSse:
    """The legacy HTTP+SSE transport."""

    def __init__(self, port: int, token: str | None, workspace: str | None, path: str) -> None:
        headers = {} if workspace is None else {"X-Memory-Workspace": workspace}
        self._legacy = Legacy(port, token, path=path.removesuffix("/mcp") + "/sse", **headers)

    def ask(self, message: JSON) -> Any:
        return self._legacy.ask(message) if self._legacy.response.status == 200 else REFUSED

    def close(self) -> None:
        self._legacy.close()


class OverTcp:
    """A TCP connection; the workspace is in every request's `_meta`, as in stateless requests."""

    def __init__(self, port: int, token: str | None, workspace: str | None, path: str) -> None:
        self._line = Line(port, token)
        self._workspace = workspace
        self._line.ask(initialize())

    def ask(self, message: JSON) -> Any:
        if self._workspace is not None:
            message, _ = stateless(message, **{"polymnia/workspace": self._workspace})
        return self._line.ask(message)

    def close(self) -> None:
        self._line.close()


WAYS: dict[str, type[Any]] = {
    "session": OverHttp,
    "session, workspace by request": NamingWorkspace,
    "batch": InBatches,
    "stateless": Stateless,
    "stateless, workspace by header": StatelessByHeader,
    "sse": OverSse,
    "tcp": OverTcp,
}


class Opened:
    """Closes a client at the end of a block."""

    def __init__(self, way: Way) -> None:
        self._way = way

    def __enter__(self) -> Way:
        return self._way

    def __exit__(self, *failure: object) -> None:
        self._way.close()


def answer_of(answer: Any) -> Any:
    """Return the reply in an HTTP response, or REFUSED for a rejected login."""
    if answer.status in (401, 400, 404) and "result" not in (found := json.loads(answer.body)):
        return REFUSED if answer.status != 404 or found["error"]["code"] == -32001 else found
    return answer.json
