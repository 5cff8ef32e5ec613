"""One entity or note as a Markdown file, and back. Docs: docs/formats/markdown.md.

A text that Markdown would change is written as a JSON string in backticks, so that every text is
read back as it was.
"""

import re
from collections.abc import Callable, Iterable, Iterator, Sequence

from msgspec import DecodeError, Struct
from msgspec.json import decode, encode

from polymnia.errors import BadInput
from polymnia.markdown.properties import Value, front_matter
from polymnia.model import Entity, Fact, Note, Relation
from polymnia.search.times import iso_time, parse_time

MARKER = "polymnia"
# The type of an entity whose file does not say it.
DEFAULT_TYPE = "entity"
OBSERVATIONS, RELATIONS = "## Observations", "## Relations"
_RECORDS = "<!-- polymnia"
_RECORDS_END = "-->"
# The lines that git writes around two versions, in this order.
_BULLET = re.compile(r"[-*+](?: (.*))?", re.DOTALL)
_ORDINAL = re.compile(r"(?:^|(?<=.) |\n)\^o([1-9]\d{0,9})$", re.DOTALL)
# Follows the last line; no line of a file has it.
_END = "\x00"
_SIMPLE = re.compile(r"[^\s`][^\n\r]*(?<!\s)")
_RELATION = re.compile(r"(.*?) ?\[\[([^\[\]|#^\n]+)(?:[#^][^\[\]|\n]*)?(?:\|([^\[\]\n]*))?\]\]")
_LINKED = re.compile(r"\[\[([^\[\]|#^\n]+)(?:\|([^\[\]\n]*))?\]\] (.*)", re.DOTALL)

# Returns the link to a name: a target, and the text that is shown if that is not the target.
Link = Callable[[str], tuple[str, str]]
# Returns the name that a link means, from its target and the text that is shown.
Resolve = Callable[[str, str], str]


class FileRecord(Struct, frozen=True, omit_defaults=True):
    """What people need not see of a fact, a relation (type and target) or the entity."""

    ordinal: int = 0
    relation: tuple[str, ...] = ()
    next: int = 0
    created: str | None = None
    valid: str | None = None
    source: str = ""
    summary: str | None = None


def encode_entity(entity: Entity, relations: Sequence[Relation], stem: str, link: Link) -> str:
    """Return the file of an entity with the relations that start at it."""
    summary = _plain_summary(entity.summary)
    properties: dict[str, str | Sequence[str]] = {MARKER: "entity"}
    if entity.id:
        properties["id"] = entity.id
    if entity.name != stem:
        properties["name"] = entity.name
    properties["type"] = entity.type
    if entity.tags:
        properties["tags"] = entity.tags
    if entity.summary is not None and not summary:
        properties["summary"] = entity.summary
    properties |= _times(entity.created_at, entity.updated_at)
    parts = [front_matter(properties)]
    if summary:
        parts.append(f"{summary}\n")
    # Write the heading without items too: what a person adds below it is a fact.
    lines = [OBSERVATIONS, ""]
    if entity.facts:
        lines += [encode_item(fact.text, fact.ordinal) for fact in entity.facts]
        lines.append("")
    parts.append("\n".join(lines))
    if relations:
        items = [_relation_item(relation, link) for relation in relations]
        parts.append("\n".join([RELATIONS, "", *items, ""]))
    records = list(_records(entity, relations))
    if records:
        parts.append(_encode_records(records))
    return "\n".join(parts)


def encode_note(note: Note, stem: str) -> str:
    """Return the file of a note: its content follows the properties as it is."""
    is_verbatim = _is_verbatim(note.content)
    properties: dict[str, str | Sequence[str]] = {MARKER: "note"}
    if note.key != stem:
        properties["key"] = note.key
    if note.tags:
        properties["tags"] = note.tags
    properties |= _times(note.created_at, note.updated_at)
    if note.embedding:
        properties["embedding"] = decode(encode(note.embedding), type=str)
    if not is_verbatim:
        properties["content"] = note.content
    head = front_matter(properties)
    return f"{head}\n{note.content}\n" if is_verbatim and note.content else head


def encode_loose(relations: Sequence[Relation], link: Link) -> str:
    """Return the file of relations that start at names without an entity."""
    lines = [front_matter({MARKER: "relations"}), RELATIONS, ""]
    records = []
    for relation in relations:
        words = _link_line(relation, link)
        lines.append(f"- {words or _quote([relation.source, relation.type, relation.target])}")
        records.append(FileRecord(relation=relation.key, created=iso_time(relation.created_at)))
    return "\n".join([*lines, "", _encode_records(records)])


def _encode_records(records: Iterable[FileRecord]) -> str:
    # A `>` in a text could end the comment.
    lines = [encode(record).replace(b">", b"\\u003e").decode() for record in records]
    return "\n".join([_RECORDS, *lines, _RECORDS_END, ""])


def parse_entity(
    properties: dict[str, Value], body: str, stem: str, resolve: Resolve
) -> tuple[Entity, list[Relation]]:
    """Return the entity of a file and the relations that start at it.

    Facts without an ordinal have 0; an unknown time is 0.
    """
    text, records = _split_records(body)
    summary, observed, related = _sections(text)
    if "summary" in properties:
        summary = text_of(properties, "summary")
    name = text_of(properties, "name") or stem
    created_at = time_of(text_of(properties, "created"))
    relation_times = _relation_times(records)
    items = list(parse_items(observed))
    relations: dict[tuple[str, str], Relation] = {}
    for content, ordinal in parse_items(related):
        key = None if ordinal else _parse_relation(content, resolve)
        if key is None:  # a fact
            items.append((content, ordinal))
            continue
        relation_type, target = key
        at = relation_times.get(key, created_at)
        relations[key] = Relation(name, target, relation_type, at)
    by_ordinal = {record.ordinal: record for record in records if record.ordinal}
    own = next((record for record in records if record.next or record.summary), FileRecord())
    facts = []
    for content, ordinal in items:
        record = by_ordinal.get(ordinal, FileRecord())
        created = time_of(record.created) or (created_at if ordinal else 0)
        facts.append(Fact(ordinal, content, created, time_of(record.valid), record.source))
    entity = Entity(
        name,
        text_of(properties, "type") if "type" in properties else DEFAULT_TYPE,
        tuple(facts),
        id=text_of(properties, "id"),
        next_ordinal=own.next,
        summary=summary if summary or "summary" in properties else None,
        summary_at=time_of(own.summary),
        tags=tags_of(properties),
        created_at=created_at,
        updated_at=time_of(text_of(properties, "updated")),
    )
    return entity, list(relations.values())


def parse_note(properties: dict[str, Value], body: str, stem: str) -> Note:
    """Return the note of a file."""
    content = body.removeprefix("\n").removesuffix("\n")
    if "content" in properties:
        content = text_of(properties, "content")
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
    times = _relation_times(records)
    relations: dict[tuple[str, str, str], Relation] = {}
    _, _, related = _sections(text)
    for content, _ in parse_items(related):
        key = _parse_linked(content, resolve)
        if key is not None:
            relations[key] = Relation(*key, times.get(key, 0))
    return list(relations.values())


def _relation_times(records: Sequence[FileRecord]) -> dict[tuple[str, ...], int]:
    return {record.relation: time_of(record.created) for record in records if record.relation}


def has_conflict_lines(text: str) -> bool:
    """Return True for a text in which git left a conflict. We never write such lines."""
    conflict_lines = ("\n<<<<<<< ", "\n=======", "\n>>>>>>> ")
    at, text = 0, f"\n{text}"
    for mark in conflict_lines:
        at = text.find(mark, at)
        if at < 0:
            return False
    return True


def encode_item(text: str, ordinal: int) -> str:
    """Return a fact as an item of a list, with its ordinal as a block id."""
    if not _SIMPLE.fullmatch(text) or "^o" in text:
        item = _item(text, ordinal)
        if "\r" not in text and list(parse_items(item.split("\n"))) == [(text, ordinal)]:
            return item
        text = _quote(text)
    return _item(text, ordinal)


def parse_items(lines: Iterable[str]) -> Iterator[tuple[str, int]]:
    """Yield the texts of list items and of paragraphs between them, with their ordinals or 0."""
    for block in _blocks(lines):
        bullet = _BULLET.fullmatch(block)
        content = block if bullet is None else bullet[1] or ""
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
    tags = properties.get("tags", [])
    if isinstance(tags, str):
        tags = [tag for tag in re.split(r"[,\s]+", tags) if tag]
    return tuple(dict.fromkeys(tags))


def time_of(text: str | None) -> int:
    """Return a model time; 0 if there is none or it is not one."""
    try:
        return parse_time(text, "time") if text else 0
    except (BadInput, OverflowError):
        return 0


def _times(created_at: int, updated_at: int) -> dict[str, str]:
    times = {"created": iso_time(created_at), "updated": iso_time(updated_at)}
    return {key: value for key, value in times.items() if value}


def _plain_summary(summary: str | None) -> str | None:
    """Return the summary if it comes back as it was when it is written before the sections."""
    if not summary or not _is_verbatim(summary):
        return None
    text, _ = _split_records(f"\n{summary}\n\n{OBSERVATIONS}\n")
    return summary if _sections(text)[0] == summary else None


def _is_verbatim(text: str) -> bool:
    return text == text.strip("\n") and not (
        "\r" in text or "\x00" in text or has_conflict_lines(text)
    )


def _item(text: str, ordinal: int) -> str:
    first, *lines = text.split("\n")
    indented = [f"  {line}" if line else "" for line in lines]
    return "\n".join([f"- {first}", *indented]) + f" ^o{ordinal}"


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
        texts = decode(text[1:-1], type=list[str])
    except (DecodeError, UnicodeDecodeError):
        return None
    return texts if len(texts) == length else None


def _blocks(lines: Iterable[str]) -> Iterator[str]:
    """Yield paragraphs, and list items with their lines, which lose their indent."""
    block: list[str] = []
    is_item = False
    for line in [*lines, _END]:
        starts_item = _BULLET.fullmatch(line) is not None
        if is_item:
            continues = not line or line.startswith(("  ", "\t"))
        else:
            continues = bool(block and line) and line != _END and not starts_item
        if continues:
            if is_item:
                line = line[1:] if line.startswith("\t") else line[2:]
            block.append(line)
            continue
        while block and not block[-1]:
            block.pop()
        if block:
            yield "\n".join(block)
        block = [line] if line and line != _END else []
        is_item = starts_item


def _sections(text: str) -> tuple[str, list[str], list[str]]:
    """Return the text above the sections, and the lines of facts and of relations."""
    shown: list[str] = []
    observed: list[str] = []
    related: list[str] = []
    target = shown
    has_heading = False
    for line in text.split("\n"):
        if line.rstrip() in (OBSERVATIONS, RELATIONS):
            target = observed if line.rstrip() == OBSERVATIONS else related
            has_heading = has_heading or target is observed
        elif target is related and line.startswith("#"):
            target = observed
            target += ["", line]
        else:
            target.append(line)
    start = _first_fact(shown, needs_ordinal=has_heading)
    return "\n".join(shown[:start]).strip("\n"), [*shown[start:], "", *observed], related


def _first_fact(lines: Sequence[str], *, needs_ordinal: bool) -> int:
    """Return the line of the first item that is a fact.

    An item with an ordinal always is. Without our heading, which we always write, a person wrote
    the file, and every item is one.
    """
    start = -1
    for number, line in enumerate(lines):
        if _BULLET.fullmatch(line):
            start = number
        elif line and not line[0].isspace():
            start = -1
        if start >= 0 and (_ORDINAL.search(line) or not needs_ordinal):
            return start
    return len(lines)


def _split_records(body: str) -> tuple[str, list[FileRecord]]:
    """Return the text without the comment at its end, and what the comment has."""
    start = body.rfind(f"\n{_RECORDS}\n")
    if start < 0:
        return body, []
    inside, _, rest = body[start + len(_RECORDS) + 2 :].partition(f"\n{_RECORDS_END}")
    records = []
    for line in inside.split("\n"):
        try:
            records.append(decode(line, type=FileRecord))
        except (DecodeError, UnicodeDecodeError, RecursionError):
            continue  # what a person wrote there is no record
    return body[:start] + rest, records


def _records(entity: Entity, relations: Sequence[Relation]) -> Iterator[FileRecord]:
    last = max((fact.ordinal for fact in entity.facts), default=0)
    own = FileRecord(
        next=entity.next_ordinal if entity.next_ordinal > last + 1 else 0,
        summary=iso_time(entity.summary_at),
    )
    if own != FileRecord():
        yield own
    for fact in entity.facts:
        created = iso_time(fact.created_at) if fact.created_at != entity.created_at else None
        record = FileRecord(
            ordinal=fact.ordinal,
            created=created,
            valid=iso_time(fact.valid_at),
            source=fact.source,
        )
        if record != FileRecord(ordinal=fact.ordinal):
            yield record
    for relation in relations:
        if relation.created_at != entity.created_at:
            yield FileRecord(
                relation=(relation.type, relation.target), created=iso_time(relation.created_at)
            )


def _relation_item(relation: Relation, link: Link) -> str:
    target, alias = link(relation.target)
    words = f"{relation.type} {_link_to(target, alias)}".removeprefix(" ")

    def resolve(found_target: str, found_alias: str) -> str:
        return relation.target if (found_target, found_alias) == (target, alias) else ""

    key = (relation.type, relation.target)
    if _is_one_line(words) and _parse_relation(words, resolve) == key:
        return f"- {words}"
    return f"- {_quote([relation.type, relation.target])}"


def _link_to(target: str, alias: str) -> str:
    return f"[[{target}|{alias}]]" if alias else f"[[{target}]]"


def _is_one_line(words: str) -> bool:
    """Return True if the words are read back as one item without an ordinal."""
    return not re.search(r"[\r\n]", words) and list(parse_items([f"- {words}"])) == [(words, 0)]


def _parse_relation(content: str, resolve: Resolve) -> tuple[str, str] | None:
    """Return the type and target of a relation; None for any other line."""
    quoted = _unquote_list(content, 2)
    if quoted is not None:
        return quoted[0], quoted[1]
    match = _RELATION.fullmatch(content)
    return (match[1], resolve(match[2], match[3] or "")) if match else None


def _link_line(relation: Relation, link: Link) -> str:
    """Return a relation with both ends as links; empty if it would not be read back as it is."""
    source, target = link(relation.source), link(relation.target)
    names = {source: relation.source, target: relation.target}
    words = f"{_link_to(*source)} {relation.type} {_link_to(*target)}"

    def resolve(found_target: str, found_alias: str) -> str:
        return names.get((found_target, found_alias), "")

    is_kept = _is_one_line(words) and _parse_linked(words, resolve) == relation.key
    return words if is_kept else ""


def _parse_linked(content: str, resolve: Resolve) -> tuple[str, str, str] | None:
    """Return the key of a relation with both ends as links; None for any other line."""
    quoted = _unquote_list(content, 3)
    if quoted is not None:
        return quoted[0], quoted[2], quoted[1]
    match = _LINKED.fullmatch(content)
    rest = _parse_relation(match[3], resolve) if match else None
    if match is None or rest is None:
        return None
    relation_type, target = rest
    return resolve(match[1], match[2] or ""), target, relation_type
