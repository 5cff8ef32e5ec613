"""Templates that turn passages and questions into the texts that are embedded."""

import re
from datetime import UTC, datetime, timedelta

from polymnia.errors import BadInput

# What a document template may use: the passage's own text, the name and type of its entity, and the day it tells of.
DOCUMENT_FIELDS = ("text", "name", "type", "date")
QUERY_FIELDS = ("query",)
_FIELD = re.compile(r"\{([^{}]*)\}")
_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)


def render_document(template: str, *, text: str, name: str, kind: str, at: int) -> str:
    """Return the text to embed for a passage. `at` is its time, in microseconds since 1970."""
    if template == "{text}":
        return text
    values = {
        "text": text,
        "name": name,
        "type": kind,
        "date": _day(at) if "{date}" in template else "",
    }
    return _FIELD.sub(lambda found: values[found[1]], template)


def uses_name(template: str) -> bool:
    """Return True if the text of a passage changes with the name or the type of its entity."""
    return "{name}" in template or "{type}" in template


def render_query(template: str, query: str) -> str:
    """Return the text to embed for a question."""
    return template.replace("{query}", query)


def check_template(template: str, fields: tuple[str, ...], argument: str) -> None:
    """Raise BadInput unless the template has the first of the fields, and no others than these."""
    known = ", ".join(f"{{{field}}}" for field in fields)
    for name in _FIELD.findall(template):
        if name not in fields:
            raise BadInput(f"{argument}: unknown field {{{name}}}; use {known}")
    if f"{{{fields[0]}}}" not in template:
        raise BadInput(f"{argument}: {template!r} must contain {{{fields[0]}}}")


def _day(at: int) -> str:
    """Return a day as people write it, such as 7 May 2023."""
    day = _EPOCH + timedelta(microseconds=at)
    return f"{day.day} {day:%B %Y}"
