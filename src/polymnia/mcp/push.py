"""What a client wants to be notified of: resource subscriptions, listen streams and log messages."""

from collections.abc import Callable, Collection
from typing import Any, get_args

from msgspec import Struct, UnsetType

from polymnia.dialects.base import Client, Dialect, Level
from polymnia.engine.projects import PERSONAL
from polymnia.errors import InvalidParams
from polymnia.mcp.jsonrpc import RequestId
from polymnia.mcp.params import SUBSCRIPTION_ID, Filter
from polymnia.model import Change

LEVELS: tuple[str, ...] = get_args(Level)
LIST_CHANGED = "notifications/resources/list_changed"
_UPDATED = "notifications/resources/updated"
# Bounds for one session. Subscriptions stay in memory as long as the session does.
MAX_SUBSCRIPTIONS = 500
MAX_SUBSCRIPTION_BYTES = 32 * 1024
_TOO_MANY = (
    f"too many subscriptions: at most {MAX_SUBSCRIPTIONS} addresses with {MAX_SUBSCRIPTION_BYTES} bytes in all; "
    "unsubscribe from some first"
)

Notify = Callable[[str, dict[str, Any]], None]


class ListenStream(Struct, frozen=True):
    """An open `subscriptions/listen` request and what it listens for."""

    raw_id: bytes
    wanted: Filter
    client: Client
    notify: Notify


class Push:
    """The subscriptions of one client, and the notifications that follow from them."""

    def __init__(self, dialect: Dialect, client: Client, notify: Notify) -> None:
        # The addresses, and the client as it was when it subscribed: a request may name another workspace.
        self.subscribed: dict[str, Client] = {}
        self.streams: dict[RequestId, ListenStream] = {}
        self.is_initialized = False
        self._dialect = dialect
        self._client = client
        self._notify = notify
        self._level = "warning"

    @property
    def wants_changes(self) -> bool:
        """Return True if any change could lead to a notification."""
        wants_list = self.is_initialized and self._dialect.resource_set_changed is not None
        return bool(self.subscribed or self.streams or wants_list)

    def subscribe(self, uri: str, client: Client) -> None:
        """Add a subscription. Raise InvalidParams beyond the bounds."""
        if uri not in self.subscribed:
            self._require_room([uri])
        self.subscribed[uri] = client

    def listen(self, identifier: RequestId, stream: ListenStream) -> None:
        """Open a stream and acknowledge the part of its filter that is supported. Raise InvalidParams."""
        wanted = stream.wanted
        uris = wanted.resource_subscriptions or []
        self._require_room(uris)
        kept = Filter(
            resources_list_changed=bool(
                wanted.resources_list_changed and self._dialect.resource_set_changed
            ),
            resource_subscriptions=uris,
        )
        self.streams[identifier] = ListenStream(stream.raw_id, kept, stream.client, stream.notify)
        accepted: dict[str, Any] = {}
        if kept.resources_list_changed:
            accepted["resourcesListChanged"] = True
        if uris:
            accepted["resourceSubscriptions"] = uris
        self._tell_stream(
            identifier, "notifications/subscriptions/acknowledged", {"notifications": accepted}
        )

    def set_level(self, level: str) -> None:
        """Set the lowest level of log messages to send. Raise InvalidParams if there is no such level."""
        self._level = require_level(level)

    def wants_level(self, level: str) -> bool:
        """Return True if the client wants log messages of that level."""
        return self.is_initialized and is_at_least(level, self._level)

    def log(self, level: str, logger: str, text: str) -> None:
        """Send a log message of the server, unless the client may only see some workspaces."""
        if self._client.principal.workspaces is None and self.wants_level(level):
            self._notify("notifications/message", {"level": level, "logger": logger, "data": text})

    def notify_change(self, workspace: str, change: Change) -> None:
        """Send the notifications that a change in a workspace leads to."""
        dialect, client = self._dialect, self._client
        if _concerns(dialect, client, workspace):
            set_changed = dialect.resource_set_changed if self.is_initialized else None
            if set_changed is not None and set_changed(client, change):
                self._notify(LIST_CHANGED, {})
        for uri, subscriber in list(self.subscribed.items()):  # other threads may subscribe
            if _concerns(dialect, subscriber, workspace) and _changed_uris(
                dialect, subscriber, change, (uri,)
            ):
                self._notify(_UPDATED, {"uri": uri})
        for identifier, stream in list(
            self.streams.items()
        ):  # other threads may open and close them
            if _concerns(dialect, stream.client, workspace):
                self._stream_changed(identifier, stream, change)

    def _stream_changed(self, identifier: RequestId, stream: ListenStream, change: Change) -> None:
        dialect, client = self._dialect, stream.client
        set_changed = dialect.resource_set_changed if stream.wanted.resources_list_changed else None
        if set_changed is not None and set_changed(client, change):
            self._tell_stream(identifier, LIST_CHANGED, {})
        for uri in _changed_uris(
            dialect, client, change, stream.wanted.resource_subscriptions or ()
        ):
            self._tell_stream(identifier, _UPDATED, {"uri": uri})

    def _tell_stream(self, identifier: RequestId, method: str, params: dict[str, Any]) -> None:
        if stream := self.streams.get(identifier):
            stream.notify(method, {**params, "_meta": {SUBSCRIPTION_ID: identifier}})

    def _require_room(self, uris: list[str]) -> None:
        """Raise InvalidParams if the session cannot hold that many more addresses. A stream counts as one."""
        held = [*self.subscribed, *uris]
        for stream in list(self.streams.values()):
            held += stream.wanted.resource_subscriptions or ()
        count = len(held) + len(self.streams)
        if (
            count > MAX_SUBSCRIPTIONS
            or sum(len(each.encode()) for each in held) > MAX_SUBSCRIPTION_BYTES
        ):
            raise InvalidParams(_TOO_MANY)


def require_level(level: str) -> str:
    """Return the level. Raise InvalidParams if the protocol has no such level."""
    if level not in LEVELS:
        raise InvalidParams(f"level: expected one of {', '.join(LEVELS)}, got {level}")
    return level


def is_at_least(level: str, minimum: str | UnsetType | None) -> bool:
    """Return True if `level` is at or above the client's minimum."""
    return bool(minimum) and LEVELS.index(level) >= LEVELS.index(str(minimum))


def _concerns(dialect: Dialect, client: Client, workspace: str) -> bool:
    """Return True if the client works in the workspace: its own, or the personal one beside its project's."""
    is_own = client.workspace == workspace or (dialect.finds_project and workspace == PERSONAL)
    return is_own and client.principal.enters(workspace)


def _changed_uris(
    dialect: Dialect, client: Client, change: Change, wanted: Collection[str]
) -> list[str]:
    """Return the wanted addresses whose content the change may have altered."""
    if not wanted:
        return []
    uris = {each.uri for each in dialect.resources if each.touched_by(client, change)}
    checks = [template.touched for template in dialect.templates]
    return sorted(
        {
            uri
            for uri in wanted
            if uri in uris or any(touched(client, change, uri) for touched in checks)
        }
    )
