"""From the token of a request to the principal who makes it."""

import logging
import time
from collections.abc import Callable
from pathlib import Path
from threading import Lock

from polymnia.auth.tokens import Tokens, file_tokens
from polymnia.errors import NotAdmitted, StoreError
from polymnia.model import LINK_OWNER, NOBODY, OWNER, Capability, Principal
from polymnia.stores.open import has_files, open_token_table, store_kind

logger = logging.getLogger(__name__)

Recognise = Callable[[str], Principal]

# Failed logins are reported at most once in this many seconds, so that no client can flood the log.
_REPORT_INTERVAL_S = 1.0


class Authenticator:
    """Requires a token as soon as there are tokens or an identity provider.

    Without them it admits every client.
    """

    def __init__(
        self,
        tokens: Tokens | None = None,
        *,
        provider: Recognise | None = None,
        max_capability: Capability = "admin",
        is_strict: bool = False,
    ) -> None:
        """Grant no principal more than `max_capability`. `is_strict` always requires a token."""
        self._tokens = tokens
        self._provider = provider
        self._max_capability = max_capability
        self._is_strict = is_strict
        self._failures = _FailedLogins()

    @property
    def requires_token(self) -> bool:
        """True if requests need a token."""
        return (
            self._is_strict
            or self._provider is not None
            or (self._tokens is not None and self._tokens.exist)
        )

    def admit(self, token: str | None, peer: str = "", resource: str = "") -> Principal:
        """Return the principal of a token, or of a request without one. Raise NotAdmitted.

        `peer` is the client's address, for the log. `resource` is the URL that the request is for:
        the tokens of clients that people allowed in are valid for one.
        """
        try:
            if not self.requires_token:
                return OWNER.restrict(self._max_capability)
            if not token:
                hint = "create one with `polymnia token create`"
                raise NotAdmitted("a token is required", hint=hint)
            # A JSON Web Token has two dots, our tokens have none.
            if self._provider is not None and token.count(".") == 2:
                principal = self._provider(token)
            elif self._tokens is not None:
                principal = self._tokens.recognise(token, resource)
            else:
                raise NotAdmitted("unknown token")
            return principal.restrict(self._max_capability)
        except NotAdmitted as exc:
            if token:
                self._failures.report(exc, peer)
            raise
        except StoreError as exc:
            logger.error("cannot check tokens: %s", exc)
            raise NotAdmitted("tokens cannot be checked; the server's log says why") from exc

    def holds(self, principal: Principal) -> bool:
        """Return True if an admitted principal would be admitted again, with the same rights."""
        if principal is NOBODY or principal.id == LINK_OWNER.id:
            return True
        if principal.until is not None and time.time() >= principal.until:
            return False
        if not principal.id:
            return not self.requires_token
        if self._provider is not None and principal.id.startswith("jwt:"):
            return True
        try:
            current = None if self._tokens is None else self._tokens.current(principal.id)
        except StoreError as exc:
            logger.error("cannot check tokens: %s", exc)
            return False
        return current is not None and current.restrict(self._max_capability).is_same(principal)


class _FailedLogins:
    """Reports failed logins in the log, several as one line when they come quickly."""

    def __init__(self) -> None:
        self._lock = Lock()
        self._unreported = 0
        self._reported_at = -_REPORT_INTERVAL_S

    def report(self, reason: NotAdmitted, peer: str) -> None:
        with self._lock:
            self._unreported += 1
            now = time.monotonic()
            if now - self._reported_at < _REPORT_INTERVAL_S:
                return
            count, self._unreported, self._reported_at = self._unreported, 0, now
        more = f" ({count} since the last report)" if count > 1 else ""
        logger.warning("login failed: %s%s", reason, more, extra={"client": peer} if peer else None)


def tokens_of(store: str, file: str = "", *, read_only: bool = False) -> Tokens | None:
    """Return the tokens in the file, or else in the database or beside the store. Close them.

    Return None if the store is in memory. Raise StoreError if the database cannot be reached.
    """
    if file:
        return file_tokens(Path(file))
    table = open_token_table(store, read_only=read_only)
    if table is not None:
        return Tokens(table)
    kind, path = store_kind(store)
    if not has_files(kind, path):
        return None
    if kind == "directory":
        return file_tokens(Path(path) / "_meta.tokens")
    return file_tokens(Path(path).with_name(f"{Path(path).name}.tokens"))
