"""JSON schemas of arguments and replies, and explanations of arguments that do not fit them."""

import re
from typing import Annotated, Any, TypeGuard, get_args, get_origin

from msgspec import Raw, Struct, ValidationError, convert
from msgspec.json import decode, encode, schema_components
from msgspec.structs import fields

from polymnia.search.text import count_noun

_REFERENCE = "#/$defs/"
# How many mistakes in the arguments of one call are named.
MAX_MISTAKES = 10
_TYPE_NAMES = {
    "str": "a string",
    "int": "an integer",
    "float": "a number",
    "bool": "true or false",
    "array": "an array",
    "object": "an object",
    "null": "null",
}
# msgspec reports mistakes only as text. These patterns cover every message that arguments can cause.
_EXPECTED = re.compile(r"Expected `(?P<wanted>[^`]+)`(?P<bound>[^`]*?), got `(?P<got>[^`]+)`")
_BOUND = re.compile(r"Expected `(?P<wanted>[^`]+)` (?P<bound>.+)")
_MISSING = re.compile(r"Object missing required field `(?P<field>[^`]+)`")
_UNKNOWN = re.compile(r"Object contains unknown field `(?P<field>.*)`", re.DOTALL)
_CHOICE = re.compile(r"Invalid enum value (?P<value>.*)", re.DOTALL)
_PATH = re.compile(r" - at (?:`key` in )?`\$\.?(?P<path>.*)`$")
_STEP = re.compile(r"[^.\[\]]+")


def json_schema(kind: type[Struct]) -> dict[str, Any]:
    """Return the type's schema with every `$ref` inlined, because some clients do not resolve references."""
    (schema,), components = schema_components([kind], ref_template=_REFERENCE + "{name}")
    inlined: dict[str, Any] = _inline(schema, components)
    return inlined


def convert_leniently(raw: bytes | Raw, kind: Any) -> Any:
    """Decode arguments in which null means "left out" and 2.0 means 2; return None if they still do not fit."""
    arguments = decode(raw)
    if not isinstance(arguments, dict):
        return None
    given = {name: _integral(value) for name, value in arguments.items() if value is not None}
    try:
        return convert(given, kind)
    except ValidationError:
        return None


def explain_mistakes(problem: str, raw: bytes | Raw, kind: Any, root: str) -> str:
    """Return what is wrong with every argument; `problem` is msgspec's message about the first mistake."""
    arguments = decode(raw)
    if not isinstance(arguments, dict) or not _is_struct(kind):
        return explain_mistake(problem, kind, root)
    optional = {each.encode_name for each in fields(kind) if not each.required}
    given = {
        name: value
        for name, value in arguments.items()
        if value is not None or name not in optional
    }
    found = _find_in_object(_integral(given), kind, "$")
    told = [explain_mistake(each, kind, root) for each in found[:MAX_MISTAKES] or [problem]]
    more = (
        [f"and {count_noun(len(found) - MAX_MISTAKES, 'more mistake')}"]
        if len(found) > MAX_MISTAKES
        else []
    )
    return "; ".join(told + more)


def _find_in_object(value: dict[str, Any], kind: type[Struct], path: str) -> list[str]:
    """Return msgspec's messages about all fields of an object that are unknown, missing or wrong."""
    known = {each.encode_name: each for each in fields(kind)}
    unknown = (
        [name for name in value if name not in known]
        if kind.__struct_config__.forbid_unknown_fields
        else []
    )
    found = [f"Object contains unknown field `{name}` - at `{path}`" for name in unknown]
    for name, each in known.items():
        if name in value:
            found += _find_in_value(value[name], each.type, f"{path}.{name}")
        elif each.required:
            found.append(f"Object missing required field `{name}` - at `{path}`")
    return found


def _find_in_value(value: Any, kind: Any, path: str) -> list[str]:
    """Return msgspec's messages about a value: about the parts that are wrong, or else about the whole."""
    try:
        decode(encode(value), type=kind)
    except ValidationError as exc:
        plain = _without_annotations(kind)
        parts: list[str] = []
        if isinstance(value, dict) and _is_struct(plain):
            parts = _find_in_object(value, plain, path)
        elif isinstance(value, list) and get_origin(plain) is list:
            (item,) = get_args(plain)
            for number, each in enumerate(value):
                parts += _find_in_value(each, item, f"{path}[{number}]")
        what, at, where = str(exc).partition(" - at ")
        return parts or [f"{what} - at {(where if at else '`$`').replace('`$', f'`{path}', 1)}"]
    return []


def _without_annotations(kind: Any) -> Any:
    return _without_annotations(get_args(kind)[0]) if get_origin(kind) is Annotated else kind


def _is_struct(kind: Any) -> TypeGuard[type[Struct]]:
    return isinstance(kind, type) and issubclass(kind, Struct)


def explain_mistake(problem: str, kind: Any, root: str) -> str:
    """Put msgspec's message about arguments of that type into our words; `root` names the arguments as a whole."""
    found = _PATH.search(problem)
    path = found["path"] if found else ""
    what = problem[: found.start()] if found else problem
    if match := _MISSING.match(what):
        return f"{_join(path, match['field'])}: required, but missing"
    if match := _UNKNOWN.match(what):
        return f"{_join(path, match['field'])}: there is no such argument"
    if match := _CHOICE.match(what):
        return f"{path or root}: {match['value']} is not one of {', '.join(_choices(kind, path))}"
    return f"{path or root}: {_expectation(what)}"


def _inline(node: Any, components: dict[str, Any]) -> Any:
    if isinstance(node, list):
        return [_inline(each, components) for each in node]
    if not isinstance(node, dict):
        return node
    named = components.get(str(node.get("$ref", "")).removeprefix(_REFERENCE))
    if named is not None:  # other references were written by the type itself
        # The struct's name and docstring are internal; what stands beside the reference is for the client.
        public = {key: value for key, value in named.items() if key not in ("title", "description")}
        node = public | {key: value for key, value in node.items() if key != "$ref"}
    # Some drafts of JSON Schema do not allow an empty list of required names.
    return {
        key: _inline(value, components)
        for key, value in node.items()
        if (key, value) != ("required", [])
    }


def _integral(value: Any) -> Any:
    """Replace floats without a fraction by integers; fields of type float accept either."""
    if isinstance(value, float) and value.is_integer():
        return int(value)
    if isinstance(value, list):
        return [_integral(each) for each in value]
    if isinstance(value, dict):
        return {name: _integral(each) for name, each in value.items()}
    return value


def _expectation(what: str) -> str:
    if match := _EXPECTED.match(what):
        return f"expected {_type_names(match['wanted'])}{match['bound']}, got {_kind_name(match['got'])}"
    if match := _BOUND.match(what):
        return f"expected {_type_names(match['wanted'])} {match['bound']}"
    return what[:1].lower() + what[1:]


def _type_names(wanted: str) -> str:
    return " or ".join(_TYPE_NAMES.get(each.strip(), each.strip()) for each in wanted.split("|"))


def _kind_name(kind: str) -> str:
    return (
        "a number"
        if kind in ("int", "float")
        else "a boolean"
        if kind == "bool"
        else _type_names(kind)
    )


def _join(path: str, name: str) -> str:
    return f"{path}.{name}" if path else name


def _choices(kind: Any, path: str) -> list[str]:
    """Return the values allowed at a path, as JSON spells them."""
    node = json_schema(kind)
    for step in _STEP.findall(path):
        node = _child_schema(node, step)
    return [
        str(each) for option in [node, *node.get("anyOf", ())] for each in option.get("enum", ())
    ]


def _child_schema(node: dict[str, Any], step: str) -> dict[str, Any]:
    child: dict[str, Any] = {}
    for option in [node, *node.get("anyOf", ())]:
        if step in option.get("properties", {}):
            child = option["properties"][step]
        elif "items" in option and (step.isdigit() or step == "..."):
            child = option["items"]
    return child
