"""Lines of a `memory.jsonl`: parsing what is there, spelling what is to be written."""

from collections.abc import Iterable, Iterator

from msgspec import DecodeError, Struct, ValidationError, field
from msgspec.json import Decoder, Encoder

from polymnia.model import Entity, Observation, Relation
from polymnia.stores.files.pause import collection_paused
from polymnia.stores.memory import MemoryGraph

_BYTE_ORDER_MARK = b"\xef\xbb\xbf"
_LINES_PER_CHUNK = 2000
_ORDINALS = range(1, 1 << 60)


class _EntityLine(Struct, tag_field="type", tag="entity"):
    name: str
    entityType: str  # noqa: N815  # the format's own name
    observations: list[str]


class _BareEntityLine(Struct, tag_field="type", tag="entity", forbid_unknown_fields=True):
    """An entity line without observations must have nothing else that could have been them."""

    name: str
    entityType: str  # noqa: N815  # the format's own name


class _RelationLine(Struct, tag_field="type", tag="relation"):
    source: str = field(name="from")
    target: str = field(name="to")
    relationType: str  # noqa: N815  # the format's own name


_decoder: Decoder[_EntityLine | _RelationLine] = Decoder(_EntityLine | _RelationLine)
_bare_decoder = Decoder(_BareEntityLine)
_encoder = Encoder()


class Loaded:
    """What a file gave: the graph, and the lines that are no entity and no relation, with the reasons."""

    def __init__(self) -> None:
        self.graph = MemoryGraph()
        self.rejected: list[bytes] = []
        self.problems: list[tuple[int, str]] = []

    def reject(self, number: int, line: bytes, reason: str) -> None:
        self.rejected.append(line)
        self.problems.append((number, reason))


def parse(data: bytes) -> Loaded:
    """Every whole good line of the file; a name that comes twice is one entity with the observations of both."""
    loaded = Loaded()
    with collection_paused():
        data = data.removeprefix(_BYTE_ORDER_MARK)
        items = _parse_at_once(data)
        if items is None:
            _parse_lines(data, loaded)
        else:
            _put_all(loaded.graph, items)
    return loaded


def _parse_at_once(data: bytes) -> list[_EntityLine | _RelationLine] | None:
    """The lines of a file in which all are good, in one go: several times quicker than line by line."""
    lines = data.strip()
    try:
        items = _decoder.decode_lines(lines)
    except (DecodeError, UnicodeDecodeError, RecursionError):
        return None
    # To the decoder a newline is white space like any other: fewer items than lines is a line broken in two.
    return items if len(items) == (lines.count(b"\n") + 1 if lines else 0) else None


def _parse_lines(data: bytes, loaded: Loaded) -> None:
    for number, line in enumerate(data.split(b"\n"), 1):
        if not line or line.isspace():
            continue
        try:
            item = _parse_line(line)
        except ValidationError as exc:
            loaded.reject(number, line, f"not an entity or a relation ({exc})")
        except (DecodeError, UnicodeDecodeError, RecursionError) as exc:
            loaded.reject(number, line, f"not valid JSON ({exc})")
        else:
            _put(loaded.graph, item)


def _parse_line(line: bytes) -> _EntityLine | _RelationLine:
    try:
        return _decoder.decode(line)
    except ValidationError:
        try:
            bare = _bare_decoder.decode(line)
        except ValidationError:
            bare = None
        if bare is None:
            raise
        return _EntityLine(bare.name, bare.entityType, [])


def encode_lines(entities: Iterable[Entity], relations: Iterable[Relation]) -> Iterator[bytes]:
    """The file's content in pieces: all entities, then all relations, a newline between two lines."""
    lines = [_encoder.encode(_EntityLine(each.name, each.type, list(each.texts))) for each in entities]
    lines += [_encoder.encode(_RelationLine(*each.key)) for each in relations]
    for start in range(0, len(lines), _LINES_PER_CHUNK):
        yield (b"\n" if start else b"") + b"\n".join(lines[start : start + _LINES_PER_CHUNK])


def _put_all(graph: MemoryGraph, items: list[_EntityLine | _RelationLine]) -> None:
    entities = [_entity(item) for item in items if type(item) is _EntityLine]
    relations = [Relation(each.source, each.target, each.relationType) for each in items if type(each) is _RelationLine]
    if graph.fill(entities, relations):
        return
    for item in items:
        _put(graph, item)


def _put(graph: MemoryGraph, item: _EntityLine | _RelationLine) -> None:
    if type(item) is _RelationLine:
        graph.link(Relation(item.source, item.target, item.relationType))
    elif isinstance(item, _EntityLine):
        known = graph.get(item.name)
        graph.put(_entity(item) if known is None else _joined(known, item))


def _entity(item: _EntityLine) -> Entity:
    observations = tuple(map(Observation, _ORDINALS, item.observations))
    return Entity(item.name, item.entityType, observations, "", len(observations) + 1)


def _joined(known: Entity, item: _EntityLine) -> Entity:
    lacking = [text for text in dict.fromkeys(item.observations) if text not in known.texts]
    return _entity(_EntityLine(known.name, known.type, [*known.texts, *lacking]))
