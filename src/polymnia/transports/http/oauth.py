"""The paths of OAuth: the documents with which clients begin, and those of our own server."""

import logging
from collections.abc import Awaitable, Callable, Mapping, Sequence
from functools import partial
from typing import Any, NamedTuple
from urllib.parse import parse_qsl

from msgspec import DecodeError, json
from starlette.routing import Route
from starlette.types import Receive, Scope, Send

from polymnia.auth.clients import ALGORITHMS
from polymnia.auth.grants import SCOPES_SUPPORTED, Grants
from polymnia.errors import OAuthError, Refused, StoreError
from polymnia.mcp.message import encode
from polymnia.transports.http.context import HttpContext
from polymnia.transports.http.guard import METADATA_PATH
from polymnia.transports.http.operations import UI_PATH
from polymnia.transports.http.request import HttpRequest

logger = logging.getLogger(__name__)

# Any page may read these answers and send these requests: none of them depends on a cookie.
_HEADERS = {
    "cache-control": "no-store",
    "referrer-policy": "no-referrer",
    "access-control-allow-origin": "*",
    "access-control-allow-headers": "*",
    "access-control-allow-methods": "GET, POST",
}
_TEXT = {"content-type": "text/plain; charset=utf-8", "x-content-type-options": "nosniff"}


class OAuthReply(NamedTuple):
    """The answer of an endpoint."""

    status: int
    body: bytes = b""
    headers: Mapping[str, str] = {}


Handle = Callable[[HttpRequest], Awaitable[OAuthReply]]


def metadata_routes(
    context: HttpContext,
    provider: Mapping[str, Any] | None,
    grants: Grants | None,
    paths: Sequence[str],
) -> list[Route]:
    """Return the routes of the documents about the endpoints at `paths` (RFC 9728).

    They name the identity provider, our own authorization server or, without one, none.
    """
    base, prefix = context.guard.base_url, context.public_path
    login: Mapping[str, Any] = provider or {}
    if provider is None and grants is not None:
        login = {"authorization_servers": [grants.issuer], "scopes_supported": SCOPES_SUPPORTED}

    async def describe(path: str, request: HttpRequest) -> OAuthReply:
        about = {"resource": base + path, "resource_name": "Polymnia"}
        return OAuthReply(200, encode({**about, **login, "bearer_methods_supported": ["header"]}))

    routes = []
    for path in ["", *paths]:
        # One document per protected path: clients refuse a document about another path.
        endpoint = _Endpoint(context, "GET", partial(describe, path or "/mcp"))
        routes.append(Route(METADATA_PATH + path, endpoint))
        if prefix:
            routes.append(Route(f"{METADATA_PATH}{prefix}{path}", endpoint))
    return routes


def server_routes(context: HttpContext, grants: Grants) -> list[Route]:
    """Return the routes of the authorization server."""
    issuer = grants.issuer
    # Claude introduces itself by a document only if `none` is here.
    methods = ["none", "private_key_jwt"] if grants.checks_signatures else ["none"]
    metadata = {
        "issuer": issuer,
        "authorization_endpoint": f"{issuer}/authorize",
        "token_endpoint": f"{issuer}/token",
        "registration_endpoint": f"{issuer}/register",
        "revocation_endpoint": f"{issuer}/revoke",
        "scopes_supported": SCOPES_SUPPORTED,
        "response_types_supported": ["code"],
        "response_modes_supported": ["query"],
        "grant_types_supported": ["authorization_code", "refresh_token"],
        "code_challenge_methods_supported": ["S256"],
        "token_endpoint_auth_methods_supported": methods,
        "client_id_metadata_document_supported": True,
        "token_endpoint_auth_signing_alg_values_supported": ALGORITHMS,
        "authorization_response_iss_parameter_supported": True,
    }
    # At the other path clients insist on what OpenID providers have.
    openid = {
        "jwks_uri": f"{issuer}/.well-known/jwks.json",
        "subject_types_supported": ["public"],
        "id_token_signing_alg_values_supported": ["RS256"],
    }
    documents: dict[str, Mapping[str, Any]] = {
        "/.well-known/oauth-authorization-server": metadata,
        "/.well-known/openid-configuration": {**metadata, **openid},
        "/.well-known/jwks.json": {"keys": []},
    }

    async def describe(document: Mapping[str, Any], request: HttpRequest) -> OAuthReply:
        return OAuthReply(200, encode(document))

    async def authorize(request: HttpRequest) -> OAuthReply:
        """Send the browser to the page where a person decides, or back to the client."""
        try:
            # It comes back in the address of the page, which proxies bound as well.
            if len(request.scope["query_string"]) > 8_000:
                raise OAuthError("invalid_request", "the address is too long")
            query = _parse(request.scope["query_string"])
            page = f"{issuer}{UI_PATH}/allow"
            address = await context.run(partial(grants.begin, query, page))
        except OAuthError as exc:
            # It is not known where it would be safe to send the browser.
            text = f"This login cannot go on: {exc}\n"
            return OAuthReply(exc.status, text.encode(), _TEXT)
        return OAuthReply(302, headers={"location": address})

    async def register(request: HttpRequest) -> OAuthReply:
        body = await request.read(limit=64 << 10, budget=context.budget)
        try:
            metadata = json.decode(body, type=dict[str, Any])
        except (DecodeError, RecursionError) as exc:
            raise OAuthError("invalid_client_metadata", "expected a JSON object") from exc
        return OAuthReply(201, encode(await context.run(partial(grants.register, metadata))))

    async def exchange(request: HttpRequest) -> OAuthReply:
        form = _parse(await request.read(limit=64 << 10, budget=context.budget))
        return OAuthReply(200, encode(await context.run(partial(grants.exchange, form))))

    async def revoke(request: HttpRequest) -> OAuthReply:
        form = _parse(await request.read(limit=64 << 10, budget=context.budget))
        await context.run(partial(grants.revoke, form))
        return OAuthReply(200)

    routes = [
        Route("/authorize", _Endpoint(context, "GET", authorize)),
        Route("/register", _Endpoint(context, "POST", register)),
        Route("/token", _Endpoint(context, "POST", exchange)),
        Route("/revoke", _Endpoint(context, "POST", revoke)),
    ]
    for path, document in documents.items():
        endpoint = _Endpoint(context, "GET", partial(describe, document))
        for prefix in {"", context.public_path}:
            routes.append(Route(path + prefix, endpoint))
    return routes


class _Endpoint:
    """A path with one method, for clients that have no token yet."""

    def __init__(self, context: HttpContext, method: str, handle: Handle) -> None:
        self._context = context
        self._method = method
        self._handle = handle

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        request = HttpRequest(scope, receive, send)
        try:
            self._context.guard.check_host(request)
            self._context.check_open()
            if request.method not in (self._method, "OPTIONS"):
                allowed = {"allow": self._method}
                raise Refused(405, f"{request.method} is not supported here", headers=allowed)
            if not self._context.guard.requires_token():
                raise Refused(404, "this server needs no login")
            is_preflight = request.method == "OPTIONS"
            reply = OAuthReply(204) if is_preflight else await self._handle(request)
        except OAuthError as exc:
            error = encode({"error": exc.code, "error_description": str(exc)})
            reply = OAuthReply(401 if exc.code == "invalid_client" else exc.status, error)
        except StoreError as exc:
            logger.error("a login failed: %s", exc)
            reply = OAuthReply(503, encode({"error": "temporarily_unavailable"}))
        except Refused as refusal:
            await request.refuse(refusal)
            return
        finally:
            request.release()
        await request.respond(reply.status, reply.body, {**_HEADERS, **reply.headers})


def _parse(data: bytes) -> dict[str, str]:
    """Return the parameters of a query or a form. Raise OAuthError if one is repeated."""
    try:
        pairs = parse_qsl(data.decode("ascii"), True, errors="strict", max_num_fields=100)
    except ValueError as exc:
        raise OAuthError("invalid_request", "expected URL-encoded UTF-8") from exc
    parameters = dict(pairs)
    if len(parameters) < len(pairs):
        raise OAuthError("invalid_request", "a parameter is repeated")
    return {name: text for name, text in parameters.items() if text}
