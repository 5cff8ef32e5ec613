"""Stored text as a page shows it: control characters visible, marks, and long texts cut."""

import re
from collections.abc import Collection
from hashlib import sha256

from markupsafe import Markup, escape

from polymnia.model import split_actor
from polymnia.search.terms import terms_of

# How much of a text a list shows; the whole text is one click away.
MAX_EXCERPT_CHARS = 700
MAX_EXCERPT_LINES = 12
_KB = 1024
# Overrides and embeddings of the writing direction can make a text look like another one.
_DIRECTIONS = [*range(0x202A, 0x202F), *range(0x2066, 0x206A)]
_PICTURES = {
    **{code: chr(0x2400 + code) for code in range(0x20) if chr(code) not in "\t\n"},
    0x7F: "\u2421",
    **{
        code: f"\u27e8U+{code:04X}\u27e9"
        for code in (*range(0x80, 0xA0), *_DIRECTIONS, 0xFEFF, 0x2028, 0x2029)
    },
}
# The numbers of the coloured dots for common types; any other type gets one by a hash of its name.
_TYPE_NUMBERS = {
    "person": 1,
    "organisation": 2,
    "organization": 2,
    "project": 3,
    "service": 4,
    "tool": 4,
    "place": 5,
    "event": 6,
    "decision": 7,
    "concept": 8,
    "preference": 9,
    "note": 10,
}
_TYPES = 10
_WORD = re.compile(r"(\w+)")


def visible(text: str) -> str:
    """Return the text with its control characters replaced by pictures."""
    return text.replace("\r\n", "\n").translate(_PICTURES)


def exact(text: str) -> Markup:
    """Return the text for a form field, with every character as it is."""
    return escape(text)


def is_long(text: str) -> bool:
    """Return True if a list shows only the beginning of the text."""
    return len(text) > MAX_EXCERPT_CHARS or text.count("\n") >= MAX_EXCERPT_LINES


def excerpt(text: str) -> str:
    """Return the beginning of a text, as much as a list shows."""
    lines = text[: MAX_EXCERPT_CHARS + 1].split("\n")
    cut = "\n".join(lines[:MAX_EXCERPT_LINES])[:MAX_EXCERPT_CHARS]
    return cut if cut == text else cut.rstrip() + "\u2026"


def size(count: int) -> str:
    """Return a number of bytes for people."""
    if count < _KB:
        return f"{count} bytes"
    return f"{count / _KB:.0f} KB" if count < _KB * _KB else f"{count / _KB / _KB:.1f} MB"


def text_size(text: str) -> str:
    """Return the size of a text in UTF-8."""
    return size(len(text.encode("utf-8", "replace")))


def mark(text: str, terms: Collection[str]) -> Markup:
    """Return the text with the words whose stems are among the terms in <mark>."""
    shown = visible(text)
    if not terms:
        return escape(shown)
    parts = _WORD.split(shown)  # every second part is a word
    return Markup("").join(
        [
            _mark(part) if at % 2 and _has(part, terms) else escape(part)
            for at, part in enumerate(parts)
        ]
    )


def _has(word: str, terms: Collection[str]) -> bool:
    return any(each in terms for each in terms_of(word))


def _mark(word: str) -> Markup:
    return Markup("<mark>{}</mark>").format(word)


def code_spans(text: str) -> Markup:
    """Return one of our own sentences as HTML, with the parts between backquotes as code."""
    parts = visible(text).split("`")
    return Markup("").join(
        [
            Markup("<code>{}</code>").format(part) if index % 2 else escape(part)
            for index, part in enumerate(parts)
        ]
    )


def type_number(kind: str) -> int:
    """Return the number of the coloured dot of a type, 1 to 10."""
    folded = kind.strip().casefold()
    number = _TYPE_NUMBERS.get(folded)
    return (
        number
        or 1 + int.from_bytes(sha256(folded.encode("utf-8", "replace")).digest()[:4]) % _TYPES
    )


def client_name(actor: str) -> str:
    """Return the client in an actor's name, without its token."""
    return split_actor(actor)[0]


def token_name(actor: str) -> str:
    """Return the token in an actor's name; empty if it used none."""
    return split_actor(actor)[1]
