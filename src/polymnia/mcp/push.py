"""What a client wants to hear of: resource subscriptions, listen streams and log messages."""

from collections.abc import Callable, Collection
from typing import Any, get_args

from msgspec import Struct, UnsetType
from msgspec.structs import replace

from polymnia.dialects.base import Client, Dialect, Level
from polymnia.errors import InvalidParams
from polymnia.mcp.message import Channel, RequestId, encode_notification
from polymnia.mcp.params import SUBSCRIPTION_ID, Filter
from polymnia.model import Change

LEVELS: tuple[str, ...] = get_args(Level)
LIST_CHANGED = "notifications/resources/list_changed"
_UPDATED = "notifications/resources/updated"
# Bounds for one session. Subscriptions stay in memory as long as the session does.
MAX_SUBSCRIPTIONS = 500
MAX_SUBSCRIPTION_BYTES = 32 * 1024


class ListenStream(Struct, frozen=True):
    """An open `subscriptions/listen` request and what it listens for."""

    raw_id: bytes
    filter: Filter
    client: Client
    channel: Channel


class Push:
    """The subscriptions of one client, and the notifications that follow from them."""

    def __init__(self, dialect: Dialect, client: Client, notify: Callable[[bytes], None]) -> None:
        # The addresses, and the client as it was when it subscribed: a request may name another
        # workspace.
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
            self._require_space([uri])
        self.subscribed[uri] = client

    def listen(self, identifier: RequestId, stream: ListenStream) -> None:
        """Open a stream and acknowledge the supported part of its filter. Raise InvalidParams."""
        uris = stream.filter.resource_subscriptions or []
        self._require_space(uris)
        can_list = self._dialect.resource_set_changed is not None
        wants_list = bool(stream.filter.resources_list_changed and can_list)
        supported = Filter(resources_list_changed=wants_list, resource_subscriptions=uris)
        self.streams[identifier] = replace(stream, filter=supported)
        accepted: dict[str, Any] = {}
        if wants_list:
            accepted["resourcesListChanged"] = True
        if uris:
            accepted["resourceSubscriptions"] = uris
        method = "notifications/subscriptions/acknowledged"
        self._notify_stream(identifier, method, {"notifications": accepted})

    def set_level(self, level: str) -> None:
        """Set the lowest level of log messages to send. Raise InvalidParams for an unknown one."""
        self._level = require_level(level)

    def wants_level(self, level: str) -> bool:
        """Return True if the client wants log messages of that level."""
        return self.is_initialized and is_at_least(level, self._level)

    def log(self, level: str, logger: str, text: str) -> None:
        """Send a log message of the server, unless the client may only see some workspaces."""
        if self._client.principal.workspaces is None and self.wants_level(level):
            message = {"level": level, "logger": logger, "data": text}
            self._notify(encode_notification("notifications/message", message))

    def notify_change(self, workspace: str, change: Change) -> None:
        """Send the notifications that a change in a workspace leads to."""
        dialect, client = self._dialect, self._client
        is_concerned = self.is_initialized and _concerns(dialect, client, workspace)
        if is_concerned and _changes_list(dialect, client, change):
            self._notify(encode_notification(LIST_CHANGED, {}))
        # Other threads may subscribe, open and close streams meanwhile.
        for uri, subscriber in list(self.subscribed.items()):
            is_concerned = _concerns(dialect, subscriber, workspace)
            if is_concerned and _changed_uris(dialect, subscriber, change, (uri,)):
                self._notify(encode_notification(_UPDATED, {"uri": uri}))
        for identifier, stream in list(self.streams.items()):
            client, wanted = stream.client, stream.filter
            if not _concerns(dialect, client, workspace):
                continue
            if wanted.resources_list_changed and _changes_list(dialect, client, change):
                self._notify_stream(identifier, LIST_CHANGED, {})
            uris = wanted.resource_subscriptions or ()
            for uri in _changed_uris(dialect, client, change, uris):
                self._notify_stream(identifier, _UPDATED, {"uri": uri})

    def _notify_stream(self, identifier: RequestId, method: str, params: dict[str, Any]) -> None:
        if stream := self.streams.get(identifier):
            params["_meta"] = {SUBSCRIPTION_ID: identifier}
            stream.channel.notify(encode_notification(method, params))

    def _require_space(self, uris: list[str]) -> None:
        """Raise InvalidParams if the session cannot hold these addresses too."""
        streams = list(self.streams.values())
        held = [*self.subscribed, *uris]
        for stream in streams:
            held += stream.filter.resource_subscriptions or ()
        size = sum(len(uri.encode()) for uri in held)
        # A stream counts as an address, so that streams without any are bounded too.
        if len(held) + len(streams) > MAX_SUBSCRIPTIONS or size > MAX_SUBSCRIPTION_BYTES:
            raise InvalidParams(
                f"too many subscriptions: at most {MAX_SUBSCRIPTIONS} addresses with "
                f"{MAX_SUBSCRIPTION_BYTES} bytes in all; unsubscribe from some first"
            )


def require_level(level: str) -> str:
    """Return the level. Raise InvalidParams if the protocol has no such level."""
    if level not in LEVELS:
        raise InvalidParams(f"level: expected one of {', '.join(LEVELS)}, got {level}")
    return level


def is_at_least(level: str, minimum: str | UnsetType | None) -> bool:
    """Return True if `level` is at or above the client's minimum."""
    return bool(minimum) and LEVELS.index(level) >= LEVELS.index(str(minimum))


def _concerns(dialect: Dialect, client: Client, workspace: str) -> bool:
    """Return True if the client works there: in its own workspace, or in one that all share."""
    own = (client.workspace, client.principal.own_workspace, *dialect.shared_workspaces)
    return workspace in own and client.principal.enters(workspace)


def _changes_list(dialect: Dialect, client: Client, change: Change) -> bool:
    """Return True if the change may alter the client's list of resources."""
    set_changed = dialect.resource_set_changed
    return set_changed is not None and set_changed(client, change)


def _changed_uris(
    dialect: Dialect, client: Client, change: Change, uris: Collection[str]
) -> list[str]:
    """Return those of the addresses whose content the change may have altered."""
    if not uris:
        return []
    fixed = {resource.uri for resource in dialect.resources if resource.touched_by(client, change)}
    changed = set()
    for uri in uris:
        templates = dialect.templates
        if uri in fixed or any(template.touched(client, change, uri) for template in templates):
            changed.add(uri)
    return sorted(changed)
