"""One request being answered, in the conversation it belongs to."""

from collections.abc import Callable
from typing import Any

from msgspec import UNSET, Raw, Struct

from polymnia.dialects.base import Call, Dialect
from polymnia.mcp.jsonrpc import RequestId
from polymnia.mcp.params import Meta
from polymnia.mcp.push import Push
from polymnia.mcp.revisions import LATEST_HANDSHAKE
from polymnia.mcp.server import Server

Notify = Callable[[str, dict[str, Any]], None]


class Conversation:
    """What is remembered between two requests of one client."""

    def __init__(self, server: Server, notify: Notify) -> None:
        self.server = server
        self.notify = notify
        self.push = Push(server.dialect, notify)
        self.actor = "unknown client"
        self.revision = LATEST_HANDSHAKE


class Exchange(Struct):
    """What a method may use besides its parameters."""

    conversation: Conversation
    id: RequestId
    raw_id: Raw
    revision: str
    stateless: bool
    meta: Meta
    actor: str
    is_cancelled: bool = False

    @property
    def dialect(self) -> Dialect:
        return self.conversation.server.dialect

    def call(self) -> Call:
        """The view of this exchange that tools, resources and prompts get."""
        progress = self._progress if self.meta.progress_token not in (UNSET, None) else None
        return Call(self.conversation.server.memory, self.actor, progress=progress, cancelled=self._cancelled)

    def _cancelled(self) -> bool:
        return self.is_cancelled

    def _progress(self, done: float, total: float | None, message: str | None) -> None:
        params: dict[str, Any] = {"progressToken": self.meta.progress_token, "progress": done}
        if total is not None:
            params["total"] = total
        if message is not None:
            params["message"] = message
        self.conversation.notify("notifications/progress", params)
