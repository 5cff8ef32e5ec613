"""Arguments from JSON into a tool's struct, and what is wrong with them in one sentence."""

import re
from typing import Any

from msgspec import DecodeError, Raw, ValidationError
from msgspec.json import Decoder

from polymnia.errors import BadInput

_KINDS = {
    "str": "a string",
    "int": "an integer",
    "float": "a number",
    "bool": "true or false",
    "array": "an array",
    "object": "an object",
    "null": "null",
}
# msgspec says what is wrong only in words; these are all the words it has for what arguments can be.
_EXPECTED = re.compile(r"Expected `(?P<wanted>[^`]+)`(?P<bound>[^`]*?), got `(?P<got>[^`]+)`")
_BOUND = re.compile(r"Expected `(?P<wanted>[^`]+)` (?P<bound>.+)")
_MISSING = re.compile(r"Object missing required field `(?P<field>[^`]+)`")
_UNKNOWN = re.compile(r"Object contains unknown field `(?P<field>[^`]+)`")
_CHOICE = re.compile(r"Invalid enum value '?(?P<value>[^']*)'?")
_PATH = re.compile(r" - at `\$\.?(?P<path>.*)`$")


def decode_arguments(decoder: Decoder[Any], raw: bytes | Raw) -> Any:
    """The arguments as the decoder's struct. Raises BadInput with the path and what was expected there."""
    try:
        return decoder.decode(raw)
    except ValidationError as exc:
        raise BadInput(_sentence(str(exc))) from exc
    except (DecodeError, UnicodeDecodeError) as exc:
        raise BadInput(f"arguments: not valid JSON ({exc})") from exc


def _sentence(problem: str) -> str:
    found = _PATH.search(problem)
    path = found["path"] if found else ""
    what = problem[: found.start()] if found else problem
    if match := _MISSING.match(what):
        return f"{_joined(path, match['field'])}: required, but missing"
    if match := _UNKNOWN.match(what):
        return f"{_joined(path, match['field'])}: there is no such argument"
    return f"{path or 'arguments'}: {_expectation(what)}"


def _expectation(what: str) -> str:
    if match := _EXPECTED.match(what):
        return f"expected {_kinds(match['wanted'])}{match['bound']}, got {_got(match['got'])}"
    if match := _BOUND.match(what):
        return f"expected {_kinds(match['wanted'])} {match['bound']}"
    if match := _CHOICE.match(what):
        return f"{match['value']!r} is not one of the allowed values"
    return what[:1].lower() + what[1:]


def _kinds(wanted: str) -> str:
    return " or ".join(_KINDS.get(each.strip(), each.strip()) for each in wanted.split("|"))


def _got(kind: str) -> str:
    return "a number" if kind in ("int", "float") else "a boolean" if kind == "bool" else _kinds(kind)


def _joined(path: str, name: str) -> str:
    return f"{path}.{name}" if path else name
