"""Edit one member of a JSON file with comments, and leave every other character as it is."""

import re
from collections.abc import Callable, Sequence
from typing import Any

from msgspec import DecodeError, Struct, json

from polymnia.errors import BadInput

# White space and comments.
_SPACE = re.compile(r"(?:\s+|//[^\n]*|/\*.*?\*/)*", re.DOTALL)
_STRING = re.compile(r'"(?:[^"\\\x00-\x1f]|\\.)*"')
_SCALAR = re.compile(r"-?\d+(?:\.\d+)?(?:[eE][+-]?\d+)?|true|false|null")
# What may follow a member on its line and belongs to it.
_REST_OF_LINE = re.compile(r"[ \t]*(?://[^\n\r]*|/\*[^\n\r]*?\*/)?")
_LINE_END = re.compile(r"[ \t]*(?:\r?\n)?")
_DEFAULT_INDENT = "  "


class _Node(Struct):
    """A value and where it is in the text, with the parts of an object or an array."""

    value: Any
    start: int
    end: int
    members: "list[_Member] | None" = None
    items: "list[_Member] | None" = None


class _Member(Struct):
    """A member of an object, or an item of an array, whose key is empty."""

    key: str
    start: int
    node: _Node


def parse(text: str) -> dict[str, Any]:
    """Return the object in the text; an empty text is an empty object. Raise BadInput."""
    value: dict[str, Any] = _parse(text).value
    return value


def set_member(text: str, path: Sequence[str], value: Any) -> str:
    """Return the text with the member at the path added or replaced. Raise BadInput."""
    root = _parse(text)
    expected = _with_value(root.value, path, value)
    text = text if text.strip() else "{}\n"
    # The text if it parses to what was expected. Raise BadInput.
    text = _set(text, _parse(text), path, value)
    if parse(text) != expected:
        raise BadInput("the file cannot be edited safely")
    return text


def remove_member(text: str, path: Sequence[str]) -> str:
    """Return the text without the member at the path. Raise BadInput."""
    while True:  # a key may occur twice
        node: _Node | None = _parse(text)
        for key in path[:-1]:
            node = _find(node, key)
        index = None if node is None else _index(node, path[-1])
        if node is None or index is None:
            return text
        text = _remove_text(text, node.members or [], index)


def append_item(text: str, path: Sequence[str], value: Any) -> str:
    """Return the text with a value added to the array at the path, which is created if missing.

    Raise BadInput if something else is there.
    """
    array, depth = _find_array(text, path)
    if array is None:
        return set_member(text, path, [value])
    return _insert(text, array, "", value, unit=_unit(text, _parse(text)), depth=depth)


def remove_items(text: str, path: Sequence[str], is_unwanted: Callable[[Any], bool]) -> str:
    """Return the text without those items of the array at the path, and without an empty array.

    Raise BadInput if something else is there.
    """
    while True:
        array, _ = _find_array(text, path)
        if array is None:
            return text
        places = [place for place, item in enumerate(array.value) if is_unwanted(item)]
        if not places:
            return text
        if len(array.value) == 1:
            return remove_member(text, path)
        text = _remove_text(text, array.items or [], places[0])


def _find_array(text: str, path: Sequence[str]) -> tuple[_Node | None, int]:
    """Return the array at a path, and how deep it is; None if it is missing. Raise BadInput."""
    node: _Node | None = _parse(text)
    for key in path:
        node = _find(node, key)
    if node is not None and node.items is None:
        raise BadInput(f"{'.'.join(path)} is not a list; correct it first")
    return node, len(path)


def render(
    value: Any, *, indent: str = _DEFAULT_INDENT, margin: str = "", newline: str = "\n"
) -> str:
    """Return a value as indented JSON; lists of scalars stay on one line."""
    if isinstance(value, dict) and value:
        inner = margin + indent
        members = []
        for key, member in value.items():
            rendered = render(member, indent=indent, margin=inner, newline=newline)
            members.append(f"{inner}{render(key)}: {rendered}")
        return "{" + newline + f",{newline}".join(members) + f"{newline}{margin}" + "}"
    if isinstance(value, list):
        if any(isinstance(item, dict) for item in value):
            items = [render(item, indent=indent, margin=margin, newline=newline) for item in value]
            return "[" + ", ".join(items) + "]"
        return "[" + ", ".join(render(item) for item in value) + "]"
    return json.encode(value).decode()


def _parse(text: str) -> _Node:
    if not text.strip():
        return _Node({}, 0, len(text), [])
    try:
        node = _read(text, _skip(text, 0))
    except RecursionError as exc:
        raise BadInput("it is nested too deeply") from exc
    if _skip(text, node.end) != len(text):
        raise _mistake(text, node.end, "nothing may follow the object")
    if node.members is None:
        raise _mistake(text, node.start, "an object is expected")
    return node


def _read(text: str, at: int) -> _Node:
    if text.startswith("{", at):
        return _read_object(text, at)
    if text.startswith("[", at):
        return _read_array(text, at)
    scalar = _STRING.match(text, at) or _SCALAR.match(text, at)
    if scalar is None:
        raise _mistake(text, at, "a value is expected")
    try:
        return _Node(json.decode(scalar[0]), at, scalar.end())
    except DecodeError as exc:
        raise _mistake(text, at, str(exc)) from exc


def _read_object(text: str, start: int) -> _Node:
    members: list[_Member] = []

    def read(at: int) -> int:
        members.append(_read_member(text, at))
        return members[-1].node.end

    end = _read_items(text, start, "}", read)
    return _Node({member.key: member.node.value for member in members}, start, end, members)


def _read_array(text: str, start: int) -> _Node:
    items: list[_Member] = []

    def read(at: int) -> int:
        items.append(_Member("", at, _read(text, at)))
        return items[-1].node.end

    end = _read_items(text, start, "]", read)
    return _Node([item.node.value for item in items], start, end, items=items)


def _read_items(text: str, start: int, closing: str, read: Callable[[int], int]) -> int:
    """Read the items of an object or array and return its end. A comma may follow the last item."""
    at = _skip(text, start + 1)
    while not text.startswith(closing, at):
        at = _skip(text, read(at))
        if text.startswith(",", at):
            at = _skip(text, at + 1)
        elif not text.startswith(closing, at):
            raise _mistake(text, at, f"a comma or {closing} is expected")
    return at + 1


def _read_member(text: str, at: int) -> _Member:
    key = _STRING.match(text, at)
    if key is None:
        raise _mistake(text, at, "a name in double quotes is expected")
    colon = _skip(text, key.end())
    if not text.startswith(":", colon):
        raise _mistake(text, colon, "a colon is expected")
    return _Member(json.decode(key[0]), at, _read(text, _skip(text, colon + 1)))


def _skip(text: str, at: int) -> int:
    space = _SPACE.match(text, at)
    return space.end() if space else at


def _mistake(text: str, at: int, what: str) -> BadInput:
    return BadInput(f"line {text.count(chr(10), 0, at) + 1}: {what}")


def _set(text: str, node: _Node, path: Sequence[str], value: Any) -> str:
    unit = _unit(text, node)
    for depth, key in enumerate(path):
        member = _find(node, key)
        rest = path[depth + 1 :]
        if member is None:
            for name in reversed(rest):
                value = {name: value}
            return _insert(text, node, key, value, unit=unit, depth=depth)
        if not rest:
            margin = _margin(text, member.start)
            rendered = render(value, indent=unit, margin=margin, newline=_newline(text))
            return text[: member.start] + rendered + text[member.end :]
        if member.members is None:
            raise _mistake(text, member.start, f"{key} is not an object")
        node = member
    return text


def _insert(text: str, node: _Node, key: str, value: Any, *, unit: str, depth: int) -> str:
    """Add a member or an item after the last one, and after a comment on that one's line."""
    members = (node.members if node.items is None else node.items) or []
    newline = _newline(text)
    margin = unit * (depth + 1)
    if members and _is_first_on_line(text, members[-1].start):
        margin = _margin(text, members[-1].start) or margin
    rendered = render(value, indent=unit, margin=margin, newline=newline)
    label = f"{render(key)}: " if node.items is None else ""
    added = f"{newline}{margin}{label}{rendered}"
    if not members:
        body = text[node.start + 1 : node.end - 1].rstrip()
        return text[: node.start + 1] + body + added + newline + unit * depth + text[node.end - 1 :]
    last = members[-1].node.end
    comma = _skip(text, last)
    if not text.startswith(",", comma):
        text = f"{text[:last]},{text[last:]}"
        comma = last
    rest = _REST_OF_LINE.match(text, comma + 1)
    assert rest is not None  # the pattern matches an empty text too
    return text[: rest.end()] + added + text[rest.end() :]


def _newline(text: str) -> str:
    return "\r\n" if "\r\n" in text else "\n"


def _remove_text(text: str, members: Sequence[_Member], index: int) -> str:
    """Remove a member or an item, its line if it is alone on it, and a comma."""
    start, end = members[index].start, members[index].node.end
    after = _skip(text, end)
    if text.startswith(",", after):
        end = after + 1
    elif index:
        comma = _skip(text, members[index - 1].node.end)
        text = text[:comma] + text[comma + 1 :]
        start, end = start - 1, end - 1
    if _is_first_on_line(text, start):
        start -= len(_margin(text, start))
        line_end = _LINE_END.match(text, end)
        end = line_end.end() if line_end else end
    return text[:start] + text[end:]


def _find(node: _Node | None, key: str) -> _Node | None:
    index = None if node is None else _index(node, key)
    if node is None or node.members is None or index is None:
        return None
    return node.members[index].node


def _index(node: _Node, key: str) -> int | None:
    """Return the position of the member with this key: the last one, as parsers take it."""
    index = None
    for number, member in enumerate(node.members or []):
        if member.key == key:
            index = number
    return index


def _unit(text: str, root: _Node) -> str:
    """Return the indent of the first member of the file."""
    if root.members and _is_first_on_line(text, root.members[0].start):
        return _margin(text, root.members[0].start) or _DEFAULT_INDENT
    return _DEFAULT_INDENT


def _margin(text: str, at: int) -> str:
    line = text[text.rfind("\n", 0, at) + 1 : at]
    return line[: len(line) - len(line.lstrip())]


def _is_first_on_line(text: str, at: int) -> bool:
    return not text[text.rfind("\n", 0, at) + 1 : at].strip()


def _with_value(value: dict[str, Any], path: Sequence[str], new: Any) -> dict[str, Any]:
    if len(path) == 1:
        return {**value, path[0]: new}
    inner = value.get(path[0], {})
    if not isinstance(inner, dict):
        raise BadInput(f"{path[0]} is not an object")
    return {**value, path[0]: _with_value(inner, path[1:], new)}
