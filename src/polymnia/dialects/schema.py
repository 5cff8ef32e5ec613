"""JSON schemas from argument and answer types, with nothing left to look up."""

from typing import Any

from msgspec import Struct
from msgspec.json import schema_components

_REFERENCE = "#/$defs/"


def json_schema(kind: type[Struct]) -> dict[str, Any]:
    """The type's schema with every `$ref` replaced by what it names: some clients follow none."""
    (schema,), components = schema_components([kind], ref_template=_REFERENCE + "{name}")
    inlined: dict[str, Any] = _inlined(schema, components)
    return inlined


def _inlined(node: Any, components: dict[str, Any]) -> Any:
    if isinstance(node, list):
        return [_inlined(each, components) for each in node]
    if not isinstance(node, dict):
        return node
    named = components.get(str(node.get("$ref", "")).removeprefix(_REFERENCE))
    if named is not None:  # others are the type's own, as it wrote them
        # The struct's name and docstring are ours; what stands beside the reference is for the client.
        public = {key: value for key, value in named.items() if key not in ("title", "description")}
        node = public | {key: value for key, value in node.items() if key != "$ref"}
    # An empty list of required names is not allowed in every draft of JSON Schema.
    return {key: _inlined(value, components) for key, value in node.items() if (key, value) != ("required", [])}
