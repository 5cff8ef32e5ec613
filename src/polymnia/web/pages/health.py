"""Health: what the memory holds, how much of it is embedded, checks, backups and versions."""

import platform
from pathlib import Path

from msgspec import Struct
from starlette.responses import Response

from polymnia import __version__
from polymnia.engine.health import Findings, cannot_read, check_all, check_one, overview
from polymnia.errors import BadInput, NotAllowed, StoreError
from polymnia.stores.backup import back_up_now, backup_folder, find_backups
from polymnia.stores.open import file_bytes, hide_passwords, store_kind
from polymnia.web.page import Page, get, post


class BackupRow(Struct, frozen=True):
    """A backup, its size and when it was made."""

    name: str
    bytes: int
    at: int


@get("/health")
def show(page: Page) -> Response:
    """Show the state of the memory without a check."""
    return _render(page)


@post("/health/check", needs="admin")
def check(page: Page) -> Response:
    """Check the store, or the workspace if the user manages only some."""
    return _render(page, fragment="health/findings.html", findings=_check(page))


@post("/health/backup", needs="admin")
def back_up(page: Page) -> Response:
    """Back up the whole store to its folder of backups."""
    if not page.principal.administers:
        raise NotAllowed("backups are made with an admin token for all workspaces")
    made = back_up_now(page.site.parts.store, page.site.parts.backups)
    return page.done(f"Backed up to {made.name}", page.url("/health"))


def _check(page: Page) -> Findings:
    url = page.site.parts.store
    if page.principal.administers and store_kind(url)[0] in ("directory", "postgres"):
        return check_all(url)
    store = page.memory.store
    try:
        return check_one(store, store.url)
    except StoreError as exc:
        return cannot_read(store.url, exc)


def _render(page: Page, *, fragment: str = "", findings: Findings | None = None) -> Response:
    memory = page.memory
    is_admin = page.principal.administers
    python = f"{platform.python_implementation()} {platform.python_version()}"
    return page.render(
        "health/page.html",
        fragment=fragment,
        holds=overview(memory),
        meaning=memory.meaning,
        store=hide_passwords(page.site.parts.store) if is_admin else "",
        store_bytes=file_bytes(store_kind(page.site.parts.store)[1]) if is_admin else None,
        folder=_folder(page) if is_admin else None,
        backups=_backups(page) if is_admin else [],
        versions={
            "Polymnia": __version__,
            "Python": python,
            "System": f"{platform.system()} {platform.machine()}",
        },
        findings=findings,
    )


def _folder(page: Page) -> Path | None:
    """Return the folder of backups; None for a database, which is backed up by other means."""
    try:
        return backup_folder(page.site.parts.store, page.site.parts.backups)
    except BadInput:
        return None


def _backups(page: Page) -> list[BackupRow]:
    rows = []
    # How many backups the page shows.
    for path in find_backups(page.site.parts.store, page.site.parts.backups)[:20]:
        at = int(path.stat().st_mtime * 1_000_000)
        rows.append(BackupRow(path.name, file_bytes(str(path)) or 0, at))
    return rows
