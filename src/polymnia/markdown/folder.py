"""A folder of Markdown files: read its files, and lay out the files of a memory."""

import re
import unicodedata
from collections import Counter
from collections.abc import Iterator, Mapping
from hashlib import sha256
from pathlib import PurePosixPath

from msgspec import Struct
from msgspec.structs import replace

from polymnia.errors import BadInput
from polymnia.importers.source import NAME_NOT_UTF_8, Source
from polymnia.markdown.merge import State
from polymnia.markdown.properties import Value, decode_file, property_lines, split_file
from polymnia.markdown.text import (
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
from polymnia.model import Entity, Note, Relation
from polymnia.search.terms import fold

NOTES = "notes"
LOOSE = "_relations.md"
_ENDING = ".md"
MAX_STEM_BYTES = 180
# Characters that mean something to a file system, Obsidian or a link, and invisible ones.
_FORBIDDEN = re.compile(
    r'[<>:"/\\|?*#^\[\]\x00-\x1f\x7f-\x9f\u200b-\u200f\u2028-\u202e\u2066-\u2069\ufeff\ufffd]'
)
_RESERVED = re.compile(
    r"(?:con|prn|aux|nul|conin\$|conout\$|com[0-9¹²³]|lpt[0-9¹²³])(?:\..*)?", re.IGNORECASE
)


class FolderContents(Struct):
    """What the files of a folder say. `data` has the bytes of each file of ours.

    `others` are Markdown files that are not ours. `other_properties` has the lines of properties in
    our files that are not ours.
    """

    entities: dict[str, Entity]
    relations: list[Relation]
    notes: dict[str, Note]
    data: dict[str, bytes]
    others: list[str]
    other_properties: dict[str, dict[str, str]]


class FilePaths(Struct):
    """Where the files of entities and notes are, by id and by key."""

    entities: dict[str, str]
    notes: dict[str, str]


def read_folder(source: Source) -> FolderContents:
    """Return what the folder's files say. Files without our marker are listed as others.

    Raise BadInput for a file that cannot be understood whole: to go on would delete a part of it.
    """
    for path, reason in source.skipped:
        if path.endswith(_ENDING) and reason == NAME_NOT_UTF_8:
            raise BadInput(f"{path}: {reason}")
    contents = FolderContents({}, [], {}, {}, [], {})
    parts: dict[str, tuple[dict[str, Value], str]] = {}
    for path in source.names:
        if not path.endswith(_ENDING):
            continue
        if not has_marker(source.head(path)):
            contents.others.append(path)
            continue
        data = source.read(path)
        try:
            text = data.decode()
        except UnicodeDecodeError as exc:
            raise BadInput(f"{path} is not UTF-8; save it as UTF-8 and try again") from exc
        if has_conflict_lines(text):
            raise BadInput(f"{path} has a conflict that git left; resolve it and try again")
        contents.data[path] = data
        parts[path] = split_file(data)
    names = _LinkedNames(
        {
            path: text_of(properties, "name") or stem_of(path)
            for path, (properties, _) in parts.items()
            if properties.get(MARKER) == "entity"
        }
    )
    for path, (properties, body) in parts.items():
        kind = text_of(properties, MARKER)
        if properties.keys() - _OWN_PROPERTIES[kind]:
            lines = property_lines(decode_file(contents.data[path]))
            contents.other_properties[path] = {
                key: text for key, text in lines.items() if key not in _OWN_PROPERTIES[kind]
            }
        if kind == "entity":
            entity, relations = parse_entity(properties, body, stem_of(path), names.resolve)
            # The entity without repeated ordinals: the second line is a copy, and new.
            seen: set[int] = set()
            facts = []
            for fact in entity.facts:
                is_copy = fact.ordinal in seen
                seen.add(fact.ordinal)
                facts.append(replace(fact, ordinal=0) if is_copy else fact)
            contents.entities[path] = replace(entity, facts=tuple(facts))
            contents.relations += relations
        elif kind == "note":
            contents.notes[path] = parse_note(properties, body, stem_of(path))
        else:
            contents.relations += parse_loose(body, names.resolve)
    return contents


def has_marker(head: bytes) -> bool:
    """Return True if a file that begins like this is ours."""
    return split_file(head + b"\n---\n")[0].get(MARKER) in _KINDS


def lay_out(
    state: State, places: FilePaths, former: Mapping[str, str], others: list[str]
) -> tuple[dict[str, bytes], FilePaths]:
    """Return the files of a memory by path, and where each entity and note is.

    Files stay at their places. A file with the name of its entity moves when that is renamed;
    `former` has the names before, by id.
    """
    stems = FileStems()
    for path in (LOOSE, *others):
        stems.reserve(stem_of(path))
    new = FilePaths({}, {})
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


class FileStems:
    """File names in use. Some file systems take names for the same that differ only in case."""

    def __init__(self) -> None:
        self._taken: set[str] = set()

    def reserve(self, stem: str) -> None:
        """Do not give this one to anything else."""
        self._taken.add(fold_stem(stem))

    def allocate(self, name: str) -> str:
        """Return a file name for this name that is not in use, and reserve it."""
        stem = safe_stem(name)
        digest = sha256(name.encode(errors="replace"))
        while fold_stem(stem) in self._taken:
            stem = f"{safe_stem(name)} ~{digest.hexdigest()[:6]}"
            digest.update(b"again")
        self.reserve(stem)
        return stem


def safe_stem(name: str) -> str:
    """Return a file name without its ending: the name itself if it can be one."""
    stem = _FORBIDDEN.sub("-", unicodedata.normalize("NFC", name))[:100]
    while len(stem.encode()) > MAX_STEM_BYTES:
        stem = stem[:-1]
    stem = re.sub(r"^[.\s~]+|[.\s]+$", "", stem) or "unnamed"
    return f"{stem}_" if _RESERVED.fullmatch(stem) else stem


def is_stem_of(stem: str, name: str) -> bool:
    """Return True if `Stems` may have given this file name to the name."""
    return stem == safe_stem(name) or stem.startswith(f"{safe_stem(name)} ~")


def fold_stem(stem: str) -> str:
    """Return the form in which file systems and editors compare file names."""
    return unicodedata.normalize("NFC", fold(unicodedata.normalize("NFKC", stem)))


def _files(state: State, places: FilePaths, stems: FileStems) -> Iterator[tuple[str, bytes]]:
    links = _Links(state, places, stems)
    outgoing: dict[str, list[Relation]] = {}
    for relation in state.relations.values():
        outgoing.setdefault(relation.source, []).append(relation)
    for key, entity in state.entities.items():
        path = places.entities[key]
        own_relations = outgoing.pop(entity.name, [])
        yield path, encode_entity(entity, own_relations, stem_of(path), links.find).encode()
    for key, note in state.notes.items():
        path = places.notes[key]
        yield path, encode_note(note, stem_of(path)).encode()
    loose = [relation for relations in outgoing.values() for relation in relations]
    if loose:
        yield LOOSE, encode_loose(loose, links.find).encode()


class _Links:
    """The links to names. A name without an entity gets a file name too, which stays reserved."""

    def __init__(self, state: State, places: FilePaths, stems: FileStems) -> None:
        self._stems = stems
        paths = {entity.name: places.entities[key] for key, entity in state.entities.items()}
        counts = Counter(stem_of(path) for path in paths.values())
        self._targets: dict[str, str] = {}
        for name, path in paths.items():
            is_unique = counts[stem_of(path)] == 1
            self._targets[name] = stem_of(path) if is_unique else path.removesuffix(_ENDING)

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
        stem = unicodedata.normalize("NFC", target.strip().removesuffix(_ENDING))
        name = (
            self._by_path.get(stem)
            or self._by_stem.get(stem)
            or self._by_folded_stem.get(fold_stem(stem))
        )
        if name:
            return name
        # The shown text is the name if our file name was made of it; people show other texts too.
        return shown if is_stem_of(stem, shown) else target


_OWN_PROPERTIES = {
    "entity": {MARKER, "id", "name", "type", "tags", "summary", "created", "updated"},
    "note": {MARKER, "key", "tags", "created", "updated", "embedding", "content"},
    "relations": {MARKER},
}
_KINDS = tuple(_OWN_PROPERTIES)
