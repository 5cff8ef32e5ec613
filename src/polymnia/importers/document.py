"""The JSON document that `polymnia export --format json` writes."""

from collections.abc import Callable, Iterator

from polymnia.engine.transfer.document import (
    HEADER,
    VERSION,
    parse_entity,
    parse_note,
    parse_relation,
)
from polymnia.engine.transfer.intake import Item
from polymnia.errors import BadInput
from polymnia.importers.base import Importer, Report, decode_part
from polymnia.importers.source import Source, parts_of

_PARSERS: dict[str, Callable[[bytes, str], Item]] = {
    "entities": parse_entity,
    "relations": parse_relation,
    "notes": parse_note,
}


def recognizes(source: Source) -> bool:
    """Return True for our header, or an object that says that it is ours."""
    if not source.is_file:
        return False
    name = source.names[0]
    if source.head(name).startswith(HEADER):
        return True
    outline = source.outline(name)
    if not isinstance(outline, dict) or "format" not in outline:
        return False
    return bool(decode_part(outline["format"]) == "polymnia")


def read(source: Source, report: Report) -> Iterator[Item]:
    """Yield what is in the document. Raise BadInput for a mistake anywhere in it."""
    outline = source.outline(source.names[0])
    if not isinstance(outline, dict):
        raise BadInput(f"{source.path}: not a valid export, or its end is missing")
    version = decode_part(outline["version"]) if "version" in outline else VERSION
    if version != VERSION:
        raise BadInput(
            f"{source.path}: a document of version {version!r}, "
            f"and this program reads version {VERSION}; "
            "upgrade it, or export the document again with this version"
        )
    if "history" in outline:
        report.drop_part("history", "it is not imported; `polymnia migrate` keeps it")
    parts = []
    for section, parse in _PARSERS.items():
        for number, part in enumerate(parts_of(outline[section]) if section in outline else ()):
            parts.append((parse, part, f"{section}[{number}]"))

    def items() -> Iterator[Item]:
        for parse, part, place in parts:
            try:
                yield parse(bytes(part), place)
            except BadInput as exc:
                raise BadInput(f"{source.path}: not a valid export: {exc}") from exc

    # Find the mistakes before anything is imported: a document is taken whole or not at all.
    for _ in items():
        pass
    yield from report.count_known(len(parts), items())


IMPORTER = Importer(
    "document", "JSON document of `polymnia export --format json`", recognizes, read
)
