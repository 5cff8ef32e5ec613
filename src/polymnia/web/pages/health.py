"""Health: what the memory holds, how much of it is embedded, checks, backups and versions."""

import platform
from contextlib import suppress

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
    url, store = page.site.parts.store, page.memory.store
    if page.principal.administers and store_kind(url)[0] in ("directory", "postgres"):
        findings = check_all(url)
    else:
        try:
            findings = check_one(store, store.url)
        except StoreError as exc:
            findings = cannot_read(store.url, exc)
    return _render(page, fragment="health/findings.html", findings=findings)


@post("/health/backup", needs="admin")
def back_up(page: Page) -> Response:
    """Back up the whole store to its folder of backups."""
    if not page.principal.administers:
        raise NotAllowed("backups are made with an admin token for all workspaces")
    made = back_up_now(page.site.parts.store, page.site.parts.backups)
    return page.done(f"Backed up to {made.name}", page.url("/health"))


def _render(page: Page, *, fragment: str = "", findings: Findings | None = None) -> Response:
    memory, parts = page.memory, page.site.parts
    is_admin = page.principal.administers
    # A database has no folder of backups: it is backed up by other means.
    folder, backups = None, []
    if is_admin:
        with suppress(BadInput):
            folder = backup_folder(parts.store, parts.backups)
        for path in find_backups(parts.store, parts.backups)[:20]:
            at = int(path.stat().st_mtime * 1_000_000)
            backups.append(BackupRow(path.name, file_bytes(str(path)) or 0, at))
    python = f"{platform.python_implementation()} {platform.python_version()}"
    return page.render(
        "health/page.html",
        fragment=fragment,
        holds=overview(memory),
        meaning=memory.meaning,
        store=hide_passwords(parts.store) if is_admin else "",
        store_bytes=file_bytes(store_kind(parts.store)[1]) if is_admin else None,
        folder=folder,
        backups=backups,
        versions={
            "Polymnia": __version__,
            "Python": python,
            "System": f"{platform.system()} {platform.machine()}",
        },
        findings=findings,
    )
