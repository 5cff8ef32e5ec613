"""What operators need: the access log, health checks, and metrics as Prometheus text."""

import asyncio
import logging
import time
from bisect import bisect_left
from collections import Counter
from collections.abc import Awaitable, Callable, Iterable, Iterator, Mapping
from functools import partial
from math import inf

from starlette.requests import Request
from starlette.responses import PlainTextResponse
from starlette.routing import Route
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from polymnia.errors import PolymniaError, Refused, StoreError
from polymnia.mcp.message import Answer
from polymnia.mcp.server import KINDS, Server
from polymnia.stores.open import store_gauges
from polymnia.telemetry import is_tracing, span
from polymnia.transports.http.context import HttpContext
from polymnia.transports.http.request import CLOSE, CONNECTION, RECORD, REQUEST_ID, HttpRequest
from polymnia.transports.request_log import RequestRecord, choose_request_id

logger = logging.getLogger(__name__)

# The path of the web interface, and the key in a request's scope under which it names the page.
UI_PATH = "/ui"
PAGE = "polymnia.page"
_BUCKETS_S = (0.001, 0.005, 0.025, 0.1, 0.5, 2.5, 10.0, inf)


class AccessLog:
    """The outermost application: it knows whose each request is, counts it and logs it."""

    def __init__(
        self,
        app: ASGIApp,
        context: HttpContext,
        metrics: "Metrics",
        *,
        endpoints: Mapping[str, ASGIApp],
        known_paths: frozenset[str],
        quiet_paths: frozenset[str],
    ) -> None:
        """`app` answers what is not for one of the `endpoints`.

        Requests for `quiet_paths` are answered always, and neither counted nor logged.
        """
        self._app = app
        self._endpoints = endpoints
        self._context = context
        self._metrics = metrics
        self._known_paths = known_paths
        self._quiet_paths = quiet_paths

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        connections, metrics = self._context.connections, self._metrics
        connection = connections.get(scope["client"])
        if connection is None:
            return  # the client left before its request was handled
        path, prefix = scope["path"], self._context.public_path
        if prefix and path not in self._known_paths and path.startswith(f"{prefix}/"):
            path = scope["path"] = path.removeprefix(prefix)  # some proxies remove it, others not
        client = self._context.proxies.client_of(connection.peer[0], scope["headers"])
        record = RequestRecord(client=client)
        scope[CONNECTION], scope[RECORD] = connection, record

        def send_and_note(message: Message) -> Awaitable[None]:
            if message["type"] == "http.response.start":
                record.status = message["status"]
                message["headers"] = [*message["headers"], (REQUEST_ID, record.id.encode())]
            return send(message)

        method = scope["method"]
        connection.begin_request(client)
        try:
            if path in self._quiet_paths and method in ("GET", "HEAD"):
                await self._app(scope, receive, send_and_note)
                return
            if connections.is_full and not connection.is_admitted:
                full = Refused(503, "too many connections; try again later", headers=CLOSE)
                await HttpRequest(scope, receive, send_and_note).refuse(full)
                return
            for name, value in scope["headers"]:
                if name == REQUEST_ID:
                    record.id = choose_request_id(value.decode("latin-1").strip())
            # The endpoints of dialects are found without the router, which tries route by route.
            app = self._endpoints.get(path, self._app)
            if is_tracing():
                app = _Traced(app, path if path in self._known_paths else "(another path)")
            started = time.perf_counter()
            metrics.open_requests += 1
            try:
                await app(scope, receive, send_and_note)
            finally:
                metrics.open_requests -= 1
                seconds = time.perf_counter() - started
                metrics.count(method, seconds, record)
                if path not in self._known_paths:
                    # It is text of the client's choice: it may hold a secret or a forged line.
                    path = scope.get(PAGE, "(another path)")
                text = f"{method} {path}"
                record.take_late = partial(
                    self._count_late, asyncio.get_running_loop(), text, record
                )
                is_failed = record.status >= 400 or record.is_failed
                record.log(f"{text} {record.status}", seconds, is_failed=is_failed)
        finally:
            connection.end_request()

    def _count_late(
        self, loop: asyncio.AbstractEventLoop, text: str, request: RequestRecord, answer: Answer
    ) -> None:
        """Count and log a call whose client left. This runs on the thread of the call."""
        loop.call_soon_threadsafe(self._metrics.count_call, answer)
        late = RequestRecord(
            client=request.client, id=request.id, principal=request.principal, messages=[answer]
        )
        late.log(text, answer.seconds, is_failed=late.is_failed)


def operator_routes(
    context: HttpContext, check: Callable[[], None], metrics: "Metrics | None"
) -> list[Route]:
    """Return the routes of health checks and, if there are any, of metrics.

    `check` raises if the store cannot be read.
    """
    was_ready = True

    async def healthz(request: Request) -> PlainTextResponse:
        return PlainTextResponse("ok\n")

    async def readyz(request: Request) -> PlainTextResponse:
        """Say whether the store can be read. A stopping server is not ready."""
        nonlocal was_ready
        try:
            context.check_open()
            await context.run(check)
        except Refused as exc:
            return PlainTextResponse(f"{exc}\n", 503)
        except PolymniaError as exc:
            if was_ready:  # log it once: any client may ask, any number of times
                logger.error("not ready: %s", exc)
            was_ready = False
            return PlainTextResponse("the store cannot be read; the server's log says why\n", 503)
        was_ready = True
        return PlainTextResponse("ready\n")

    routes = [Route("/healthz", healthz), Route("/readyz", readyz)]
    if metrics is not None:
        routes.append(Route("/metrics", metrics, methods=["GET"]))
    return routes


class _Traced:
    """An application inside a span."""

    def __init__(self, app: ASGIApp, path: str) -> None:
        """`path` stands in the span's name, so it is a known one."""
        self._app = app
        self._path = path

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        # The headers that name the trace of the client, if it sent any.
        caller = {}
        for name, value in scope["headers"]:
            if name in (b"traceparent", b"tracestate"):
                caller[name.decode()] = value.decode("latin-1")
        with span(f"{scope['method']} {self._path}", caller):
            await self._app(scope, receive, send)


class Metrics:
    """Counts of requests and tool calls. Used on the event loop only.

    The values of every label are bounded: methods are those of HTTP, tools those of the dialects.
    """

    def __init__(
        self,
        context: HttpContext,
        tools: Iterable[str],
        store: str,
        server: Server,
    ) -> None:
        """Count calls of `tools`. `store` is the store's URL, or "" if its size is not wanted.

        `server` knows how many memories wait to be embedded, and which calls were over a limit.
        """
        self._context = context
        self._server = server
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

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Answer a request for the metrics."""
        request = HttpRequest(scope, receive, send)
        try:
            self._context.guard.check(request)
        except Refused as refusal:
            await request.refuse(refusal)
            return
        text = await self.exposition()
        await request.respond(200, text.encode(), {"content-type": "text/plain; version=0.0.4"})

    async def exposition(self) -> str:
        """Return all metrics as text."""
        context = self._context
        lines = ["# TYPE polymnia_http_requests_total counter"]
        for (method, status), count in sorted(self._requests.items()):
            labels = f'method="{method}",status="{status}"'
            lines.append(f"polymnia_http_requests_total{{{labels}}} {count}")
        lines.append("# TYPE polymnia_http_request_seconds histogram")
        lines += _histogram("polymnia_http_request_seconds", "", self._durations, self._seconds)
        lines.append("# TYPE polymnia_tool_calls_total counter")
        for (tool, outcome), count in sorted(self._tool_calls.items()):
            labels = f'tool="{tool}",outcome="{outcome}"'
            lines.append(f"polymnia_tool_calls_total{{{labels}}} {count}")
        lines.append("# TYPE polymnia_tool_seconds histogram")
        for tool, seconds in sorted(self._tool_seconds.items()):
            durations = {bound: self._tool_durations[tool, bound] for bound in _BUCKETS_S}
            lines += _histogram("polymnia_tool_seconds", f'tool="{tool}"', durations, seconds)
        lines.append("# TYPE polymnia_rejected_logins_total counter")
        lines.append(f"polymnia_rejected_logins_total {self._rejected_logins}")
        lines.append("# TYPE polymnia_over_limit_total counter")
        for kind in KINDS:
            count = self._server.limiter.refusals[kind]
            lines.append(f'polymnia_over_limit_total{{limit="{kind}"}} {count}')
        gauges = {
            "polymnia_sessions": str(len(context.sessions)),
            "polymnia_connections": str(len(context.connections)),
            "polymnia_http_requests_open": str(self.open_requests),
            "polymnia_requests_running": str(context.running),
            "polymnia_event_loop_lag_seconds": f"{context.loop_lag_s:.6f}",
            "polymnia_indexing_waiting": str(self._server.workspaces.count_waiting()),
        }
        if self._store:
            try:
                of_store = await context.run(partial(store_gauges, self._store))
                gauges["polymnia_store_up"] = "1"
                for name, number in of_store.items():
                    gauges[f"polymnia_{name}"] = f"{number:.15g}"
            except StoreError:
                gauges["polymnia_store_up"] = "0"
        for name, value in gauges.items():
            lines += [f"# TYPE {name} gauge", f"{name} {value}"]
        return "\n".join(lines) + "\n"


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
