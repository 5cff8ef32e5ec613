"""Arguments a tool wants repeated in headers (`x-mcp-header` in its schema), so that routers need not look inside."""

import re
from collections.abc import Iterator
from functools import cache
from typing import Any

from msgspec import Raw, Struct, UnsetType
from msgspec.json import Decoder

from polymnia.dialects.base import decode_arguments
from polymnia.dialects.schema import json_schema
from polymnia.errors import BadInput, ProtocolError
from polymnia.transports.http.headers import HEADER_MISMATCH, decoded
from polymnia.transports.http.visit import BLANK, Visit

_PREFIX = "Mcp-Param-"
# What can be written in a header and be read there in one way only.
_PLAIN = ("string", "integer", "boolean")
_DECIMAL = re.compile(r"(-?[0-9]+)(?:\.0+)?")
_arguments: Decoder[dict[str, Any] | None] = Decoder(dict[str, Any] | None)


class Mirror(Struct, frozen=True):
    """An argument, by its path, and the header that repeats it."""

    path: tuple[str, ...]
    header: str
    kind: str


def check_mirrors(visit: Visit, arguments: type[Struct], given: Raw | UnsetType) -> None:
    """Raises ProtocolError where a header and the argument it should repeat do not agree."""
    expected = mirrors(arguments)
    if not expected:
        return
    try:
        values = decode_arguments(_arguments, given) if isinstance(given, Raw) else {}
    except BadInput:
        return  # the tool will say so, and better
    for mirror in expected:
        _check(visit, mirror, _at(values, mirror.path))


@cache
def mirrors(arguments: type[Struct]) -> tuple[Mirror, ...]:
    """Every argument of the type that is to be repeated in a header."""
    return tuple(_marked(json_schema(arguments), ()))


def _marked(schema: dict[str, Any], path: tuple[str, ...]) -> Iterator[Mirror]:
    for name, below in schema.get("properties", {}).items():
        header, kind = below.get("x-mcp-header"), below.get("type")
        if header is not None and kind in _PLAIN:
            yield Mirror((*path, name), _PREFIX + header, kind)
        yield from _marked(below, (*path, name))


def _at(values: Any, path: tuple[str, ...]) -> Any:
    for name in path:
        values = values.get(name) if isinstance(values, dict) else None
    return values


def _check(visit: Visit, mirror: Mirror, value: Any) -> None:
    name = mirror.header.lower().encode("latin-1")
    said = [content.decode("latin-1").strip(BLANK) for each, content in visit.raw_headers if each == name]
    meant = _written(value)
    if len(said) != (meant is not None) or (said and not _agree(mirror.kind, decoded(said[0]), meant)):
        argument = ".".join(mirror.path)
        message = f"the header {mirror.header} must say, once, what the argument {argument} says, or both be left out"
        raise ProtocolError(HEADER_MISMATCH, message)


def _written(value: Any) -> str | None:
    """A value as a header has it; None for what no header can say."""
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, float) and value.is_integer():
        value = int(value)
    return str(value) if isinstance(value, str | int | float) else None


def _agree(kind: str, said: str | None, meant: str | None) -> bool:
    """Whether both are the same; for integers, whether they are the same number (42 is 42.0)."""
    number = _DECIMAL.fullmatch(said) if kind == "integer" and said is not None else None
    return (number[1] if number else said) == meant
