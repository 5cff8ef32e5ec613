"""Clients of OAuth, by id: described by a document, registered, or named in the settings.

The id of a client is the address of a document about it, or everything that it registered, signed
by this server: registrations need no storage, however many there are.

A registration is checked strictly. A document is published for all servers, so it is negotiated:
what this server cannot use is dropped, and only unsafe redirects are refused.
"""

import hmac
from base64 import urlsafe_b64decode, urlsafe_b64encode
from collections.abc import Callable, Iterable, Mapping
from importlib.util import find_spec
from typing import Any, TypeVar
from urllib.parse import urlsplit

import msgspec
from msgspec import Struct

from polymnia.auth.documents import FRESH_S, Documents, is_document_url
from polymnia.errors import OAuthError, SettingsError

T = TypeVar("T")
Form = Mapping[str, str]

# Signatures with public keys only.
ALGORITHMS = ["RS256", "RS384", "RS512", "PS256", "ES256", "ES384", "ES512", "EdDSA"]
_LOOPBACK = ("127.0.0.1", "::1", "localhost")
# Schemes that browsers open themselves; any other scheme belongs to a program of the user.
_UNSAFE_SCHEMES = frozenset(
    ("javascript", "data", "vbscript", "file", "blob", "about", "filesystem", "view-source", "ftp")
)


class OAuthClient(Struct, frozen=True, kw_only=True, omit_defaults=True):
    """A client, and where the browsers of its users may be sent back to.

    `host` publishes the client's document; without it, its name is only what it says itself. `keys`
    is the URL of its public keys. With `must_sign`, it proves with them who it is.
    """

    id: str = ""
    name: str
    host: str = ""
    redirect_uris: tuple[str, ...]
    keys: str = ""
    must_sign: bool = False

    def allows(self, redirect_uri: str) -> bool:
        """Return True for one of the client's redirects. On a loopback address any port will do."""
        if redirect_uri in self.redirect_uris:
            return True
        portless = _without_port(redirect_uri) if is_safe_redirect(redirect_uri) else None
        return portless is not None and portless in map(_without_port, self.redirect_uris)


class _Keys(Struct):
    """The public keys that a client publishes."""

    keys: list[dict[str, Any]]


class Clients:
    """The clients that may ask people to let them in."""

    def __init__(self, signing_key: Callable[[], bytes], predefined: Iterable[str] = ()) -> None:
        """`predefined` has the clients in the settings as ID=REDIRECT_URI. Raise SettingsError."""
        self._signing_key = signing_key
        self._predefined: dict[str, tuple[str, ...]] = {}
        for setting in predefined:
            client_id, _, uri = setting.partition("=")
            if not client_id or not is_safe_redirect(uri):
                raise SettingsError(f"invalid oauth_clients {setting!r}: use ID=REDIRECT_URI")
            self._predefined[client_id] = (*self._predefined.get(client_id, ()), uri)
        # Signatures need a package that servers for public clients can do without.
        self.checks_signatures = find_spec("jwt") is not None
        self.documents = Documents()

    def find(self, client_id: str) -> OAuthClient:
        """Return a client. Raise OAuthError, with status 503 if its document cannot be fetched."""
        if client_id in self._predefined:
            redirects = self._predefined[client_id]
            return OAuthClient(id=client_id, name=client_id, redirect_uris=redirects)
        if is_document_url(client_id):
            # 5 KB is what the specification of these documents asks for.
            return self._described(client_id, self.documents.get(client_id, limit=5_120))
        self.check_id(client_id)
        client = self.unseal(client_id, OAuthClient)
        return msgspec.structs.replace(client, id=client_id)

    def check_id(self, client_id: str) -> None:
        """Raise OAuthError if there cannot be a client with that id."""
        if client_id in self._predefined or is_document_url(client_id):
            return
        try:
            self.unseal(client_id, OAuthClient)
        except ValueError as exc:
            raise OAuthError("invalid_client", "unknown client: register again") from exc

    def register(self, metadata: dict[str, Any]) -> dict[str, Any]:
        """Return the registration of a client (RFC 7591). Raise OAuthError."""
        redirects = _safe_redirects(metadata)
        # They are part of the id, and proxies take addresses of 8 KB.
        if not redirects or sum(map(len, redirects)) > 2_000:
            raise OAuthError(
                "invalid_redirect_uri",
                "redirect_uris: expected https URLs, loopback URLs or addresses of a program",
            )
        if "code" not in (_strings(metadata, "response_types") or ["code"]):
            raise OAuthError("invalid_client_metadata", "response_types: only code is supported")
        name = _name(metadata, redirects[0])
        return {
            "client_id": self.seal(OAuthClient(name=name, redirect_uris=redirects)),
            "client_name": name,
            "redirect_uris": redirects,
            "grant_types": ["authorization_code", "refresh_token"],
            "response_types": ["code"],
            "token_endpoint_auth_method": "none",
        }

    def authenticate(self, client_id: str, keys: str, form: Form, issuer: str) -> None:
        """Check the signature of a client that must sign, or that signs anyway. Raise OAuthError.

        This is `private_key_jwt` of RFC 7523. Clients without `keys` are public.
        """
        assertion = form.get("client_assertion", "")
        if not assertion:
            if keys or not form.get("client_id"):
                text = "client_assertion: the client must sign" if keys else "no client_id"
                raise OAuthError("invalid_client", text)
            return
        keys = keys or self.find(client_id).keys
        kind = "urn:ietf:params:oauth:client-assertion-type:jwt-bearer"
        if form.get("client_assertion_type") != kind or not keys or not self.checks_signatures:
            raise OAuthError("invalid_client", "client_assertion: no signature was expected")
        import jwt

        try:
            jwt.decode(
                assertion,
                self._find_key(keys, jwt.get_unverified_header(assertion).get("kid")),
                algorithms=ALGORITHMS,
                audience=[issuer, f"{issuer}/token"],
                issuer=client_id,
                subject=client_id,
                leeway=60,
                options={"require": ["exp", "iss", "sub", "aud"]},
            )
        except (jwt.PyJWTError, ValueError) as exc:
            raise OAuthError("invalid_client", f"client_assertion: {exc}") from exc

    def _find_key(self, url: str, identifier: str | None) -> Any:
        """Return a client's public key. Raise an error of the library, ValueError, OAuthError."""
        import jwt

        # An unknown key may be new, but strangers must not cause a fetch with every request.
        for max_age in (FRESH_S, 60):
            document = self.documents.get(url, limit=64_000, max_age=max_age)
            jwks = msgspec.convert(document.get("jwks", document), _Keys)
            for key in jwt.PyJWKSet(jwks.keys).keys:
                if identifier in (None, key.key_id):
                    return key
        raise jwt.InvalidKeyError("unknown key")

    def seal(self, value: Struct) -> str:
        """Return a value as text that only a server of this store can have made."""
        text = urlsafe_b64encode(msgspec.json.encode(value)).rstrip(b"=").decode()
        return f"{text}.{self._sign(type(value), text)}"

    def unseal(self, sealed: str, kind: type[T]) -> T:
        """Return a sealed value. Raise ValueError if this server did not seal it."""
        text, _, signature = sealed.partition(".")
        if not hmac.compare_digest(self._sign(kind, text).encode(), signature.encode()):
            raise ValueError("not sealed by this server")
        return msgspec.json.decode(urlsafe_b64decode(text + "=" * (-len(text) % 4)), type=kind)

    def _sign(self, kind: type, text: str) -> str:
        message = f"{kind.__name__}.{text}".encode("utf-8", "replace")
        digest = hmac.digest(self._signing_key(), message, "sha256")
        # Half of it is as hard to forge, and programs keep ids in columns of all widths.
        return urlsafe_b64encode(digest[:16]).rstrip(b"=").decode()

    def _described(self, url: str, document: dict[str, Any]) -> OAuthClient:
        """Return the client that a document describes. Raise OAuthError."""
        if document.get("client_id") != url:
            raise OAuthError("invalid_client", f"{url}: the document is about another client")
        redirects = _safe_redirects(document)
        if not redirects:
            raise OAuthError("invalid_client", f"{url}: the document has no usable redirect_uris")
        must_sign = document.get("token_endpoint_auth_method") == "private_key_jwt"
        # A client that signs may say that it can do without.
        if "none" in _strings(document, "token_endpoint_auth_methods_supported"):
            must_sign = False
        if must_sign and not self.checks_signatures:
            text = f"{url}: the client signs its requests; run `pip install 'polymnia[oauth]'`"
            raise OAuthError("server_error", f"{text} on the server", status=503)
        keys = document.get("jwks_uri")
        if not isinstance(keys, str) or not is_document_url(keys):
            keys = url if "jwks" in document else ""
        return OAuthClient(
            id=url,
            name=_name(document, url),
            host=urlsplit(url).hostname or "",
            redirect_uris=redirects,
            keys=keys,
            must_sign=must_sign,
        )


def _name(metadata: dict[str, Any], fallback: str) -> str:
    """Return the name that a client gives itself, in printable characters."""
    name = metadata.get("client_name")
    text = "".join(filter(str.isprintable, name)) if isinstance(name, str) else ""
    return text.strip()[:60] or urlsplit(fallback).hostname or "a program"


def _safe_redirects(metadata: dict[str, Any]) -> tuple[str, ...]:
    """Return the redirects that a browser may follow: one strange one does not spoil the others."""
    redirects = _strings(metadata, "redirect_uris")[:50]
    return tuple(uri for uri in redirects if is_safe_redirect(uri))


def _strings(metadata: dict[str, Any], name: str) -> list[str]:
    """Return the texts in a list of a client; none if there is no such list."""
    values = metadata.get(name)
    return [text for text in values if isinstance(text, str)] if isinstance(values, list) else []


def is_safe_redirect(uri: str) -> bool:
    """Return True for https, for http on a loopback address, and for the scheme of a program."""
    if len(uri) > 2_000 or not (uri.isascii() and uri.isprintable()):
        return False
    try:
        url = urlsplit(uri)
        _ = url.port
    except ValueError:
        return False
    if set(uri) & set(' \\#"<>') or "://" not in uri or "@" in url.netloc:
        return False
    if url.scheme == "https":
        return bool(url.hostname)
    if url.scheme == "http":
        return url.hostname in _LOOPBACK
    return url.scheme not in _UNSAFE_SCHEMES


def _without_port(uri: str) -> tuple[str, ...] | None:
    """Return the parts of a loopback URL that must match (RFC 8252); None for other URLs."""
    url = urlsplit(uri)
    if url.scheme != "http" or url.hostname not in _LOOPBACK:
        return None
    return (url.hostname, url.path or "/", url.query)
