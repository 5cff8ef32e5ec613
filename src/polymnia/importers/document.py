"""The JSON document that `polymnia export --format json` writes."""

from collections.abc import Iterator
from itertools import chain

from polymnia.dialects.document import parse_document
from polymnia.engine.intake import Item
from polymnia.errors import BadInput
from polymnia.importers.base import Importer, Report, decode_part
from polymnia.importers.source import Source


def recognizes(source: Source) -> bool:
    """Return True for an object with arrays of entities and relations whose first ones have our fields."""
    if not source.is_file:
        return False
    outline = source.outline(source.names[0])
    if not isinstance(outline, dict) or not {"entities", "relations"} <= set(outline):
        return False
    values = [decode_part(outline[name]) for name in ("entities", "relations")]
    expected = ({"name", "entityType", "observations"}, {"from", "to", "relationType"})
    return all(
        isinstance(value, list) and (not value or (isinstance(value[0], dict) and names <= set(value[0])))
        for value, names in zip(values, expected, strict=True)
    )


def read(source: Source, report: Report) -> Iterator[Item]:
    """Yield what the document has. Raise BadInput for a mistake anywhere in it."""
    del report  # a document is taken whole or not at all
    try:
        found = parse_document(source.read(source.names[0]))
    except BadInput as exc:
        raise BadInput(f"{source.path}: {exc}") from exc
    if found is None:
        raise BadInput(f"{source.path}: not a valid export")
    graph, notes = found
    yield from chain(graph.entities, graph.relations, notes)


IMPORTER = Importer("document", "JSON document of `polymnia export --format json`", recognizes, read)
