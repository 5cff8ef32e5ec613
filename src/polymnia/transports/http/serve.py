"""Running the server: the socket, the event loop, and a stop that finishes the running requests."""

import asyncio
import logging
import signal
import socket
import sys
import time
from collections.abc import Callable, Mapping
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing
from functools import partial
from types import FrameType
from typing import Any, cast

import uvicorn
from msgspec import Struct
from starlette.types import ASGIApp

from polymnia.auth.grants import Grants
from polymnia.mcp.server import Server
from polymnia.transports.address import BACKLOG, TrustedProxies
from polymnia.transports.http.connection import MAX_CONNECTIONS, Connections, HttpConnection
from polymnia.transports.http.context import HttpContext
from polymnia.transports.http.guard import RequestGuard
from polymnia.transports.http.request import ByteBudget
from polymnia.transports.http.routes import make_app
from polymnia.transports.http.sessions import HttpSessions
from polymnia.transports.http.workers import Workers

logger = logging.getLogger(__name__)

# Many threads: writes that wait for the disk share a commit.
WORKER_THREADS = 32
# Reads wait for nothing but the interpreter, for which more threads only compete.
READER_THREADS = 4
# Bytes of messages of all clients that are held at once.
MAX_MESSAGES_BYTES = 256 * 1024 * 1024
# How long a stopping server waits for running requests.
STOP_TIMEOUT_S = 30
# How often the server looks for idle sessions and silent connections.
CHECK_INTERVAL_S = 1.0
# Failures of the event loop, such as running out of descriptors, are logged at most this often.
LOOP_LOG_INTERVAL_S = 10.0


class HttpOptions(Struct, frozen=True, kw_only=True):
    """How to run a server."""

    limit: int
    max_sessions: int = 10_000
    idle: float = 1800.0
    metrics: bool = False
    # What clients are told about the identity provider, or else our own authorization server.
    provider: Mapping[str, Any] | None = None
    grants: Grants | None = None
    # The path of the public URL, such as /memory; empty if there is none.
    public_path: str = ""
    # Proxies that say which client a request comes from.
    proxies: TrustedProxies = TrustedProxies()
    # The URL of the store whose size is measured.
    store: str = ""


def serve_http(
    servers: Mapping[str, Server],
    chosen: str,
    listeners: list[socket.socket],
    guard: RequestGuard,
    options: HttpOptions,
    *,
    check: Callable[[], None],
    make_ui: Callable[[HttpContext], ASGIApp] | None = None,
) -> None:
    """Serve until a signal asks to stop, then finish the running requests.

    `make_ui` returns the web interface.
    """
    connections = Connections(_connection_limit())
    readers = Workers("polymnia-reader", usual=READER_THREADS, limit=WORKER_THREADS)
    writers = Workers("polymnia-writer", usual=WORKER_THREADS, limit=WORKER_THREADS)
    with (
        ThreadPoolExecutor(WORKER_THREADS, "polymnia-page") as pool,
        closing(readers),
        closing(writers),
    ):
        context = HttpContext(
            guard=guard,
            sessions=HttpSessions(limit=options.max_sessions, idle_s=options.idle),
            connections=connections,
            readers=readers,
            writers=writers,
            pool=pool,
            max_message_bytes=options.limit,
            budget=ByteBudget(max(MAX_MESSAGES_BYTES, 2 * options.limit)),
            public_path=options.public_path,
            proxies=options.proxies,
        )
        app = make_app(
            servers,
            chosen,
            context,
            check=check,
            shows_metrics=options.metrics,
            provider=options.provider,
            grants=options.grants,
            store=options.store,
            ui=None if make_ui is None else make_ui(context),
        )
        config = uvicorn.Config(
            app,
            # uvicorn only calls it to make a protocol, so a partial function is enough.
            http=cast(type[asyncio.Protocol], partial(HttpConnection, connections)),
            ws="none",
            lifespan="off",
            log_config=None,
            access_log=False,
            server_header=False,
            proxy_headers=False,
            # One connection is accepted per turn of the loop, so that a failure to accept is
            # reported once, not once per waiting connection. `startup` makes the queue longer.
            backlog=1,
            timeout_keep_alive=75,
            timeout_graceful_shutdown=5,
        )
        _HttpServer(config, context).run(sockets=listeners)


class _HttpServer(uvicorn.Server):
    """uvicorn's server, which also looks after the sessions and stops in order."""

    def __init__(self, config: uvicorn.Config, context: HttpContext) -> None:
        super().__init__(config)
        self._context = context
        self._checks: asyncio.Task[None] | None = None

    def handle_exit(self, sig: int, frame: FrameType | None) -> None:
        """Stop in order, or at once when asked again.

        The signal goes no further: the store must still be closed.
        """
        self.force_exit = self.should_exit and sig == signal.SIGINT
        self.should_exit = True

    async def startup(self, sockets: list[socket.socket] | None = None) -> None:
        loop = asyncio.get_running_loop()
        loop.set_exception_handler(_LoopLog().handle)
        await super().startup(sockets=sockets)
        for sock in sockets or ():
            sock.listen(BACKLOG)
        self._checks = loop.create_task(self._check_regularly())

    async def shutdown(self, sockets: list[socket.socket] | None = None) -> None:
        if self._checks is not None:
            self._checks.cancel()
        try:
            async with asyncio.timeout(STOP_TIMEOUT_S):
                await self._context.stop()
        except TimeoutError:
            logger.warning("stopped while %d requests were running", self._context.running)
            self._context.end_all()
        await super().shutdown(sockets=sockets)

    async def _check_regularly(self) -> None:
        """End idle sessions, silent connections, and sessions of clients no longer admitted."""
        while True:
            self._context.loop_lag_s = await measure_lag(CHECK_INTERVAL_S)
            now = time.monotonic()
            self._context.sessions.expire()
            self._context.end_unadmitted()
            self._context.budget.disconnect_stuck(now)
            self._context.connections.check(now)


async def measure_lag(interval_s: float, clock: Callable[[], float] = time.monotonic) -> float:
    """Sleep for an interval. Return how much longer it took because the event loop was busy."""
    started = clock()
    await asyncio.sleep(interval_s)
    return max(0.0, clock() - started - interval_s)


class _LoopLog:
    """Logs failures of the event loop, each kind at most once per interval."""

    def __init__(self) -> None:
        self._logged_at: dict[str, float] = {}

    def handle(self, loop: asyncio.AbstractEventLoop, details: dict[str, Any]) -> None:
        """Log one failure: a line if the system is out of resources, a traceback otherwise."""
        message, exc = str(details.get("message")), details.get("exception")
        now = time.monotonic()
        if now - self._logged_at.get(message, -LOOP_LOG_INTERVAL_S) < LOOP_LOG_INTERVAL_S:
            return
        self._logged_at[message] = now
        if isinstance(exc, OSError):
            logger.error("%s: %s", message, exc)
        else:
            loop.default_exception_handler(details)


def _connection_limit() -> int:
    """Return how many connections the descriptors allow, after raising their limit if needed."""
    if sys.platform == "win32":
        return MAX_CONNECTIONS
    import resource

    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    if soft == resource.RLIM_INFINITY:
        return MAX_CONNECTIONS
    target = MAX_CONNECTIONS + 512
    if hard != resource.RLIM_INFINITY:
        target = min(target, hard)
    if soft < target:
        soft = target
        resource.setrlimit(resource.RLIMIT_NOFILE, (soft, hard))
    # The store, the log and the event loop need some as well.
    return max(1, min(MAX_CONNECTIONS, soft - 128))
