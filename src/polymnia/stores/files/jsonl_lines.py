"""Lines of a `memory.jsonl`: parse and encode them."""

import json
import re
from collections.abc import Callable, Iterable, Iterator

from msgspec import DecodeError, Struct, ValidationError, convert, field, to_builtins
from msgspec.json import Decoder, Encoder

from polymnia.model import Entity, Observation, Relation
from polymnia.stores.memory_graph import MemoryGraph

_BYTE_ORDER_MARK = b"\xef\xbb\xbf"
_LINES_PER_CHUNK = 2000
_ORDINALS = range(1, 1 << 60)
_SURROGATE = re.compile("[\ud800-\udfff]")
_REPLACEMENT = "\ufffd"


class _EntityLine(Struct, tag_field="type", tag="entity"):
    name: str
    entityType: str  # noqa: N815  # the format's own name
    observations: list[str]


class _BareEntityLine(Struct, tag_field="type", tag="entity", forbid_unknown_fields=True):
    """An entity line without observations. An unknown field may once have been its observations."""

    name: str
    entityType: str  # noqa: N815  # the format's own name


class _RelationLine(Struct, tag_field="type", tag="relation"):
    source: str = field(name="from")
    target: str = field(name="to")
    relationType: str  # noqa: N815  # the format's own name


_Line = _EntityLine | _RelationLine
_decoder: Decoder[_Line] = Decoder(_Line)
_bare_decoder = Decoder(_BareEntityLine)
_encoder = Encoder()


class Surrogates:
    """Texts with lone surrogates, which no UTF-8 can hold, and the readable texts that stand for them in memory."""

    def __init__(self) -> None:
        self._readable: dict[str, str] = {}
        self._original: dict[str, str] = {}

    def __bool__(self) -> bool:
        return bool(self._original)

    def reserve(self, text: str) -> None:
        """Record a text of the file, so that it is not used to stand for another one."""
        if _REPLACEMENT in text:
            self._original.setdefault(text, text)

    def readable(self, text: str) -> str:
        """Return the text with U+FFFD for each lone surrogate; two different texts never become the same."""
        if not _SURROGATE.search(text):
            return text
        if text not in self._readable:
            readable = _SURROGATE.sub(_REPLACEMENT, text)
            while readable in self._original:
                readable += _REPLACEMENT
            self._readable[text], self._original[readable] = readable, text
        return self._readable[text]

    def original(self, text: str) -> str:
        """Return the text that a readable one stands for."""
        return self._original.get(text, text)


class LoadedFile:
    """The graph of a file, and the lines that are neither entity nor relation, with the reasons."""

    def __init__(self) -> None:
        self.graph = MemoryGraph()
        self.surrogates = Surrogates()
        self.rejected: list[bytes] = []
        self.problems: list[tuple[int, str]] = []

    def reject(self, number: int, line: bytes, reason: str) -> None:
        """Note a line that cannot be loaded."""
        self.rejected.append(line)
        self.problems.append((number, reason))


def parse(data: bytes) -> LoadedFile:
    """Load every valid line. A name that occurs twice is one entity with the observations of both lines."""
    loaded = LoadedFile()
    data = data.removeprefix(_BYTE_ORDER_MARK)
    items = _parse_at_once(data)
    if items is None:
        items = _readable(_parse_lines(data, loaded), loaded.surrogates)
    _put_all(loaded.graph, items)
    return loaded


def _parse_at_once(data: bytes) -> list[_Line] | None:
    """Parse a file in which all lines are valid, several times faster than line by line."""
    lines = data.strip()
    try:
        items = _decoder.decode_lines(lines)
    except (DecodeError, UnicodeDecodeError, RecursionError):
        return None
    # The decoder treats a newline as white space: fewer items than lines means that an object spans two lines.
    return items if len(items) == (lines.count(b"\n") + 1 if lines else 0) else None


def _parse_lines(data: bytes, loaded: LoadedFile) -> list[_Line]:
    items = []
    for number, line in enumerate(data.split(b"\n"), 1):
        if not line or line.isspace():
            continue
        try:
            items.append(_parse_line(line))
        except ValidationError as exc:
            loaded.reject(number, line, f"not an entity or a relation ({exc})")
        except (DecodeError, UnicodeDecodeError, RecursionError) as exc:
            loaded.reject(number, line, f"not valid JSON ({exc})")
    return items


def _parse_line(line: bytes) -> _Line:
    try:
        return _decoder.decode(line)
    except DecodeError as exc:
        item = _parse_bare(line) if isinstance(exc, ValidationError) else _parse_surrogates(line)
        if item is None:
            raise
        return item


def _parse_bare(line: bytes) -> _EntityLine | None:
    """Parse an entity line without observations; None if it is not one."""
    try:
        bare = _bare_decoder.decode(line)
    except ValidationError:
        return None
    return _EntityLine(bare.name, bare.entityType, [])


def _parse_surrogates(line: bytes) -> _Line | None:
    r"""Parse a line with lone surrogates, which JavaScript writes as `\ud800`; None if it has none or is not valid."""
    try:
        item: _Line = convert(json.loads(line), _Line)
    except (ValueError, ValidationError):
        return None
    return item if any(map(_SURROGATE.search, _texts(item))) else None


def _readable(items: list[_Line], surrogates: Surrogates) -> list[_Line]:
    """Replace lone surrogates by characters that every client can read."""
    if not any(_SURROGATE.search(text) for item in items for text in _texts(item)):
        return items
    for item in items:
        for text in _texts(item):
            surrogates.reserve(text)
    return [_map_texts(item, surrogates.readable) for item in items]


def _texts(item: _Line) -> list[str]:
    if isinstance(item, _RelationLine):
        return [item.source, item.target, item.relationType]
    return [item.name, item.entityType, *item.observations]


def _map_texts(item: _Line, change: Callable[[str], str]) -> _Line:
    if isinstance(item, _RelationLine):
        return _RelationLine(change(item.source), change(item.target), change(item.relationType))
    return _EntityLine(
        change(item.name), change(item.entityType), list(map(change, item.observations))
    )


def encode_lines(
    entities: Iterable[Entity], relations: Iterable[Relation], surrogates: Surrogates | None = None
) -> Iterator[bytes]:
    """Encode the content of a file in chunks: all entities, then all relations, a newline between two lines."""
    items: list[_Line] = [_EntityLine(each.name, each.type, list(each.texts)) for each in entities]
    items += [_RelationLine(*each.key) for each in relations]
    for start in range(0, len(items), _LINES_PER_CHUNK):
        lines = [_encode_line(item, surrogates) for item in items[start : start + _LINES_PER_CHUNK]]
        yield (b"\n" if start else b"") + b"\n".join(lines)


def _encode_line(item: _Line, surrogates: Surrogates | None) -> bytes:
    if not surrogates:
        return _encoder.encode(item)
    item = _map_texts(item, surrogates.original)
    if not any(map(_SURROGATE.search, _texts(item))):
        return _encoder.encode(item)
    text = json.dumps(to_builtins(item), ensure_ascii=False, separators=(",", ":"))
    return _SURROGATE.sub(lambda match: f"\\u{ord(match[0]):04x}", text).encode()


def _put_all(graph: MemoryGraph, items: list[_Line]) -> None:
    entities = [_entity(item) for item in items if type(item) is _EntityLine]
    relations = [
        Relation(each.source, each.target, each.relationType)
        for each in items
        if type(each) is _RelationLine
    ]
    if graph.fill(entities, relations):
        return
    for item in items:
        _put(graph, item)


def _put(graph: MemoryGraph, item: _Line) -> None:
    if isinstance(item, _RelationLine):
        graph.link(Relation(item.source, item.target, item.relationType))
    else:
        known = graph.get(item.name)
        graph.put(_entity(item) if known is None else _join(known, item))


def _entity(item: _EntityLine) -> Entity:
    observations = tuple(map(Observation, _ORDINALS, item.observations))
    return Entity(item.name, item.entityType, observations, "", len(observations) + 1)


def _join(known: Entity, item: _EntityLine) -> Entity:
    missing = [text for text in dict.fromkeys(item.observations) if text not in known.texts]
    return _entity(_EntityLine(known.name, known.type, [*known.texts, *missing]))
