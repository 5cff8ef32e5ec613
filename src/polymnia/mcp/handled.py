"""How a transport delivers a message, and how it was handled as logs and metrics see it: names, but no user text."""

from collections.abc import Callable

from msgspec import Struct

from polymnia.dialects.base import Dialect
from polymnia.mcp.jsonrpc import Answer, Message, Outcome
from polymnia.mcp.methods import METHODS

# Logged in place of a method or tool that does not exist, whose name may be any text.
UNKNOWN = "(unknown)"
BATCH = "batch"


class Handled(Struct, frozen=True, kw_only=True):
    """What was asked, how it ended and how long it took."""

    method: str
    # Empty if the message calls no tool.
    tool: str = ""
    outcome: Outcome = "ok"
    error_code: int | None = None
    seconds: float = 0.0


class Delivery(Struct, frozen=True):
    """What a transport knows of a message besides its bytes."""

    # The workspace that the message names in a header.
    workspace: str | None = None
    # Called with each notification about this message. Without it they go to the session's outbox.
    tell: Callable[[bytes], None] | None = None
    # Returns True once nobody waits for the reply.
    gone: Callable[[], bool] | None = None
    # Called with a reply that comes after `handle` has returned, or with None if there will be none. Without this
    # function such replies go to the outbox.
    reply: Callable[[bytes | None], None] | None = None
    # False if the client cannot be asked anything before the reply.
    can_ask: bool = True
    # Called after each request with what logs and metrics may know of it. A batch has several.
    observe: Callable[[Handled], None] | None = None


PLAIN = Delivery()


def describe_handled(dialect: Dialect, message: Message, answer: Answer, seconds: float) -> Handled:
    """Return what logs and metrics may say about a message and its answer."""
    return Handled(
        method=_known_method(message),
        tool=_known_tool(dialect, message),
        outcome=answer.outcome,
        error_code=answer.error_code,
        seconds=seconds,
    )


def _known_method(message: Message) -> str:
    if message.batch is not None:
        return BATCH
    return (
        message.method if isinstance(message.method, str) and message.method in METHODS else UNKNOWN
    )


def _known_tool(dialect: Dialect, message: Message) -> str:
    if message.method != "tools/call":
        return ""
    subject = message.subject
    return subject if isinstance(subject, str) and subject in dialect.tools else UNKNOWN
