"""The composition root: from settings to running servers and open stores."""

import gc
import logging
import sys
from collections.abc import Callable, Iterator
from contextlib import ExitStack, closing, contextmanager
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

from polymnia.dialects.base import Dialect, ServerRules
from polymnia.dialects.registry import find_spec, open_dialect
from polymnia.engine.memory import Memory
from polymnia.engine.workspaces import Workspaces, first_workspace, open_workspaces
from polymnia.errors import SettingsError
from polymnia.mcp.asking import RequestStates
from polymnia.mcp.server import RateLimiter, Server
from polymnia.model import OWNER, Capability
from polymnia.model.changes import Quota
from polymnia.settings import Settings
from polymnia.stores.open import (
    adopt_legacy,
    hide_passwords,
    is_in_memory,
    open_web_state,
    store_kind,
    wait_for_store,
)
from polymnia.workspace_choice import open_meaning

if TYPE_CHECKING:
    from polymnia.auth.authenticator import Authenticator
    from polymnia.auth.grants import Grants
    from polymnia.auth.people import People, WebSessions
    from polymnia.auth.provider import Provider
    from polymnia.auth.tokens import Tokens

    OnReady = Callable[[str, WebSessions], None]

logger = logging.getLogger(__name__)
# The address of a server is shown at every level: it may have chosen the port itself.
_start_logger = logging.getLogger(f"{__name__}.start")
_start_logger.setLevel(logging.INFO)


def serve(
    settings: Settings,
    on_ready: "OnReady" = lambda base, sessions: None,
    *,
    requires_login: bool = False,
) -> None:
    """Serve until the client disconnects or a signal asks to stop.

    An HTTP server calls `on_ready` with its URL and the sessions of its web interface before it
    takes requests. With `requires_login`, its web interface asks for a login even if there are no
    tokens.
    """
    with ExitStack() as stack:
        if settings.traces:
            from polymnia.telemetry import start_tracing

            stack.callback(start_tracing())
        if settings.transport != "stdio":
            # Before the port is open: a proxy sends requests to other servers meanwhile.
            wait_for_store(settings.store)
        if settings.transport == "http":
            tokens = stack.enter_context(_open_tokens(settings))
            _serve_http(settings, tokens, on_ready, requires_login)
            return
        serve_lines = _serve_tcp if settings.transport == "tcp" else _serve_stdio
        servers = stack.enter_context(open_servers(settings))
        serve_lines(settings, servers[settings.dialect])


@contextmanager
def open_servers(settings: Settings, tokens: "Tokens | None" = None) -> Iterator[dict[str, Server]]:
    """Yield a started server for every dialect, all over the same store.

    Servers with the same `tokens` take the answers to each other's questions.
    Raise SettingsError if the store cannot hold what the tools of a dialect write.
    """
    rules = ServerRules(
        dimension=settings.embedding_dimension,
        # A read-only server must not delete the notes of earlier sessions.
        persist_sessions=settings.session_persist or settings.read_only,
        toolsets=settings.toolsets,
    )
    dialects = {name: open_dialect(name, rules) for name in settings.served}
    for dialect in dialects.values():
        if not dialect.any_store and store_kind(settings.store)[0] in ("memory", "jsonl", "binlog"):
            raise SettingsError(
                f"the {dialect.name} dialect cannot use {settings.store}: "
                "it needs a data directory, a SQLite file or PostgreSQL"
            )
        legacy = find_spec(dialect.name).legacy
        if legacy and not settings.read_only:
            adopt_legacy(legacy, settings.store)
    if settings.audit_days:
        kind, path = store_kind(settings.store)
        keeps_history = kind in ("directory", "postgres", "sqlite") and not is_in_memory(kind, path)
        if settings.read_only or not keeps_history:
            raise SettingsError(
                "audit_days needs SQLite or PostgreSQL, and a server that may write: "
                "leave out --read-only, or set it to 0"
            )
    opened = open_workspaces(
        settings.store,
        settings.workspace,
        trash_days=0 if settings.read_only else settings.trash_days,
        read_only=settings.read_only,
        meaning=open_meaning(settings),
        secrets=settings.secrets,
        quota=Quota(
            facts=settings.max_facts,
            fact_bytes=settings.max_fact_bytes,
            bytes=settings.max_workspace_bytes,
            workspaces=settings.max_workspaces,
        ),
    )
    limiter = RateLimiter(requests=settings.requests_per_minute, writes=settings.writes_per_minute)
    with closing(opened) as workspaces:
        servers = {
            name: _make_server(settings, dialect, workspaces, limiter)
            for name, dialect in dialects.items()
        }
        if settings.transport == "stdio":
            logging.getLogger("polymnia").addHandler(_ClientLog(list(servers.values())))
        for server in servers.values():
            if tokens is not None and not settings.read_only:
                server.states = RequestStates(tokens.signing_key())
            server.start()
        if not settings.read_only:
            workspaces.on_open(Memory.request_indexing)
        gc.enable()
        gc.freeze()  # these objects live as long as the process: keep the collector away from them
        try:
            yield servers
        finally:
            for server in servers.values():
                server.stop()


def _make_server(
    settings: Settings, dialect: Dialect, workspaces: Workspaces, limiter: RateLimiter
) -> Server:
    """Return the server of a dialect, with the workspace of clients that name none."""
    make = partial(Server, dialect, workspaces, limiter=limiter, audit_days=settings.audit_days)
    if dialect.requires_workspace and not settings.workspace:
        if settings.transport == "stdio":
            raise SettingsError(
                f"the {dialect.name} dialect needs a workspace: name it with --workspace or "
                "POLYMNIA_WORKSPACE; `polymnia workspace create NAME` creates one"
            )
        return make(workspace=None)
    if dialect.find_workspace is not None and workspaces.sole is None:
        # A server for many clients runs in none of their projects.
        directory = Path.cwd() if settings.transport == "stdio" else None
        found = dialect.find_workspace(workspaces, directory)
        workspace = settings.workspace or found
        return make(workspace=workspace)
    may_choose = dialect.chooses_workspace
    first = first_workspace(
        workspaces, settings.workspace, may_choose=may_choose, read_only=settings.read_only
    )
    return make(workspace=first)


def _serve_stdio(settings: Settings, server: Server) -> None:
    from polymnia.transports.stdio import serve_stdio

    if sys.stdin is None or sys.stdout is None:
        raise SettingsError(
            "standard input and output are closed: "
            "start it from an MCP client, or use --transport http"
        )
    if sys.stdin.isatty():
        sys.stderr.write(
            f"polymnia speaks MCP ({settings.dialect} dialect) on standard input and output; "
            f"the memory is {hide_passwords(settings.store)}.\n"
            "An MCP client is supposed to start it: `polymnia install CLIENT` adds it to yours.\n"
            "To look inside, press Ctrl-D and run `polymnia ui`.\n"
        )
    serve_stdio(
        server,
        limit=settings.max_message_bytes,
        principal=OWNER.restrict(_max_capability(settings)),
        session=settings.session_id,
    )


def _serve_tcp(settings: Settings, server: Server) -> None:
    from polymnia.transports.tcp import serve_tcp

    with _open_tokens(settings) as tokens:
        authenticator = _authenticator(settings, tokens, provider_of(settings))
        _warn_if_insecure(settings, authenticator)
        server.workspaces.warm_up()
        serve_tcp(
            server,
            settings.address,
            limit=settings.max_message_bytes,
            guard=authenticator,
            insecure=settings.insecure,
        )


def _serve_http(
    settings: Settings, tokens: "Tokens | None", on_ready: "OnReady", requires_login: bool
) -> None:
    """Serve over HTTP. Listen first, so that a busy port is reported before the store is opened."""
    from tempfile import TemporaryDirectory
    from urllib.parse import urlsplit

    from polymnia.auth.people import WebSessions
    from polymnia.transports import address
    from polymnia.transports.address import parse_proxies
    from polymnia.transports.http.guard import RequestGuard
    from polymnia.transports.http.serve import HttpOptions, serve_http
    from polymnia.web import SiteParts, WebInterface

    # Invalid settings are reported before anything is opened.
    host, port = address.parse_bind(settings.address)
    provider = provider_of(settings)
    authenticator = _authenticator(settings, tokens, provider, is_strict=requires_login)
    public_path = address.parse_public_path(settings.public_url)
    address.require_protection(
        settings.address,
        host,
        settings.public_url,
        protected=authenticator.requires_token,
        insecure=settings.insecure,
    )
    public = urlsplit(settings.public_url)
    allowed_hosts = address.require_hosts((host, *settings.allow_hosts))
    proxies = parse_proxies(settings.trusted_proxies)
    listener = address.listen(host, port, reuse_port=settings.reuse_port)

    port = listener.getsockname()[1]
    own = f"[{host}]:{port}" if ":" in host else f"{host}:{port}"
    base = settings.public_url.rstrip("/") or f"http://{own}"
    if not requires_login:  # who needs a link to log in gets the address with it
        listens = f", listening on {own}" if settings.public_url else ""
        _start_logger.info("serving %s at %s/mcp%s", settings.dialect, base, listens)
    _warn_if_insecure(settings, authenticator)
    people, grants = _open_logins(settings, tokens, base)
    guard = RequestGuard(
        admit=authenticator.admit,
        requires_token=lambda: authenticator.requires_token,
        holds=authenticator.holds,
        hosts=allowed_hosts | address.require_hosts((urlsplit(base).hostname or host,)),
        origins=address.require_origins(settings.allow_origins),
        is_local=address.is_loopback(host),
        base_url=base,
    )
    options = HttpOptions(
        limit=settings.max_message_bytes,
        max_sessions=settings.max_sessions,
        idle=settings.session_minutes * 60,
        metrics=settings.metrics,
        provider=_provider_metadata(settings) if provider is not None and not grants else None,
        grants=grants,
        public_path=public_path,
        proxies=proxies,
        store=settings.store,
    )
    with (
        # The process ends without exit handlers, so uploads are removed here.
        TemporaryDirectory(prefix="polymnia-uploads-", ignore_cleanup_errors=True) as scratch,
        open_servers(settings, tokens if authenticator.requires_token else None) as servers,
        ExitStack() as stack,
    ):
        # Where a database keeps what the web interface stores.
        state = open_web_state(settings.store, read_only=settings.read_only)
        if state is not None:
            stack.enter_context(closing(state))
        sessions = WebSessions(authenticator.holds, people=None if settings.read_only else people)
        server = servers[settings.dialect]
        parts = SiteParts(
            workspaces=server.workspaces,
            workspace=server.workspace,
            sessions=sessions,
            tokens=tokens,
            people=people,
            provider=provider,
            grants=grants,
            state=state,
            limiter=server.limiter,
            public_origin=f"{public.scheme}://{public.netloc}" if settings.public_url else "",
            store=settings.store,
            backups=settings.backups,
            secrets=settings.secrets,
            mcp_url=f"{base}/mcp",
            requires_login=requires_login,
            scratch=scratch,
        )
        on_ready(base, sessions)
        server.workspaces.warm_up()
        serve_http(
            servers,
            settings.dialect,
            [listener],
            guard,
            options,
            check=server.check,
            make_ui=partial(WebInterface, parts),
        )


def _open_logins(
    settings: Settings, tokens: "Tokens | None", base: str
) -> "tuple[People | None, Grants | None]":
    """Return the people of the store, and what lets programs in at the server's public URL."""
    from polymnia.auth.clients import Clients
    from polymnia.auth.grants import Grants
    from polymnia.auth.people import People

    if tokens is None:
        return None, None
    people = People(tokens, _max_capability(settings))
    # Programs log in at an identity provider, unless that only tells us who a person is.
    is_elsewhere = settings.jwt_issuer and not settings.oidc_client_id
    if settings.read_only or is_elsewhere or not settings.public_url:
        return people, None
    return people, Grants(tokens, base, Clients(tokens.signing_key, settings.oauth_clients))


def _warn_if_insecure(settings: Settings, authenticator: "Authenticator") -> None:
    from polymnia.transports.address import is_loopback, parse_bind

    if (
        settings.insecure
        and not authenticator.requires_token
        and not is_loopback(parse_bind(settings.address)[0])
    ):
        allowed = "read" if settings.read_only else "read, change and delete"
        logger.warning(
            "INSECURE: anyone who can reach %s may %s this memory without a token; "
            "stop the server and run `polymnia token create` to require one",
            settings.address,
            allowed,
        )


def _provider_metadata(settings: Settings) -> dict[str, Any]:
    """Return what clients need to get a token from the identity provider."""
    from polymnia.auth.tokens import SCOPES

    return {
        "authorization_servers": [settings.jwt_issuer],
        "scopes_supported": list(SCOPES),
    }


@contextmanager
def _open_tokens(settings: Settings) -> Iterator["Tokens | None"]:
    """Yield the tokens of the store, as other servers change them; None if it has none."""
    from polymnia.auth.authenticator import tokens_of

    tokens = tokens_of(settings.store, settings.tokens, read_only=settings.read_only)
    if tokens is None:
        yield None
        return
    with closing(tokens):
        tokens.follow()
        yield tokens


def _authenticator(
    settings: Settings,
    tokens: "Tokens | None",
    provider: "Provider | None",
    *,
    is_strict: bool = False,
) -> "Authenticator":
    from polymnia.auth.authenticator import Authenticator

    return Authenticator(
        tokens,
        provider=provider.recognise if provider is not None and provider.audience else None,
        max_capability=_max_capability(settings),
        # Also before the provider has logged the first person in.
        is_strict=is_strict or provider is not None,
    )


def provider_of(settings: Settings) -> "Provider | None":
    """Return the identity provider in the settings, if any. Raise SettingsError."""
    accepts_tokens, logs_people_in = settings.jwt_audience, settings.oidc_client_id
    if not (settings.jwt_issuer or settings.jwt_key or accepts_tokens or logs_people_in):
        return None
    if not settings.jwt_issuer or not (accepts_tokens or logs_people_in):
        raise SettingsError(
            "incomplete identity provider: set jwt_issuer, and jwt_audience to accept its tokens "
            "or oidc_client_id to let people log in"
        )
    if logs_people_in and not settings.groups:
        raise SettingsError(
            "oidc_client_id: it is not known what people may do; add a table such as "
            '[groups."*"] with can = "write" to the settings file'
        )
    try:
        from polymnia.auth.provider import Provider
    except ImportError as exc:
        raise SettingsError(
            "identity providers need another package: run `pip install 'polymnia[oauth]'`"
        ) from exc
    return Provider(
        settings.jwt_issuer,
        audience=settings.jwt_audience,
        key_file=settings.jwt_key,
        client_id=settings.oidc_client_id,
        client_secret=settings.oidc_client_secret,
        groups=settings.groups,
        groups_claim=settings.groups_claim,
    )


def _max_capability(settings: Settings) -> Capability:
    """Return the highest capability that any client gets."""
    return "read" if settings.read_only else "admin"


class _ClientLog(logging.Handler):
    """Sends warnings to a local client, whose user may never see standard error.

    Remote clients get none of them: messages may name files and other clients.
    """

    def __init__(self, servers: list[Server]) -> None:
        super().__init__(logging.WARNING)
        self._servers = servers

    def emit(self, record: logging.LogRecord) -> None:
        level = "error" if record.levelno >= logging.ERROR else "warning"
        for server in self._servers:
            server.log(level, "polymnia", record.getMessage())
