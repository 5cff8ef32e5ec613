"""Who uses the web interface: sessions in a cookie, one-time links, tokens of forms."""

import hmac
import logging
import secrets
import time
from collections import OrderedDict
from collections.abc import Callable
from threading import Lock
from typing import TYPE_CHECKING

from msgspec import Struct

from polymnia.errors import StoreError
from polymnia.model import LINK_OWNER, Principal

if TYPE_CHECKING:
    from polymnia.auth.people import People

logger = logging.getLogger(__name__)

# A session in memory ends when it was not used for this long.
IDLE_S = 12 * 3600
LINK_LIFETIME_S = 600
MAX_SESSIONS = 1_000
MAX_LINKS = 100


class _Session(Struct):
    principal: Principal
    used_at: float


class WebSessions:
    """Open sessions by the secret in their cookie, and links that open one. Thread-safe.

    `people` keeps the sessions of people and tokens, for all servers of a store. Others are lost
    when the server ends: those of one-time links, and all on a server that may only read.
    """

    def __init__(
        self,
        holds: Callable[[Principal], bool],
        clock: Callable[[], float] = time.monotonic,
        *,
        people: "People | None" = None,
    ) -> None:
        """`holds` tells whether a principal would still be admitted."""
        self._holds = holds
        self._clock = clock
        self._people = people
        self._lock = Lock()
        self._sessions: OrderedDict[str, _Session] = OrderedDict()
        self._links: OrderedDict[str, tuple[Principal, float]] = OrderedDict()
        self._key = secrets.token_bytes(32)

    def open(self, principal: Principal) -> str:
        """Open a session and return its secret. With too many, the longest unused one ends."""
        # A link logs in to the server that made it, without a token that others could check.
        if self._people is not None and principal.id and principal.id != LINK_OWNER.id:
            try:
                return self._people.open_session(principal)
            except StoreError as exc:
                logger.warning("this login ends with the server: %s", exc)
        secret = secrets.token_urlsafe(32)
        with self._lock:
            self._sessions[secret] = _Session(principal, self._clock())
            while len(self._sessions) > MAX_SESSIONS:
                self._sessions.popitem(last=False)
        return secret

    def find(self, secret: str) -> Principal | None:
        """Return whose session it is; None if it has ended or its token no longer holds.

        Raise StoreError.
        """
        principal = self._find_own(secret)
        if principal is None and self._people is not None:
            principal = self._people.find_session(secret)
        if principal is not None and not self._holds(principal):
            self.close(secret)
            return None
        return principal

    def _find_own(self, secret: str) -> Principal | None:
        with self._lock:
            session = self._sessions.pop(secret, None)
            if session is None or self._clock() - session.used_at > IDLE_S:
                return None
            session.used_at = self._clock()
            self._sessions[secret] = session  # at the end: it was used last
            return session.principal

    def close(self, secret: str) -> None:
        """End a session, on all servers. Raise StoreError."""
        with self._lock:
            own = self._sessions.pop(secret, None)
        if self._people is not None and own is None:
            self._people.close_session(secret)

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
        """Return the token that every form of a session must send. Other sites cannot read it.

        Any server that knows the session makes the same. Without a session, where no login is
        needed, this server's own key stands for it.
        """
        key = secret.encode() or self._key
        return hmac.new(key, b"form", "sha256").hexdigest()

    def is_form_token(self, secret: str, given: str) -> bool:
        """Return True if a request carries the token of its session."""
        return hmac.compare_digest(
            self.form_token(secret).encode(), given.encode("utf-8", "replace")
        )
