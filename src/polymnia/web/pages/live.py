"""Live: changes as they happen. Events announce changes; the page asks for them."""

import asyncio
from threading import Lock

from msgspec.json import encode
from starlette.responses import Response

from polymnia.engine.history import changes as history
from polymnia.engine.workspaces.workspaces import Workspaces
from polymnia.model import Change
from polymnia.transports.http.request import Request as HttpRequest
from polymnia.transports.http.stream import HEADERS, EventStream
from polymnia.web.changes import change_rows
from polymnia.web.page import SECURITY_HEADERS, TRANSPORT, Page, get, stream

# The changes that the page starts with, and that it asks for at once when it has fallen behind.
_MAX_FIRST, _MAX_NEW = 20, 50
# A page gets at most one event in this time.
INTERVAL_S = 0.2


@get("/live")
def show(page: Page) -> Response:
    """Show the latest changes, or only those after the last one that the page has."""
    after = page.query.number("after")
    if not page.memory.store.capabilities.history:
        return page.render("live/page.html", rows=[], has_history=False)
    limit = _MAX_FIRST if after is None else _MAX_NEW
    latest = history.latest(page.memory, limit=limit, max_rows=history.MAX_WHOLE_ROWS)
    rows = change_rows(page.memory, latest)
    if after is not None:
        rows = [row for row in rows if row.id > after]
    return page.render("live/page.html", fragment="live/rows.html", rows=rows, has_history=True)


@stream("/live/events")
async def send_events(page: Page) -> None:
    """Send an event for every batch of changes until the client leaves or the session ends."""
    request: HttpRequest = page.request.scope[TRANSPORT]
    request.require_streams()
    context, news = page.site.context, page.site.news
    events, loop = EventStream(), asyncio.get_running_loop()
    watcher = await context.run(lambda: news.watch(_workspace(page), events, loop))
    context.streams[events] = page.principal
    try:
        await request.start(200, {**SECURITY_HEADERS, **HEADERS})
        await request.write(b"retry: 1000\n\n", more=True)
        if await events.send(request):
            await events.send_last(request)
    finally:
        context.streams.pop(events, None)
        news.leave(watcher)


def _workspace(page: Page) -> str:
    """Return the chosen workspace. Raise NotAllowed, NoWorkspace, WorkspaceNotFound."""
    return page.site.parts.workspaces.find(page.workspace).name


class ChangeNews:
    """The pages that watch workspaces. Changes of this server and of others reach them."""

    def __init__(self, workspaces: Workspaces) -> None:
        self._workspaces = workspaces
        self._lock = Lock()
        self._watchers: dict[Watcher, str] = {}
        self._has_subscribed = False

    def watch(
        self, workspace: str, stream: EventStream, loop: asyncio.AbstractEventLoop
    ) -> "Watcher":
        """Send the changes of a workspace to a stream until `leave`. Blocks to open stores."""
        watcher = Watcher(stream, loop)
        with self._lock:
            is_first, self._has_subscribed = not self._has_subscribed, True
            self._watchers[watcher] = workspace
        if is_first:
            self._workspaces.on_change(self._tell)
        self._workspaces.follow(self._tell, self._has_watchers, workspace)
        return watcher

    def leave(self, watcher: "Watcher") -> None:
        """Stop sending changes to a stream."""
        with self._lock:
            self._watchers.pop(watcher, None)

    def _tell(self, workspace: str, change: Change) -> None:
        with self._lock:
            watchers = [key for key, watched in self._watchers.items() if watched == workspace]
        for watcher in watchers:
            watcher.add(change.id)

    def _has_watchers(self) -> bool:
        return bool(self._watchers)


class Watcher:
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
