"""An identity provider: its keys, its JSON Web Tokens, and logins by OpenID Connect.

With only the issuer's URL, the provider's document of discovery says where its keys and its pages
are. Keys are fetched in the background, so a request waits for them only after a rotation.
"""

import json
import logging
import time
from base64 import urlsafe_b64encode
from collections.abc import Mapping
from hashlib import sha256
from pathlib import Path
from threading import Lock, Thread
from typing import Any
from urllib.parse import quote, urlencode, urlsplit
from urllib.request import Request, urlopen

import jwt
from cryptography.hazmat.primitives.asymmetric.ec import EllipticCurvePublicKey
from cryptography.hazmat.primitives.asymmetric.ed448 import Ed448PublicKey
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PublicKey
from cryptography.hazmat.primitives.asymmetric.rsa import RSAPublicKey
from cryptography.hazmat.primitives.serialization import load_pem_public_key
from msgspec import Struct

from polymnia.auth.tokens import SCOPES
from polymnia.disk.files import FileStamp
from polymnia.errors import NotAdmitted, SettingsError
from polymnia.model import CAPABILITIES, Capability, GroupRights, Principal, own_workspace

logger = logging.getLogger(__name__)

_WORKSPACES = "polymnia_workspaces"
_TIMEOUT_S = 5.0
_MAX_BYTES = 256 * 1024
# Keys are fetched again after this time, and at most so often for a key that is unknown.
_KEYS_FRESH_S, _KEYS_RETRY_S = 3600.0, 10.0
# Only asymmetric signatures, each verified with a key of its own type.
_ALGORITHMS: dict[type, list[str]] = {
    RSAPublicKey: ["RS256", "RS384", "RS512", "PS256", "PS384", "PS512"],
    EllipticCurvePublicKey: ["ES256", "ES384", "ES512"],
    Ed25519PublicKey: ["EdDSA"],
    Ed448PublicKey: ["EdDSA"],
}


class Key(Struct, frozen=True):
    """A public key and the algorithms it may be used with."""

    public: Any
    algorithms: list[str]


class Identity(Struct, frozen=True):
    """A person whom the provider logged in. The subject is the same at every login."""

    subject: str
    name: str
    can: Capability
    workspaces: tuple[str, ...] | None


class Provider:
    """An identity provider. Thread-safe."""

    def __init__(
        self,
        issuer: str,
        *,
        audience: str = "",
        key_file: str = "",
        client_id: str = "",
        client_secret: str = "",
        groups: Mapping[str, GroupRights] | None = None,
        groups_claim: str = "groups",
    ) -> None:
        """Accept tokens for the audience, and logins of people as the client of that id.

        `groups` says what the groups in a claim may do; without it, tokens have scopes. Raise
        SettingsError if the key file has no public key.
        """
        self.issuer = issuer
        self.audience = audience
        self.client_id = client_id
        self._client_secret = client_secret
        self._groups = groups or {}
        self._groups_claim = groups_claim
        self._document: dict[str, Any] = {}
        self._keys = FileKeys(Path(key_file)) if key_file else FetchedKeys(self)

    @property
    def host(self) -> str:
        """How the login page names the provider."""
        return urlsplit(self.issuer).hostname or self.issuer

    def recognise(self, token: str) -> Principal:
        """Return the principal of a token for the audience. Raise NotAdmitted."""
        claims = self._verify(token, self.audience)
        name = str(claims["sub"])
        if not name.strip():
            raise NotAdmitted("invalid claim sub: must not be blank")
        can, workspaces = self._rights(claims)
        if workspaces is not None:
            workspaces = (*workspaces, own_workspace(name))
        return Principal(
            name=name,
            can=can,
            workspaces=None if workspaces is None else frozenset(workspaces),
            id=f"jwt:{name}",
            until=int(claims["exp"]),
        )

    def login_url(self, redirect_uri: str, state: str, nonce: str, verifier: str) -> str:
        """Return the provider's page that logs a person in. Raise NotAdmitted."""
        challenge = urlsafe_b64encode(sha256(verifier.encode()).digest()).rstrip(b"=").decode()
        parameters = {
            "response_type": "code",
            "client_id": self.client_id,
            "redirect_uri": redirect_uri,
            "scope": "openid email profile",
            "state": state,
            "nonce": nonce,
            "code_challenge": challenge,
            "code_challenge_method": "S256",
        }
        url = str(self.document()["authorization_endpoint"])
        return f"{url}{'&' if '?' in url else '?'}{urlencode(parameters)}"

    def finish_login(self, code: str, redirect_uri: str, nonce: str, verifier: str) -> Identity:
        """Return the person whom a code of the provider stands for. Raise NotAdmitted."""
        form = {
            "grant_type": "authorization_code",
            "code": code,
            "redirect_uri": redirect_uri,
            "code_verifier": verifier,
            "client_id": self.client_id,
        }
        if self._client_secret:
            form["client_secret"] = self._client_secret
        reply = fetch_json(str(self.document()["token_endpoint"]), form)
        claims = self._verify(str(reply.get("id_token", "")), self.client_id)
        if claims.get("nonce") != nonce:
            raise NotAdmitted("the login was not begun in this browser: try again")
        can, workspaces = self._rights(claims)
        # Users may often choose the other names, so an address counts only if it was verified.
        name = claims.get("email") if claims.get("email_verified") else None
        name = str(name or claims.get("preferred_username") or claims["sub"])
        return Identity(f"{self.issuer}#{claims['sub']}", name, can, workspaces)

    def document(self) -> dict[str, Any]:
        """Return the provider's document of discovery. Raise NotAdmitted."""
        if not self._document:
            url = f"{self.issuer.rstrip('/')}/.well-known/openid-configuration"
            document = fetch_json(url)
            if str(document.get("issuer", "")).rstrip("/") != self.issuer.rstrip("/"):
                logger.error("%s is about another issuer: %s", url, document.get("issuer"))
                raise NotAdmitted("the identity provider is not set up; the server's log says why")
            for name in ("jwks_uri", "authorization_endpoint", "token_endpoint"):
                if name not in document:
                    logger.error("%s has no %s", url, name)
                    raise NotAdmitted("the identity provider lacks something: see the log")
            self._document = document
        return self._document

    def _verify(self, token: str, audience: str) -> dict[str, Any]:
        """Return the claims of a token of this provider for the audience. Raise NotAdmitted."""
        try:
            key = self._keys.find(jwt.get_unverified_header(token).get("kid"))
            return jwt.decode(
                token,
                key.public,
                algorithms=key.algorithms,
                issuer=self.issuer,
                audience=audience,
                options={"require": ["exp", "iss", "aud", "sub"]},
            )
        except jwt.PyJWTError as exc:
            raise NotAdmitted(f"invalid token: {exc}") from exc

    def _rights(self, claims: dict[str, Any]) -> tuple[Capability, tuple[str, ...] | None]:
        """Return what the claims allow, and in which workspaces. Raise NotAdmitted."""
        if self._groups:
            value: Any = claims
            for part in self._groups_claim.split("."):  # such as realm_access.roles
                value = value.get(part) if isinstance(value, dict) else None
            if isinstance(value, str):
                value = [value]
            names = [*map(str, value), "*"] if isinstance(value, list) else ["*"]
            held = [self._groups[name] for name in names if name in self._groups]
            if not held:
                raise NotAdmitted("none of your groups may use this server: ask its operator")
            can = max((rights.can for rights in held), key=CAPABILITIES.index)
            workspaces = {name for rights in held for name in rights.workspaces}
            return can, None if "*" in workspaces else tuple(sorted(workspaces))
        named = claims.get(_WORKSPACES)
        if named is not None:
            is_list = isinstance(named, list)
            if not is_list or not all(isinstance(name, str) for name in named):
                raise NotAdmitted(f"invalid claim {_WORKSPACES}: expected a list of names")
        scopes = claims.get("scope", claims.get("scp", ""))
        if isinstance(scopes, str):
            scopes = scopes.split()
        if not isinstance(scopes, list):
            scopes = []
        capabilities = [SCOPES[scope] for scope in map(str, scopes) if scope in SCOPES]
        if not capabilities:
            raise NotAdmitted(f"the token grants none of {', '.join(SCOPES)}")
        return max(capabilities, key=CAPABILITIES.index), None if named is None else tuple(named)


class FileKeys:
    """The public keys in a PEM or JWKS file, which may change meanwhile. Thread-safe."""

    def __init__(self, path: Path) -> None:
        """Raise SettingsError if the file has no public key."""
        self._path = path
        self._lock = Lock()
        self._stamp: FileStamp | None = None
        self._known: dict[str | None, Key] = {}
        self._refresh()

    def find(self, identifier: str | None) -> Key:
        """Return the key with the id or, without an id, the only key. Raise NotAdmitted."""
        with self._lock:
            try:
                self._refresh()
            except SettingsError as exc:
                logger.error("%s", exc)
                raise NotAdmitted("tokens cannot be checked; the server's log says why") from exc
            known = self._known
        key = _choose_key(known, identifier)
        if key is None:
            raise NotAdmitted("the token was signed with a key that the server does not have")
        return key

    def _refresh(self) -> None:
        """Read the file again if it has changed."""
        try:
            stamp = FileStamp.of(self._path.stat())
            if stamp == self._stamp:
                return
            self._known = _parse_keys(self._path.read_text("utf-8"))
            self._stamp = stamp
        except (OSError, ValueError, jwt.PyJWTError) as exc:
            raise SettingsError(
                f"{self._path}: not a public key of an identity provider: {exc}"
            ) from exc


class FetchedKeys:
    """The public keys that a provider publishes, kept for an hour. Thread-safe."""

    def __init__(self, provider: Provider) -> None:
        self._provider = provider
        self._lock = Lock()
        self._known: dict[str | None, Key] = {}
        self._begun_at = -_KEYS_FRESH_S
        self._thread: Thread | None = None
        self._refresh(_KEYS_FRESH_S)

    def find(self, identifier: str | None) -> Key:
        """Return the key with the id or, without an id, the only key. Raise NotAdmitted."""
        self._refresh(_KEYS_FRESH_S)
        key = _choose_key(self._known, identifier)
        if key is None:
            thread = self._refresh(_KEYS_RETRY_S)
            if thread is not None:
                # The event loop waits here, so not for long. The program tries again.
                thread.join(1.0)
            key = _choose_key(self._known, identifier)
        if key is None:
            raise NotAdmitted("the token was signed with a key that the provider does not publish")
        return key

    def _refresh(self, max_age: float) -> Thread | None:
        """Fetch the keys in a thread if that was not begun lately. Return the thread, if any."""
        with self._lock:
            is_running = self._thread is not None and self._thread.is_alive()
            now = time.monotonic()
            if not is_running and now - self._begun_at >= max_age:
                self._begun_at = now
                self._thread = Thread(target=self._fetch, name="polymnia-keys", daemon=True)
                self._thread.start()
            return self._thread

    def _fetch(self) -> None:
        try:
            document = fetch_json(str(self._provider.document()["jwks_uri"]))
            self._known = _parse_keys(json.dumps(document))
        except (NotAdmitted, ValueError, jwt.PyJWTError) as exc:
            logger.error("the keys of %s cannot be fetched: %s", self._provider.issuer, exc)


def fetch_json(url: str, form: Mapping[str, str] | None = None) -> dict[str, Any]:
    """Return the JSON object at a URL of the provider. Raise NotAdmitted; the log says why."""
    address = urlsplit(url)
    if address.scheme != "https" and address.hostname not in ("127.0.0.1", "::1", "localhost"):
        logger.error("%s: an identity provider needs https", url)
        raise NotAdmitted("the identity provider is not set up; the server's log says why")
    body = None if form is None else urlencode(form, quote_via=quote).encode()
    request = Request(url, body, {"Accept": "application/json"})
    try:
        with urlopen(request, timeout=_TIMEOUT_S) as response:
            document = json.loads(response.read(_MAX_BYTES))
    except (OSError, ValueError) as exc:
        logger.error("the identity provider does not answer at %s: %s", url, exc)
        raise NotAdmitted("the identity provider does not answer: try again later") from exc
    if not isinstance(document, dict):
        logger.error("%s: not a JSON object", url)
        raise NotAdmitted("the identity provider does not answer: try again later")
    return document


def _choose_key(known: Mapping[str | None, Key], identifier: str | None) -> Key | None:
    """Return the key with the id or, without an id, the only key."""
    if identifier in known:
        return known[identifier]
    if len(known) == 1 and (identifier is None or None in known):
        return next(iter(known.values()))
    return None


def _parse_keys(text: str) -> dict[str | None, Key]:
    """Return the keys by id. Raise ValueError or an error of the libraries."""
    public_keys: dict[str | None, Any] = {}
    if text.lstrip().startswith("{"):
        for jwk in jwt.PyJWKSet.from_json(text).keys:
            public_keys[jwk.key_id] = jwk.key
    else:
        public_keys[None] = load_pem_public_key(text.encode())
    keys = {}
    for identifier, public in public_keys.items():
        for kind, algorithms in _ALGORITHMS.items():
            if isinstance(public, kind):
                keys[identifier] = Key(public, algorithms)
    if not keys:
        raise ValueError("no RSA, EC or Ed25519 public key found")
    return keys
