"""The authorization server: how a person lets a client in, and the tokens that the client gets.

    client ── begin ──► Authorization ── allow ──► code ── redeem ──► access + refresh token
                        (a person decides)                   ▲                │
                                                             └──── refresh ◄──┘

An `Authorization` waits for a decision in a signed text in the browser's address, not in memory:
any server of the store can answer. What a person allowed is a `Token` of kind "grant" beside their
own, so it is listed, followed by other servers and revoked like every token.

The refresh tokens of a grant share one secret and are counted. The latest is exchanged for the next
one. The one before it gives the same next one for some seconds, because programs with several
processes refresh twice. An older one was stolen or copied: the grant ends.
"""

import hmac
import logging
import re
import secrets
import time
from base64 import urlsafe_b64encode
from hashlib import sha256
from typing import Any
from urllib.parse import urlencode, urlsplit

from msgspec import Struct
from msgspec.structs import replace

from polymnia.auth.clients import Clients, Form
from polymnia.auth.tokens import SCOPES, Tokens, hash_secret, id_in, is_below, make_secret
from polymnia.errors import BadInput, NotAllowed, OAuthError
from polymnia.model import LINK_OWNER, Capability, Grant, Principal, Token

logger = logging.getLogger(__name__)

ACCESS_S = 3600
# A client that was not used for so long has to be allowed in again.
IDLE_S = 30 * 86_400
# Some clients ask for every scope in this list, so it does not have the one of administrators.
SCOPES_SUPPORTED = ("polymnia:read", "polymnia:write", "offline_access")
_CHALLENGE = re.compile(r"[A-Za-z0-9_-]{43}")
_VERIFIER = re.compile(r"[A-Za-z0-9._~-]{43,128}")
_REFRESH = re.compile(
    r"ply_[0-9a-f]{12}_(?P<generation>[0-9]{1,9})\.(?P<secret>[0-9a-f]{64})[0-9a-f]{64}"
)


class Authorization(Struct, frozen=True, kw_only=True, omit_defaults=True):
    """A client that waits for a person to let it in. `scopes` has those that we know, in order.

    `client` is the name that it gives itself. `host` is where its document is published; a client
    without one registered itself, and only `redirect_uri` tells who gets the code.
    """

    client_id: str
    client: str
    host: str = ""
    redirect_uri: str
    scopes: tuple[str, ...] = ()
    resource: str
    state: str = ""
    challenge: str
    keys: str = ""
    until: int

    @property
    def wants(self) -> Capability:
        """How much the client asks for. Without a scope that we know, it may write."""
        return SCOPES[self.scopes[-1]] if self.scopes else "write"

    @property
    def redirect_host(self) -> str:
        """Where the browser goes afterwards: a host, or the scheme of a program."""
        url = urlsplit(self.redirect_uri)
        return url.netloc if url.scheme in ("http", "https") else f"{url.scheme}:"


class Grants:
    """The authorization server of a store. Thread-safe; every method may block."""

    def __init__(self, tokens: Tokens, issuer: str, clients: Clients) -> None:
        """`issuer` is the public URL of the server, below which all of its resources are."""
        self.issuer = issuer
        self._tokens = tokens
        self._clients = clients
        self.register = clients.register
        self.checks_signatures = clients.checks_signatures

    def begin(self, query: Form, page: str) -> str:
        """Return where the browser has to go: to the page for the decision, or to the client.

        Raise OAuthError if it is not safe to redirect the browser.
        """
        client = self._clients.find(query.get("client_id", ""))
        redirect_uri = query.get("redirect_uri", "")
        if not redirect_uri and len(client.redirect_uris) == 1:
            redirect_uri = client.redirect_uris[0]
        if not client.allows(redirect_uri):
            raise OAuthError("invalid_request", "redirect_uri: the client did not register it")
        state = query.get("state", "")
        resource = query.get("resource", self.issuer).rstrip("/")
        problem: tuple[str, str] | None = None
        if query.get("response_type") != "code":
            problem = ("unsupported_response_type", "response_type: expected code")
        elif query.get("code_challenge_method") != "S256":
            problem = ("invalid_request", "code_challenge_method: expected S256")
        elif not _CHALLENGE.fullmatch(query.get("code_challenge", "")):
            problem = ("invalid_request", "code_challenge: expected 43 characters")
        elif not is_below(resource, self.issuer):
            problem = ("invalid_target", f"resource: this server has {self.issuer} only")
        if problem is not None:
            return self._redirect(redirect_uri, state, *problem)
        authorization = Authorization(
            client_id=client.id,
            client=client.name,
            host=client.host,
            redirect_uri=redirect_uri,
            scopes=tuple(scope for scope in SCOPES if scope in query.get("scope", "").split()),
            resource=resource,
            state=state,
            challenge=query["code_challenge"],
            keys=client.keys if client.must_sign else "",
            until=int(time.time()) + 600,
        )
        return f"{page}?{urlencode({'request': self._clients.seal(authorization)})}"

    def find_authorization(self, request: str) -> Authorization:
        """Return the request that waits for a decision. Raise BadInput if it is over."""
        try:
            authorization = self._clients.unseal(request, Authorization)
        except ValueError as exc:
            raise BadInput("the address is incomplete: connect again in your program") from exc
        if time.time() >= authorization.until:
            raise BadInput("this took more than ten minutes: connect again in your program")
        return authorization

    def allow(
        self,
        request: str,
        person: Principal,
        *,
        can: Capability,
        workspaces: frozenset[str] | None = None,
    ) -> str:
        """Let a client in, and return the URL that the browser has to open.

        None stands for all workspaces of the person. Raise BadInput, NotAllowed.

        A form must not be answered with a redirect there: browsers apply the page's `form-action`
        to it. The page also needs `cross-origin-opener-policy: unsafe-none`, because clients open
        it in a window that they wait for.
        """
        authorization = self.find_authorization(request)
        person.require(can, authorization.client)
        for workspace in workspaces or ():
            person.require_entry(workspace)
        now, identifier = int(time.time()), secrets.token_hex(6)
        stored = self._tokens.store.read().values()
        over = [token.id for token in stored if _is_over(token, now)]
        with self._tokens.store.edit(person.id, *over) as tokens:
            tokens[:] = [token for token in tokens if not _is_over(token, now)]
            owner = next((token for token in tokens if token.id == person.id), None)
            if owner is None and person.id != LINK_OWNER.id:
                raise NotAllowed("log in with a token or a password to let programs in")
            owner_id = "" if owner is None else owner.owner or owner.id
            code = make_secret(identifier)
            name = f"{person.name}: {authorization.client}" if person.name else authorization.client
            grant = Grant(
                client_id=authorization.client_id,
                client=authorization.client,
                resource=authorization.resource,
                redirect_uri=authorization.redirect_uri,
                challenge=authorization.challenge,
                code=hash_secret(code),
                code_until=now + 60,
                keys=authorization.keys,
            )
            chosen = person.workspaces if workspaces is None else workspaces
            token = Token(
                id=identifier,
                kind="grant",
                name=name,
                hash="",
                can=can,
                workspaces=None if chosen is None else tuple(sorted(chosen)),
                created_at=now,
                expires_at=now + IDLE_S,
                person=person.person or person.name,
                owner=owner_id,
                grant=grant,
            )
            tokens.append(token)
        logger.info("allowed in: %s, sent to %s", name, authorization.redirect_host)
        return self._redirect(authorization.redirect_uri, authorization.state, code=code)

    def deny(self, request: str) -> str:
        """Return the URL that tells the client that it was not let in. Raise BadInput."""
        asked = self.find_authorization(request)
        message = "the person did not allow it"
        return self._redirect(asked.redirect_uri, asked.state, "access_denied", message)

    def exchange(self, form: Form) -> dict[str, Any]:
        """Return tokens for a code or a refresh token. Raise OAuthError."""
        kind = form.get("grant_type", "")
        if kind not in ("authorization_code", "refresh_token"):
            message = "grant_type: expected authorization_code or refresh_token"
            raise OAuthError("unsupported_grant_type", message)
        field = "code" if kind == "authorization_code" else "refresh_token"
        text, client_id = form.get(field, ""), form.get("client_id", "")
        if client_id:
            self._clients.check_id(client_id)
        token = self._tokens.store.find(id_in(text))
        if token is None or token.grant is None or client_id not in ("", token.grant.client_id):
            raise OAuthError("invalid_grant", f"{field}: unknown; connect again")
        self._clients.authenticate(token.grant.client_id, token.grant.keys, form, self.issuer)
        resource = form.get("resource", token.grant.resource).rstrip("/")
        if not is_below(resource, token.grant.resource):
            raise OAuthError("invalid_target", f"resource: expected {token.grant.resource}")

        now, secret, problem = int(time.time()), "", ""
        with self._tokens.store.edit(token.id) as tokens:
            # It may have changed or gone since it was found.
            index = next((i for i, stored in enumerate(tokens) if stored.id == token.id), None)
            if index is None:
                raise OAuthError("invalid_grant", f"{field}: unknown; connect again")
            token = tokens[index]
            if self._tokens.state(token) != "active":
                problem = "the access has ended"
            elif field == "code":
                token, secret, problem = _redeem(token, form, now)
            else:
                token, secret, problem = _rotate(token, text, now)
            reply: dict[str, Any] = {}
            if not problem:
                token, reply = _issue(token, secret, now)
            tokens[index] = token
        if problem:
            logger.warning("refused a %s of %s: %s", field, token.name, problem)
            raise OAuthError("invalid_grant", f"{field}: {problem}; connect again")
        logger.info("gave tokens to %s for its %s", token.name, field)
        return reply

    def revoke(self, form: Form) -> None:
        """End the grant of an access or refresh token (RFC 7009)."""
        text = form.get("token", "")
        identifier = id_in(text)
        if self._tokens.store.find(identifier) is None:
            return
        with self._tokens.store.edit(identifier) as tokens:
            for index, token in enumerate(tokens):
                grant = token.grant
                if token.id != identifier or grant is None:
                    continue
                if hash_secret(text) in grant.hashes or _parse_refresh(identifier, grant, text):
                    tokens[index] = _end(token, int(time.time()))

    def _redirect(
        self, uri: str, state: str, error: str = "", description: str = "", code: str = ""
    ) -> str:
        """Return the client's redirect with an answer. `iss` tells it which server answers."""
        parameters = {"iss": self.issuer}
        if code:
            parameters["code"] = code
        if error:
            parameters |= {"error": error, "error_description": description}
        if state:
            parameters["state"] = state
        return f"{uri}{'&' if '?' in uri else '?'}{urlencode(parameters)}"


def scopes_of(can: Capability) -> str:
    """Return the scopes of a client that may do so much."""
    names = [scope for scope, given in SCOPES.items() if Principal(can=can).may(given)]
    return " ".join(names)


def _redeem(token: Token, form: Form, now: int) -> tuple[Token, str, str]:
    """Return the token, the secret of its new refresh tokens, and what is wrong with the code."""
    grant = token.grant
    assert grant is not None
    if not hmac.compare_digest(hash_secret(form["code"]), grant.code):
        return token, "", "unknown"
    if form.get("redirect_uri", grant.redirect_uri) != grant.redirect_uri:
        return token, "", "for another redirect_uri"
    verifier = form.get("code_verifier", "")
    challenge = urlsafe_b64encode(sha256(verifier.encode()).digest()).rstrip(b"=").decode()
    if not _VERIFIER.fullmatch(verifier) or not hmac.compare_digest(challenge, grant.challenge):
        return token, "", "code_verifier does not fit"
    if grant.family:
        # Another program has the code and its verifier. Who has only the code, as in the address
        # of a browser, cannot end the access.
        return _end(token, now), "", "used twice, so the access has ended"
    if now >= grant.code_until:
        return token, "", "expired"
    secret = secrets.token_hex(32)
    grant = replace(grant, family=hash_secret(secret), salt=secrets.token_hex(16))
    return replace(token, grant=grant), secret, ""


def _rotate(token: Token, text: str, now: int) -> tuple[Token, str, str]:
    """Return the token, the secret of its refresh tokens, and what is wrong with this one."""
    grant = token.grant
    assert grant is not None
    parsed = _parse_refresh(token.id, grant, text)
    if parsed is None:
        return token, "", "unknown"
    generation, secret = parsed
    if generation == grant.generation:
        grant = replace(grant, generation=generation + 1, rotated_at=now)
        return replace(token, grant=grant), secret, ""
    # Parallel processes of a client repeat a refresh within seconds, a thief any time later.
    if generation == grant.generation - 1 and now - grant.rotated_at <= 10:
        return token, secret, ""
    return _end(token, now), "", "used twice, so the access has ended"


def _issue(token: Token, secret: str, now: int) -> tuple[Token, dict[str, Any]]:
    """Return the token with a new access token, and the reply that has it."""
    grant = token.grant
    assert grant is not None
    access = make_secret(token.id)
    # Those of parallel refreshes stay valid, but not without bound.
    kept = [(digest, until) for digest, until in grant.access if until > now][-9:]
    grant = replace(grant, access=(*kept, (hash_secret(access), now + ACCESS_S)))
    reply = {
        "access_token": access,
        "token_type": "Bearer",
        "expires_in": ACCESS_S,
        "refresh_token": _refresh_token(token.id, grant, grant.generation, secret),
        "scope": f"{scopes_of(token.can)} offline_access",
    }
    return replace(token, grant=grant, expires_at=now + IDLE_S), reply


def _refresh_token(identifier: str, grant: Grant, generation: int, secret: str) -> str:
    """Return a refresh token. Only the server can make the next one of the same secret."""
    message = f"{identifier}.{generation}.{secret}".encode()
    signature = hmac.new(grant.salt.encode(), message, "sha256").hexdigest()
    return f"ply_{identifier}_{generation}.{secret}{signature}"


def _parse_refresh(identifier: str, grant: Grant, text: str) -> tuple[int, str] | None:
    """Return the generation and the secret of a refresh token of the grant; None for others."""
    match = _REFRESH.fullmatch(text)
    if match is None or not hmac.compare_digest(hash_secret(match["secret"]), grant.family):
        return None
    generation = int(match["generation"])
    expected = _refresh_token(identifier, grant, generation, match["secret"])
    return (generation, match["secret"]) if hmac.compare_digest(expected, text) else None


def _end(token: Token, now: int) -> Token:
    return replace(token, revoked_at=token.revoked_at or now)


def _is_over(token: Token, now: int) -> bool:
    """Return True for a grant whose code nobody used, or that ended a month ago."""
    if token.grant is None:
        return False
    ended_at = min(token.revoked_at or now, token.expires_at or now)
    is_unused = not token.grant.family and now >= token.grant.code_until
    return is_unused or now - ended_at > IDLE_S
