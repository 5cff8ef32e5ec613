"""Edit one table of a TOML file, and leave every other line as it is."""

import re
import tomllib
from collections.abc import Sequence
from typing import Any

from msgspec import json

from polymnia.errors import BadInput

_HEADER = re.compile(r"^[ \t]*\[(?P<key>[^\[\]]+)\][ \t]*(?:#.*)?$")


def parse(text: str) -> dict[str, Any]:
    """Return the tables in the text. Raise BadInput."""
    try:
        return tomllib.loads(text)
    except tomllib.TOMLDecodeError as exc:
        raise BadInput(str(exc)) from exc
    except RecursionError as exc:
        raise BadInput("it is nested too deeply") from exc


def set_table(text: str, path: Sequence[str], table: dict[str, Any]) -> str:
    """Return the text with the table at the path added or replaced. Raise BadInput."""
    expected = _with_table(parse(text), path, table)
    newline = "\r\n" if "\r\n" in text else "\n"
    lines, place = _cut(text, path)
    rendered = render(path, table).replace("\n", newline)
    before, after = "".join(lines[:place]), "".join(lines[place:])
    if before.strip():
        before = before.rstrip("\r\n") + 2 * newline
    if after.strip():
        after = newline + after.lstrip("\r\n")
    return _require_result(before + rendered + after, expected)


def remove_table(text: str, path: Sequence[str]) -> str:
    """Return the text without the table at the path. Raise BadInput."""
    expected = _with_table(parse(text), path, None)
    lines, _ = _cut(text, path)
    return _require_result("".join(lines), expected)


def render(path: Sequence[str], table: dict[str, Any]) -> str:
    """Return a table with its header; tables in it are inline."""
    lines = [f"[{'.'.join(map(_key, path))}]"]
    lines += [f"{_key(key)} = {_value(value)}" for key, value in table.items()]
    return "\n".join([*lines, ""])


def _cut(text: str, path: Sequence[str]) -> tuple[list[str], int]:
    """Return the lines without the table and its subtables, and the number of its first line."""
    kept: list[str] = []
    place: int | None = None
    pending: list[str] = []
    inside = False
    for line in text.splitlines(keepends=True):
        if re.match(r"^[ \t]*\[", line):
            inside = _header_path(line)[: len(path)] == list(path)
            if inside and place is None:
                place = len(kept)
            if not inside:
                kept += pending
            pending = []
        if not inside:
            kept.append(line)
        elif line.strip() and not line.lstrip().startswith("#"):
            pending = []
        else:
            pending.append(line)  # it may belong to the next table
    return kept, len(kept) if place is None else place


def _header_path(line: str) -> list[str]:
    """Return the keys in the header of a table: a and b.c for `[a."b.c"]`; none for other lines."""
    header = _HEADER.match(line.rstrip("\r\n"))
    if header is None:
        return []
    keys: list[str] = []
    try:
        # By itself, a header is tables in one another, each with one key.
        value: Any = tomllib.loads(f"[{header['key']}]")
    except tomllib.TOMLDecodeError:
        return []
    while isinstance(value, dict) and value:
        (key,) = value
        keys.append(key)
        value = value[key]
    return keys


def _key(text: str) -> str:
    return text if re.fullmatch(r"[A-Za-z0-9_-]+", text) else _value(text)


def _value(value: Any) -> str:
    if isinstance(value, dict):
        items = [f"{_key(key)} = {_value(item)}" for key, item in value.items()]
        return f"{{ {', '.join(items)} }}"
    if isinstance(value, list):
        return "[" + ", ".join(map(_value, value)) + "]"
    return json.encode(value).decode().replace("\x7f", "\\u007f")


def _with_table(
    value: dict[str, Any], path: Sequence[str], table: dict[str, Any] | None
) -> dict[str, Any]:
    """Return the tables with the one at the path replaced, or removed if it is None."""
    rest = {key: item for key, item in value.items() if key != path[0]}
    if len(path) == 1:
        return rest if table is None else {**rest, path[0]: table}
    inner = value.get(path[0], {})
    if not isinstance(inner, dict):
        raise BadInput(f"{path[0]} is not a table")
    return {**rest, path[0]: _with_table(inner, path[1:], table)}


def _require_result(text: str, expected: dict[str, Any]) -> str:
    """Return the text if it parses to what was wanted; a table without entries may be missing."""
    if _without_empty(parse(text)) != _without_empty(expected):
        raise BadInput("the file cannot be edited safely")
    return text


def _without_empty(value: dict[str, Any]) -> dict[str, Any]:
    return {key: item for key, item in value.items() if item != {}}
