"""Running it: the socket, the event loop, and a stop that finishes the work in hand."""

import asyncio
import logging
import signal
import socket
import sys
import time
from collections.abc import Callable, Mapping
from concurrent.futures import ThreadPoolExecutor
from types import FrameType
from typing import Any

import uvicorn
from msgspec import Struct

from polymnia.errors import SettingsError
from polymnia.mcp.server import Server
from polymnia.transports.http.app import make_app
from polymnia.transports.http.connection import Connection, drop_dawdlers
from polymnia.transports.http.desk import Desk
from polymnia.transports.http.gate import Gate
from polymnia.transports.http.relay import Relay
from polymnia.transports.http.sessions import Sessions
from polymnia.transports.http.visit import Room
from polymnia.transports.http.workers import Crew

logger = logging.getLogger(__name__)

# Requests that wait for the disk share a commit, so there may be many of them.
_THREADS = 32
_MOST_CONNECTIONS = 2000
# Bytes of messages that are held at once, whoever sent them.
_MOST_HELD = 256 * 1024 * 1024
# How long work in hand may take when the server is asked to stop, in seconds.
_LAST_PATIENCE = 30
# And how long answers that are made may then take to go out.
_FAREWELL = 5
# How often idle sessions and housekeeping are looked after, in seconds.
_ROUNDS = 1.0


class Options(Struct, frozen=True, kw_only=True):
    """How a server is to be run."""

    limit: int
    most_sessions: int = 10_000
    idle: float = 1800.0
    metrics: bool = False
    metadata: Mapping[str, Any] | None = None
    crew: Crew | None = None


def listen(host: str, port: int) -> socket.socket:
    """A socket that listens. Raises SettingsError."""
    family = socket.AF_INET6 if ":" in host else socket.AF_INET
    try:
        return socket.create_server((host, port), family=family, backlog=1024)
    except OSError as exc:
        raise SettingsError(f"cannot listen on {host}:{port}: {exc.strerror or exc}") from exc


def serve_http(
    servers: Mapping[str, Server],
    chosen: str,
    listeners: list[socket.socket],
    gate: Gate,
    options: Options,
    *,
    check: Callable[[], None],
) -> None:
    """Serve until a signal asks to stop; then finish the work in hand."""
    _raise_descriptor_limit()
    with ThreadPoolExecutor(_THREADS, "polymnia") as pool:
        sessions = Sessions(
            most=options.most_sessions, idle=options.idle, prefix=options.crew.prefix if options.crew else ""
        )
        room = Room(max(_MOST_HELD, 2 * options.limit))
        desk = Desk(gate=gate, sessions=sessions, pool=pool, limit=options.limit, room=room)
        app = make_app(servers, chosen, desk, check=check, metrics=options.metrics, metadata=options.metadata)
        if options.crew is not None:
            app = Relay(app, options.crew, desk)
        config = uvicorn.Config(
            app,
            http=Connection,
            ws="none",
            lifespan="off",
            log_config=None,
            access_log=False,
            server_header=False,
            proxy_headers=False,
            limit_concurrency=_MOST_CONNECTIONS,
            timeout_keep_alive=75,
            timeout_graceful_shutdown=_FAREWELL,
        )
        _Running(config, desk, list(servers.values()), options.crew).run(sockets=listeners)


class _Running(uvicorn.Server):
    """uvicorn's server, which also looks after the sessions and stops in order."""

    def __init__(self, config: uvicorn.Config, desk: Desk, servers: list[Server], crew: Crew | None) -> None:
        super().__init__(config)
        self._desk = desk
        self._servers = servers
        self._crew = crew
        self._rounds: asyncio.Task[None] | None = None

    def handle_exit(self, sig: int, frame: FrameType | None) -> None:
        """Stop in order, or at once when asked again; the signal goes no further, as the store must still be closed."""
        self.force_exit = self.should_exit and sig == signal.SIGINT
        self.should_exit = True

    async def startup(self, sockets: list[socket.socket] | None = None) -> None:
        await super().startup(sockets=sockets)
        self._rounds = asyncio.get_running_loop().create_task(self._look_after())

    async def shutdown(self, sockets: list[socket.socket] | None = None) -> None:
        if self._rounds is not None:
            self._rounds.cancel()
        try:
            async with asyncio.timeout(_LAST_PATIENCE):
                await self._desk.stop()
        except TimeoutError:
            logger.warning("stopped with %d requests in hand", self._desk.in_hand)
            self._desk.end_all()
        await super().shutdown(sockets=sockets)

    async def _look_after(self) -> None:
        """Let go of those who rest too long, dawdle or are no longer welcome, and use pauses for housekeeping."""
        while True:
            await asyncio.sleep(_ROUNDS)
            self._desk.sessions.expire()
            self._desk.dismiss()
            self._desk.room.relieve(time.monotonic())
            drop_dawdlers(self.server_state.connections, asyncio.get_running_loop().time())
            if self._crew is not None and self._crew.is_orphaned:
                self.should_exit = True
            for server in self._servers:
                if server.untidy and not self._desk.in_hand:
                    await self._desk.run(server.rest)


def _raise_descriptor_limit() -> None:
    """As many connections as the system allows this process."""
    if sys.platform == "win32":
        return
    import resource

    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    wanted = _MOST_CONNECTIONS + 512
    if soft != resource.RLIM_INFINITY and soft < wanted:
        most = wanted if hard == resource.RLIM_INFINITY else min(wanted, hard)
        resource.setrlimit(resource.RLIMIT_NOFILE, (most, hard))
