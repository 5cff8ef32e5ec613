"""Import and export: upload, see a report, import, take it back; save the memory as a file."""

import re
import time
from collections.abc import Iterator
from contextlib import ExitStack
from pathlib import Path
from tempfile import SpooledTemporaryFile, TemporaryDirectory
from typing import IO
from zipfile import ZIP_DEFLATED, ZipFile

from msgspec import Struct
from starlette.responses import Response, StreamingResponse

from polymnia.engine.graph import entities
from polymnia.engine.history.changes import MAX_WHOLE_ROWS, latest
from polymnia.engine.history.reversal import UndoConflict
from polymnia.engine.history.undo import undo
from polymnia.engine.memory import Memory
from polymnia.engine.transfer.document import memory_lines
from polymnia.engine.workspaces import PERSONAL, create_missing
from polymnia.errors import BadInput
from polymnia.importers.registry import IMPORTERS
from polymnia.markdown.sync import export_folder
from polymnia.stores.open import encode_json_lines
from polymnia.web.changes import ChangeView, change_rows
from polymnia.web.imports import MAX_UPLOAD_BYTES, Import, LocalFiles, Upload
from polymnia.web.page import Page, get, post

# Bytes of an export that are read at once.
_PIECE_BYTES = 1 << 18


@get("/import")
def show(page: Page) -> Response:
    """Show where to drop a file, what can be read, and earlier imports."""
    return _render(page, None)


@post("/import/upload", takes_files=True)
def upload(page: Page) -> Response:
    """Keep the uploaded files and check them: a dry run."""
    if page.upload is None or not page.upload.files:
        raise BadInput("no file was chosen: choose one, or drop one on the page")
    return check_files(page, page.upload)


def check_files(page: Page, files: Upload | LocalFiles) -> Response:
    """Start a dry run over some files, and show its report."""
    if page.chosen is not None:
        target = page.workspace
    else:  # create the first workspace, as an agent does that writes
        target = page.site.parts.workspace or PERSONAL
        page.principal.require_entry(target)
        create_missing(page.site.parts.workspaces, target)
    item = page.site.imports.add(files, page.principal, target)
    _start(page, item, dry_run=True)
    return page.redirect(_report_url(page, item))


@get("/import/report", needs="write")
def report(page: Page) -> Response:
    """Show what an import would do, its progress, or what it did."""
    return _render(page, _find(page))


@post("/import/check")
def check(page: Page) -> Response:
    """Check again with other choices."""
    return _restart(page, _find(page), dry_run=True)


@post("/import/run")
def run(page: Page) -> Response:
    """Import what was checked."""
    item = _find(page)
    if item.step != "checked":
        raise BadInput("check the file before you import it")
    return _restart(page, item, dry_run=False)


@post("/import/remove")
def remove(page: Page) -> Response:
    """Forget an upload, or stop an import after its current batch."""
    item = _find(page)
    is_running = item.step == "importing"
    if is_running:
        item.close()
        return _to_report(page, item)
    page.site.imports.remove(item.id, page.principal)
    return page.done(f"Removed {item.title}", page.url("/import"))


@post("/import/undo")
def take_back(page: Page) -> Response:
    """Undo all changes of an import as one change. With `skip` what others changed since stays."""
    item = _find(page)
    if item.step != "imported" or item.outcome is None or item.is_undone:
        raise BadInput("there is nothing to undo")
    memory = page.memory_of(item.workspace)
    receipt = undo(
        memory, item.outcome.receipt.changes, by=page.by, skip_conflicts="skip" in page.form
    )
    if receipt.conflicts and not receipt.change:
        return _render(page, item, receipt.conflicts)
    item.is_undone = True
    return page.done(page.toast(f"Took back the import of {item.title}"), _report_url(page, item))


def _render(page: Page, item: Import | None, conflicts: tuple[UndoConflict, ...] = ()) -> Response:
    earlier: list[ChangeView] = []
    if not page.is_fragment and page.chosen and page.memory.store.capabilities.history:
        imports = latest(page.memory, limit=5, operations=("import",), max_rows=MAX_WHOLE_ROWS)
        earlier = change_rows(page.memory, imports)
    return page.render(
        "imports/page.html",
        fragment="imports/report.html" if item is not None else "",
        found=item,
        importers=IMPORTERS,
        exports=EXPORTS.values(),
        earlier=earlier,
        max_bytes=MAX_UPLOAD_BYTES,
        conflicts=conflicts,
    )


def _find(page: Page) -> Import:
    return page.site.imports.find(page.query.get("id") or page.form["id"], page.principal)


def _restart(page: Page, item: Import, *, dry_run: bool) -> Response:
    """Run the import as the user decided, and show its report."""
    item.kind = page.form.get("kind") or None
    if into := page.form.get("into"):
        page.principal.require_entry(into)
        item.workspace = into
    _start(page, item, dry_run=dry_run)
    return _to_report(page, item)


def _start(page: Page, item: Import, *, dry_run: bool) -> None:
    site, memory = page.site, page.memory_of(item.workspace)
    item.start(site.context.pool, memory, by=page.by, secrets=site.parts.secrets, dry_run=dry_run)


def _to_report(page: Page, item: Import) -> Response:
    if page.is_fragment:
        return _render(page, item)
    return page.redirect(_report_url(page, item))


def _report_url(page: Page, item: Import) -> str:
    return page.url("/import/report", id=item.id)


class ExportFormat(Struct, frozen=True, kw_only=True):
    """A format of a saved memory: its title and its purpose."""

    key: str
    title: str
    purpose: str
    suffix: str
    media_type: str


_FORMATS = (
    ExportFormat(
        key="json",
        title="JSON document",
        purpose="everything, to move to another Polymnia",
        suffix="json",
        media_type="application/json",
    ),
    ExportFormat(
        key="jsonl",
        title="JSON lines",
        purpose="entities and relations, as the reference server has them",
        suffix="jsonl",
        media_type="application/jsonl",
    ),
    ExportFormat(
        key="markdown",
        title="Markdown",
        purpose="a zip archive with a file for each entity and note, for Obsidian and editors",
        suffix="zip",
        media_type="application/zip",
    ),
)
EXPORTS = {export.key: export for export in _FORMATS}


@get("/export")
def save(page: Page) -> Response:
    """Send the memory as a file."""
    export = EXPORTS[page.query.choice("format", tuple(EXPORTS))]
    workspace = re.sub(r"[^A-Za-z0-9._-]+", "-", page.workspace).strip("-.")[:60] or "memory"
    name = f"polymnia-{workspace}-{time.strftime('%Y-%m-%d')}.{export.suffix}"
    headers = {"content-disposition": f'attachment; filename="{name}"'}
    with ExitStack() as stack:
        # A larger export is written to a temporary file.
        file = stack.enter_context(SpooledTemporaryFile(8 << 20))
        _write(page.memory, export.key, file)
        file.seek(0)
        stack.pop_all()  # the response closes it
    return StreamingResponse(_pieces(file), media_type=export.media_type, headers=headers)


def _write(memory: Memory, kind: str, file: IO[bytes]) -> None:
    """Write a memory in a format."""
    if kind == "json":
        with memory.reading() as read:
            file.writelines(memory_lines(memory.store, read))
    elif kind == "jsonl":
        file.writelines(encode_json_lines(entities.read_all(memory)))
    else:
        with TemporaryDirectory(prefix="polymnia-export-") as scratch:
            root = Path(scratch) / "memory"
            export_folder(memory, root)
            with ZipFile(file, "w", ZIP_DEFLATED) as archive:
                for path in sorted(root.rglob("*")):
                    if path.is_file():
                        archive.write(path, path.relative_to(root.parent))


def _pieces(file: IO[bytes]) -> Iterator[bytes]:
    """Yield a file piece by piece, then close it, also if the client leaves."""
    with file:
        while piece := file.read(_PIECE_BYTES):
            yield piece
