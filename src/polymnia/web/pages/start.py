"""The first page of an empty memory: connect agents, import what is there, see the first fact."""

from hashlib import sha256
from typing import Any

from starlette.responses import Response

from polymnia.clients.connect import FoundClient, connect, disconnect, find_clients
from polymnia.clients.takeover import PastSource, find_past_sessions
from polymnia.engine.history.changes import MAX_WHOLE_ROWS, latest
from polymnia.errors import BadInput, NotAllowed, PolymniaError
from polymnia.model import LINK_OWNER
from polymnia.settings import client_roots
from polymnia.web.changes import ChangeView, change_rows
from polymnia.web.imports import LocalFiles
from polymnia.web.page import Page, get, post
from polymnia.web.pages.imports import check_files


@get("/start")
def show(page: Page) -> Response:
    """Show the three steps."""
    return show_start(page)


def show_start(page: Page) -> Response:
    """Return the page with the three steps. There may be no workspace yet."""
    if page.is_fragment:  # a whole page does not fit into a part of one
        return page.redirect(page.url("/start"))
    values: dict[str, Any] = {"is_local": _is_local(page), "clients": [], "sources": []}
    if _is_local(page):
        roots = client_roots()
        values["clients"] = find_clients(roots)
        values["sources"] = [(_source_id(past), past) for past in find_past_sessions(roots)]
    return page.render("start/page.html", first=_first_change(page), **values)


@get("/start/wait")
def wait(page: Page) -> Response:
    """Show the first fact, or that it has not arrived: a part of the page that asks again."""
    if not page.is_fragment:
        return page.redirect(page.url("/start"))
    return page.render("start/wait.html", first=_first_change(page))


@post("/start/connect", needs="admin")
def connect_client(page: Page) -> Response:
    """Add this memory to the configuration of a client that was found."""
    chosen = _find_client(page)
    connect(chosen.client, chosen.path, page.site.parts.store)
    text = f"Connected {chosen.client.title}. {chosen.client.then}"
    return page.done(text, page.url("/start"))


@post("/start/disconnect", needs="admin")
def disconnect_client(page: Page) -> Response:
    """Remove this memory from the configuration of a client."""
    chosen = _find_client(page)
    disconnect(chosen.client, chosen.path)
    return page.done(f"Disconnected {chosen.client.title}", page.url("/start"))


@post("/start/check", needs="admin")
def check_source(page: Page) -> Response:
    """Check what an import of sessions that were found on this machine would do: a dry run."""
    _require_local(page)
    for past in find_past_sessions(client_roots()):
        if _source_id(past) == page.form["source"]:
            return check_files(page, LocalFiles(past.path, past.title, past.size))
    raise BadInput("these sessions are no longer there: load the page again")


def _is_local(page: Page) -> bool:
    """Return True for the person at this machine, whose files the page may show and change."""
    is_owner = page.principal.id == LINK_OWNER.id
    return page.site.parts.requires_login and is_owner and page.may("admin")


def _require_local(page: Page) -> None:
    if not _is_local(page):
        raise NotAllowed("only `polymnia ui` on this machine changes other programs")


def _find_client(page: Page) -> FoundClient:
    _require_local(page)
    name = page.form["client"]
    for found in find_clients(client_roots()):
        if found.client.name == name:
            return found
    raise BadInput(f"there is no client {name[:40]!r} on this machine")


def _source_id(past: PastSource) -> str:
    """Return what a form sends for a folder: a path in a form could name any file."""
    return sha256(str(past.path).encode("utf-8", "surrogateescape")).hexdigest()[:16]


def _first_change(page: Page) -> tuple[str, ChangeView] | None:
    """Return the last change of a workspace that has one, with its name."""
    # Workspaces that are looked at for the first fact: agents choose one by their project.
    for name in page.workspaces[:50]:
        try:
            memory = page.memory_of(name)
            if memory.store.capabilities.history:
                rows = change_rows(memory, latest(memory, limit=1, max_rows=MAX_WHOLE_ROWS))
                if rows:
                    return name, rows[0]
        except PolymniaError:  # archived or damaged: the others may have something
            continue
    return None
