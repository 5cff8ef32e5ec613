"""The composition root: from settings to running parts."""

import gc
import logging
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

from polymnia.dialects import open_dialect
from polymnia.dialects.base import Dialect, NoteRules
from polymnia.engine.memory import Memory
from polymnia.engine.open import first_workspace, open_workspaces
from polymnia.engine.workspaces import Workspaces
from polymnia.errors import BadInput, SettingsError
from polymnia.mcp.server import Server
from polymnia.model import OWNER, Capability
from polymnia.settings import Settings
from polymnia.stores.base import Store, VectorTable
from polymnia.stores.open import store_kind

if TYPE_CHECKING:
    from socket import socket

    from polymnia.auth.door import Door
    from polymnia.engine.semantics import Semantics

logger = logging.getLogger(__name__)

_LEVELS = {"debug": logging.DEBUG, "info": logging.INFO, "warning": logging.WARNING, "error": logging.ERROR}


def serve(settings: Settings) -> None:
    """Serve until the client leaves or a signal asks to stop."""
    configure_logging(settings.log_level)
    if settings.transport == "http":
        _serve_http(settings)
        return
    with served(settings) as servers:
        _transport(settings, servers[settings.dialect])


@contextmanager
def served(settings: Settings) -> Iterator[dict[str, Server]]:
    """Every dialect that was asked for, over the one store, for the length of the block."""
    rules = NoteRules(
        dimension=settings.embedding_dimension,
        # What nobody may change is not cleaned up either.
        persist_sessions=settings.session_persist or settings.read_only,
    )
    dialects = {name: open_dialect(name, rules) for name in (settings.dialect, *settings.dialects)}
    if not settings.read_only:
        _adopt_legacy(settings)
    for dialect in dialects.values():
        _refuse_file_store(dialect, settings.store)
    trash_days = 0 if settings.read_only else settings.trash_days
    with opened_workspaces(
        settings.store,
        settings.workspace,
        trash_days=trash_days,
        read_only=settings.read_only,
        meaning=None if settings.read_only else _meaning(settings),
    ) as workspaces:
        servers = {name: _server(settings, dialect, workspaces) for name, dialect in dialects.items()}
        logging.getLogger("polymnia").addHandler(_ToClients(list(servers.values())))
        for server in servers.values():
            server.start()
        gc.freeze()  # what exists now stays: the collector need not look at it again and again
        try:
            yield servers
        finally:
            for server in servers.values():
                server.stop()


def _server(settings: Settings, dialect: Dialect, workspaces: Workspaces) -> Server:
    first = first_workspace(workspaces, settings.workspace, may_choose=dialect.chooses_workspace)
    return Server(dialect, workspaces, workspace=first)


def _transport(settings: Settings, server: Server) -> None:
    limit = settings.max_message_bytes
    if settings.transport == "tcp":
        from polymnia.transports.tcp import serve_tcp

        serve_tcp(server, settings.address, limit=limit, guard=_door(settings), insecure=settings.insecure)
        return
    from polymnia.transports.stdio import serve_stdio

    if sys.stdin is None or sys.stdout is None:
        raise SettingsError(
            "standard input and output are closed; start it from an MCP client, or with --transport http"
        )
    if sys.stdin.isatty():
        _greet(settings)
    serve_stdio(server, limit=limit, principal=OWNER.restricted(_most(settings)), session=settings.session_id)


def _serve_http(settings: Settings) -> None:
    """Bind before anything else, so that a busy port is the first thing to be said."""
    from polymnia.transports.address import parse_bind, require_hosts, require_origins, require_protection
    from polymnia.transports.http.serve import listen

    host, port = parse_bind(settings.address)
    require_protection(settings.address, host, protected=_door(settings).is_closed, insecure=settings.insecure)
    require_hosts(settings.allow_hosts)
    require_origins(settings.allow_origins)
    listener = listen(host, port)
    shown = f"[{host}]" if ":" in host else host
    own = f"{shown}:{listener.getsockname()[1]}"
    base = settings.public_url.rstrip("/") or f"http://{own}"
    listens = f", listening on {own}" if settings.public_url else ""
    logger.warning("serving %s at %s/mcp%s", settings.dialect, base, listens)
    _work(settings, base, [listener])


def _work(settings: Settings, base: str, listeners: list["socket"]) -> None:
    """Serve on the sockets, in this process."""
    from urllib.parse import urlsplit

    from polymnia.transports.address import is_loopback, parse_bind, require_hosts, require_origins
    from polymnia.transports.http.guard import RequestGuard
    from polymnia.transports.http.serve import Options, serve_http

    host = parse_bind(settings.address)[0]
    door = _door(settings)
    guard = RequestGuard(
        admit=door.admit,
        holds=door.holds,
        hosts=require_hosts((host, urlsplit(base).hostname or host, *settings.allow_hosts)),
        origins=require_origins(settings.allow_origins),
        is_local=is_loopback(host),
        metadata_url=f"{base}/.well-known/oauth-protected-resource" if settings.jwt_issuer else None,
    )
    options = Options(
        limit=settings.max_message_bytes,
        most_sessions=settings.max_sessions,
        idle=settings.session_minutes * 60,
        metrics=settings.metrics,
        metadata=_metadata(settings, base),
    )
    with served(settings) as servers:
        serve_http(servers, settings.dialect, listeners, guard, options, check=servers[settings.dialect].check)


def _metadata(settings: Settings, base: str) -> dict[str, Any] | None:
    """What clients need to get a token from the identity provider."""
    if not settings.jwt_issuer:
        return None
    from polymnia.auth.provider import SCOPES

    return {
        "resource": f"{base}/mcp",
        "authorization_servers": [settings.jwt_issuer],
        "scopes_supported": list(SCOPES),
        "bearer_methods_supported": ["header"],
    }


def _door(settings: Settings) -> "Door":
    from polymnia.auth.door import Door
    from polymnia.auth.open import provider_of, tokens_of

    provider = provider_of(settings.jwt_issuer, settings.jwt_audience, settings.jwt_key)
    return Door(tokens_of(settings.store, settings.tokens), provider=provider, most=_most(settings))


def _most(settings: Settings) -> Capability:
    """What anybody may do at most."""
    return "read" if settings.read_only else "admin"


@contextmanager
def opened(url: str, workspace: str = "") -> Iterator[Store]:
    """The store of a workspace behind the URL for the length of the block; in most stores there is only one.

    Raises BadInput when there are many and none is named.
    """
    with opened_workspaces(url, workspace) as workspaces:
        yield _chosen(workspaces, url, workspace).store


def _chosen(workspaces: Workspaces, url: str, workspace: str) -> Memory:
    name = workspace or workspaces.sole
    if name is None:
        names = ", ".join(each.name for each in workspaces.listed("active")) or "none yet"
        raise BadInput(f"{url} holds several workspaces; name one with --workspace ({names})")
    return workspaces.memory(name)


@contextmanager
def opened_workspaces(
    url: str,
    only: str = "",
    *,
    trash_days: int = 0,
    read_only: bool = False,
    meaning: "Callable[[VectorTable], Semantics] | None" = None,
) -> Iterator[Workspaces]:
    """The workspaces behind the URL for the length of the block; where there is only one, it has that name."""
    workspaces = open_workspaces(url, only, trash_days=trash_days, read_only=read_only, meaning=meaning)
    try:
        yield workspaces
    finally:
        workspaces.close()


def _refuse_file_store(dialect: Dialect, url: str) -> None:
    """Raises SettingsError when the store cannot hold what the dialect's tools keep."""
    if not dialect.any_store and store_kind(url)[0] in ("memory", "jsonl", "binlog"):
        raise SettingsError(
            f"the {dialect.name} dialect needs a data directory or a SQLite file; {url} holds less than its tools keep"
        )


@contextmanager
def remembered(settings: Settings) -> Iterator[Memory]:
    """The memory of these settings for the length of the block; its model is loaded when it is first needed."""
    meaning = _meaning(settings)
    with opened_workspaces(settings.store, settings.workspace) as workspaces:
        memory = _chosen(workspaces, settings.store, settings.workspace)
        if meaning is not None:
            memory.search_by_meaning(meaning)
        try:
            yield memory
        finally:
            memory.close()


def _meaning(settings: Settings) -> "Callable[[VectorTable], Semantics] | None":
    """What begins to search by meaning, when that is first needed; None where nobody wants it. Raises SettingsError."""
    if settings.embedder == "none":
        return None
    if settings.embedder != "local":
        from polymnia.embedders.open import check_embedder

        check_embedder(settings.embedder)
    return partial(_semantics, settings)


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

    def __init__(self, servers: list[Server]) -> None:
        super().__init__(logging.WARNING)
        self._servers = servers

    def emit(self, record: logging.LogRecord) -> None:
        level = "error" if record.levelno >= logging.ERROR else "warning"
        for server in self._servers:
            server.log(level, "polymnia", record.getMessage())


def _adopt_legacy(settings: Settings) -> None:
    """Take over what another program with the same catalogue left where the store will be."""
    kind, path = store_kind(settings.store)
    if settings.dialect == "reference" and settings.store.endswith(".jsonl"):
        from polymnia.stores.files.jsonl import adopt_legacy

        adopt_legacy(Path(settings.store))
    if "vault" in (settings.dialect, *settings.dialects) and kind == "sqlite" and Path(path).is_file():
        from polymnia.stores.sqlite.adopt import adopt_memories

        adopt_memories(path)


def _greet(settings: Settings) -> None:
    sys.stderr.write(
        f"polymnia speaks MCP ({settings.dialect} dialect) on standard input and output; "
        f"the memory is {settings.store}.\n"
        "It is meant to be started by an MCP client: see the README for how to add it to yours.\n"
        "To look inside, end this with Ctrl-D and try `polymnia export` or `polymnia doctor`.\n"
    )
