"""Uploaded files and their imports: a check first, then the import, each on a worker thread."""

import logging
import re
import secrets
from collections import OrderedDict
from collections.abc import Callable
from concurrent.futures import Executor, Future
from functools import partial
from itertools import takewhile
from pathlib import Path
from tempfile import TemporaryDirectory
from threading import Lock
from typing import IO, Literal

from msgspec import Struct
from python_multipart.exceptions import FormParserError
from python_multipart.multipart import MultipartParser, parse_options_header

from polymnia.disk.files import map_os_errors
from polymnia.engine.facts.secrets import SecretRule
from polymnia.engine.memory import Memory
from polymnia.engine.transfer.intake import IntakeReceipt
from polymnia.errors import BadInput, PolymniaError, StoreDamaged
from polymnia.importers.base import Importer, Report
from polymnia.importers.registry import import_items, open_source
from polymnia.importers.source import Source
from polymnia.model import Principal
from polymnia.transports.http.context import HttpContext
from polymnia.transports.http.request import HttpRequest
from polymnia.web.page import Fields

logger = logging.getLogger(__name__)

MAX_UPLOAD_BYTES = 2 << 30
MAX_UPLOAD_FILES = 20_000
# Bytes that are parsed and written at once, on a worker thread.
_PIECE_BYTES = 1 << 20
# File systems allow 255 bytes in a name.
_MAX_NAME_BYTES, _MAX_SUFFIX_BYTES = 200, 20

Step = Literal["new", "checking", "checked", "importing", "imported", "failed"]


class Upload:
    """The files of a form, below a temporary directory that is removed with this object."""

    def __init__(self, scratch: str = "") -> None:
        self._directory = TemporaryDirectory(prefix="upload-", dir=scratch or None)
        self.fields = Fields()
        self.files = 0
        self.bytes = 0

    @property
    def path(self) -> Path:
        """What was uploaded: the only file, the only folder, or the directory of several."""
        root = Path(self._directory.name)
        contents = list(root.iterdir())
        return contents[0] if len(contents) == 1 else root

    @property
    def title(self) -> str:
        """What to call it."""
        return f"{self.files} files" if self.path == Path(self._directory.name) else self.path.name

    def new_file(self, name: str) -> IO[bytes]:
        """Create a file under a name that a browser gave.

        Raise BadInput for too many files, or a name that came twice.
        """
        if self.files >= MAX_UPLOAD_FILES:
            raise BadInput(f"more than {MAX_UPLOAD_FILES:,} files: pack them into a zip archive")
        self.files += 1
        path = Path(self._directory.name, *safe_parts(name))
        with map_os_errors(name):
            path.parent.mkdir(parents=True, exist_ok=True)
            try:
                return path.open("xb")
            except (FileExistsError, IsADirectoryError) as exc:
                raise BadInput(f"the file {name} was sent twice") from exc

    def close(self) -> None:
        """Remove the files."""
        self._directory.cleanup()


class LocalFiles:
    """Files of this machine that stay where they are."""

    def __init__(self, path: Path, title: str, size: int) -> None:
        self.path = path
        self.title = title
        self.bytes = size

    def close(self) -> None:
        """Leave the files alone."""


async def receive_upload(
    request: HttpRequest,
    context: HttpContext,
    content_type: str,
    check: Callable[[Fields], None],
    scratch: str,
) -> Upload:
    """Read a form with files. Raise BadInput, and Refused if it is too large or `check` does."""
    form = UploadForm(content_type, check, scratch)
    try:
        async for piece in request.pieces(limit=MAX_UPLOAD_BYTES, size=_PIECE_BYTES):
            await context.run(partial(form.feed, piece))
        return form.finish()
    except BaseException:
        form.close()
        raise


class UploadForm:
    """Writes the files of a form to disk as they arrive.

    Starlette's own parser would hold small files in memory, all 20,000 of a folder, and would
    take them before the form token is known.
    """

    def __init__(
        self, content_type: str, check: Callable[[Fields], None], scratch: str = ""
    ) -> None:
        """`check` raises if a form with these fields may not send files."""
        options = parse_options_header(content_type)[1]
        self.upload = Upload(scratch)
        self._check = check
        self._pairs: list[tuple[str, str]] = []
        self._header = (bytearray(), bytearray())
        self._disposition = b""
        self._name = ""
        # The part that is being read: the value of a field or an open file.
        self._value: bytearray | None = None
        self._file: IO[bytes] | None = None
        self._is_complete = False
        try:
            self._parser = MultipartParser(
                options.get(b"boundary", b""),
                {
                    "on_part_begin": self._begin_part,
                    "on_header_field": lambda data, start, end: self._header[0].extend(
                        data[start:end]
                    ),
                    "on_header_value": lambda data, start, end: self._header[1].extend(
                        data[start:end]
                    ),
                    "on_header_end": self._end_header,
                    "on_headers_finished": self._open_part,
                    "on_part_data": self._add_data,
                    "on_part_end": self._end_part,
                    "on_end": self._end,
                },
            )
        except FormParserError as exc:
            raise BadInput(f"the form is not valid: {exc}") from exc

    def feed(self, data: bytes) -> None:
        """Take the next bytes. Raise BadInput, and what `check` raises."""
        try:
            with map_os_errors("the upload"):
                self._parser.write(data)
        except FormParserError as exc:
            raise BadInput(f"the form is not valid: {exc}") from exc

    def finish(self) -> Upload:
        """Return the upload. Raise BadInput if the form has not ended."""
        if not self._is_complete:
            raise BadInput("the form is not complete: send it again")
        self.upload.fields = Fields(self._pairs)
        self._check(self.upload.fields)
        return self.upload

    def close(self) -> None:
        """Remove what has arrived."""
        if self._file is not None:
            self._file.close()
        self.upload.close()

    def _begin_part(self) -> None:
        self._disposition = b""

    def _end_header(self) -> None:
        name, value = self._header
        if name.lower() == b"content-disposition":
            self._disposition = bytes(value)
        name.clear()
        value.clear()

    def _open_part(self) -> None:
        options = parse_options_header(self._disposition)[1]
        if b"name" not in options:
            raise BadInput("the form is not valid: a part has no name")
        self._name = _decode(options[b"name"])
        if b"filename" not in options:
            self._value = bytearray()
            return
        if not self.upload.files:
            self._check(Fields(self._pairs))
        file_name = _decode(options[b"filename"])
        if file_name:  # a browser sends a file without a name if none was chosen
            self._file = self.upload.new_file(file_name)

    def _add_data(self, data: bytes, start: int, end: int) -> None:
        if self._file is not None:
            self.upload.bytes += end - start
            self._file.write(data[start:end])
        elif self._value is not None:
            self._value += data[start:end]
            if len(self._value) > (1 << 20):
                raise BadInput(f"the field {self._name} is too long")

    def _end_part(self) -> None:
        if self._file is not None:
            self._file.close()
        elif self._value is not None:
            self._pairs.append((self._name, self._value.decode("utf-8", "replace")))
        self._file = self._value = None

    def _end(self) -> None:
        self._is_complete = True


def safe_parts(name: str) -> tuple[str, ...]:
    """Return the folders and name of a file, without parts that lead out of the directory."""
    parts = re.split(r"[/\\]", re.sub(r"[\x00-\x1f\x7f]", "_", name))
    inward = [part for part in parts if part not in ("", ".", "..")]
    short = []
    for part in inward[-20:]:  # deeper folders are not needed to tell files apart
        encoded = part.encode("utf-8", "replace")
        # A name that is too long for a file system keeps its suffix.
        if len(encoded) > _MAX_NAME_BYTES:
            suffix = Path(part).suffix.encode("utf-8", "replace")[-_MAX_SUFFIX_BYTES:]
            stem = encoded[: _MAX_NAME_BYTES - _MAX_SUFFIX_BYTES].decode("utf-8", "ignore")
            short.append(stem + suffix.decode("utf-8", "ignore"))
        else:
            short.append(encoded.decode())
    return tuple(short) or ("file",)


def _decode(value: bytes) -> str:
    """Return a name as browsers write it, with `%22` for a quote."""
    return value.decode("utf-8", "replace").replace("%22", '"')


class Outcome(Struct, frozen=True, kw_only=True):
    """What a run did, or would do."""

    importer: Importer
    receipt: IntakeReceipt
    report: Report


class Import:
    """One upload, what the user decided about it, and its last run, which pages watch."""

    def __init__(
        self,
        upload: Upload | LocalFiles,
        owner: Principal,
        workspace: str,
        is_stopping: Callable[[], bool],
    ) -> None:
        self.id = secrets.token_urlsafe(12)
        self.title = upload.title
        self.size = upload.bytes
        self.upload = upload
        self.owner = owner
        self.workspace = workspace
        self.kind: str | None = None
        # The number of items that the current run has read.
        self.done = 0
        self.outcome: Outcome | None = None
        self.error = ""
        self.is_undone = False
        self.is_cancelled = False
        self._is_stopping = is_stopping
        self._is_dry = True
        self._run: Future[None] | None = None

    @property
    def step(self) -> Step:
        """Where the import stands."""
        if self._run is None:
            return "new"
        if not self._run.done():
            return "checking" if self._is_dry else "importing"
        if self.outcome is None:
            return "failed"
        return "checked" if self._is_dry else "imported"

    def start(
        self, pool: Executor, memory: Memory, *, by: str, secrets: SecretRule, dry_run: bool
    ) -> None:
        """Start a run and wait a moment for it. Raise BadInput during a run or after an import."""
        if self.step in ("checking", "importing", "imported"):
            raise BadInput(f"{self.title} is being imported, or was imported already")
        self.done, self.outcome = 0, None
        self.error = "an unexpected error; the server's log says which"
        self._is_dry, self.is_cancelled = dry_run, False
        self._run = pool.submit(self._import, memory, by, secrets)
        try:
            # Most runs end at once; the page shows the progress of others.
            exc = self._run.exception(0.4)
        except TimeoutError:
            return
        if exc is not None:
            logger.error("an import failed", exc_info=exc)

    def close(self) -> None:
        """Remove the upload, and end a run after its current batch."""
        self.is_cancelled = True
        if self._run is None or self._run.done():
            self.upload.close()

    def _import(self, memory: Memory, by: str, secrets: SecretRule) -> None:
        report = Report(secrets)
        try:
            importer, items = open_source(Source(str(self.upload.path)), self.kind, report)
            receipt = import_items(
                memory,
                takewhile(lambda _: not (self.is_cancelled or self._is_stopping()), items),
                report,
                by=by,
                dry_run=self._is_dry,
                progress=self._count,
            )
        except StoreDamaged as exc:
            logger.info("an upload cannot be read: %s", exc)
            self.error = f"{self.title} is damaged, or in a format that cannot be imported"
            return
        except PolymniaError as exc:
            self.error = str(exc).replace(str(self.upload.path), self.title)
            return
        self.outcome = Outcome(importer=importer, receipt=receipt, report=report)
        if self.is_cancelled or not self._is_dry:
            self.upload.close()

    def _count(self, done: int) -> None:
        self.done = done


class Imports:
    """The imports of a server by id. The oldest is forgotten when there are many. Thread-safe."""

    def __init__(self, is_stopping: Callable[[], bool]) -> None:
        """Runs end after the current batch once `is_stopping` returns True."""
        self._is_stopping = is_stopping
        self._lock = Lock()
        self._imports: OrderedDict[str, Import] = OrderedDict()

    def add(self, upload: Upload | LocalFiles, owner: Principal, workspace: str) -> Import:
        """Return a new import of the principal into a workspace."""
        new = Import(upload, owner, workspace, self._is_stopping)
        forgotten = []
        with self._lock:
            self._imports[new.id] = new
            while len(self._imports) > 8:
                forgotten.append(self._imports.popitem(last=False)[1])
        for old in forgotten:
            old.close()
        return new

    def find(self, identifier: str, principal: Principal) -> Import:
        """Return an import of the principal. Raise BadInput if there is none."""
        with self._lock:
            known = self._imports.get(identifier)
        if known is None or not known.owner.is_same(principal):
            raise BadInput("this upload is no longer here: upload the file again")
        return known

    def remove(self, identifier: str, principal: Principal) -> None:
        """Forget an import of the principal and remove its files."""
        known = self.find(identifier, principal)
        with self._lock:
            self._imports.pop(identifier, None)
        known.close()
