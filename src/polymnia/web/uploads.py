"""Files that a browser uploads: kept in a temporary directory, which goes with the upload."""

import re
from collections.abc import Callable
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import IO

from polymnia.disk.errors import map_os_errors
from polymnia.errors import BadInput
from polymnia.transports.http.context import HttpContext
from polymnia.transports.http.request import Request
from polymnia.web.forms import Fields
from polymnia.web.multipart import MultipartParser

MAX_UPLOAD_BYTES = 2 << 30
MAX_UPLOAD_FILES = 20_000
# Bytes that are written at once, on a worker thread.
_PIECE_BYTES = 1 << 20
# File systems allow 255 bytes in a name.
_MAX_NAME_BYTES, _MAX_DEPTH = 200, 20
_UNSAFE = re.compile(r"[\x00-\x1f\x7f]")


class Upload:
    """Some files below a temporary directory that is removed with this object."""

    def __init__(self) -> None:
        self._directory = TemporaryDirectory(prefix="polymnia-upload-")
        self.files = 0
        self.bytes = 0

    @property
    def path(self) -> Path:
        """What was uploaded: the only file, the only folder, or the directory of several."""
        root = Path(self._directory.name)
        found = list(root.iterdir())
        return found[0] if len(found) == 1 else root

    @property
    def title(self) -> str:
        """What to call it."""
        return f"{self.files} files" if self.path == Path(self._directory.name) else self.path.name

    def new_file(self, name: str) -> IO[bytes]:
        """Create a file under a name that a browser gave. Raise BadInput for too many, or a name that came twice."""
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


class UploadSink:
    """Takes the parts of a form: fields first, then files."""

    def __init__(self, check: Callable[[Fields], None]) -> None:
        """`check` raises if a form with these fields may not send files. It is asked before the first file is kept."""
        self.pairs: list[tuple[str, str]] = []
        self.upload = Upload()
        self._check = check
        self._file: IO[bytes] | None = None

    def field(self, name: str, value: str) -> None:
        self.pairs.append((name, value))

    def open_file(self, name: str) -> None:
        if not self.upload.files:
            self._check(Fields(self.pairs))
        # A browser sends a file without a name if none was chosen.
        self._file = self.upload.new_file(name) if name else None

    def write(self, data: bytes) -> None:
        if self._file is not None:
            self.upload.bytes += len(data)
            with map_os_errors("the upload"):
                self._file.write(data)

    def close_file(self) -> None:
        if self._file is not None:
            with map_os_errors("the upload"):
                self._file.close()
        self._file = None


async def receive_upload(
    request: Request, context: HttpContext, boundary: bytes, check: Callable[[Fields], None]
) -> tuple[Fields, Upload]:
    """Read a form with files. Raise BadInput, and Refused if it is too large or `check` refuses it."""
    sink = UploadSink(check)
    parser = MultipartParser(boundary, sink)
    try:
        async for piece in request.pieces(limit=MAX_UPLOAD_BYTES, size=_PIECE_BYTES):
            await context.run(lambda data=piece: parser.feed(data))  # type: ignore[misc]  # bound at once
        parser.finish()
        check(Fields(sink.pairs))
    except BaseException:
        sink.close_file()
        sink.upload.close()
        raise
    return Fields(sink.pairs), sink.upload


def safe_parts(name: str) -> tuple[str, ...]:
    """Return the folders and the name of a file as a browser gave them, without parts that leave the directory."""
    parts = [
        each for each in re.split(r"[/\\]", _UNSAFE.sub("_", name)) if each not in ("", ".", "..")
    ]
    return tuple(_cut(each) for each in parts[-_MAX_DEPTH:]) or ("file",)


def _cut(name: str) -> str:
    """Return a name that is short enough for a file system, with its suffix."""
    if len(name.encode("utf-8", "replace")) <= _MAX_NAME_BYTES:
        return name.encode("utf-8", "replace").decode()
    stem, dot, ending = name.rpartition(".")
    kept = (dot + ending).encode("utf-8", "replace")[-20:].decode("utf-8", "ignore") if stem else ""
    return (stem or name).encode("utf-8", "replace")[: _MAX_NAME_BYTES - 20].decode(
        "utf-8", "ignore"
    ) + kept
