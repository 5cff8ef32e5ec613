"""What operators ask of a server: whether it is alive, whether it can work, what it has done."""

import logging
import time
from collections import Counter
from collections.abc import Awaitable, Callable, Mapping, MutableMapping
from typing import Any

from polymnia.errors import PolymniaError, Refused
from polymnia.transports.http.context import HttpContext
from polymnia.transports.http.request import CONNECTION, Message, Receive, Request, Send

logger = logging.getLogger("polymnia.access")

Scope = MutableMapping[str, Any]
App = Callable[[Scope, Receive, Send], Awaitable[None]]
_BUCKETS_S = (0.001, 0.005, 0.025, 0.1, 0.5, 2.5, 10.0)
_TEXT = {"content-type": "text/plain; charset=utf-8"}


class Operations:
    """The outermost application: sends requests to their paths, counts and logs them, and answers health checks."""

    def __init__(
        self,
        routes: Mapping[str, App],
        not_found: App,
        context: HttpContext,
        *,
        check: Callable[[], None],
        metrics: bool,
    ) -> None:
        """`routes` are the applications by path. `check` raises if the store cannot be read."""
        self._routes = routes
        self._not_found = not_found
        self._context = context
        self._check = check
        self._health = {"/healthz": self._healthz, "/readyz": self._readyz}
        self._has_metrics = metrics
        self._is_ready = True
        self._requests: Counter[tuple[str, int]] = Counter()
        self._durations: Counter[float] = Counter()
        self._seconds = 0.0
        self._open = 0

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        connection = self._context.connections.get(scope["client"])
        if connection is None:
            return  # the client left before its request was looked at
        scope[CONNECTION] = connection
        with connection.serving():
            is_read = scope["method"] in ("GET", "HEAD")
            if is_read and scope["path"] in self._health:
                await self._health[scope["path"]](Request(scope, receive, send))
            elif self._context.connections.is_full and not connection.is_admitted:
                refusal = Refused(503, "too many connections; try again later", headers={"connection": "close"})
                await Request(scope, receive, send).refuse(refusal)
            elif is_read and self._has_metrics and scope["path"] == "/metrics":
                await self._metrics(Request(scope, receive, send))
            else:
                await self._count(scope, receive, send)

    async def _count(self, scope: Scope, receive: Receive, send: Send) -> None:
        started = time.perf_counter()
        status = 0

        async def send_noting_status(message: Message) -> None:
            nonlocal status
            if message["type"] == "http.response.start":
                status = message["status"]
            await send(message)

        self._open += 1
        try:
            app = self._routes.get(scope["path"], self._not_found)
            await app(scope, receive, send_noting_status)
        finally:
            self._open -= 1
            seconds = time.perf_counter() - started
            self._note(scope["method"], status, seconds)
            if logger.isEnabledFor(logging.INFO):
                # Clients choose other paths: they may hold a secret, or a forged line of this log.
                path = scope["path"] if scope["path"] in self._routes else "(another path)"
                logger.info("%s %s %d %.1f ms", scope["method"], path, status, seconds * 1000)

    def _note(self, method: str, status: int, seconds: float) -> None:
        self._requests[method, status] += 1
        self._seconds += seconds
        self._durations[next((each for each in _BUCKETS_S if seconds <= each), float("inf"))] += 1

    async def _healthz(self, request: Request) -> None:
        await request.respond(200, b"ok\n", _TEXT)

    async def _readyz(self, request: Request) -> None:
        """Say whether the store can be read. A stopping server is not ready."""
        try:
            self._context.check_open()
            await self._context.run(self._check)
        except Refused as exc:
            await request.respond(503, f"{exc}\n".encode(), _TEXT)
            return
        except PolymniaError as exc:
            self._log_not_ready(exc)
            await request.respond(503, b"the store cannot be read; the server's log says why\n", _TEXT)
            return
        self._is_ready = True
        await request.respond(200, b"ready\n", _TEXT)

    def _log_not_ready(self, exc: PolymniaError) -> None:
        """Log the reason once: anybody may ask, and as often as they like."""
        if self._is_ready:
            logger.error("not ready: %s", exc)
        self._is_ready = False

    async def _metrics(self, request: Request) -> None:
        try:
            self._context.guard.check(request)
        except Refused as refusal:
            await request.refuse(refusal)
            return
        await request.respond(200, self._exposition().encode(), {"content-type": "text/plain; version=0.0.4"})

    def _exposition(self) -> str:
        lines = ["# TYPE polymnia_http_requests_total counter"]
        for (method, status), count in sorted(self._requests.items()):
            lines.append(f'polymnia_http_requests_total{{method="{method}",status="{status}"}} {count}')
        lines.append("# TYPE polymnia_http_request_seconds histogram")
        total = 0
        for bound in (*_BUCKETS_S, float("inf")):
            total += self._durations[bound]
            name = "+Inf" if bound == float("inf") else f"{bound:g}"
            lines.append(f'polymnia_http_request_seconds_bucket{{le="{name}"}} {total}')
        lines += [
            f"polymnia_http_request_seconds_sum {self._seconds:.6f}",
            f"polymnia_http_request_seconds_count {total}",
            "# TYPE polymnia_sessions gauge",
            f"polymnia_sessions {len(self._context.sessions)}",
            "# TYPE polymnia_connections gauge",
            f"polymnia_connections {len(self._context.connections)}",
            "# TYPE polymnia_http_requests_open gauge",
            f"polymnia_http_requests_open {self._open}",
            "# TYPE polymnia_requests_running gauge",
            f"polymnia_requests_running {self._context.running}",
        ]
        return "\n".join(lines) + "\n"
