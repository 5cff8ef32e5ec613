"""News: which pages follow a workspace, and the events that tell them of changes."""

import asyncio
from threading import Lock

from msgspec.json import encode

from polymnia.engine.workspaces.workspaces import Workspaces
from polymnia.model import Change
from polymnia.transports.http.stream import EventStream

# A page gets at most one event in this time.
INTERVAL_S = 0.2


class ChangeNews:
    """The pages that follow workspaces. Changes of this server and of others reach them."""

    def __init__(self, workspaces: Workspaces) -> None:
        self._workspaces = workspaces
        self._lock = Lock()
        self._followers: dict[PageFollower, str] = {}
        self._has_subscribed = False

    def follow(
        self, workspace: str, stream: EventStream, loop: asyncio.AbstractEventLoop
    ) -> "PageFollower":
        """Send the changes of a workspace to a stream until `leave`. Blocks to open stores."""
        follower = PageFollower(stream, loop)
        with self._lock:
            is_first, self._has_subscribed = not self._has_subscribed, True
            self._followers[follower] = workspace
        if is_first:
            self._workspaces.on_change(self._tell)
        self._workspaces.follow(self._tell, lambda: bool(self._followers), workspace)
        return follower

    def leave(self, follower: "PageFollower") -> None:
        """Stop sending changes to a stream."""
        with self._lock:
            self._followers.pop(follower, None)

    def _tell(self, workspace: str, change: Change) -> None:
        with self._lock:
            followers = [key for key, name in self._followers.items() if name == workspace]
        for follower in followers:
            follower.add(change.id)


class PageFollower:
    """Collects the changes for one stream, and sends one event per interval."""

    def __init__(self, stream: EventStream, loop: asyncio.AbstractEventLoop) -> None:
        self._stream = stream
        self._loop = loop
        self._lock = Lock()
        self._count = 0
        self._last = 0

    def add(self, change: int) -> None:
        """Count a change. Safe from any thread."""
        with self._lock:
            is_first = self._count == 0
            self._count += 1
            self._last = max(self._last, change)
        if is_first:
            self._loop.call_soon_threadsafe(self._loop.call_later, INTERVAL_S, self._send)

    def _send(self) -> None:
        with self._lock:
            count, last, self._count = self._count, self._last, 0
        self._stream.put(encode({"count": count, "last": last}))
