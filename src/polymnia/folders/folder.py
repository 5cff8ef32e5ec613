"""A folder of Markdown files: read as what its files say, and laid out as the files that a memory becomes."""

import unicodedata
from collections.abc import Iterator, Mapping
from pathlib import PurePosixPath

from msgspec import Struct
from msgspec.structs import replace

from polymnia.engine.reconcile import State
from polymnia.errors import BadInput
from polymnia.folders.front_matter import Value, decode_file, property_lines, split_file
from polymnia.folders.markdown import (
    MARKER,
    encode_entity,
    encode_loose,
    encode_note,
    has_conflict_lines,
    parse_entity,
    parse_loose,
    parse_note,
    text_of,
)
from polymnia.folders.names import Stems, fold_stem, is_stem_of
from polymnia.importers.source import NAME_NOT_UTF_8, Source
from polymnia.model import Entity, Note, Relation

NOTES = "notes"
LOOSE = "_relations.md"
_ENDING = ".md"


class Contents(Struct):
    """What the files of a folder say: entities and notes by path, relations, the bytes of each file of ours.

    `others` are Markdown files that are not ours. `other_properties` are those of each file that are not ours, as they
    are written.
    """

    entities: dict[str, Entity]
    relations: list[Relation]
    notes: dict[str, Note]
    data: dict[str, bytes]
    others: list[str]
    other_properties: dict[str, dict[str, str]]


class Places(Struct):
    """Where the files of entities and notes are, by id and by key."""

    entities: dict[str, str]
    notes: dict[str, str]


def read_folder(source: Source) -> Contents:
    """Return what the folder's files say. Files without our marker are listed as others.

    Raise BadInput for a file that cannot be understood whole: to go on would delete a part of it.
    """
    for path, reason in source.skipped:
        if path.endswith(_ENDING) and reason == NAME_NOT_UTF_8:
            raise BadInput(f"{path}: {reason}")
    data: dict[str, bytes] = {}
    parts: dict[str, tuple[dict[str, Value], str]] = {}
    others: list[str] = []
    for path in source.names:
        if not path.endswith(_ENDING):
            continue
        if not marks(source.head(path)):
            others.append(path)
            continue
        data[path] = source.read(path)
        _require_whole(path, data[path])
        parts[path] = split_file(data[path])
    of_kind = {
        kind: [path for path, (found, _) in parts.items() if found.get(MARKER) == kind]
        for kind in _KINDS
    }
    names = _LinkedNames(
        {path: text_of(parts[path][0], "name") or stem_of(path) for path in of_kind["entity"]}
    )
    contents = Contents({}, [], {}, data, others, {})
    for path, (properties, _) in parts.items():
        if properties.keys() - _OWN_PROPERTIES[text_of(properties, MARKER)]:
            contents.other_properties[path] = _find_other_properties(
                data[path], text_of(properties, MARKER)
            )
    for path in of_kind["entity"]:
        found = parse_entity(*parts[path], stem_of(path), names.resolve)
        contents.entities[path] = _with_distinct_ordinals(found.entity)
        contents.relations += found.relations
    for path in of_kind["note"]:
        contents.notes[path] = parse_note(*parts[path], stem_of(path))
    for path in of_kind["relations"]:
        contents.relations += parse_loose(parts[path][1], names.resolve)
    return contents


def marks(head: bytes) -> bool:
    """Return True if a file that begins like this is ours."""
    return split_file(head + b"\n---\n")[0].get(MARKER) in _KINDS


def _require_whole(path: str, data: bytes) -> None:
    try:
        text = data.decode()
    except UnicodeDecodeError as exc:
        raise BadInput(f"{path} is not UTF-8; save it as UTF-8 and try again") from exc
    if has_conflict_lines(text):
        raise BadInput(f"{path} has a conflict that git left; resolve it and try again")


def _find_other_properties(data: bytes, kind: str) -> dict[str, str]:
    lines = property_lines(decode_file(data))
    return {key: text for key, text in lines.items() if key not in _OWN_PROPERTIES[kind]}


def lay_out(
    state: State, places: Places, former: Mapping[str, str], others: list[str]
) -> tuple[dict[str, bytes], Places]:
    """Return the files of a memory by path, and where each entity and note is.

    Files stay at their places. A file that is named like its entity was before moves when that is renamed; `former` has
    these names by id.
    """
    stems = Stems()
    for path in (LOOSE, *others):
        stems.reserve(stem_of(path))
    new = Places({}, {})
    for key, entity in state.entities.items():
        path = places.entities.get(key, "")
        if path and (stem_of(path) == entity.name or former.get(key) != stem_of(path)):
            new.entities[key] = path
            stems.reserve(stem_of(path))
    for key in state.notes:
        if key in places.notes:
            new.notes[key] = places.notes[key]
            stems.reserve(stem_of(places.notes[key]))
    for key, entity in state.entities.items():
        if key not in new.entities:
            folder = PurePosixPath(places.entities.get(key, "x")).parent
            new.entities[key] = str(folder / (stems.allocate(entity.name) + _ENDING))
    for key in state.notes:
        if key not in new.notes:
            new.notes[key] = f"{NOTES}/{stems.allocate(key)}{_ENDING}"
    return dict(_files(state, new, stems)), new


def stem_of(path: str) -> str:
    """Return the name of a file without its ending, in the form in which names are compared."""
    return unicodedata.normalize("NFC", PurePosixPath(path).name.removesuffix(_ENDING))


def _files(state: State, places: Places, stems: Stems) -> Iterator[tuple[str, bytes]]:
    links = _Links(state, places, stems)
    outgoing: dict[str, list[Relation]] = {}
    for relation in state.relations.values():
        outgoing.setdefault(relation.source, []).append(relation)
    for key, entity in state.entities.items():
        path = places.entities[key]
        yield (
            path,
            encode_entity(
                entity, outgoing.pop(entity.name, []), stem_of(path), links.find
            ).encode(),
        )
    for key, note in state.notes.items():
        path = places.notes[key]
        yield path, encode_note(note, stem_of(path)).encode()
    loose = [each for relations in outgoing.values() for each in relations]
    if loose:
        yield LOOSE, encode_loose(loose, links.find).encode()


class _Links:
    """The links to names. A name without an entity gets a file name too, which nothing else gets."""

    def __init__(self, state: State, places: Places, stems: Stems) -> None:
        self._stems = stems
        paths = {entity.name: places.entities[key] for key, entity in state.entities.items()}
        counts: dict[str, int] = {}
        for path in paths.values():
            counts[stem_of(path)] = counts.get(stem_of(path), 0) + 1
        self._targets = {
            name: stem_of(path) if counts[stem_of(path)] == 1 else path.removesuffix(_ENDING)
            for name, path in paths.items()
        }

    def find(self, name: str) -> tuple[str, str]:
        if name not in self._targets:
            self._targets[name] = self._stems.allocate(name)
        target = self._targets[name]
        return target, "" if target == name else name


class _LinkedNames:
    """The names that links mean, given the names of the entities by the paths of their files."""

    def __init__(self, names: dict[str, str]) -> None:
        self._by_stem = {stem_of(path): name for path, name in reversed(names.items())}
        self._by_path = {path.removesuffix(_ENDING): name for path, name in names.items()}
        self._by_folded_stem = {fold_stem(stem): name for stem, name in self._by_stem.items()}

    def resolve(self, target: str, shown: str) -> str:
        wanted = unicodedata.normalize("NFC", target.strip().removesuffix(_ENDING))
        found = (
            self._by_path.get(wanted)
            or self._by_stem.get(wanted)
            or self._by_folded_stem.get(fold_stem(wanted))
        )
        # A name without a file is shown if it cannot be a file name; people show other texts too.
        return found or (shown if is_stem_of(wanted, shown) else target)


def _with_distinct_ordinals(entity: Entity) -> Entity:
    """Return the entity without ordinals that come twice: the second line is a copy, which is new."""
    seen: set[int] = set()
    observations = []
    for each in entity.observations:
        observations.append(replace(each, ordinal=0) if each.ordinal in seen else each)
        seen.add(each.ordinal)
    return replace(entity, observations=tuple(observations))


_OWN_PROPERTIES = {
    "entity": {MARKER, "id", "name", "type", "tags", "summary", "created", "updated"},
    "note": {MARKER, "key", "tags", "created", "updated", "embedding", "content"},
    "relations": {MARKER},
}
_KINDS = tuple(_OWN_PROPERTIES)
