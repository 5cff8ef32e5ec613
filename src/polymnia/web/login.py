"""Who uses the web interface: sessions in a cookie, one-time links, and protection against forged requests."""

import hmac
import secrets
import time
from collections import OrderedDict
from collections.abc import Callable
from http.cookies import CookieError, SimpleCookie
from threading import Lock

from msgspec import Struct

from polymnia.model import Principal

# A session ends when nobody has used it for this long, and with the token that opened it.
IDLE_S = 12 * 3600
LINK_LIFETIME_S = 600
MAX_SESSIONS = 1_000
MAX_LINKS = 100


class _Session(Struct):
    principal: Principal
    used_at: float


class WebSessions:
    """Open sessions by the secret in their cookie, and links that open one. Thread-safe; lost when the server ends."""

    def __init__(
        self, holds: Callable[[Principal], bool], clock: Callable[[], float] = time.monotonic
    ) -> None:
        """`holds` tells whether a principal would still be admitted."""
        self._holds = holds
        self._clock = clock
        self._lock = Lock()
        self._sessions: OrderedDict[str, _Session] = OrderedDict()
        self._links: OrderedDict[str, tuple[Principal, float]] = OrderedDict()
        self._key = secrets.token_bytes(32)

    def open(self, principal: Principal) -> str:
        """Open a session and return its secret. The session that was unused for longest ends if there are too many."""
        secret = secrets.token_urlsafe(32)
        with self._lock:
            self._sessions[secret] = _Session(principal, self._clock())
            while len(self._sessions) > MAX_SESSIONS:
                self._sessions.popitem(last=False)
        return secret

    def find(self, secret: str) -> Principal | None:
        """Return whose session it is; None if it has ended or the token that opened it no longer holds."""
        with self._lock:
            session = self._sessions.get(secret)
            if session is None:
                return None
            is_idle = self._clock() - session.used_at > IDLE_S
            session.used_at = self._clock()
            self._sessions.move_to_end(secret)
        if is_idle or not self._holds(session.principal):
            self.close(secret)
            return None
        return session.principal

    def close(self, secret: str) -> None:
        """End a session."""
        with self._lock:
            self._sessions.pop(secret, None)

    def make_link(self, principal: Principal) -> str:
        """Return a code that opens one session for the principal."""
        code = secrets.token_urlsafe(32)
        with self._lock:
            self._links[code] = (principal, self._clock() + LINK_LIFETIME_S)
            while len(self._links) > MAX_LINKS:
                self._links.popitem(last=False)
        return code

    def use_link(self, code: str) -> Principal | None:
        """Return whose link it is, and forget it; None if it was used already or has expired."""
        with self._lock:
            principal, until = self._links.pop(code, (None, 0.0))
        return (
            principal
            if principal is not None and self._clock() < until and self._holds(principal)
            else None
        )

    def form_token(self, secret: str) -> str:
        """Return the token that every writing request of a session must send; other sites cannot read it."""
        return hmac.new(self._key, secret.encode(), "sha256").hexdigest()

    def is_form_token(self, secret: str, given: str) -> bool:
        """Return True if a request carries the token of its session."""
        return hmac.compare_digest(
            self.form_token(secret).encode(), given.encode("utf-8", "replace")
        )


def read_cookie(header: str | None, name: str) -> str:
    """Return the value of a cookie; empty if there is none."""
    try:
        found = SimpleCookie(header or "").get(name)
    except CookieError:
        return ""
    return found.value if found is not None else ""


class SessionCookie(Struct, frozen=True, kw_only=True):
    """The cookie of a request, and how to set it."""

    name: str
    value: str = ""
    path: str = "/"
    is_secure: bool = False

    def set(self, value: str) -> dict[str, str]:
        """Return the header that sets the cookie until the browser is closed, or removes it if the value is empty."""
        parts = [f"{self.name}={value}", f"Path={self.path}", "HttpOnly", "SameSite=Strict"]
        if self.is_secure:
            parts.append("Secure")
        if not value:
            parts.append("Max-Age=0")
        return {"set-cookie": "; ".join(parts)}


NO_COOKIE = SessionCookie(name="")
