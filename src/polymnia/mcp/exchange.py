"""One request being answered, in the conversation it belongs to."""

from collections.abc import Callable
from typing import Any

from msgspec import UNSET, Raw, Struct

from polymnia.dialects.base import Call, Client, Dialect, Level
from polymnia.mcp.jsonrpc import RequestId
from polymnia.mcp.params import Meta
from polymnia.mcp.push import LIST_CHANGED, Notify, Push, is_at_least
from polymnia.mcp.revisions import LATEST_HANDSHAKE
from polymnia.mcp.server import Listener, Server


class Conversation:
    """What is remembered between two requests of one client."""

    def __init__(self, server: Server, listener: Listener, client: Client, notify: Notify) -> None:
        self.server = server
        self._listener = listener
        self.client = client
        self.notify = notify
        self.push = Push(server.dialect, client, notify)
        self.actor = "unknown client"
        self.revision = LATEST_HANDSHAKE

    def attend(self) -> None:
        """Hear of changes if any could matter here, of none if not."""
        if self.push.wants_changes:
            self.server.attend(self._listener)
        else:
            self.server.ignore(self._listener)


class Arrival(Struct, frozen=True):
    """What a transport knows of a message besides its bytes."""

    # The workspace it names for itself, in a header.
    workspace: str | None = None
    # Where notifications about it go when they have a way of their own; None is the conversation's outbox.
    tell: Callable[[bytes], None] | None = None
    # Whether nobody waits for the answer any more.
    gone: Callable[[], bool] | None = None


class Exchange(Struct):
    """What a method may use besides its parameters."""

    conversation: Conversation
    id: RequestId
    raw_id: Raw
    revision: str
    stateless: bool
    meta: Meta
    client: Client
    actor: str
    # Where notifications about this request go: by itself, or with all the others of the conversation.
    notify: Notify
    gone: Callable[[], bool] | None = None
    is_cancelled: bool = False

    @property
    def dialect(self) -> Dialect:
        return self.conversation.server.dialect

    def call(self) -> Call:
        """The view of this exchange that tools, resources and prompts get."""
        workspaces, changed = self.conversation.server.workspaces, self._resources_changed
        if self.meta.progress_token in (UNSET, None):
            return Call(
                workspaces, self.client, self.by, cancelled=self._cancelled, log=self._log, resources_changed=changed
            )
        return Call(workspaces, self.client, self.by, self._progress, self._cancelled, self._log, changed)

    @property
    def by(self) -> str:
        """How the change log names whoever asks: the client, and the token it came with."""
        token = self.client.principal.name
        return f"{self.actor} (token {token})" if token else self.actor

    @property
    def unwanted(self) -> bool:
        """Whether the client has cancelled the request or is gone."""
        return self.is_cancelled or (self.gone is not None and self.gone())

    def _cancelled(self) -> bool:
        return self.unwanted

    def _log(self, level: Level, text: str) -> None:
        """Tell the client about its own request, if it asked for messages of that level."""
        heard = is_at_least(level, self.meta.log_level) if self.stateless else self.conversation.push.hears(level)
        if heard:
            self.notify("notifications/message", {"level": level, "logger": self.dialect.name, "data": text})

    def _resources_changed(self) -> None:
        self.conversation.notify(LIST_CHANGED, {})

    def _progress(self, done: float, total: float | None, message: str | None) -> None:
        params: dict[str, Any] = {"progressToken": self.meta.progress_token, "progress": done}
        if total is not None:
            params["total"] = total
        if message is not None:
            params["message"] = message
        self.notify("notifications/progress", params)
