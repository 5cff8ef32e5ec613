"""The door of a server that others can reach: from the token they bring to the principal they are."""

import logging
import time
from collections.abc import Callable

from polymnia.auth.tokens import Tokens
from polymnia.errors import NotAdmitted, StoreError
from polymnia.model import NOBODY, OWNER, Capability, Principal

logger = logging.getLogger(__name__)

Recognise = Callable[[str], Principal]


class Door:
    """Closed as soon as there are tokens or an identity provider; open to whoever reaches it otherwise."""

    def __init__(
        self, tokens: Tokens | None = None, *, provider: Recognise | None = None, most: Capability = "admin"
    ) -> None:
        """`most` is what anybody may do at most."""
        self._tokens = tokens
        self._provider = provider
        self._most = most

    @property
    def is_closed(self) -> bool:
        """Whether a token is needed."""
        return self._provider is not None or (self._tokens is not None and self._tokens.exist)

    def admit(self, token: str | None) -> Principal:
        """Who comes with the token, None standing for none. Raises NotAdmitted."""
        try:
            return self._recognised(token).restricted(self._most)
        except StoreError as exc:
            # What is wrong with the file is for who keeps it, not for who knocks.
            logger.error("nobody is let in: %s", exc)
            raise NotAdmitted("tokens cannot be checked just now; the server's log says why") from exc

    def holds(self, principal: Principal) -> bool:
        """Whether somebody who was admitted would still be: not revoked, not expired, and no token needed since."""
        if principal is NOBODY:
            return True
        if principal.until is not None and time.time() >= principal.until:
            return False
        if not principal.id:
            return not self.is_closed
        return self._is_of_provider(principal) or self._is_kept(principal)

    def _recognised(self, token: str | None) -> Principal:
        if not self.is_closed:
            return OWNER
        if not token:
            raise NotAdmitted("a token is needed here; `polymnia token create` makes one")
        # A JSON Web Token has two dots; ours have none.
        if self._provider is not None and token.count(".") == 2:
            return self._provider(token)
        if self._tokens is None:
            raise NotAdmitted("the token is not known here")
        return self._tokens.recognise(token)

    def _is_of_provider(self, principal: Principal) -> bool:
        return self._provider is not None and principal.id.startswith("jwt:")

    def _is_kept(self, principal: Principal) -> bool:
        try:
            return self._tokens is not None and self._tokens.holds(principal.id)
        except StoreError as exc:
            logger.error("nobody is let in: %s", exc)
            return False
