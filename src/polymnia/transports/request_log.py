"""The log line of a request: who asked, for what, how it ended and how long it took."""

import logging
import os
import re
from collections.abc import Callable

from msgspec import Struct, field

from polymnia.mcp.handled import BATCH, Handled
from polymnia.model import NOBODY, Principal

access_logger = logging.getLogger("polymnia.access")

# A client's request id is logged and sent back, so it must be short and unable to forge a field or a line.
_REQUEST_ID = re.compile(r"[A-Za-z0-9._-]{1,64}")


def choose_request_id(given: str | None) -> str:
    """Return the client's request id if it is a short token, else a new one."""
    return given if given is not None and _REQUEST_ID.fullmatch(given) else os.urandom(8).hex()


class RequestRecord(Struct, kw_only=True):
    """What is known about a request so far. It holds no user text and no secrets."""

    # The client's address.
    client: str
    id: str = field(default_factory=lambda: choose_request_id(None))
    # Who was admitted; None until then.
    principal: Principal | None = None
    is_login_rejected: bool = False
    # The status of the response; 0 until there is one.
    status: int = 0
    # The messages in the request that were handled, usually one.
    handled: list[Handled] = field(default_factory=list)
    # Takes what is handled after the request has ended, because its client did not wait. None until then.
    take_late: Callable[[Handled], None] | None = None

    def observe(self, handled: Handled) -> None:
        """Note how a message was handled."""
        if self.take_late is None:
            self.handled.append(handled)
        else:
            self.take_late(handled)

    @property
    def is_failed(self) -> bool:
        """Return True if a message in the request ended with an error."""
        return any(each.outcome == "error" for each in self.handled)

    def log(self, text: str, seconds: float, *, is_failed: bool) -> None:
        """Log the request: a failure as a warning.

        Requests of clients that were not admitted are never warnings, because anyone could flood the log with them.
        The authenticator reports failed logins.
        """
        is_admitted = self.principal is not None and self.principal is not NOBODY
        self.log_at(logging.WARNING if is_failed and is_admitted else logging.INFO, text, seconds)

    def log_at(self, level: int, text: str, seconds: float) -> None:
        """Log the request at a level."""
        if access_logger.isEnabledFor(level):
            access_logger.log(
                level, " ".join([text, *self._outcomes()]), extra=self._fields(seconds)
            )

    def _outcomes(self) -> list[str]:
        """Return how the request ended, unless all went well."""
        if len(self.handled) > 1:
            errors = sum(each.outcome == "error" for each in self.handled)
            return [f"({errors} of {len(self.handled)} messages failed)"] if errors else []
        return [_outcome(each) for each in self.handled if each.outcome != "ok"]

    def _subject(self) -> tuple[str, str]:
        """Return the method and the tool of the request; empty for a request without a message, such as a stream."""
        if len(self.handled) == 1:
            return self.handled[0].method, self.handled[0].tool
        return BATCH if self.handled else "", ""

    def _fields(self, seconds: float) -> dict[str, object]:
        name = self.principal.name if self.principal is not None else ""
        method, tool = self._subject()
        return {
            "request_id": self.id,
            "client": self.client,
            # The names in an identity provider's tokens may hold anything.
            "token": name if name.isprintable() else ascii(name),
            "method": "" if tool else method,
            "tool": tool,
            "duration_ms": round(seconds * 1000, 1),
        }


def _outcome(handled: Handled) -> str:
    return (
        handled.outcome if handled.error_code is None else f"{handled.outcome} {handled.error_code}"
    )
