"""One entity or note as a Markdown file, and back. Docs: docs/formats/markdown.md.

A text that Markdown would change is written as a JSON string in backticks, so that everything comes back as it was.
"""

import re
from collections.abc import Callable, Iterable, Iterator, Sequence

from msgspec import DecodeError, Struct
from msgspec.json import decode, encode

from polymnia.dialects.times import iso_time, parse_time
from polymnia.errors import BadInput
from polymnia.folders.front_matter import Value, front_matter
from polymnia.model import Entity, Note, Observation, Relation

MARKER = "polymnia"
# The type of an entity whose file does not say it.
DEFAULT_TYPE = "entity"
OBSERVATIONS, RELATIONS = "## Observations", "## Relations"
_RECORDS = "<!-- polymnia"
_RECORDS_END = "-->"
# The lines that git writes around two versions, in this order.
_CONFLICT_LINES = ("\n<<<<<<< ", "\n=======", "\n>>>>>>> ")
_BULLET = re.compile(r"[-*+](?: (.*))?", re.DOTALL)
_ORDINAL = re.compile(r"(?:^|(?<=.) |\n)\^o([1-9]\d{0,9})$", re.DOTALL)
_SIMPLE = re.compile(r"[^\s`][^\n\r]*(?<!\s)")
_RELATION = re.compile(r"(.*?) ?\[\[([^\[\]|#^\n]+)(?:[#^][^\[\]|\n]*)?(?:\|([^\[\]\n]*))?\]\]")
_LINKED = re.compile(r"\[\[([^\[\]|#^\n]+)(?:\|([^\[\]\n]*))?\]\] (.*)", re.DOTALL)

# Returns the link to a name: a target, and the text that is shown if that is not the target.
Link = Callable[[str], tuple[str, str]]
# Returns the name that a link means, from its target and the text that is shown.
Resolve = Callable[[str, str], str]


class Record(Struct, frozen=True, omit_defaults=True):
    """What a reader need not see: of an observation, of a relation (type and target), or of the entity itself."""

    ordinal: int = 0
    relation: tuple[str, ...] = ()
    next: int = 0
    created: str | None = None
    valid: str | None = None
    source: str = ""
    summary: str | None = None


class EntityFile(Struct, frozen=True):
    """What a file says of an entity. Observations without an ordinal have 0; an unknown time is 0."""

    entity: Entity
    relations: list[Relation]


def encode_entity(entity: Entity, relations: Sequence[Relation], stem: str, link: Link) -> str:
    """Return the file of an entity with the relations that start at it."""
    shown = _shown_summary(entity.summary)
    properties = {
        MARKER: "entity",
        "id": entity.id,
        **({} if entity.name == stem else {"name": entity.name}),
        "type": entity.type,
        **({"tags": entity.tags} if entity.tags else {}),
        **({} if entity.summary is None or shown else {"summary": entity.summary}),
        **_times(entity.created_at, entity.updated_at),
    }
    parts = [
        front_matter(
            {
                key: value
                for key, value in properties.items()
                if value or key in ("type", "summary", "name")
            }
        )
    ]
    if shown:
        parts.append(f"{shown}\n")
    items = [encode_item(each.text, each.ordinal) for each in entity.observations]
    # The heading is there without items too: what a person adds below it is an observation, not a summary.
    parts.append("\n".join([OBSERVATIONS, "", *items, ""] if items else [OBSERVATIONS, ""]))
    if relations:
        parts.append(
            "\n".join([RELATIONS, "", *[_relation_item(each, link) for each in relations], ""])
        )
    records = [
        encode(each).replace(b">", b"\\u003e").decode() for each in _records(entity, relations)
    ]
    if records:
        parts.append("\n".join([_RECORDS, *records, _RECORDS_END, ""]))
    return "\n".join(parts)


def encode_note(note: Note, stem: str) -> str:
    """Return the file of a note: its content follows the properties as it is."""
    shown = note.content if _is_verbatim(note.content) else None
    properties: dict[str, str | Sequence[str]] = {
        MARKER: "note",
        **({} if note.key == stem else {"key": note.key}),
        **({"tags": note.tags} if note.tags else {}),
        **_times(note.created_at, note.updated_at),
        **({"embedding": decode(encode(note.embedding), type=str)} if note.embedding else {}),
        **({} if shown is not None else {"content": note.content}),
    }
    return front_matter(properties) + (f"\n{shown}\n" if shown else "")


def encode_loose(relations: Sequence[Relation], link: Link) -> str:
    """Return the file of relations that start at names without an entity."""
    items = [
        f"- {_link_line(each, link) or _quote([each.source, each.type, each.target])}"
        for each in relations
    ]
    records = [
        encode(Record(relation=each.key, created=iso_time(each.created_at)))
        .replace(b">", b"\\u003e")
        .decode()
        for each in relations
    ]
    head = front_matter({MARKER: "relations"})
    return "\n".join([head, RELATIONS, "", *items, "", _RECORDS, *records, _RECORDS_END, ""])


def parse_entity(
    properties: dict[str, Value], body: str, stem: str, resolve: Resolve
) -> EntityFile:
    """Return what the file of an entity says."""
    text, records = _split_records(body)
    shown, observed, related = _sections(text)
    name = text_of(properties, "name") or stem
    known = {each.ordinal: each for each in records if each.ordinal}
    items = [*parse_items(observed)]
    relations: list[Relation] = []
    for content, ordinal in parse_items(related):
        found = _parse_relation(content, ordinal, resolve)
        if found is None:
            items.append((content, ordinal))
        else:
            relations.append(Relation(name, found[1], found[0]))
    created = {each.relation: time_of(each.created) for each in records if each.relation}
    own = next((each for each in records if each.next or each.summary), Record())
    created_at = time_of(text_of(properties, "created"))
    summary = text_of(properties, "summary") if "summary" in properties else None
    entity = Entity(
        name,
        text_of(properties, "type") if "type" in properties else DEFAULT_TYPE,
        tuple([_observation(*each, known, created_at) for each in items]),
        text_of(properties, "id"),
        own.next,
        summary if summary is not None else shown or None,
        time_of(own.summary),
        tags_of(properties),
        created_at,
        time_of(text_of(properties, "updated")),
    )
    dated = [
        Relation(*each.key, created.get((each.type, each.target), created_at)) for each in relations
    ]
    return EntityFile(entity, list({each.key: each for each in dated}.values()))


def parse_note(properties: dict[str, Value], body: str, stem: str) -> Note:
    """Return the note of a file."""
    content = (
        text_of(properties, "content")
        if "content" in properties
        else body.removeprefix("\n").removesuffix("\n")
    )
    embedding = text_of(properties, "embedding")
    try:
        packed = decode(encode(embedding), type=bytes)
    except DecodeError:
        packed = b""
    return Note(
        text_of(properties, "key") or stem,
        content,
        tags_of(properties),
        embedding=packed if len(packed) % 4 == 0 else b"",
        created_at=time_of(text_of(properties, "created")),
        updated_at=time_of(text_of(properties, "updated")),
    )


def parse_loose(body: str, resolve: Resolve) -> list[Relation]:
    """Return the relations of a file that `encode_loose` wrote."""
    text, records = _split_records(body)
    created = {each.relation: time_of(each.created) for each in records if each.relation}
    found = [_parse_linked(content, resolve) for content, _ in parse_items(_sections(text)[2])]
    return [Relation(*each, created.get(each, 0)) for each in dict.fromkeys(filter(None, found))]


def has_conflict_lines(text: str) -> bool:
    """Return True for a text in which git left a conflict. No file that was written here has such lines."""
    rest = f"\n{text}"
    for mark in _CONFLICT_LINES:
        _, found, rest = rest.partition(mark)
    return bool(found)


def encode_item(text: str, ordinal: int) -> str:
    """Return an observation as an item of a list, with its ordinal as a block id."""
    if not _SIMPLE.fullmatch(text) or "^o" in text:
        item = _item(text, ordinal)
        if "\r" not in text and list(parse_items(item.split("\n"))) == [(text, ordinal)]:
            return item
        text = _quote(text)
    return _item(text, ordinal)


def parse_items(lines: Iterable[str]) -> Iterator[tuple[str, int]]:
    """Yield the texts of list items and of paragraphs between them, with their ordinals or 0."""
    for block in _blocks(lines):
        found = _BULLET.fullmatch(block)
        content = block if found is None else found[1] or ""
        mark = _ORDINAL.search(content)
        text = content[: mark.start()] if mark else content
        if text or mark:
            yield _unquote(text), int(mark[1]) if mark else 0


def text_of(properties: dict[str, Value], key: str) -> str:
    """Return a property that is a text; empty if it is missing or a list."""
    value = properties.get(key, "")
    return value if isinstance(value, str) else ""


def tags_of(properties: dict[str, Value]) -> tuple[str, ...]:
    """Return the tags of a file, each once."""
    value = properties.get("tags", [])
    listed = (
        [each for each in re.split(r"[,\s]+", value) if each] if isinstance(value, str) else value
    )
    return tuple(dict.fromkeys(listed))


def time_of(text: str | None) -> int:
    """Return a model time; 0 if there is none or it is not one."""
    try:
        return parse_time(text, "time") if text else 0
    except (BadInput, OverflowError):
        return 0


def _times(created_at: int, updated_at: int) -> dict[str, str]:
    times = {"created": iso_time(created_at), "updated": iso_time(updated_at)}
    return {key: value for key, value in times.items() if value}


def _shown_summary(summary: str | None) -> str | None:
    """Return the summary if it comes back as it was when it is written before the sections."""
    if not summary or not _is_verbatim(summary):
        return None
    return summary if _sections(_split_records(f"\n{summary}\n")[0])[0] == summary else None


def _is_verbatim(text: str) -> bool:
    return text == text.strip("\n") and not (
        "\r" in text or "\x00" in text or has_conflict_lines(text)
    )


def _item(text: str, ordinal: int) -> str:
    lines = [f"  {line}" if line else "" for line in text.split("\n")]
    return (
        f"- {lines[0][2:]} ^o{ordinal}"
        if len(lines) == 1
        else "\n".join(["- " + lines[0][2:], *lines[1:]]) + f" ^o{ordinal}"
    )


def _quote(value: str | list[str]) -> str:
    return f"`{encode(value).decode()}`"


def _unquote(text: str) -> str:
    if not (text.startswith('`"') and text.endswith('"`')):
        return text
    try:
        return decode(text[1:-1], type=str)
    except (DecodeError, UnicodeDecodeError):
        return text


def _unquote_list(text: str, length: int) -> list[str] | None:
    if not (text.startswith('`["') and text.endswith('"]`')):
        return None
    try:
        found = decode(text[1:-1], type=list[str])
    except (DecodeError, UnicodeDecodeError):
        return None
    return found if len(found) == length else None


def _blocks(lines: Iterable[str]) -> Iterator[str]:
    """Yield list items with their indented lines, and paragraphs. The indent of an item's lines is removed."""
    block: list[str] = []
    is_item = False
    for line in [*lines, "\x00"]:
        starts_item = _BULLET.fullmatch(line) is not None
        continues = is_item and (not line or line.startswith(("  ", "\t")))
        continues = continues or bool(
            block and not is_item and line and line != "\x00" and not starts_item
        )
        if continues:
            block.append((line[1:] if line.startswith("\t") else line[2:]) if is_item else line)
            continue
        while block and not block[-1]:
            block.pop()
        if block:
            yield "\n".join(block)
        block, is_item = ([line], starts_item) if line and line != "\x00" else ([], False)


def _sections(text: str) -> tuple[str, list[str], list[str]]:
    """Return the text before the sections, and the lines of the observations and of the relations."""
    shown: list[str] = []
    observed: list[str] = []
    related: list[str] = []
    target = shown
    for line in text.split("\n"):
        if line.rstrip() in (OBSERVATIONS, RELATIONS):
            target = observed if line.rstrip() == OBSERVATIONS else related
        elif target is related and line.startswith("#"):
            target = observed
            target += ["", line]
        else:
            target.append(line)
    start = _first_numbered(shown)
    return "\n".join(shown[:start]).strip("\n"), [*shown[start:], "", *observed], related


def _first_numbered(lines: Sequence[str]) -> int:
    """Return where the first item with an ordinal starts: it is an observation, even if its heading was edited."""
    start = -1
    for number, line in enumerate(lines):
        if _BULLET.fullmatch(line):
            start = number
        elif line and not line[0].isspace():
            start = -1
        if start >= 0 and _ORDINAL.search(line):
            return start
    return len(lines)


def _split_records(body: str) -> tuple[str, list[Record]]:
    """Return the text without the comment at its end, and what the comment has."""
    start = body.rfind(f"\n{_RECORDS}\n")
    if start < 0:
        return body, []
    inside, _, rest = body[start + len(_RECORDS) + 2 :].partition(f"\n{_RECORDS_END}")
    records = []
    for line in inside.split("\n"):
        try:
            records.append(decode(line, type=Record))
        except (DecodeError, UnicodeDecodeError, RecursionError):
            continue  # what a person wrote there is no record
    return body[:start] + rest, records


def _records(entity: Entity, relations: Sequence[Relation]) -> Iterator[Record]:
    last = max([each.ordinal for each in entity.observations], default=0)
    own = Record(
        next=entity.next_ordinal if entity.next_ordinal > last + 1 else 0,
        summary=iso_time(entity.summary_at),
    )
    if own != Record():
        yield own
    for each in entity.observations:
        created = iso_time(each.created_at) if each.created_at != entity.created_at else None
        record = Record(
            ordinal=each.ordinal, created=created, valid=iso_time(each.valid_at), source=each.source
        )
        if record != Record(ordinal=each.ordinal):
            yield record
    for relation in relations:
        if relation.created_at != entity.created_at:
            yield Record(
                relation=(relation.type, relation.target), created=iso_time(relation.created_at)
            )


def _observation(text: str, ordinal: int, known: dict[int, Record], created_at: int) -> Observation:
    record = known.get(ordinal, Record())
    created = time_of(record.created) or (created_at if ordinal else 0)
    return Observation(ordinal, text, created, time_of(record.valid), record.source)


def _relation_item(relation: Relation, link: Link) -> str:
    target, shown = link(relation.target)
    words = f"{relation.type} [[{target}|{shown}]]" if shown else f"{relation.type} [[{target}]]"
    words = words.removeprefix(" ")

    def resolve(found: str, text: str) -> str:
        return relation.target if (found, text) == (target, shown) else ""

    parsed = list(parse_items([f"- {words}"]))
    is_kept = parsed == [(words, 0)] and _parse_relation(words, 0, resolve) == (
        relation.type,
        relation.target,
    )
    return (
        f"- {words}"
        if is_kept and not re.search(r"[\r\n]", words)
        else f"- {_quote([relation.type, relation.target])}"
    )


def _parse_relation(content: str, ordinal: int, resolve: Resolve) -> tuple[str, str] | None:
    if ordinal:
        return None
    quoted = _unquote_list(content, 2)
    if quoted is not None:
        return quoted[0], quoted[1]
    found = _RELATION.fullmatch(content)
    return (found[1], resolve(found[2], found[3] or "")) if found else None


def _link_line(relation: Relation, link: Link) -> str:
    """Return a relation with both ends as links; empty if it would not come back as it was."""
    ends = {name: link(name) for name in (relation.source, relation.target)}
    links = [
        f"[[{end}|{shown}]]" if shown else f"[[{end}]]"
        for end, shown in map(ends.__getitem__, relation.key[:2])
    ]
    names = {end: name for name, end in ends.items()}
    words = f"{links[0]} {relation.type} {links[1]}"
    is_one = list(parse_items([f"- {words}"])) == [(words, 0)] and not re.search(r"[\r\n]", words)
    return (
        words
        if is_one and _parse_linked(words, lambda *end: names.get(end, "")) == relation.key
        else ""
    )


def _parse_linked(content: str, resolve: Resolve) -> tuple[str, str, str] | None:
    quoted = _unquote_list(content, 3)
    if quoted is not None:
        return quoted[0], quoted[2], quoted[1]
    found = _LINKED.fullmatch(content)
    parsed = _parse_relation(found[3], 0, resolve) if found else None
    return (resolve(found[1], found[2] or ""), parsed[1], parsed[0]) if found and parsed else None
