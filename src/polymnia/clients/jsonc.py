"""Edit one member of a JSON file with comments, and leave every other character as it is.

Comments, and commas after the last item, are overwritten with blanks first. What is left is plain
JSON, in which every value stands where it stands in the text.
"""

import re
from collections.abc import Callable, Sequence
from json import JSONDecodeError, JSONDecoder
from typing import Any, NamedTuple

from msgspec import json

from polymnia.errors import BadInput

_STRING_OR_COMMENT = re.compile(r'"(?:[^"\\]|\\.)*"|//[^\n]*|/\*.*?\*/', re.DOTALL)
_SPACE = re.compile(r"\s*")
# What may follow a member on its line and belongs to it.
_REST_OF_LINE = re.compile(r"[ \t]*(?://[^\n\r]*|/\*[^\n\r]*?\*/)?")
_LINE_END = re.compile(r"[ \t]*(?:\r?\n)?")
_DEFAULT_INDENT = "  "
_decoder = JSONDecoder()


class _Part(NamedTuple):
    """A member of an object, or an item of an array, whose key is empty."""

    key: str
    start: int
    value: int  # where its value begins
    end: int


def parse(text: str) -> dict[str, Any]:
    """Return the object in the text; an empty text is an empty object. Raise BadInput."""
    if not text.strip():
        return {}
    try:
        value = _decoder.decode(_plain(text))
    except RecursionError as exc:
        raise BadInput("it is nested too deeply") from exc
    except JSONDecodeError as exc:
        raise BadInput(f"line {exc.lineno}: {exc.msg[:1].lower()}{exc.msg[1:]}") from exc
    except ValueError as exc:  # a number with thousands of digits
        raise BadInput(str(exc)) from exc
    if not isinstance(value, dict):
        raise BadInput("line 1: an object is expected")
    return value


def set_member(text: str, path: Sequence[str], value: Any) -> str:
    """Return the text with the member at the path added or replaced. Raise BadInput."""
    expected = _with_value(parse(text), path, value)
    text = text if text.strip() else "{}\n"
    plain = _plain(text)
    # Find the innermost object on the path that exists.
    depth = len(path)
    while (at := _locate(plain, path[:depth])) is None:
        depth -= 1
    if depth == len(path):
        _, end = _decoder.raw_decode(plain, at)
        margin = _SPACE.match(_line_before(text, at))
        rendered = render(value, _indent(text), margin[0] if margin else "", _newline(text))
        text = text[:at] + rendered + text[end:]
    else:
        for name in reversed(path[depth + 1 :]):
            value = {name: value}
        text = _insert(text, at, f"{render(path[depth])}: ", value, depth)
    if parse(text) != expected:
        raise BadInput("the file cannot be edited safely")
    return text


def remove_member(text: str, path: Sequence[str]) -> str:
    """Return the text without the member at the path. Raise BadInput."""
    parse(text)
    while text.strip():  # a key may occur twice
        plain = _plain(text)
        at = _locate(plain, path[:-1])
        if at is None or _locate(plain, path) is None:
            break
        parts = _parts(plain, at)
        text = _remove(text, parts, [part.key for part in parts].index(path[-1]))
    return text


def append_item(text: str, path: Sequence[str], value: Any) -> str:
    """Return the text with a value added to the array at the path, which is created if missing.

    Raise BadInput if something else is there.
    """
    at = _find_array(text, path)
    return (
        set_member(text, path, [value]) if at is None else _insert(text, at, "", value, len(path))
    )


def remove_items(text: str, path: Sequence[str], is_unwanted: Callable[[Any], bool]) -> str:
    """Return the text without those items of the array at the path, and without an empty array.

    Raise BadInput if something else is there.
    """
    while (at := _find_array(text, path)) is not None:
        plain = _plain(text)
        items, _ = _decoder.raw_decode(plain, at)
        places = [place for place, item in enumerate(items) if is_unwanted(item)]
        if not places:
            break
        if len(items) == 1:
            return remove_member(text, path)
        text = _remove(text, _parts(plain, at), places[0])
    return text


def render(value: Any, indent: str = _DEFAULT_INDENT, margin: str = "", newline: str = "\n") -> str:
    """Return a value as indented JSON; lists of scalars stay on one line."""
    if isinstance(value, dict) and value:
        inner = margin + indent
        members = []
        for key, member in value.items():
            members.append(f"{inner}{render(key)}: {render(member, indent, inner, newline)}")
        return "{" + newline + f",{newline}".join(members) + f"{newline}{margin}" + "}"
    if isinstance(value, list):
        return "[" + ", ".join(render(item, indent, margin, newline) for item in value) + "]"
    return json.encode(value).decode()


def _without_comments(text: str) -> str:
    """Return the text with blanks in place of comments."""

    def blank(found: re.Match[str]) -> str:
        return found[0] if found[0].startswith('"') else re.sub(r"[^\n]", " ", found[0])

    return _STRING_OR_COMMENT.sub(blank, text)


def _plain(text: str) -> str:
    """Return the text with blanks in place of comments and of commas that nothing follows."""
    plain = _without_comments(text)
    # A comma in a string is none.
    masked = _STRING_OR_COMMENT.sub(lambda found: "_" * len(found[0]), plain)
    for comma in re.finditer(r",(?=\s*[}\]])", masked):
        plain = f"{plain[: comma.start()]} {plain[comma.end() :]}"
    return plain


def _parts(plain: str, start: int) -> list[_Part]:
    """Return the parts of the object or array that begins there."""
    parts = []
    at = _skip(plain, start + 1)
    while plain[at] not in "}]":
        begin, key = at, ""
        if plain[start] == "{":
            key, at = _decoder.raw_decode(plain, at)
            at = _skip(plain, _skip(plain, at) + 1)  # past the colon
        _, end = _decoder.raw_decode(plain, at)
        parts.append(_Part(key, begin, at, end))
        at = _skip(plain, end)
        if plain[at] == ",":
            at = _skip(plain, at + 1)
    return parts


def _locate(plain: str, path: Sequence[str]) -> int | None:
    """Return where the value at a path begins; None if it is missing."""
    at = _skip(plain, 0)
    for key in path:
        parts = _parts(plain, at) if plain[at] == "{" else []
        places = [part.value for part in parts if part.key == key]
        if not places:
            return None
        at = places[-1]  # parsers take the last of two members with the same key
    return at


def _find_array(text: str, path: Sequence[str]) -> int | None:
    """Return where the array at a path begins; None if it is missing. Raise BadInput."""
    parse(text)
    plain = _plain(text)
    at = _locate(plain, path) if text.strip() else None
    if at is not None and plain[at] != "[":
        raise BadInput(f"{'.'.join(path)} is not a list; correct it first")
    return at


def _insert(text: str, start: int, label: str, value: Any, depth: int) -> str:
    """Add a part to a container, after the last one and after a comment on that one's line."""
    plain, newline, indent = _plain(text), _newline(text), _indent(text)
    parts = _parts(plain, start)
    margin = indent * (depth + 1)
    if parts and not _line_before(text, parts[-1].start).strip():
        margin = _line_before(text, parts[-1].start) or margin
    added = f"{newline}{margin}{label}{render(value, indent, margin, newline)}"
    if not parts:
        _, end = _decoder.raw_decode(plain, start)
        body = text[start + 1 : end - 1].rstrip()
        return text[: start + 1] + body + added + newline + indent * depth + text[end - 1 :]
    last = parts[-1].end
    commas = _without_comments(text)
    comma = _skip(commas, last)
    if commas[comma] != ",":
        text = f"{text[:last]},{text[last:]}"
        comma = last
    rest = _REST_OF_LINE.match(text, comma + 1)
    end = rest.end() if rest else comma + 1
    return text[:end] + added + text[end:]


def _remove(text: str, parts: Sequence[_Part], index: int) -> str:
    """Remove a part, its line if it is alone on it, and a comma."""
    commas = _without_comments(text)
    start, end = parts[index].start, parts[index].end
    after = _skip(commas, end)
    if commas[after] == ",":
        end = after + 1
    elif index:
        comma = _skip(commas, parts[index - 1].end)
        text = text[:comma] + text[comma + 1 :]
        start, end = start - 1, end - 1
    before = _line_before(text, start)
    if not before.strip():
        start -= len(before)
        line_end = _LINE_END.match(text, end)
        end = line_end.end() if line_end else end
    return text[:start] + text[end:]


def _with_value(value: dict[str, Any], path: Sequence[str], new: Any) -> dict[str, Any]:
    if len(path) == 1:
        return {**value, path[0]: new}
    inner = value.get(path[0], {})
    if not isinstance(inner, dict):
        raise BadInput(f"{path[0]} is not an object")
    return {**value, path[0]: _with_value(inner, path[1:], new)}


def _skip(text: str, at: int) -> int:
    space = _SPACE.match(text, at)
    return space.end() if space else at


def _line_before(text: str, at: int) -> str:
    return text[text.rfind("\n", 0, at) + 1 : at]


def _indent(text: str) -> str:
    """Return the indent of the first member of the file."""
    plain = _plain(text)
    parts = _parts(plain, _skip(plain, 0))
    before = _line_before(text, parts[0].start) if parts else ""
    return before if before and not before.strip() else _DEFAULT_INDENT


def _newline(text: str) -> str:
    return "\r\n" if "\r\n" in text else "\n"
