"""What operators need: health checks, metrics and the access log."""

import asyncio
import logging
import time
from collections.abc import Awaitable, Callable, Mapping, MutableMapping
from functools import partial
from typing import Any

from polymnia.errors import PolymniaError, Refused
from polymnia.mcp.handled import Handled
from polymnia.transports.http.context import HttpContext
from polymnia.transports.http.metrics import Metrics
from polymnia.transports.http.request import CONNECTION, RECORD, REQUEST_ID, Receive, Request, Send
from polymnia.transports.request_log import RequestRecord, choose_request_id

logger = logging.getLogger(__name__)

Scope = MutableMapping[str, Any]
App = Callable[[Scope, Receive, Send], Awaitable[None]]
Endpoint = Callable[[Request], Awaitable[None]]
# The path of the web interface, and the key in a request's scope under which it says which page was asked for.
UI_PATH = "/ui"
PAGE = "polymnia.page"
_TEXT = {"content-type": "text/plain; charset=utf-8"}


class Operations:
    """The outermost application: sends requests to their paths, counts and logs them, and answers health checks."""

    def __init__(
        self,
        routes: Mapping[str, Endpoint],
        not_found: Endpoint,
        context: HttpContext,
        metrics: Metrics,
        *,
        check: Callable[[], None],
        shows_metrics: bool,
        ui: Endpoint | None = None,
    ) -> None:
        """`routes` are the endpoints by path; `ui` is that of /ui. `check` raises if the store cannot be read."""
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
        scope[RECORD] = RequestRecord(client=connection.peer[0])
        request = Request(scope, receive, send)
        connection.begin_request()
        try:
            is_read = request.method in ("GET", "HEAD")
            if is_read and path in self._health:
                await self._health[path](request)
            elif self._context.connections.is_full and not connection.is_admitted:
                refusal = Refused(
                    503, "too many connections; try again later", headers={"connection": "close"}
                )
                await request.refuse(refusal)
            elif is_read and self._shows_metrics and path == "/metrics":
                await self._send_metrics(request)
            else:
                await self._count(request)
        finally:
            connection.end_request()

    def _own_path(self, path: str) -> str:
        """Return the path without the prefix of the public URL, which some proxies remove and others keep."""
        prefix = self._context.public_path
        is_prefixed = prefix and path not in self._routes and path.startswith(f"{prefix}/")
        return path.removeprefix(prefix) if is_prefixed else path

    async def _count(self, request: Request) -> None:
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
            # Any other path is text of the client's choice: it may hold a secret or a forged log line.
            path = (
                request.path
                if request.path in self._routes
                else request.scope.get(PAGE, "(another path)")
            )
            text = f"{request.method} {path}"
            record.take_late = partial(self._count_late, asyncio.get_running_loop(), text, record)
            record.log(
                f"{text} {record.status}",
                seconds,
                is_failed=record.status >= 400 or record.is_failed,
            )

    def _count_late(
        self, loop: asyncio.AbstractEventLoop, text: str, request: RequestRecord, handled: Handled
    ) -> None:
        """Count and log a call whose client did not wait for it. This runs on the thread of the call."""
        loop.call_soon_threadsafe(self._metrics.count_call, handled)
        late = RequestRecord(
            client=request.client, id=request.id, principal=request.principal, handled=[handled]
        )
        late.log(text, handled.seconds, is_failed=late.is_failed)

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
            return
        except PolymniaError as exc:
            self._log_not_ready(exc)
            await request.respond(
                503, b"the store cannot be read; the server's log says why\n", _TEXT
            )
            return
        self._is_ready = True
        await request.respond(200, b"ready\n", _TEXT)

    def _log_not_ready(self, exc: PolymniaError) -> None:
        """Log the reason once: anybody may ask, any number of times."""
        if self._is_ready:
            logger.error("not ready: %s", exc)
        self._is_ready = False

    async def _send_metrics(self, request: Request) -> None:
        try:
            self._context.guard.check(request)
        except Refused as refusal:
            await request.refuse(refusal)
            return
        text = await self._metrics.exposition()
        await request.respond(200, text.encode(), {"content-type": "text/plain; version=0.0.4"})
