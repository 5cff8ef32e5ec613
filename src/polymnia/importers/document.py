"""The JSON document that `polymnia export --format json` writes, with its history or without."""

import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import partial
from hashlib import sha256
from itertools import chain
from typing import Protocol, TypeVar

from msgspec import DecodeError, Raw, Struct, msgpack
from msgspec.json import decode, encode

from polymnia.engine.moving.intake import Item
from polymnia.errors import BadInput
from polymnia.formats.document import (
    HEADER,
    SECTIONS,
    VERSION,
    canonical_element,
    parse_entity,
    parse_note,
    parse_relation,
    parse_row,
)
from polymnia.importers.base import Importer, Report, decode_part
from polymnia.importers.source import Source, parts_of
from polymnia.stores.contract import TABLES, ReadRows, TableRow

_PARSERS: dict[str, Callable[[bytes, str], Item]] = {
    "entities": parse_entity,
    "relations": parse_relation,
    "notes": parse_note,
}
_FORMAT = "polymnia"
_SECTION = re.compile(rb'"(\w+)":(?:\[|\{"columns":(\[.*\]),"rows":\[)\n')
# Tables have names that other sections have too.
_TABLE = "history.tables."
T = TypeVar("T")


class Seals(Struct, frozen=True):
    """The checksums at the end of a history: of the document's other elements, and of the rows."""

    document: str = ""
    rows: str = ""


class Sections(Protocol):
    """The arrays of a document: entities, relations, notes, and the tables of its history."""

    columns: dict[str, list[str]]
    seals: Seals

    def count(self, section: str) -> int:
        """Return how many elements a section has."""

    def elements(self, section: str) -> Iterator[bytes]:
        """Yield the elements of a section."""


def recognizes(source: Source) -> bool:
    """Return True for our header, or an object that says that it is ours."""
    if not source.is_file:
        return False
    name = source.names[0]
    if source.head(name).startswith(HEADER):
        return True
    outline = source.outline(name)
    return (
        isinstance(outline, dict)
        and "format" in outline
        and decode_part(outline["format"]) == _FORMAT
    )


def read(source: Source, report: Report) -> Iterator[Item]:
    """Yield what is living in the document. Raise BadInput for a mistake anywhere in it."""
    sections = _open(source)
    # Find the mistakes before anything is imported: a document is taken whole or not at all.
    total = sum(1 for _ in _items(source, sections))
    yield from report.count_known(total, _items(source, sections))


def read_history(source: Source, report: Report) -> ReadRows | None:
    """Return all rows of the document; None if it has no valid history. Raise BadInput."""
    sections = _open(source)
    if not sections.columns:
        return None
    if not _has_known_columns(sections.columns):
        report.drop_part("history", "written by another version of the program")
        return None
    tables = _DocumentTables(source, sections)
    if Seals(_checksum(source, sections), tables.checksum()) != sections.seals:
        report.drop_part("history", "the document was changed since it was exported")
        return None
    return tables.read


def _has_known_columns(columns: Mapping[str, Sequence[str]]) -> bool:
    """Return True for our tables, also if an earlier version wrote fewer columns."""
    if columns.keys() != TABLES.keys():
        return False
    for table, names in TABLES.items():
        written = columns[table]
        if tuple(written) != tuple(name for name in names if name in written):
            return False
    return True


def _items(source: Source, sections: Sections) -> Iterator[Item]:
    return chain.from_iterable(
        _read(source, sections, section, _PARSERS[section]) for section in SECTIONS
    )


def _checksum(source: Source, sections: Sections) -> str:
    """Return the checksum of everything but the history, however the file is formatted."""
    whole = sha256()
    for section in SECTIONS:
        for element in _read(source, sections, section, partial(canonical_element, section)):
            whole.update(element)
    return whole.hexdigest()


def _read(
    source: Source, sections: Sections, section: str, parse: Callable[[bytes, str], T]
) -> Iterator[T]:
    """Yield the parsed elements of a section. Raise BadInput with the place of a mistake."""
    for number, element in enumerate(sections.elements(section)):
        try:
            yield parse(element, f"{section}[{number}]")
        except BadInput as exc:
            raise BadInput(f"{source.path}: not a valid export: {exc}") from exc


class _DocumentTables:
    """The rows of a document, as those of a store are read."""

    def __init__(self, source: Source, sections: Sections) -> None:
        self._source = source
        self._sections = sections

    def count(self, table: str) -> int:
        return self._sections.count(_TABLE + table)

    def read(self, table: str) -> Iterator[TableRow]:
        parse = partial(parse_row, table)
        missing = self._missing(table)
        if missing:
            parse = partial(_parse_shorter_row, table, missing)
        return _read(self._source, self._sections, _TABLE + table, parse)

    def checksum(self) -> str:
        """Return the checksum of the rows with the columns that they were written with."""
        whole = sha256()
        for table in TABLES:
            missing = set(self._missing(table))
            for row in self.read(table):
                written = tuple(
                    value for position, value in enumerate(row) if position not in missing
                )
                whole.update(msgpack.encode(written))
        return whole.hexdigest()

    def _missing(self, table: str) -> list[int]:
        """Return the positions of the columns that the document does not have."""
        written = self._sections.columns[table]
        return [number for number, name in enumerate(TABLES[table]) if name not in written]


def _parse_shorter_row(table: str, missing: Sequence[int], data: bytes, place: str) -> TableRow:
    """Return a row that was written before the table had all of its columns."""
    values = _decode(data, list[Raw])
    if values is None:
        return parse_row(table, data, place)  # which says what is wrong
    for position in missing:
        values.insert(position, Raw(b"null"))
    return parse_row(table, encode(values), place)


def _open(source: Source) -> Sections:
    """Return the sections of a document: by lines as we write it, else by parsing the whole."""
    name = source.names[0]
    if source.starts_with(name, HEADER + b",\n"):
        return _Lines(source, name)
    return _Outline(source, name)


class _Lines:
    """Sections that are read line by line."""

    def __init__(self, source: Source, name: str) -> None:
        self.columns: dict[str, list[str]] = {}
        self.seals = Seals()
        self._source = source
        self._name = name
        self._starts: dict[str, tuple[int, int]] = {}
        self._scan()

    def count(self, section: str) -> int:
        return self._starts[section][1] if section in self._starts else 0

    def elements(self, section: str) -> Iterator[bytes]:
        start, count = self._starts.get(section, (0, 0))
        lines = self._source.lines(self._name, start)
        for _ in range(count):
            yield next(lines).rstrip(b",\n")

    def _scan(self) -> None:
        """Find where each section starts. Raise BadInput if the end is missing."""
        offset, section, end = 0, "", b""
        for line in self._source.lines(self._name):
            offset += len(line)
            if section and not line.startswith(b"]"):
                start, count = self._starts[section]
                self._starts[section] = (start, count + 1)
                continue
            opening = _SECTION.fullmatch(line) if line.startswith(b'"') else None
            section = ""
            if opening:
                section = opening[1].decode()
                if opening[2]:
                    self.columns[section] = _decode(opening[2], list[str]) or []
                    section = _TABLE + section
                self._starts[section] = (offset, 0)
            end = line.rstrip() or end  # editors add and remove the last line end
        seals = _decode(b"{" + end[2:-1], Seals) if end.startswith(b'},"document":') else Seals()
        if seals is None or not end.endswith(b"}"):
            raise BadInput(f"{self._source.path}: the end of the document is missing")
        self.seals = seals


class _Outline:
    """Sections of a document that another program wrote, or an earlier version: held in memory."""

    def __init__(self, source: Source, name: str) -> None:
        outline = source.outline(name)
        if not isinstance(outline, dict):
            raise BadInput(f"{source.path}: not a valid export")
        version = decode_part(outline["version"]) if "version" in outline else VERSION
        if version != VERSION:
            raise BadInput(
                f"{source.path}: a document of version {version!r}, "
                f"and this program reads version {VERSION}; "
                "upgrade it, or export the document again with this version"
            )
        self._parts = {
            section: parts_of(outline[section]) for section in SECTIONS if section in outline
        }
        history = _decode(bytes(outline["history"]), _History) if "history" in outline else None
        self.columns = (
            {table: part.columns for table, part in history.tables.items()} if history else {}
        )
        self.seals = Seals(history.document, history.rows) if history else Seals()
        if history:
            self._parts |= {_TABLE + table: part.rows for table, part in history.tables.items()}

    def count(self, section: str) -> int:
        return len(self._parts.get(section, ()))

    def elements(self, section: str) -> Iterator[bytes]:
        return map(bytes, self._parts.get(section, ()))


class _Table(Struct):
    columns: list[str]
    rows: list[Raw]


class _History(Struct):
    tables: dict[str, _Table]
    document: str = ""
    rows: str = ""


def _decode(data: bytes, kind: type[T]) -> T | None:
    """Return the value of a part of the layout; None if it is something else."""
    try:
        return decode(data, type=kind)
    except (DecodeError, UnicodeDecodeError, RecursionError):
        return None


IMPORTER = Importer(
    "document", "JSON document of `polymnia export --format json`", recognizes, read, read_history
)
