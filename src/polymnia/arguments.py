"""JSON from clients as typed values: decoding, explaining mistakes, and the schemas of types."""

import re
from typing import Annotated, Any, Literal, TypeGuard, get_args, get_origin

from msgspec import DecodeError, Raw, Struct, ValidationError, convert
from msgspec.json import Decoder, decode, encode, schema_components
from msgspec.structs import fields

from polymnia.errors import BadInput

# How many mistakes in the arguments of one call are named.
MAX_MISTAKES = 10
# Floats up to here are exact, so 2.0 can stand for 2. A larger one may have been rounded.
_MAX_EXACT_FLOAT = 2.0**53
# A number of more digits is left as a text.
_MAX_DIGITS = 9
_REFERENCE = "#/$defs/"
_TYPE_NAMES = {
    "str": "a string",
    "int": "an integer",
    "float": "a number",
    "bool": "true or false",
    "array": "an array",
    "object": "an object",
    "null": "null",
}
# msgspec reports mistakes only as text. These patterns cover every message that occurs.
_EXPECTED = re.compile(r"Expected `(?P<type>[^`]+)`(?P<bound>[^`]*?), got `(?P<got>[^`]+)`")
_BOUND = re.compile(r"Expected `(?P<type>[^`]+)` (?P<bound>.+)")
_MISSING = re.compile(r"Object missing required field `(?P<field>[^`]+)`")
_UNKNOWN = re.compile(r"Object contains unknown field `(?P<field>.*)`", re.DOTALL)
_CHOICE = re.compile(r"Invalid enum value (?P<value>.*)", re.DOTALL)
_PATH = re.compile(r" - at (?:`key` in )?`\$\.?(?P<path>.*)`$")
_STEP = re.compile(r"[^.\[\]]+")


def decode_arguments(decoder: Decoder[Any], raw: bytes | Raw, *, root: str = "arguments") -> Any:
    """Decode JSON into the decoder's struct. Null counts as an empty object or a missing field.

    Raise BadInput with the path of the mistake and what was expected there.
    """
    kind = decoder.type
    try:
        try:
            return decoder.decode(raw)
        except ValidationError as exc:
            problem = str(exc)
        try:
            arguments = decode(raw)
        except ValidationError as exc:  # a number that no type can hold
            raise BadInput(explain_mistake(problem, kind, root)) from exc
        if arguments is None:
            arguments = {}
        if hasattr(kind, "synonyms"):
            arguments = adapt(arguments, kind)
        # Null means "left out", and 2.0 means 2.
        given = arguments
        if isinstance(given, dict):
            given = {name: value for name, value in given.items() if value is not None}
        try:
            return convert(_replace_whole_floats(given), kind)
        except ValidationError as exc:
            raise BadInput(_explain_mistakes(problem, arguments, kind, root)) from exc
    except (DecodeError, UnicodeDecodeError) as exc:
        raise BadInput(f"{root}: not valid JSON ({exc})") from exc
    except RecursionError as exc:
        raise BadInput(f"{root}: nested too deeply") from exc


def adapt(value: Any, kind: Any) -> Any:
    """Return what was probably meant: a number as text, one item as a list or a list as its only \
item, a synonym's argument.

    Only for types with `synonyms`, a mapping of other names to those of arguments. A type with
    `shorthand` may be given by the value of that field alone; one with `sole_item_of` with the
    fields of the only item of that list, or with its own fields in all items.
    """
    plain = _without_annotations(kind)
    if plain is str and isinstance(value, list) and len(value) == 1:
        (value,) = value
    if get_origin(plain) is list and value is not None:
        (item_kind,) = get_args(plain)
        return [adapt(item, item_kind) for item in _list_items(value, item_kind)]
    if not _is_struct(plain):
        return _adapt_scalar(value, plain)
    if isinstance(value, str | int) and hasattr(plain, "shorthand"):
        return {plain.shorthand: value}
    if not isinstance(value, dict):
        return value
    kinds = {field.encode_name: field.type for field in fields(plain)}
    if hasattr(plain, "sole_item_of"):
        value = _gather_item(value, kinds, plain.sole_item_of)
        value = _gather_field(value, kinds, plain.sole_item_of)
    adapted = {}
    for name, argument in value.items():
        meant = getattr(plain, "synonyms", {}).get(name, name)
        if name in kinds or meant not in kinds or meant in value:
            meant = name
        adapted[meant] = adapt(argument, kinds.get(meant, Any))
    return adapted


def _adapt_scalar(value: Any, kind: Any) -> Any:
    """Return a number as text, or a text as the number or truth value that it spells."""
    if kind is str and isinstance(value, int | float) and not isinstance(value, bool):
        return str(value)
    if not isinstance(value, str):
        return value
    if kind is int and value.isascii() and value.isdigit() and len(value) <= _MAX_DIGITS:
        return int(value)
    if kind is bool and value.lower() in ("true", "false"):
        return value.lower() == "true"
    return value


def _list_items(value: Any, item_kind: Any) -> list[Any]:
    """Return the items of a list that may be given as JSON, as its only item, or as "all"."""
    plain = _without_annotations(item_kind)
    if isinstance(value, str) and value.lstrip().startswith(("[", "{")):
        try:
            decoded = decode(value)
        except (DecodeError, RecursionError):
            decoded = None
        if isinstance(decoded, list) or (isinstance(decoded, dict) and _is_struct(plain)):
            value = decoded
    items = value if isinstance(value, list) else [value]
    if items == ["all"] and get_origin(plain) is Literal:
        items = list(get_args(plain))
    return items


def _gather_field(value: dict[str, Any], kinds: dict[str, Any], items: str) -> dict[str, Any]:
    """Return the arguments; fields that all items of a list give alike go beside the list.

    Where items differ, the fields stay and are refused there.
    """
    (item_kind,) = get_args(_without_annotations(kinds[items]))
    item_fields = {field.encode_name for field in fields(item_kind)}
    listed = _list_items(value.get(items) or [], item_kind)
    given = [item for item in listed if isinstance(item, dict)]
    for name, kind in kinds.items():
        if name in item_fields or _without_annotations(kind) is not str:
            continue
        values = {str(item.get(name, value.get(name, ""))) for item in given}
        if value.get(name):
            values.add(str(value[name]))
        if len(values) == 1 and any(name in item for item in given):
            value = {**value, name: values.pop()}
            given = [{key: item[key] for key in item if key != name} for item in given]
    return {**value, items: given} if len(given) == len(listed) and given else value


def _gather_item(value: dict[str, Any], kinds: dict[str, Any], items: str) -> dict[str, Any]:
    """Return the arguments; fields of a list's only item that stand beside the list go into it."""
    if value.get(items):  # which item would they belong to?
        return value
    (item_kind,) = get_args(_without_annotations(kinds[items]))
    known = {field.encode_name for field in fields(item_kind)}
    item: dict[str, Any] = {}
    others: dict[str, Any] = {}
    for name, argument in value.items():
        meanings = {name, item_kind.synonyms.get(name)}
        target = item if meanings & known and name not in kinds else others
        target[name] = argument
    return {**others, items: [item]} if item else value


def _replace_whole_floats(value: Any) -> Any:
    """Replace floats without a fraction by integers. Fields of type float accept either."""
    if isinstance(value, float) and value.is_integer() and abs(value) <= _MAX_EXACT_FLOAT:
        return int(value)
    if isinstance(value, list):
        return [_replace_whole_floats(item) for item in value]
    if isinstance(value, dict):
        return {name: _replace_whole_floats(item) for name, item in value.items()}
    return value


def _explain_mistakes(problem: str, arguments: Any, kind: Any, root: str) -> str:
    """Say what is wrong with every argument. `problem` is msgspec's message about the first."""
    if not isinstance(arguments, dict) or not _is_struct(kind):
        return explain_mistake(problem, kind, root)
    given = dict(arguments)
    for field in fields(kind):
        if not field.required and given.get(field.encode_name, 0) is None:
            del given[field.encode_name]
    problems = _find_in_object(_replace_whole_floats(given), kind, "$") or [problem]
    sentences = [explain_mistake(problem, kind, root) for problem in problems[:MAX_MISTAKES]]
    more = len(problems) - MAX_MISTAKES
    if more > 0:
        sentences.append(f"and {more} more mistake{'s' if more > 1 else ''}")
    return "; ".join(sentences)


def _find_in_object(value: dict[str, Any], kind: type[Struct], path: str) -> list[str]:
    """Return msgspec's messages about all unknown, missing and wrong fields of an object."""
    problems = []
    known = {field.encode_name: field for field in fields(kind)}
    if kind.__struct_config__.forbid_unknown_fields:
        for name in value:
            if name not in known:
                problems.append(f"Object contains unknown field `{name}` - at `{path}`")
    for name, field in known.items():
        if name in value:
            problems += _find_in_value(value[name], field.type, f"{path}.{name}")
        elif field.required:
            problems.append(f"Object missing required field `{name}` - at `{path}`")
    return problems


def _find_in_value(value: Any, kind: Any, path: str) -> list[str]:
    """Return msgspec's messages about the wrong parts of a value, or else about the whole."""
    try:
        decode(encode(value), type=kind)
    except ValidationError as exc:
        problem, at, place = str(exc).partition(" - at ")
    else:
        return []
    problems: list[str] = []
    plain = _without_annotations(kind)
    if isinstance(value, dict) and _is_struct(plain):
        problems = _find_in_object(value, plain, path)
    elif isinstance(value, list) and get_origin(plain) is list:
        (item_kind,) = get_args(plain)
        for number, item in enumerate(value):
            problems += _find_in_value(item, item_kind, f"{path}[{number}]")
    if not at:
        place = "`$`"
    return problems or [f"{problem} - at {place.replace('`$', f'`{path}', 1)}"]


def _without_annotations(kind: Any) -> Any:
    while get_origin(kind) is Annotated:
        kind = get_args(kind)[0]
    return kind


def _is_struct(kind: Any) -> TypeGuard[type[Struct]]:
    return isinstance(kind, type) and issubclass(kind, Struct)


def explain_mistake(problem: str, kind: Any, root: str) -> str:
    """Put msgspec's message about a value of that type into our words. `root` names the whole."""
    path = ""
    if match := _PATH.search(problem):
        path = match["path"]
        problem = problem[: match.start()]
    prefix = f"{path}." if path else ""
    if match := _MISSING.match(problem):
        return f"{prefix}{match['field']}: required, but missing"
    if match := _UNKNOWN.match(problem):
        known = ""
        if hasattr(kind, "synonyms"):  # clients rely on the texts of other dialects
            known = f" (known: {', '.join(_schema_at(kind, path).get('properties', ()))})"
        return f"{prefix}{match['field']}: there is no such argument{known}"
    if match := _CHOICE.match(problem):
        node = _schema_at(kind, path)
        choices: list[str] = []
        for option in [node, *node.get("anyOf", ())]:
            choices += map(str, option.get("enum", ()))
        return f"{path or root}: {match['value']} is not one of {', '.join(choices)}"
    if match := _EXPECTED.match(problem):
        got = match["got"]
        if got in ("int", "float"):
            got = "a number"
        elif got == "bool":
            got = "a boolean"
        else:
            got = _type_names(got)
        problem = f"expected {_type_names(match['type'])}{match['bound']}, got {got}"
    elif match := _BOUND.match(problem):
        problem = f"expected {_type_names(match['type'])} {match['bound']}"
    return f"{path or root}: {problem[:1].lower()}{problem[1:]}"


def _type_names(union: str) -> str:
    names = [name.strip() for name in union.split("|")]
    return " or ".join(_TYPE_NAMES.get(name, name) for name in names)


def _schema_at(kind: Any, path: str) -> dict[str, Any]:
    """Return the schema of what is at a path, such as `entities[2].name`."""
    node = json_schema(kind)
    for step in _STEP.findall(path):
        options = [node, *node.get("anyOf", ())]
        node = {}
        for option in options:
            if step in option.get("properties", {}):
                node = option["properties"][step]
            elif "items" in option and (step.isdigit() or step == "..."):
                node = option["items"]
    return node


def json_schema(kind: type[Struct]) -> dict[str, Any]:
    """Return the type's schema. `$ref` is inlined: some clients do not resolve references."""
    (schema,), components = schema_components([kind], ref_template=_REFERENCE + "{name}")
    inlined: dict[str, Any] = _inline(schema, components)
    return inlined


def _inline(node: Any, components: dict[str, Any]) -> Any:
    if isinstance(node, list):
        return [_inline(item, components) for item in node]
    if not isinstance(node, dict):
        return node
    target = components.get(str(node.get("$ref", "")).removeprefix(_REFERENCE))
    if target is not None:  # other references were written by the type itself
        # The struct's name and docstring are internal. What stands beside the reference is public.
        public = {
            key: value for key, value in target.items() if key not in ("title", "description")
        }
        node = public | {key: value for key, value in node.items() if key != "$ref"}
    inlined = {key: _inline(value, components) for key, value in node.items()}
    values = inlined.get("enum")
    is_text = isinstance(values, list) and all(isinstance(value, str) for value in values)
    if is_text and "type" not in inlined:  # some clients insist on a type
        inlined["type"] = "string"
    if inlined.get("required") == []:  # some drafts of JSON Schema do not allow an empty list
        del inlined["required"]
    return inlined
