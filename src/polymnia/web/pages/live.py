"""Live: the changes of a workspace as they happen. Events only announce changes; the page then asks for them."""

import asyncio

from polymnia.engine import history
from polymnia.transports.http.request import Request
from polymnia.transports.http.stream import HEADERS, EventStream
from polymnia.web.page import Page
from polymnia.web.pages.search import MAX_ROWS_READ, change_rows
from polymnia.web.response import SECURITY_HEADERS, Response
from polymnia.web.routes import Route, StreamRoute

# The changes that the page starts with, and that it asks for at once when it has fallen behind.
_FIRST, _MAX_NEW = 20, 50


def show(page: Page) -> Response:
    """Show the latest changes, or only those after the last one that the page has."""
    after = page.query.number("after")
    if not page.memory.store.capabilities.history:
        return page.render("live/page.html", rows=[], has_history=False)
    limit = _FIRST if after is None else _MAX_NEW
    found = history.latest(page.memory, limit=limit, max_rows=MAX_ROWS_READ).changes
    new = tuple([each for each in found if after is None or each.id > after])
    rows = change_rows(page.memory, new)
    return page.render("live/page.html", fragment="live/rows.html", rows=rows, has_history=True)


async def stream(page: Page, request: Request) -> None:
    """Send an event for every batch of changes until the client leaves or the session ends."""
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
    """Return the chosen workspace if it exists. Raise NotAllowed, NoWorkspace, WorkspaceNotFound."""
    return page.site.parts.workspaces.find(page.workspace).name


ROUTES = (Route("GET", "/live", show), StreamRoute("/live/events", stream))
