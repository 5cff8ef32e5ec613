"""The input of an import: a file, a folder or a zip archive. Nothing is unpacked to disk."""

import os
import re
from codecs import BOM_UTF16_BE, BOM_UTF16_LE
from collections.abc import Iterator
from contextlib import contextmanager
from io import BytesIO
from pathlib import Path
from typing import IO, TYPE_CHECKING, Any

from msgspec import DecodeError, Raw, ValidationError
from msgspec.json import decode, encode

from polymnia.disk.files import map_os_errors
from polymnia.errors import BadInput

if TYPE_CHECKING:
    from zipfile import ZipFile, ZipInfo

MAX_FILE_BYTES = 4 << 30
MAX_FILES = 200_000
HEAD_BYTES = 64 << 10
# How many times larger than its compressed form a member beyond MIN_BOMB_BYTES may be.
MAX_RATIO = 200
MIN_BOMB_BYTES = 64 << 20
NAME_NOT_UTF_8 = "the name of the file is not UTF-8; rename it"
# The bit by which a member of an archive says that its name is UTF-8.
_BYTE_ORDER_MARK = b"\xef\xbb\xbf"
_UNSTORABLE = re.compile("[\x00\ud800-\udfff]")


class Source:
    """A file, a folder or an archive that may hold memories.

    Parsed JSON is kept for the importer that reads it.
    """

    def __init__(self, path: str, workspace: str = "") -> None:
        """Raise BadInput if nothing is there, or too much. `workspace` selects one of a store."""
        self.path = Path(path)
        self.workspace = workspace
        if not self.path.exists():
            raise BadInput(f"there is no file {path}")
        if not (self.path.is_file() or self.path.is_dir()):
            raise BadInput(f"{path} is neither a file nor a folder")
        from zipfile import is_zipfile  # hooks read transcripts without it, here and below

        with map_os_errors(path):
            self.is_archive = self.path.is_file() and is_zipfile(self.path)
        self._zip: ZipFile | None = None  # open from its first use on
        self._members: dict[str, ZipInfo] = {}
        self.skipped: list[tuple[str, str]] = []
        self.names = tuple(self._find_names())
        self._outlines: dict[str, list[Raw] | dict[str, Raw] | None] = {}

    @property
    def is_file(self) -> bool:
        """True for a single file that is not an archive."""
        return not self.is_archive and self.path.is_file()

    def find(self, name: str) -> str:
        """Return the file with that name nearest to the top; empty if there is none."""
        paths = [path for path in self.names if path.rsplit("/", 1)[-1] == name]
        paths.sort(key=lambda path: (path.count("/"), path))
        return paths[0] if paths else ""

    def matching(self, pattern: re.Pattern[str]) -> list[str]:
        """Return the files whose path matches; a single file always does."""
        if self.is_file:
            return list(self.names)
        return [path for path in self.names if pattern.fullmatch(path)]

    def head(self, name: str) -> bytes:
        """Return how a file begins."""
        with self._open(name) as file:
            return file.read(HEAD_BYTES).removeprefix(_BYTE_ORDER_MARK)

    def read(self, name: str) -> bytes:
        """Return a whole file. Raise BadInput if it is too large."""
        with self._open(name) as file:
            data = file.read(MAX_FILE_BYTES + 1)
        if len(data) > MAX_FILE_BYTES:
            raise BadInput(f"{name} is larger than {MAX_FILE_BYTES >> 30} GB; split it")
        return data.removeprefix(_BYTE_ORDER_MARK)

    def lines(self, name: str, start: int = 0) -> Iterator[bytes]:
        """Yield the lines of a file, from that byte on."""
        with self._open(name) as file:
            file.seek(start)
            for number, line in enumerate(file):
                yield line if number or start else line.removeprefix(_BYTE_ORDER_MARK)

    def outline(self, name: str) -> list[Raw] | dict[str, Raw] | None:
        """Return the parts of a JSON array or object, not decoded; None for any other file."""
        if name not in self._outlines:
            is_json = self.head(name).lstrip()[:1] in (b"[", b"{")
            self._outlines[name] = _outline(self.read(name)) if is_json else None
        return self._outlines[name]

    def elements(self, name: str) -> list[Raw]:
        """Return the elements of a JSON array, or the object that the file is, not decoded."""
        outline = self.outline(name)
        return [Raw(encode(outline))] if isinstance(outline, dict) else outline or []

    def _find_names(self) -> Iterator[str]:
        if self.is_archive:
            with self._archive() as archive:
                members = [member for member in archive.infolist() if not member.is_dir()]
            if len(members) > MAX_FILES:
                raise BadInput(f"{self.path} holds more than {MAX_FILES:,} files")
            total = sum(member.file_size for member in members)
            if total > max(MIN_BOMB_BYTES, self.path.stat().st_size * MAX_RATIO):
                raise BadInput(
                    f"{self.path} would unpack to {total >> 20:,} MB; "
                    "unpack it yourself and import the folder"
                )
            self._members = {_member_name(member): member for member in members}
            yield from (name for name in self._members if not _is_made_by_macos(name))
        elif self.path.is_dir():
            yield from self._walk()
        else:
            yield replace_unstorable(self.path.name)

    def _walk(self) -> Iterator[str]:
        count = 0
        for folder, folders, files in os.walk(self.path):  # does not follow links to folders
            folders[:] = sorted(name for name in folders if not name.startswith("."))
            for name in sorted(files):
                if _is_made_by_macos(name):
                    continue
                path = Path(folder, name)
                place = path.relative_to(self.path).as_posix()
                if path.is_symlink() or not path.is_file():
                    self.skipped.append((replace_unstorable(place), "a link or a special file"))
                    continue
                if not is_storable(place):
                    self.skipped.append((replace_unstorable(place), NAME_NOT_UTF_8))
                    continue
                count += 1
                if count > MAX_FILES:
                    raise BadInput(f"{self.path} holds more than {MAX_FILES:,} files")
                yield place

    @contextmanager
    def _open(self, name: str) -> Iterator[IO[bytes]]:
        if self.is_archive:
            with self._archive() as archive:
                member = self._members[name]
                limit = max(MIN_BOMB_BYTES, member.compress_size * MAX_RATIO)
                if member.file_size > min(limit, MAX_FILE_BYTES):
                    raise BadInput(
                        f"{member.filename} in {self.path} would unpack to "
                        f"{member.file_size >> 20:,} MB; unpack it yourself and import the folder"
                    )
                with archive.open(member) as file:
                    yield _as_utf_8(file)
            return
        path = self.path if self.path.is_file() else self.path / name
        with map_os_errors(str(path)), path.open("rb") as file:
            yield _as_utf_8(file)

    @contextmanager
    def _archive(self) -> "Iterator[ZipFile]":
        """Open the archive once: it may list many thousand members."""
        from zipfile import BadZipFile, ZipFile

        try:
            with map_os_errors(str(self.path)):
                self._zip = self._zip or ZipFile(self.path)
                yield self._zip
        except (BadZipFile, NotImplementedError, RuntimeError, EOFError) as exc:
            raise BadInput(f"{self.path} is a damaged or encrypted archive: {exc}") from exc


def _member_name(member: "ZipInfo") -> str:
    """Return the name of a member. Many programs write UTF-8 and leave the flag unset."""
    utf_8_flag = 0x800
    if member.flag_bits & utf_8_flag:
        return member.filename
    try:
        return member.filename.encode("cp437").decode()
    except UnicodeError:
        return member.filename


def _is_made_by_macos(name: str) -> bool:
    """Return True for a file in which macOS keeps what another file system cannot hold."""
    return name.startswith("__MACOSX/") or name.rsplit("/", 1)[-1].startswith("._")


def _as_utf_8(file: IO[bytes]) -> IO[bytes]:
    """Return the file as UTF-8. Some programs on Windows write UTF-16 with a mark."""
    is_utf_16 = file.read(2) in (BOM_UTF16_LE, BOM_UTF16_BE)
    file.seek(0)
    if not is_utf_16:
        return file
    return BytesIO(file.read(MAX_FILE_BYTES).decode("utf-16", "replace").encode())


def replace_unstorable(text: str) -> str:
    """Return the text with U+FFFD for what no store can hold: NUL and lone surrogates."""
    return text if is_storable(text) else _UNSTORABLE.sub("\ufffd", text)


def is_storable(text: str) -> bool:
    """Return True if a store can hold the text."""
    return _UNSTORABLE.search(text) is None


def parts_of(part: Raw) -> list[Raw]:
    """Return the elements of a part that is an array, not decoded; none for any other part."""
    try:
        return decode(part, type=list[Raw])
    except (DecodeError, RecursionError):
        return []


def _outline(data: bytes) -> list[Raw] | dict[str, Raw] | None:
    """Return the parts of a JSON array or object; None for other data."""
    try:
        if data.lstrip()[:1] == b"[":
            return decode(data, type=list[Raw])
        return decode(data, type=dict[str, Raw])
    except ValidationError:
        return None
    except (DecodeError, UnicodeDecodeError, RecursionError):
        # Parse JSON with lone surrogates, which JavaScript writes where a text was cut.
        value = parse_leniently(data)
        return None if value is None else _outline(encode(value))


def parse_line(line: bytes) -> dict[str, Any] | None:
    """Return the object that a line is; None if it is not a JSON object."""
    try:
        value = decode(line)
    except RecursionError:
        return None
    except (DecodeError, UnicodeDecodeError):
        value = parse_leniently(line)
    return value if isinstance(value, dict) else None


def parse_leniently(data: bytes) -> Any:
    """Return the value of JSON, without lone surrogates; None if it is not JSON."""
    import json  # hooks read transcripts without it

    try:
        return _replace_all(json.loads(data))
    except (ValueError, RecursionError):
        return None


def _replace_all(value: Any) -> Any:
    if isinstance(value, str):
        return replace_unstorable(value)
    if isinstance(value, list):
        return [_replace_all(item) for item in value]
    if isinstance(value, dict):
        return {replace_unstorable(key): _replace_all(item) for key, item in value.items()}
    return value
