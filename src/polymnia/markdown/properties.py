"""The properties at the start of a Markdown file, in YAML."""

import re
from collections.abc import Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any

from msgspec.json import encode

if TYPE_CHECKING:
    from yaml import Event

Value = str | list[str]
_FENCE = "---"
# libyaml needs quadratic time for nested brackets, and its tree builder overflows the stack.
_PLAIN = re.compile(r"[^\W_][\w ./+()-]*(?<! )|\d{4}-\d\d-\d\dT[\d:.]+Z")
# Plain texts that YAML reads as a boolean, a number or nothing.
_SPECIAL = re.compile(
    r"true|false|yes|no|on|off|null|y|n|[\d.+-][\d_.,+-]*(?:e[\d+-]*)?|0[xob].*", re.IGNORECASE
)
# Characters that JSON strings may hold as they are and YAML strings may not.
_UNPRINTABLE = re.compile("[\x7f-\x9f\u2028\u2029\ufeff\ufffe\uffff]")
# Lines that belong to the property above them: indented, blank, or items of its list.
_CONTINUATION = re.compile(r"\s|$|- |-$")


def split_file(data: bytes) -> tuple[dict[str, Value], str]:
    """Return the properties and the body of a file."""
    return split_front_matter(decode_file(data))


def decode_file(data: bytes) -> str:
    """Return the text of a file, with line feeds as the only line ends."""
    text = data.decode("utf-8-sig", errors="replace")
    return text.replace("\r\n", "\n").replace("\x00", "\ufffd")


def split_front_matter(text: str) -> tuple[dict[str, Value], str]:
    """Return the properties of a file and what follows them.

    A nested property has the key `outer.inner`. What is not valid YAML is read as plain text.
    """
    from yaml import YAMLError

    lines = text.split("\n")
    end = _end_of_properties(lines)
    if not end:
        return {}, text
    properties: dict[str, Value] = {}
    try:
        properties |= _flatten(_parse_yaml("\n".join(lines[1:end])))
    except YAMLError:
        # People write `title: Part 1: the start`: one bad line must not hide the others.
        for group in _property_groups(lines[1:end]):
            properties |= _flatten(_parse_property(group))
    return properties, "\n".join(lines[end + 1 :])


def property_lines(text: str) -> dict[str, str]:
    """Return the lines of each property as they are written, with the comments above it, by key."""
    lines = text.split("\n")
    written: dict[str, str] = {}
    for group in _property_groups(lines[1 : _end_of_properties(lines)]):
        for key in _parse_property(group):
            written[key] = "\n".join(group)
    return written


def add_property_lines(text: str, added: str) -> str:
    """Add properties to a file that begins with what `front_matter` returns."""
    return text.replace(f"\n{_FENCE}\n", f"\n{added}\n{_FENCE}\n", 1)


def front_matter(properties: Mapping[str, str | Sequence[str]]) -> str:
    """Return the lines of the properties, with their fences."""
    lines = [_FENCE]
    for key, value in properties.items():
        if isinstance(value, str):
            lines.append(f"{key}: {_encode_text(value)}")
        else:
            lines.append(f"{key}:")
            lines += [f"  - {_encode_text(item)}" for item in value]
    return "\n".join([*lines, _FENCE, ""])


def _encode_text(text: str) -> str:
    """Return the text as YAML. A JSON string is one, but for a few characters."""
    max_plain_length = 200
    is_plain = len(text) <= max_plain_length and _PLAIN.fullmatch(text)
    if is_plain and not _SPECIAL.fullmatch(text):
        return text
    return _UNPRINTABLE.sub(lambda match: f"\\u{ord(match[0]):04x}", encode(text).decode())


def _end_of_properties(lines: Sequence[str]) -> int:
    """Return the number of the line that ends the properties; 0 if there are none."""
    if lines[0].rstrip() != _FENCE:
        return 0
    for number, line in enumerate(lines[1:], 1):
        if line.rstrip() in (_FENCE, "..."):
            return number
    return 0


def _property_groups(lines: Sequence[str]) -> Iterator[list[str]]:
    """Yield the lines of each property, with the comments above it."""
    group: list[str] = []
    has_key = False
    for line in lines:
        if has_key and not _CONTINUATION.match(line):
            yield group
            group, has_key = [], False
        group.append(line)
        has_key = has_key or not (line.startswith("#") or _CONTINUATION.match(line))
    if has_key:
        yield group


def _parse_property(group: Sequence[str]) -> dict[str, Any]:
    """Return one property, or none. A value that is not valid YAML is taken as it is written."""
    from yaml import YAMLError

    try:
        return _parse_yaml("\n".join(group))
    except YAMLError:
        lines = [line.strip() for line in group if not line.startswith("#")]
        key, colon, value = " ".join(lines).partition(": ")
        return {key.strip(): value.strip()} if colon else {}


def _parse_yaml(text: str) -> dict[str, Any]:
    """Return a YAML mapping with texts as its scalars; empty for anything else. Raise YAMLError."""
    import yaml

    loader = getattr(yaml, "CBaseLoader", yaml.BaseLoader)
    # Events instead of a tree: deep nesting overflows the stack of the tree builder.
    events = yaml.parse(text, loader)
    for event in events:
        if isinstance(event, yaml.MappingStartEvent):
            # This takes the events up to the end of the mapping from the same iterator.
            mapping: dict[str, Any] = _build_value(event, events, 1)
            return mapping
        if isinstance(event, yaml.NodeEvent):
            break  # a text or a list
    return {}


def _build_value(event: "Event", events: "Iterator[Event]", depth: int) -> Any:
    nulls = ("", "~", "null", "Null", "NULL")
    max_depth = 20
    import yaml

    if isinstance(event, yaml.ScalarEvent):
        is_null = event.implicit[0] and event.value in nulls
        return None if is_null else event.value
    if depth > max_depth or isinstance(event, yaml.AliasEvent):
        raise yaml.YAMLError("aliases and deep nesting are not supported")
    if isinstance(event, yaml.SequenceStartEvent):
        items = []
        while not isinstance(item := next(events), yaml.SequenceEndEvent):
            items.append(_build_value(item, events, depth + 1))
        return items
    mapping: dict[str, Any] = {}
    while not isinstance(key := next(events), yaml.MappingEndEvent):
        if not isinstance(key, yaml.ScalarEvent):
            raise yaml.YAMLError("a key is not a text")
        mapping[key.value] = _build_value(next(events), events, depth + 1)
    return mapping


def _flatten(mapping: dict[str, Any], prefix: str = "") -> dict[str, Value]:
    """Return the texts and lists of texts of a mapping and of the mappings in it."""
    flat: dict[str, Value] = {}
    for key, value in mapping.items():
        if isinstance(value, dict):
            flat[f"{prefix}{key}"] = ""
            flat |= _flatten(value, f"{prefix}{key}.")
        elif isinstance(value, list):
            flat[f"{prefix}{key}"] = list(_item_texts(value))
        else:
            flat[f"{prefix}{key}"] = value or ""
    return flat


def _item_texts(items: list[Any]) -> Iterator[str]:
    for item in items:
        if isinstance(item, list):  # [[Page]] is a link in Obsidian and a list of lists in YAML
            yield from _item_texts(item)
        elif isinstance(item, dict):
            for key, value in _flatten(item).items():
                yield f"{key}: {value if isinstance(value, str) else ', '.join(value)}"
        elif item is not None:
            yield item
