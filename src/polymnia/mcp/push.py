"""What a conversation has asked to be told: resource subscriptions, listen streams and log messages."""

from collections.abc import Callable, Collection
from typing import Any, get_args

from msgspec import Struct, UnsetType

from polymnia.dialects.base import Client, Dialect, Level
from polymnia.errors import InvalidParams
from polymnia.mcp.jsonrpc import RequestId
from polymnia.mcp.params import SUBSCRIPTION_ID, Filter
from polymnia.model import Change

LEVELS: tuple[str, ...] = get_args(Level)
LIST_CHANGED = "notifications/resources/list_changed"
_UPDATED = "notifications/resources/updated"
# What one conversation may ask to be told of: it is kept as long as the conversation.
_MOST_WISHES = 1000
_LONGEST_URI = 8192
_TOO_MANY = f"at most {_MOST_WISHES} addresses of {_LONGEST_URI} characters may be listened to at once"

Notify = Callable[[str, dict[str, Any]], None]


class Stream(Struct):
    """An open `subscriptions/listen` request and what it listens for."""

    raw_id: bytes
    wants: Filter
    client: Client
    notify: Notify


class Push:
    """The wishes of one conversation, and the notifications that follow from them."""

    def __init__(self, dialect: Dialect, client: Client, notify: Notify) -> None:
        self.subscribed: set[str] = set()
        self.streams: dict[RequestId, Stream] = {}
        self.greeted = False
        self._dialect = dialect
        self._client = client
        self._notify = notify
        self._level = "warning"

    @property
    def wants_changes(self) -> bool:
        """Whether any change could lead to a notification."""
        by_itself = self.greeted and self._dialect.resource_set_changed is not None
        return bool(self.subscribed or self.streams or by_itself)

    def subscribe(self, uri: str) -> None:
        """Raises InvalidParams for more addresses than anybody needs."""
        if len(self.subscribed) >= _MOST_WISHES or len(uri) > _LONGEST_URI:
            raise InvalidParams(_TOO_MANY)
        self.subscribed.add(uri)

    def listen(self, identifier: RequestId, raw_id: bytes, wants: Filter, client: Client, notify: Notify) -> None:
        """Open a stream; its first message says what of the wishes will be kept. Raises InvalidParams."""
        uris = wants.resource_subscriptions or []
        if (
            len(self.streams) >= _MOST_WISHES
            or len(uris) > _MOST_WISHES
            or any(len(each) > _LONGEST_URI for each in uris)
        ):
            raise InvalidParams(_TOO_MANY)
        kept = Filter(
            resources_list_changed=bool(wants.resources_list_changed and self._dialect.resource_set_changed),
            resource_subscriptions=uris,
        )
        self.streams[identifier] = Stream(raw_id, kept, client, notify)
        honoured: dict[str, Any] = {}
        if kept.resources_list_changed:
            honoured["resourcesListChanged"] = True
        if kept.resource_subscriptions:
            honoured["resourceSubscriptions"] = kept.resource_subscriptions
        self._on_stream(identifier, "notifications/subscriptions/acknowledged", {"notifications": honoured})

    def set_level(self, level: str) -> None:
        """Raises InvalidParams for a level the protocol does not have."""
        self._level = checked_level(level)

    def hears(self, level: str) -> bool:
        """Whether log messages of that level are wanted."""
        return self.greeted and is_at_least(level, self._level)

    def log(self, level: str, logger: str, text: str) -> None:
        # They are about the whole server, so not for those who may see a part of it.
        if self._client.principal.workspaces is None and self.hears(level):
            self._notify("notifications/message", {"level": level, "logger": logger, "data": text})

    def changed(self, workspace: str, change: Change) -> None:
        """Tell what was asked for by those who work there, and nothing else."""
        dialect, client = self._dialect, self._client
        if _concerns(client, workspace):
            set_changed = dialect.resource_set_changed if self.greeted else None
            if set_changed is not None and set_changed(client, change):
                self._notify(LIST_CHANGED, {})
            for uri in _touched(dialect, client, change, self.subscribed):
                self._notify(_UPDATED, {"uri": uri})
        for identifier, stream in list(self.streams.items()):  # other threads may open and close them
            if _concerns(stream.client, workspace):
                self._stream_changed(identifier, stream, change)

    def _stream_changed(self, identifier: RequestId, stream: Stream, change: Change) -> None:
        dialect, client = self._dialect, stream.client
        set_changed = dialect.resource_set_changed if stream.wants.resources_list_changed else None
        if set_changed is not None and set_changed(client, change):
            self._on_stream(identifier, LIST_CHANGED, {})
        for uri in _touched(dialect, client, change, stream.wants.resource_subscriptions or ()):
            self._on_stream(identifier, _UPDATED, {"uri": uri})

    def _on_stream(self, identifier: RequestId, method: str, params: dict[str, Any]) -> None:
        if stream := self.streams.get(identifier):
            stream.notify(method, {**params, "_meta": {SUBSCRIPTION_ID: identifier}})


def checked_level(level: str) -> str:
    """The level, if it is one. Raises InvalidParams."""
    if level not in LEVELS:
        raise InvalidParams(f"level: expected one of {', '.join(LEVELS)}, got {level}")
    return level


def is_at_least(level: str, wanted: str | UnsetType | None) -> bool:
    """Whether a message of that level is for somebody who wants those from another on, or none at all."""
    return bool(wanted) and LEVELS.index(level) >= LEVELS.index(str(wanted))


def _concerns(client: Client, workspace: str) -> bool:
    return client.workspace == workspace and client.principal.enters(workspace)


def _touched(dialect: Dialect, client: Client, change: Change, wanted: Collection[str]) -> list[str]:
    """Those of the wanted addresses whose content the change may have altered."""
    if not wanted:
        return []
    uris = {each.uri for each in dialect.resources if each.touched_by(client, change)}
    touches = [template.touched for template in dialect.templates]
    return sorted({uri for uri in wanted if uri in uris or any(touched(client, change, uri) for touched in touches)})
