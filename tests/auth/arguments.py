"""Arguments for any tool, generated from its schema, with the same text for every string."""

from typing import Any

KNOWN = "known"


def made_for(schema: dict[str, Any], text: str) -> Any:
    """Return a value that fits the schema, with every property present."""
    if "enum" in schema:
        return schema["enum"][0]
    if "const" in schema:
        return schema["const"]
    for choice in ("anyOf", "oneOf"):
        if choice in schema:
            return made_for(schema[choice][0], text)
    kind = schema.get("type", "object")
    kind = kind[0] if isinstance(kind, list) else kind
    if kind == "object":
        return {name: made_for(each, text) for name, each in schema.get("properties", {}).items()}
    if kind == "array":
        return [made_for(schema.get("items", {"type": "string"}), text)]
    if kind in ("integer", "number"):
        return schema.get("minimum", schema.get("default", 1)) or 1
    return {"string": text, "boolean": True, "null": None}[kind]


def sensible(tool: str, text: str) -> dict[str, Any]:
    """Return arguments for a tool of the native dialect that succeed whether the text is known or
    not.
    """
    relation = {"from": text, "type": text, "to": text}
    arguments: dict[str, dict[str, Any]] = {
        "remember": {"entities": [{"name": text, "facts": [text]}], "relations": [relation]},
        "recall": {"query": text},
        "open": {"names": [text]},
        "explore": {"name": KNOWN},
        "revise": {"name": KNOWN, "add_tags": [text]},
        "forget": {"relations": [relation]},
        "undo": {"changes": [1], "dry_run": True},
    }
    return arguments.get(tool, {})
