"""The door of a server that others can reach: from the token they bring to the principal they are."""

from collections.abc import Callable

from polymnia.auth.tokens import Tokens
from polymnia.errors import NotAdmitted
from polymnia.model import OWNER, Capability, Principal

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
        return self._recognised(token).restricted(self._most)

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
