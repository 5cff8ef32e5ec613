"""The public keys of an identity provider, from a PEM or JWKS file that may be replaced while the server runs."""

import logging
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

logger = logging.getLogger(__name__)

# Only signatures that the provider alone can make, and only with a key of their own kind.
_ALGORITHMS: dict[type, list[str]] = {
    RSAPublicKey: ["RS256", "RS384", "RS512", "PS256", "PS384", "PS512"],
    EllipticCurvePublicKey: ["ES256", "ES384", "ES512"],
    Ed25519PublicKey: ["EdDSA"],
    Ed448PublicKey: ["EdDSA"],
}


class Key(Struct, frozen=True):
    """A key and the signatures it may check."""

    public: Any
    algorithms: list[str]


class Keys:
    """The keys of one file, by their ids. Safe to use from several threads."""

    def __init__(self, path: Path) -> None:
        """Raises SettingsError for a file that has no such keys."""
        self._path = path
        self._lock = Lock()
        self._stamp: object = None
        self._known: dict[str | None, Key] = {}
        self._refresh()

    def named(self, identifier: str | None) -> Key:
        """The key of that id; without one, the only key there is. Raises NotAdmitted."""
        with self._lock:
            try:
                self._refresh()
            except SettingsError as exc:
                logger.error("%s", exc)
                raise NotAdmitted("tokens cannot be checked just now; the server's log says why") from exc
            known = self._known
        if identifier in known:
            return known[identifier]
        if len(known) == 1 and (identifier is None or None in known):
            return next(iter(known.values()))
        raise NotAdmitted("the token was signed with a key the server does not have")

    def _refresh(self) -> None:
        """Read the file again if somebody has changed it."""
        try:
            state = self._path.stat()
            stamp = (state.st_ino, state.st_mtime_ns, state.st_size)
            if stamp == self._stamp:
                return
            self._known = _read(self._path.read_text("utf-8"))
            self._stamp = stamp
        except (OSError, ValueError, jwt.PyJWTError) as exc:
            raise SettingsError(f"{self._path} is no public key of an identity provider: {exc}") from exc


def _read(text: str) -> dict[str | None, Key]:
    """Raises ValueError and what the libraries raise."""
    if not text.lstrip().startswith("{"):
        given: dict[str | None, Any] = {None: load_pem_public_key(text.encode())}
    else:
        given = {each.key_id: each.key for each in jwt.PyJWKSet.from_json(text).keys}
    found = {name: Key(each, algorithms) for name, each in given.items() if (algorithms := _algorithms(each))}
    if not found:
        raise ValueError("it has no RSA, EC or Ed25519 public key")
    return found


def _algorithms(public: Any) -> list[str]:
    """What the key may check; nothing for what is no public key of a signature."""
    return next((names for kind, names in _ALGORITHMS.items() if isinstance(public, kind)), [])
