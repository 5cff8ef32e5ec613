"""What operators need: health checks, metrics as Prometheus text, and the access log."""

import asyncio
import logging
import time
from bisect import bisect_left
from collections import Counter
from collections.abc import Awaitable, Callable, Iterable, Iterator, Mapping, MutableMapping
from functools import partial
from math import inf
from typing import Any

from polymnia.errors import PolymniaError, Refused
from polymnia.mcp.message import Answer
from polymnia.stores.size import store_bytes
from polymnia.transports.http.context import HttpContext
from polymnia.transports.http.request import (
    CLOSE,
    CONNECTION,
    RECORD,
    REQUEST_ID,
    Receive,
    Request,
    Send,
)
from polymnia.transports.request_log import RequestRecord, choose_request_id

logger = logging.getLogger(__name__)

Scope = MutableMapping[str, Any]
App = Callable[[Scope, Receive, Send], Awaitable[None]]
Endpoint = Callable[[Request], Awaitable[None]]
# The path of the web interface, and the key in a request's scope under which it names the page.
UI_PATH = "/ui"
PAGE = "polymnia.page"
_TEXT = {"content-type": "text/plain; charset=utf-8"}
_METRICS = {"content-type": "text/plain; version=0.0.4"}
_BUCKETS_S = (0.001, 0.005, 0.025, 0.1, 0.5, 2.5, 10.0, inf)


class Operations:
    """The outermost application: routes, counts and logs requests, and answers health checks."""

    def __init__(
        self,
        routes: Mapping[str, Endpoint],
        not_found: Endpoint,
        context: HttpContext,
        metrics: "Metrics",
        *,
        check: Callable[[], None],
        shows_metrics: bool,
        ui: Endpoint | None = None,
    ) -> None:
        """Serve the endpoints at their paths, and `ui` at /ui.

        `check` raises if the store cannot be read.
        """
        self._routes = routes
        self._not_found = not_found
        self._ui = ui
        self._context = context
        self._metrics = metrics
        self._check = check
        self._health = {"/healthz": self._healthz, "/readyz": self._readyz}
        self._shows_metrics = shows_metrics
        self._is_ready = True

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        connection = self._context.connections.get(scope["client"])
        if connection is None:
            return  # the client left before its request was handled
        path = scope["path"] = self._own_path(scope["path"])
        scope[CONNECTION] = connection
        client = self._context.proxies.client_of(connection.peer[0], scope["headers"])
        scope[RECORD] = RequestRecord(client=client)
        request = Request(scope, receive, send)
        is_read = request.method in ("GET", "HEAD")
        connection.begin_request(client)
        try:
            if is_read and path in self._health:
                await self._health[path](request)
            elif self._context.connections.is_full and not connection.is_admitted:
                await request.refuse(
                    Refused(503, "too many connections; try again later", headers=CLOSE)
                )
            elif is_read and self._shows_metrics and path == "/metrics":
                await self._send_metrics(request)
            else:
                await self._serve(request)
        finally:
            connection.end_request()

    def _own_path(self, path: str) -> str:
        """Return the path without that of the public URL, which some proxies remove."""
        prefix = self._context.public_path
        if prefix and path not in self._routes and path.startswith(f"{prefix}/"):
            return path.removeprefix(prefix)
        return path

    async def _serve(self, request: Request) -> None:
        """Give the request to its endpoint. Count and log it."""
        record = request.record
        if REQUEST_ID in request.headers:
            record.id = choose_request_id(request.header(REQUEST_ID))
        started = time.perf_counter()
        self._metrics.open_requests += 1
        try:
            await self._find_endpoint(request.path)(request)
        finally:
            self._metrics.open_requests -= 1
            seconds = time.perf_counter() - started
            self._metrics.count(request.method, seconds, record)
            text = f"{request.method} {self._log_path(request)}"
            record.take_late = partial(self._count_late, asyncio.get_running_loop(), text, record)
            is_failed = record.status >= 400 or record.is_failed
            record.log(f"{text} {record.status}", seconds, is_failed=is_failed)

    def _log_path(self, request: Request) -> str:
        if request.path in self._routes:
            return request.path
        # Any other path is text of the client's choice: it may hold a secret or a forged line.
        page: str = request.scope.get(PAGE, "(another path)")
        return page

    def _count_late(
        self,
        loop: asyncio.AbstractEventLoop,
        text: str,
        request: RequestRecord,
        message: Answer,
    ) -> None:
        """Count and log a call whose client left. This runs on the thread of the call."""
        loop.call_soon_threadsafe(self._metrics.count_call, message)
        late = RequestRecord(
            client=request.client, id=request.id, principal=request.principal, messages=[message]
        )
        late.log(text, message.seconds, is_failed=late.is_failed)

    def _find_endpoint(self, path: str) -> Endpoint:
        if self._ui is not None and (path == UI_PATH or path.startswith(f"{UI_PATH}/")):
            return self._ui
        return self._routes.get(path, self._not_found)

    async def _healthz(self, request: Request) -> None:
        await request.respond(200, b"ok\n", _TEXT)

    async def _readyz(self, request: Request) -> None:
        """Say whether the store can be read. A stopping server is not ready."""
        try:
            self._context.check_open()
            await self._context.run(self._check)
        except Refused as exc:
            await request.respond(503, f"{exc}\n".encode(), _TEXT)
        except PolymniaError as exc:
            if self._is_ready:  # log it once: any client may ask, any number of times
                logger.error("not ready: %s", exc)
            self._is_ready = False
            text = b"the store cannot be read; the server's log says why\n"
            await request.respond(503, text, _TEXT)
        else:
            self._is_ready = True
            await request.respond(200, b"ready\n", _TEXT)

    async def _send_metrics(self, request: Request) -> None:
        try:
            self._context.guard.check(request)
        except Refused as refusal:
            await request.refuse(refusal)
            return
        text = await self._metrics.exposition()
        await request.respond(200, text.encode(), _METRICS)


class Metrics:
    """Counts of requests and tool calls. Used on the event loop only.

    The values of every label are bounded: methods are those of HTTP, tools those of the dialects.
    """

    def __init__(self, context: HttpContext, tools: Iterable[str], store: str) -> None:
        """Count calls of `tools`. `store` is the store's URL, or "" if its size is not wanted."""
        self._context = context
        self._tools = frozenset(tools)
        self._store = store
        self._requests: Counter[tuple[str, int]] = Counter()
        self._durations: Counter[float] = Counter()
        self._seconds = 0.0
        self._tool_calls: Counter[tuple[str, str]] = Counter()
        self._tool_durations: Counter[tuple[str, float]] = Counter()
        self._tool_seconds: dict[str, float] = {}
        self._rejected_logins = 0
        self.open_requests = 0

    def count(self, method: str, seconds: float, record: RequestRecord) -> None:
        """Count a request and the tool calls in it."""
        self._requests[method, record.status] += 1
        self._seconds += seconds
        self._durations[_BUCKETS_S[bisect_left(_BUCKETS_S, seconds)]] += 1
        self._rejected_logins += record.is_login_rejected
        for message in record.messages:
            self.count_call(message)

    def count_call(self, message: Answer) -> None:
        """Count a tool call."""
        if message.tool in self._tools:
            self._tool_calls[message.tool, message.outcome] += 1
            bound = _BUCKETS_S[bisect_left(_BUCKETS_S, message.seconds)]
            self._tool_durations[message.tool, bound] += 1
            seconds = self._tool_seconds.get(message.tool, 0.0) + message.seconds
            self._tool_seconds[message.tool] = seconds

    async def exposition(self) -> str:
        """Return all metrics as text."""
        size = None
        if self._store:
            size = await self._context.run(partial(store_bytes, self._store))
        lines = [*self._request_lines(), *self._tool_lines(), *self._state_lines(size)]
        return "\n".join(lines) + "\n"

    def _request_lines(self) -> Iterator[str]:
        yield "# TYPE polymnia_http_requests_total counter"
        for (method, status), count in sorted(self._requests.items()):
            yield f'polymnia_http_requests_total{{method="{method}",status="{status}"}} {count}'
        yield "# TYPE polymnia_http_request_seconds histogram"
        yield from _histogram("polymnia_http_request_seconds", "", self._durations, self._seconds)

    def _tool_lines(self) -> Iterator[str]:
        yield "# TYPE polymnia_tool_calls_total counter"
        for (tool, outcome), count in sorted(self._tool_calls.items()):
            yield f'polymnia_tool_calls_total{{tool="{tool}",outcome="{outcome}"}} {count}'
        yield "# TYPE polymnia_tool_seconds histogram"
        for tool, seconds in sorted(self._tool_seconds.items()):
            durations = {bound: self._tool_durations[tool, bound] for bound in _BUCKETS_S}
            yield from _histogram("polymnia_tool_seconds", f'tool="{tool}"', durations, seconds)

    def _state_lines(self, size: int | None) -> Iterator[str]:
        yield "# TYPE polymnia_rejected_logins_total counter"
        yield f"polymnia_rejected_logins_total {self._rejected_logins}"
        gauges = {
            "polymnia_sessions": str(len(self._context.sessions)),
            "polymnia_connections": str(len(self._context.connections)),
            "polymnia_http_requests_open": str(self.open_requests),
            "polymnia_requests_running": str(self._context.running),
            "polymnia_event_loop_lag_seconds": f"{self._context.loop_lag_s:.6f}",
        }
        if size is not None:
            gauges["polymnia_store_bytes"] = str(size)
        for name, value in gauges.items():
            yield f"# TYPE {name} gauge"
            yield f"{name} {value}"


def _histogram(
    name: str, label: str, durations: Mapping[float, int], seconds: float
) -> Iterator[str]:
    """Yield the lines of a histogram.

    Prometheus counts in each bucket what the smaller ones have.
    """
    comma = "," if label else ""
    labels = f"{{{label}}}" if label else ""
    total = 0
    for bound in _BUCKETS_S:
        total += durations[bound]
        text = "+Inf" if bound == inf else f"{bound:g}"
        yield f'{name}_bucket{{{label}{comma}le="{text}"}} {total}'
    yield f"{name}_sum{labels} {seconds:.6f}"
    yield f"{name}_count{labels} {total}"
