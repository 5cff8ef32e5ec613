"""Templates that turn passages and questions into the texts that are embedded."""

import re
from datetime import UTC, datetime, timedelta
from functools import cache

from polymnia.errors import BadInput

# What a document template may use: the passage's own text, the name and type of its entity, and
# the day it tells of.
DOCUMENT_FIELDS = ("text", "name", "type", "date")
QUERY_FIELDS = ("query",)
# The template that recall compares. It stands for the words of a turn, which its neighbours
# explain, and for `Name: text` of a short fact: "owns the route planner" says little without a
# name. A longer fact says what it is about, and the name would make all facts of one entity alike.
OWN_TEXT = "{text}"
# With 100, a user's messages (BEAM) lose a point of R@1; with 60, facts of nine users lose two.
MAX_NAMED_CHARACTERS = 80
# Compiled at the first use: a server's start does not need it.
_compiled = cache(re.compile)
_FIELD = r"\{([^{}]*)\}"
_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)


def render_document(template: str, *, text: str, name: str, kind: str, at: int) -> str:
    """Return the text to embed for a passage. `at` is its time, in microseconds since 1970."""
    values = {"text": text, "name": name, "type": kind}
    if "{date}" in template:
        values["date"] = _day(at)
    text_to_embed: str = _compiled(_FIELD).sub(lambda field: values[field[1]], template)
    return text_to_embed


def render_own(text: str, name: str) -> str:
    """Return the text of OWN_TEXT for a fact that was noted, not said."""
    return f"{name}: {text}" if len(text) <= MAX_NAMED_CHARACTERS else text


def uses_name(template: str) -> bool:
    """Return True if the text of a passage changes with the name or the type of its entity."""
    return template == OWN_TEXT or "{name}" in template or "{type}" in template


def render_query(template: str, query: str) -> str:
    """Return the text to embed for a question."""
    return template.replace("{query}", query)


def check_template(template: str, fields: tuple[str, ...], argument: str) -> None:
    """Raise BadInput unless the template has the first of the fields, and no others than these."""
    known = ", ".join(f"{{{field}}}" for field in fields)
    for name in _compiled(_FIELD).findall(template):
        if name not in fields:
            raise BadInput(f"{argument}: unknown field {{{name}}}; use {known}")
    if f"{{{fields[0]}}}" not in template:
        raise BadInput(f"{argument}: {template!r} must contain {{{fields[0]}}}")


def _day(at: int) -> str:
    """Return a day as people write it, such as 7 May 2023."""
    day = _EPOCH + timedelta(microseconds=at)
    return f"{day.day} {day:%B %Y}"
