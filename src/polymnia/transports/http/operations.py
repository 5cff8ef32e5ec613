"""What operators ask of a server: is it alive, can it work, what has it done."""

import logging
import time
from collections import Counter
from collections.abc import Awaitable, Callable, Collection, MutableMapping
from typing import Any

from polymnia.errors import PolymniaError, Refused
from polymnia.transports.http.desk import Desk
from polymnia.transports.http.visit import Message, Receive, Send, Visit

logger = logging.getLogger("polymnia.access")

Scope = MutableMapping[str, Any]
App = Callable[[Scope, Receive, Send], Awaitable[None]]
_BUCKETS = (0.001, 0.005, 0.025, 0.1, 0.5, 2.5, 10.0)
_TEXT = {"content-type": "text/plain; charset=utf-8"}


class Operations:
    """Counts what passes through, and answers for the server's health."""

    def __init__(
        self, app: App, desk: Desk, check: Callable[[], None], *, metrics: bool, paths: Collection[str]
    ) -> None:
        """`check` raises when the store cannot be read; `paths` are those that the log may name."""
        self._app = app
        self._desk = desk
        self._check = check
        self._paths = frozenset(paths)
        self._own = {"/healthz": self._healthz, "/readyz": self._readyz}
        if metrics:
            self._own["/metrics"] = self._metrics
        self._requests: Counter[tuple[str, int]] = Counter()
        self._durations: Counter[float] = Counter()
        self._seconds = 0.0
        self._open = 0

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http":
            await self._app(scope, receive, send)
            return
        own = self._own.get(scope["path"])
        if own is not None and scope["method"] in ("GET", "HEAD"):
            await own(Visit(scope, receive, send))
            return
        await self._counted(scope, receive, send)

    async def _counted(self, scope: Scope, receive: Receive, send: Send) -> None:
        began = time.perf_counter()
        status = 0

        async def noting(message: Message) -> None:
            nonlocal status
            if message["type"] == "http.response.start":
                status = message["status"]
            await send(message)

        self._open += 1
        try:
            await self._app(scope, receive, noting)
        finally:
            self._open -= 1
            took = time.perf_counter() - began
            self._note(scope["method"], status, took)
            # Of other paths somebody else decides what they hold: a secret, or a line that looks like one of this log.
            path = scope["path"] if scope["path"] in self._paths else "(another path)"
            logger.info("%s %s %d %.1f ms", scope["method"], path, status, took * 1000)

    def _note(self, method: str, status: int, took: float) -> None:
        self._requests[method, status] += 1
        self._seconds += took
        self._durations[next((each for each in _BUCKETS if took <= each), float("inf"))] += 1

    async def _healthz(self, visit: Visit) -> None:
        await visit.answer(200, b"ok\n", _TEXT)

    async def _readyz(self, visit: Visit) -> None:
        """Whether the store can be read; a server that stops is not ready."""
        try:
            self._desk.check_open()
            await self._desk.run(self._check)
        except Refused as exc:
            await visit.answer(503, f"{exc}\n".encode(), _TEXT)
            return
        except PolymniaError as exc:
            # Where the store is, and what is wrong with it, is not for everybody who can ask.
            logger.error("not ready: %s", exc)
            await visit.answer(503, b"the store cannot be read; the server's log says why\n", _TEXT)
            return
        await visit.answer(200, b"ready\n", _TEXT)

    async def _metrics(self, visit: Visit) -> None:
        try:
            self._desk.gate.check_place(visit)
        except Refused as refusal:
            await visit.refuse(refusal)
            return
        await visit.answer(200, self._exposition().encode(), {"content-type": "text/plain; version=0.0.4"})

    def _exposition(self) -> str:
        lines = ["# TYPE polymnia_http_requests_total counter"]
        for (method, status), count in sorted(self._requests.items()):
            lines.append(f'polymnia_http_requests_total{{method="{method}",status="{status}"}} {count}')
        lines.append("# TYPE polymnia_http_request_seconds histogram")
        so_far = 0
        for bound in (*_BUCKETS, float("inf")):
            so_far += self._durations[bound]
            name = "+Inf" if bound == float("inf") else f"{bound:g}"
            lines.append(f'polymnia_http_request_seconds_bucket{{le="{name}"}} {so_far}')
        lines += [
            f"polymnia_http_request_seconds_sum {self._seconds:.6f}",
            f"polymnia_http_request_seconds_count {so_far}",
            "# TYPE polymnia_sessions gauge",
            f"polymnia_sessions {len(self._desk.sessions)}",
            "# TYPE polymnia_http_requests_open gauge",
            f"polymnia_http_requests_open {self._open}",
            "# TYPE polymnia_requests_in_hand gauge",
            f"polymnia_requests_in_hand {self._desk.in_hand}",
        ]
        return "\n".join(lines) + "\n"
