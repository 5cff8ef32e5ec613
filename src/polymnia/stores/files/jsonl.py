"""The reference server's file: one JSON object per line, entities first, then relations.

`docs/formats/jsonl.md` describes the format and what happens to lines that do not follow it.
"""

import json
import logging
import re
from collections.abc import Iterable, Iterator
from contextlib import suppress
from pathlib import Path

from msgspec import DecodeError, Struct, ValidationError, convert, field, to_builtins
from msgspec.json import Decoder, Encoder

from polymnia.disk.files import fsync, fsync_directory, open_private, replace_file
from polymnia.model import Entity, Fact, Relation
from polymnia.stores.files.graph import MemoryGraph
from polymnia.stores.files.store import KnownFile

logger = logging.getLogger(__name__)

_BYTE_ORDER_MARK = b"\xef\xbb\xbf"
_LINES_PER_CHUNK = 2000
_ORDINALS = range(1, 1 << 60)
_HALF_PAIR = re.compile("[\ud800-\udfff]")


def adopt_legacy(path: Path) -> None:
    """Rename the `memory.json` of early reference servers to `memory.jsonl`, unless that exists.

    Lines that cannot be read stay in it: the store reports them, and its first write moves them.
    """
    legacy = path.with_suffix(".json")
    if path.suffix != ".jsonl" or path.exists() or not legacy.is_file():
        return
    loaded = parse(legacy.read_bytes())
    counts = loaded.graph.counts()
    if loaded.problems and not counts.entities and not counts.relations:
        logger.warning(
            "%s is not a memory file (one entity or relation per line); it is left alone", legacy
        )
        return
    try:
        legacy.rename(path)
    except FileNotFoundError:
        return  # another server renamed it first
    fsync_directory(path.parent)
    if not loaded.problems:
        logger.info("%s is now %s", legacy, path)
        return
    logger.warning(
        "%s is now %s; %d of its lines cannot be read, "
        "and the first write keeps them in %s.rejected",
        legacy,
        path,
        len(loaded.problems),
        path,
    )


class JsonlFile:
    """The file of a store. A changed file is read anew; a write replaces all of it."""

    best_batch = 1_000_000

    def __init__(self, path: str) -> None:
        self._path = Path(path)
        self._loaded = LoadedFile()
        self._file = KnownFile(path)
        self.graph = self._loaded.graph

    def catch_up(self) -> None:
        if self._file.is_unchanged():
            return
        data = self._file.read()
        self._loaded = parse(data)
        for number, reason in self._loaded.problems:
            # Other programs may well have lines of their own in the file.
            is_foreign = number in self._loaded.foreign_lines
            logger.log(
                logging.INFO if is_foreign else logging.WARNING,
                "%s, line %d: %s; the line is kept and the rest is loaded",
                self._path,
                number,
                reason,
            )
        self.graph = self._loaded.graph
        self._file.mark_known(len(data))

    def prepare(self) -> None:
        self.catch_up()

    def save(self) -> None:
        rejected = self._loaded.rejected
        if rejected:
            # Keep the lines that cannot be loaded in another file, before the rewrite drops them.
            aside = Path(f"{self._path}.rejected")
            block = b"".join(line + b"\n" for line in rejected)
            with open(aside, "a+b", opener=open_private) as file:
                file.seek(0)
                before = b"\n" + file.read()
                # An earlier write may have kept them and failed later.
                if not before.endswith(b"\n" + block):
                    file.write(block if before.endswith(b"\n") else b"\n" + block)
                file.flush()
                fsync(file.fileno(), self._path)
            fsync_directory(aside.parent)
            logger.warning("%d lines that could not be loaded are now in %s", len(rejected), aside)
            rejected.clear()
        lines = encode_lines(self.graph.entities(), self.graph.relations(), self._loaded.originals)
        replace_file(self._path, lines)
        self.graph.applied.clear()
        self._file.mark_replaced()

    def forget(self) -> None:
        self._file.forget()

    def compact(self) -> None:
        """Do nothing: every write leaves the smallest file."""

    def check(self) -> list[str]:
        loaded = parse(self._path.read_bytes())
        return [f"{self._path}, line {number}: {reason}" for number, reason in loaded.problems]

    def close(self) -> None:
        self._file.close()


class _EntityObject(Struct, tag_field="type", tag="entity"):
    name: str
    entityType: str  # noqa: N815  # the format's own name
    observations: list[str]


class _BareEntityObject(Struct, tag_field="type", tag="entity", forbid_unknown_fields=True):
    """An entity line without facts. An unknown field may once have been its facts."""

    name: str
    entityType: str  # noqa: N815  # the format's own name


class _RelationObject(Struct, tag_field="type", tag="relation"):
    source: str = field(name="from")
    target: str = field(name="to")
    relationType: str  # noqa: N815  # the format's own name


_Line = _EntityObject | _RelationObject
_decoder: Decoder[_Line] = Decoder(_Line)
_bare_decoder = Decoder(_BareEntityObject)
_encoder = Encoder()


class LoadedFile:
    """The graph of a file, and the lines that are neither entity nor relation, with the reasons."""

    def __init__(self) -> None:
        self.graph = MemoryGraph(is_file=True)
        self.rejected: list[bytes] = []
        self.problems: list[tuple[int, str]] = []
        self.foreign_lines: set[int] = set()  # valid JSON of another type
        self.originals: dict[str, str] = {}  # by readable text: the file's, with half a pair

    def reject(self, number: int, line: bytes, reason: str) -> None:
        """Note a line that cannot be loaded."""
        self.rejected.append(line)
        self.problems.append((number, reason))


def parse(data: bytes) -> LoadedFile:
    """Load every valid line. Two lines of one name are one entity with both lines' facts."""
    loaded = LoadedFile()
    data = data.removeprefix(_BYTE_ORDER_MARK)
    lines = data.strip()
    items: list[_Line] = []
    with suppress(DecodeError, UnicodeDecodeError, RecursionError):
        # A file in which all lines are valid is parsed several times faster than line by line.
        items = _decoder.decode_lines(lines)
    # To the decoder a newline is white space: with fewer items than lines, an object spans two.
    if lines and len(items) != lines.count(b"\n") + 1:
        items = _replace_half_pairs(_parse_lines(data, loaded), loaded.originals)
    _put_all(loaded.graph, items)
    return loaded


def _parse_lines(data: bytes, loaded: LoadedFile) -> list[_Line]:
    items = []
    for number, line in enumerate(data.split(b"\n"), 1):
        if not line or line.isspace():
            continue
        try:
            items.append(_parse_line(line))
        except ValidationError as exc:
            loaded.reject(number, line, f"not an entity or a relation ({exc})")
            loaded.foreign_lines.add(number)
        except (DecodeError, UnicodeDecodeError, RecursionError) as exc:
            loaded.reject(number, line, f"not valid JSON ({exc})")
    return items


def _parse_line(line: bytes) -> _Line:
    try:
        return _decoder.decode(line)
    except DecodeError as exc:
        item = _parse_bare(line) if isinstance(exc, ValidationError) else _parse_half_pairs(line)
        if item is None:
            raise
        return item


def _parse_bare(line: bytes) -> _EntityObject | None:
    """Parse an entity line without facts; None if it is not one."""
    try:
        bare = _bare_decoder.decode(line)
    except ValidationError:
        return None
    return _EntityObject(bare.name, bare.entityType, [])


def _parse_half_pairs(line: bytes) -> _Line | None:
    r"""Parse a line with half of a surrogate pair, such as `\ud83d`; None without any."""
    try:
        value = json.loads(line)
        is_half = _HALF_PAIR.search(json.dumps(value, ensure_ascii=False))
        item: _Line | None = convert(value, _Line) if is_half else None
    except ValueError:
        return None
    return item


def _replace_half_pairs(items: list[_Line], originals: dict[str, str]) -> list[_Line]:
    """Make texts with half of a surrogate pair readable, and note what each of them was.

    JavaScript writes such halves where it cuts a text, but UTF-8 cannot hold them. They become
    U+FFFD, and more are appended where two texts of the file would become one.
    """
    texts = dict.fromkeys(text for item in items for text in _texts(item))
    readable: dict[str, str] = {}
    for text in filter(_HALF_PAIR.search, texts):
        replacement = _HALF_PAIR.sub("\ufffd", text)
        while replacement in texts or replacement in originals:
            replacement += "\ufffd"
        readable[text] = replacement
        originals[replacement] = text
    return [_map_texts(item, readable) for item in items] if readable else items


def _texts(item: _Line) -> list[str]:
    if isinstance(item, _RelationObject):
        return [item.source, item.target, item.relationType]
    return [item.name, item.entityType, *item.observations]


def _map_texts(item: _Line, by_text: dict[str, str]) -> _Line:
    texts = [by_text.get(text, text) for text in _texts(item)]
    if isinstance(item, _RelationObject):
        return _RelationObject(*texts)
    return _EntityObject(texts[0], texts[1], texts[2:])


def encode_lines(
    entities: Iterable[Entity],
    relations: Iterable[Relation],
    originals: dict[str, str] | None = None,
) -> Iterator[bytes]:
    """Encode a file in chunks: all entities, then all relations, a newline between two lines.

    A text that is a key of `originals` is written as its value.
    """
    items: list[_Line] = [
        _EntityObject(entity.name, entity.type, list(entity.texts)) for entity in entities
    ]
    items += [_RelationObject(*relation.key) for relation in relations]
    for start in range(0, len(items), _LINES_PER_CHUNK):
        chunk = items[start : start + _LINES_PER_CHUNK]
        lines = [_encode_line(item, originals or {}) for item in chunk]
        yield (b"\n" if start else b"") + b"\n".join(lines)


def _encode_line(item: _Line, originals: dict[str, str]) -> bytes:
    if not originals or originals.keys().isdisjoint(_texts(item)):
        return _encoder.encode(item)
    line = to_builtins(_map_texts(item, originals))
    text = json.dumps(line, ensure_ascii=False, separators=(",", ":"))
    return text.encode(errors="backslashreplace")  # half a pair as JavaScript writes it: \ud83d


def _put_all(graph: MemoryGraph, items: list[_Line]) -> None:
    entities = [_entity(item) for item in items if type(item) is _EntityObject]
    relations = [
        Relation(item.source, item.target, item.relationType)
        for item in items
        if type(item) is _RelationObject
    ]
    if graph.fill(entities, relations):
        return
    # Two lines have the same name.
    for entity in entities:
        known = graph.get(entity.name)
        if known is None:
            graph.put(entity)
            continue
        texts = (*known.texts, *[text for text in entity.texts if text not in known.texts])
        graph.put(_entity(_EntityObject(known.name, known.type, list(dict.fromkeys(texts)))))
    for relation in relations:
        graph.link(relation)


def _entity(item: _EntityObject) -> Entity:
    facts = tuple(map(Fact, _ORDINALS, item.observations))
    return Entity(item.name, item.entityType, facts, "", len(facts) + 1)
