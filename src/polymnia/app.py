"""The composition root: from settings to running parts."""

import gc
import logging
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

from polymnia.dialects import open_dialect
from polymnia.engine.memory import Memory
from polymnia.errors import SettingsError
from polymnia.mcp.server import Server
from polymnia.settings import Settings
from polymnia.stores import open_store
from polymnia.stores.base import Store, VectorTable

if TYPE_CHECKING:
    from polymnia.engine.semantics import Semantics

_LEVELS = {"debug": logging.DEBUG, "info": logging.INFO, "warning": logging.WARNING, "error": logging.ERROR}


def serve(settings: Settings) -> None:
    """Serve until the client leaves or a signal asks to stop."""
    configure_logging(settings.log_level)
    dialect = open_dialect(settings.dialect)
    if settings.dialect == "reference":
        _adopt_legacy(settings.store)
    with remembered(settings) as memory:
        server = Server(dialect, memory)
        logging.getLogger("polymnia").addHandler(_ToClients(server))
        gc.freeze()  # what exists now stays: the collector need not look at it again and again
        _transport(settings, server)


def _transport(settings: Settings, server: Server) -> None:
    limit = settings.max_message_bytes
    if settings.transport == "tcp":
        from polymnia.transports.tcp import serve_tcp

        serve_tcp(server, settings.bind, limit=limit, insecure=settings.insecure)
        return
    from polymnia.transports.stdio import serve_stdio

    if sys.stdin is None or sys.stdout is None:
        raise SettingsError(
            "standard input and output are closed; start it from an MCP client, or with --transport tcp"
        )
    if sys.stdin.isatty():
        _greet(settings)
    serve_stdio(server, limit=limit)


@contextmanager
def opened(url: str) -> Iterator[Store]:
    """The store behind the URL for the length of the block."""
    store = open_store(url)
    try:
        yield store
    finally:
        store.close()


@contextmanager
def remembered(settings: Settings) -> Iterator[Memory]:
    """The memory of these settings for the length of the block; its model is loaded when it is first needed."""
    if settings.embedder not in ("local", "none"):
        from polymnia.embedders.open import check_embedder

        check_embedder(settings.embedder)
    with opened(settings.store) as store:
        memory = Memory(store)
        if settings.embedder != "none":
            memory.search_by_meaning(partial(_semantics, settings))
        try:
            yield memory
        finally:
            memory.close()


def _semantics(settings: Settings, table: VectorTable) -> "Semantics":
    from polymnia.embedders import open_embedder
    from polymnia.engine.semantics import Semantics

    return Semantics(table, settings.embedder, partial(open_embedder, key=settings.embedder_key))


def configure_logging(level: str) -> None:
    """Log to standard error. Raises SettingsError for a level that does not exist."""
    if level not in _LEVELS:
        raise SettingsError(f"there is no log level {level!r}; use {', '.join(_LEVELS)}")
    logging.basicConfig(stream=sys.stderr, level=_LEVELS[level], format="polymnia: %(levelname)s: %(message)s")


class _ToClients(logging.Handler):
    """Warnings reach the people behind the clients, who may never see standard error."""

    def __init__(self, server: Server) -> None:
        super().__init__(logging.WARNING)
        self._server = server

    def emit(self, record: logging.LogRecord) -> None:
        level = "error" if record.levelno >= logging.ERROR else "warning"
        self._server.log(level, "polymnia", record.getMessage())


def _adopt_legacy(store: str) -> None:
    if store.endswith(".jsonl"):
        from polymnia.stores.files.jsonl import adopt_legacy

        adopt_legacy(Path(store))


def _greet(settings: Settings) -> None:
    sys.stderr.write(
        f"polymnia speaks MCP ({settings.dialect} dialect) on standard input and output; "
        f"the memory is {settings.store}.\n"
        "It is meant to be started by an MCP client: see the README for how to add it to yours.\n"
        "To look inside, end this with Ctrl-D and try `polymnia export` or `polymnia doctor`.\n"
    )
