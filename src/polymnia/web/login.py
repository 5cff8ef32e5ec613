"""Who uses the web interface: sessions in a cookie, one-time links, tokens of forms."""

import hmac
import secrets
import time
from collections import OrderedDict
from collections.abc import Callable
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
    """Open sessions by the secret in their cookie, and links that open one. Thread-safe.

    They are lost when the server ends.
    """

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
        """Open a session and return its secret. With too many, the longest unused one ends."""
        secret = secrets.token_urlsafe(32)
        with self._lock:
            self._sessions[secret] = _Session(principal, self._clock())
            while len(self._sessions) > MAX_SESSIONS:
                self._sessions.popitem(last=False)
        return secret

    def find(self, secret: str) -> Principal | None:
        """Return whose session it is; None if it has ended or its token no longer holds."""
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
        """Return the token that every form of a session must send. Other sites cannot read it."""
        return hmac.new(self._key, secret.encode(), "sha256").hexdigest()

    def is_form_token(self, secret: str, given: str) -> bool:
        """Return True if a request carries the token of its session."""
        return hmac.compare_digest(
            self.form_token(secret).encode(), given.encode("utf-8", "replace")
        )
