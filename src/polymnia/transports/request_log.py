"""The log line of a request: who asked, for what, how it ended and how long it took."""

import itertools
import logging
import os
import re
from collections.abc import Callable

from msgspec import Struct, field

from polymnia.mcp.message import Answer
from polymnia.mcp.session import BATCH
from polymnia.model import NOBODY, Principal

access_logger = logging.getLogger("polymnia.access")

# Our request ids. They need not be secret, and asking for randomness each time switches threads.
_PROCESS = os.urandom(4).hex()
_numbers = itertools.count(1)
# A client's request id is logged and sent back: it must be short and forge no field or line.
_REQUEST_ID = re.compile(r"[A-Za-z0-9._-]{1,64}")


def choose_request_id(given: str) -> str:
    """Return the client's request id if it is a short token, else a new one."""
    if _REQUEST_ID.fullmatch(given):
        return given
    return new_request_id()


def new_request_id() -> str:
    """Return an id that no other request of this process has, and hardly one of another."""
    return f"{_PROCESS}{next(_numbers):08x}"


class RequestRecord(Struct, kw_only=True):
    """What the log says about a request. It holds no user text and no secrets."""

    # The client's address.
    client: str
    id: str = field(default_factory=new_request_id)
    # Who was admitted; None until then.
    principal: Principal | None = None
    is_login_rejected: bool = False
    # The status of the response; 0 until there is one.
    status: int = 0
    # The messages in the request that were handled, usually one.
    messages: list[Answer] = field(default_factory=list)
    # Called with messages that end after the request, because its client left. None until then.
    take_late: Callable[[Answer], None] | None = None

    def observe(self, message: Answer) -> None:
        """Note how a message was handled."""
        if self.take_late is None:
            self.messages.append(message)
        else:
            self.take_late(message)

    @property
    def is_failed(self) -> bool:
        """Return True if a message in the request ended with an error."""
        return any(message.outcome == "error" for message in self.messages)

    def log(self, text: str, seconds: float, *, is_failed: bool) -> None:
        """Log the request: a failure as a warning.

        Requests of clients that were not admitted are never warnings, because anyone could flood
        the log with them. The authenticator reports failed logins.
        """
        is_admitted = self.principal is not None and self.principal is not NOBODY
        level = logging.WARNING if is_failed and is_admitted else logging.INFO
        self.log_at(level, text, seconds)

    def log_at(self, level: int, text: str, seconds: float) -> None:
        """Log the request at a level, and how it ended unless all went well."""
        if not access_logger.isEnabledFor(level):
            return
        method = tool = workspace = ""  # a request without a message, such as a stream
        if len(self.messages) > 1:
            method = BATCH
            errors = sum(message.outcome == "error" for message in self.messages)
            if errors:
                text += f" ({errors} of {len(self.messages)} messages failed)"
        elif self.messages:
            message = self.messages[0]
            method, tool, workspace = message.method, message.tool, message.workspace
            if message.error_code is not None:
                text += f" {message.outcome} {message.error_code}"
            elif message.outcome != "ok":
                text += f" {message.outcome}"
        name = self.principal.name if self.principal is not None else ""
        fields = {
            "request_id": self.id,
            "client": self.client,
            # The names in an identity provider's tokens may hold anything.
            "token": name if name.isprintable() else ascii(name),
            "method": "" if tool else method,
            "tool": tool,
            "workspace": workspace,
            "duration_ms": round(seconds * 1000, 1),
        }
        access_logger.log(level, text, extra=fields)
