"""Import and export: upload, look at the report, import, and take it back; save the memory as a file."""

import time

from polymnia.engine.history import latest
from polymnia.engine.projects import PERSONAL, create_missing
from polymnia.engine.undo import undo
from polymnia.engine.undo_plan import UndoConflict
from polymnia.errors import BadInput
from polymnia.importers.registry import IMPORTERS
from polymnia.model import Change
from polymnia.web.exports import EXPORTS, export_file
from polymnia.web.imports import Import
from polymnia.web.page import Page
from polymnia.web.response import Response, redirect, send_file
from polymnia.web.routes import Route
from polymnia.web.uploads import MAX_UPLOAD_BYTES

# How many earlier imports the page shows.
_MAX_EARLIER_IMPORTS = 5
# Rows that are read to list them: an import may have a million.
_MAX_ROWS = 5_000


def show(page: Page) -> Response:
    """Show where to drop a file, what can be read, and earlier imports."""
    return _render(page, None)


def upload(page: Page) -> Response:
    """Keep the uploaded files and check them: a dry run."""
    if page.upload is None or not page.upload.files:
        raise BadInput("no file was chosen: choose one, or drop one on the page")
    found = page.site.imports.add(page.upload, page.principal, _target(page))
    _start(page, found, dry_run=True)
    url = _report_url(page, found)
    return Response(headers={"hx-redirect": url}) if page.is_fragment else redirect(url)


def report(page: Page) -> Response:
    """Show what an import would do, its progress, or what it did."""
    return _render(page, _find(page))


def check(page: Page) -> Response:
    """Check again with other choices."""
    found = _find(page)
    _choose(page, found)
    _start(page, found, dry_run=True)
    return _to_report(page, found)


def run(page: Page) -> Response:
    """Import what was checked."""
    found = _find(page)
    if found.step != "checked":
        raise BadInput("check the file before you import it")
    _choose(page, found)
    _start(page, found, dry_run=False)
    return _to_report(page, found)


def remove(page: Page) -> Response:
    """Forget an upload, or stop an import after its current batch."""
    found = _find(page)
    is_running = found.step == "importing"
    if is_running:
        found.close()
        return _to_report(page, found)
    page.site.imports.remove(found.id, page.principal)
    return page.done(f"Removed {found.title}", page.url("/import"))


def take_back(page: Page) -> Response:
    """Undo all changes of an import as one change. With `skip` what others changed since stays."""
    found = _find(page)
    if found.step != "imported" or found.outcome is None or found.is_undone:
        raise BadInput("there is nothing to undo")
    memory = page.memory_of(found.workspace)
    receipt = undo(
        memory, found.outcome.receipt.changes, by=page.by, skip_conflicts="skip" in page.form
    )
    if receipt.conflicts and not receipt.change:
        return _render(page, found, receipt.conflicts)
    found.is_undone = True
    return page.done(page.toast(f"Took back the import of {found.title}"), _report_url(page, found))


def save(page: Page) -> Response:
    """Send the memory as a file."""
    key = page.query["format"]
    file = export_file(page.memory, key)
    name = f"polymnia-{time.strftime('%Y-%m-%d')}.{EXPORTS[key].ending}"
    return send_file(file, name, EXPORTS[key].content_type)


def _render(page: Page, found: Import | None, conflicts: tuple[UndoConflict, ...] = ()) -> Response:
    return page.render(
        "imports/page.html",
        fragment="imports/report.html",
        found=found,
        importers=IMPORTERS,
        exports=EXPORTS.values(),
        earlier=_earlier(page),
        max_bytes=MAX_UPLOAD_BYTES,
        conflicts=conflicts,
    )


def _target(page: Page) -> str:
    """Return the workspace to import into. The first one is created, as for the first agent that writes."""
    if page.chosen is not None:
        return page.workspace
    name = page.site.parts.workspace or PERSONAL
    page.principal.require_entry(name)
    create_missing(page.site.parts.workspaces, name)
    return name


def _find(page: Page) -> Import:
    return page.site.imports.find(page.query.get("id") or page.form["id"], page.principal)


def _choose(page: Page, found: Import) -> None:
    """Take over what the user decided."""
    kind = page.form.get("kind")
    found.kind = kind or None
    found.replace_conflicts = page.form.get("conflicts") == "replace"
    if into := page.form.get("into"):
        page.principal.require_entry(into)
        found.workspace = into


def _start(page: Page, found: Import, *, dry_run: bool) -> None:
    site, memory = page.site, page.memory_of(found.workspace)
    found.start(site.context.pool, memory, by=page.by, secrets=site.parts.secrets, dry_run=dry_run)


def _to_report(page: Page, found: Import) -> Response:
    if page.is_fragment:
        return _render(page, found)
    return redirect(_report_url(page, found))


def _report_url(page: Page, found: Import) -> str:
    return page.url("/import/report", id=found.id)


def _earlier(page: Page) -> tuple[Change, ...]:
    """Return the latest imports into the workspace."""
    if page.is_fragment or page.chosen is None or not page.memory.store.capabilities.history:
        return ()
    return latest(
        page.memory, limit=_MAX_EARLIER_IMPORTS, operations=("import",), max_rows=_MAX_ROWS
    ).changes


ROUTES = (
    Route("GET", "/import", show),
    Route("POST", "/import/upload", upload, takes_files=True),
    Route("GET", "/import/report", report, needs="write"),
    Route("POST", "/import/check", check),
    Route("POST", "/import/run", run),
    Route("POST", "/import/remove", remove),
    Route("POST", "/import/undo", take_back),
    Route("GET", "/export", save),
)
