"""What is wrong with arguments, in one sentence with the path to it."""

import re
from typing import Any

from polymnia.dialects.schema import json_schema

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
_CHOICE = re.compile(r"Invalid enum value (?P<value>.*)", re.DOTALL)
_PATH = re.compile(r" - at (?:`key` in )?`\$\.?(?P<path>.*)`$")
_STEP = re.compile(r"[^.\[\]]+")


def sentence(problem: str, kind: Any, root: str) -> str:
    """Our words for what msgspec says about arguments of that type; `root` is what their whole is called."""
    found = _PATH.search(problem)
    path = found["path"] if found else ""
    what = problem[: found.start()] if found else problem
    if match := _MISSING.match(what):
        return f"{_joined(path, match['field'])}: required, but missing"
    if match := _UNKNOWN.match(what):
        return f"{_joined(path, match['field'])}: there is no such argument"
    if match := _CHOICE.match(what):
        return f"{path or root}: {match['value']} is not one of {', '.join(_choices(kind, path))}"
    return f"{path or root}: {_expectation(what)}"


def _expectation(what: str) -> str:
    if match := _EXPECTED.match(what):
        return f"expected {_kinds(match['wanted'])}{match['bound']}, got {_got(match['got'])}"
    if match := _BOUND.match(what):
        return f"expected {_kinds(match['wanted'])} {match['bound']}"
    return what[:1].lower() + what[1:]


def _kinds(wanted: str) -> str:
    return " or ".join(_KINDS.get(each.strip(), each.strip()) for each in wanted.split("|"))


def _got(kind: str) -> str:
    return "a number" if kind in ("int", "float") else "a boolean" if kind == "bool" else _kinds(kind)


def _joined(path: str, name: str) -> str:
    return f"{path}.{name}" if path else name


def _choices(kind: Any, path: str) -> list[str]:
    """The values allowed at a path, as JSON would have them read."""
    node = json_schema(kind)
    for step in _STEP.findall(path):
        node = _below(node, step)
    return [str(each) for option in [node, *node.get("anyOf", ())] for each in option.get("enum", ())]


def _below(node: dict[str, Any], step: str) -> dict[str, Any]:
    below: dict[str, Any] = {}
    for option in [node, *node.get("anyOf", ())]:
        if step in option.get("properties", {}):
            below = option["properties"][step]
        elif "items" in option and (step.isdigit() or step == "..."):
            below = option["items"]
    return below
