"""Tokens of an identity provider: JSON Web Tokens, verified with the provider's public keys."""

import logging
from collections.abc import Callable
from pathlib import Path
from threading import Lock
from typing import Any

import jwt
from cryptography.hazmat.primitives.asymmetric.ec import EllipticCurvePublicKey
from cryptography.hazmat.primitives.asymmetric.ed448 import Ed448PublicKey
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PublicKey
from cryptography.hazmat.primitives.asymmetric.rsa import RSAPublicKey
from cryptography.hazmat.primitives.serialization import load_pem_public_key
from msgspec import Struct

from polymnia.errors import NotAdmitted, SettingsError
from polymnia.model import CAPABILITIES, Capability, Principal

logger = logging.getLogger(__name__)

SCOPES = {f"polymnia:{capability}": capability for capability in CAPABILITIES}
_WORKSPACES = "polymnia_workspaces"
# Only asymmetric signatures, each verified with a key of its own type.
_ALGORITHMS: dict[type, list[str]] = {
    RSAPublicKey: ["RS256", "RS384", "RS512", "PS256", "PS384", "PS512"],
    EllipticCurvePublicKey: ["ES256", "ES384", "ES512"],
    Ed25519PublicKey: ["EdDSA"],
    Ed448PublicKey: ["EdDSA"],
}


def open_provider(issuer: str, audience: str, key_file: str) -> Callable[[str], Principal]:
    """Return a function that recognises the issuer's tokens for the audience. Raise SettingsError.

    The key file holds the provider's public key as PEM or JWKS.
    """
    keys = Keys(Path(key_file))

    def recognise(token: str) -> Principal:
        try:
            key = keys.find(jwt.get_unverified_header(token).get("kid"))
            claims = jwt.decode(
                token,
                key.public,
                algorithms=key.algorithms,
                issuer=issuer,
                audience=audience,
                options={"require": ["exp", "iss", "aud", "sub"]},
            )
        except jwt.PyJWTError as exc:
            raise NotAdmitted(f"invalid token: {exc}") from exc
        return principal_of(claims)

    return recognise


def principal_of(claims: dict[str, Any]) -> Principal:
    """Return the principal that the claims describe. Raise NotAdmitted if they grant nothing."""
    workspaces = claims.get(_WORKSPACES)
    if workspaces is not None:
        is_list = isinstance(workspaces, list)
        if not is_list or not all(isinstance(name, str) for name in workspaces):
            raise NotAdmitted(f"invalid claim {_WORKSPACES}: expected a list of names")
    name = str(claims["sub"])
    if not name.strip():
        raise NotAdmitted("invalid claim sub: must not be blank")
    return Principal(
        name=name,
        can=_highest_capability(claims),
        workspaces=None if workspaces is None else frozenset(workspaces),
        id=f"jwt:{name}",
        until=int(claims["exp"]),
    )


def _highest_capability(claims: dict[str, Any]) -> Capability:
    scopes = claims.get("scope", claims.get("scp", ""))
    if isinstance(scopes, str):
        scopes = scopes.split()
    if not isinstance(scopes, list):
        scopes = []
    capabilities = [SCOPES[scope] for scope in map(str, scopes) if scope in SCOPES]
    if not capabilities:
        raise NotAdmitted(f"the token grants none of {', '.join(SCOPES)}")
    return max(capabilities, key=CAPABILITIES.index)


class Key(Struct, frozen=True):
    """A public key and the algorithms it may be used with."""

    public: Any
    algorithms: list[str]


class Keys:
    """The public keys in a PEM or JWKS file, which may change meanwhile. Thread-safe."""

    def __init__(self, path: Path) -> None:
        """Raise SettingsError if the file has no public key."""
        self._path = path
        self._lock = Lock()
        self._stamp: object = None
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
        if identifier in known:
            return known[identifier]
        if len(known) == 1 and (identifier is None or None in known):
            return next(iter(known.values()))
        raise NotAdmitted("the token was signed with a key that the server does not have")

    def _refresh(self) -> None:
        """Read the file again if it has changed."""
        try:
            state = self._path.stat()
            stamp = (state.st_ino, state.st_mtime_ns, state.st_size)
            if stamp == self._stamp:
                return
            self._known = _parse_keys(self._path.read_text("utf-8"))
            self._stamp = stamp
        except (OSError, ValueError, jwt.PyJWTError) as exc:
            raise SettingsError(
                f"{self._path}: not a public key of an identity provider: {exc}"
            ) from exc


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
