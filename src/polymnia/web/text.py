"""Stored text and times as a page shows them: control characters visible, long texts cut."""

import re
from collections.abc import Collection
from datetime import date, datetime, timedelta
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
_COMMON_TYPES = {
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
TYPE_NUMBERS = 10
_WORD = re.compile(r"(\w+)")
_MINUTE_S, _HOUR_S, _DAY_S = 60, 3600, 86_400


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
    parts: list[Markup] = []
    for number, part in enumerate(_WORD.split(shown)):
        is_word = number % 2 == 1
        if is_word and any(term in terms for term in terms_of(part)):
            parts.append(Markup("<mark>{}</mark>").format(part))
        else:
            parts.append(escape(part))
    return Markup("").join(parts)


def code_spans(text: str) -> Markup:
    """Return one of our own sentences as HTML, with the parts between backquotes as code."""
    parts: list[Markup] = []
    for number, part in enumerate(visible(text).split("`")):
        is_code = number % 2 == 1
        parts.append(Markup("<code>{}</code>").format(part) if is_code else escape(part))
    return Markup("").join(parts)


def type_number(kind: str) -> int:
    """Return the number of the coloured dot of a type, 1 to 10."""
    folded = kind.strip().casefold()
    if folded in _COMMON_TYPES:
        return _COMMON_TYPES[folded]
    digest = sha256(folded.encode("utf-8", "replace")).digest()
    return 1 + int.from_bytes(digest[:4]) % TYPE_NUMBERS


def client_name(actor: str) -> str:
    """Return the client in an actor's name, without its token."""
    return split_actor(actor)[0]


def token_name(actor: str) -> str:
    """Return the token in an actor's name; empty if it used none."""
    return split_actor(actor)[1]


def moment(at: int) -> datetime:
    """Return a model time as a time in the time zone of the server."""
    return datetime.fromtimestamp(at / 1_000_000).astimezone()


def clock(at: int) -> str:
    """Return the time of the day."""
    return moment(at).strftime("%H:%M")


def clock_or_day(at: int, today: date | None = None) -> str:
    """Return the time of the day for today, and the day for every other time."""
    then = moment(at)
    if then.date() == (today or datetime.now().astimezone().date()):
        return clock(at)
    return f"{then.day} {then:%b}"


def age(at: int, now: datetime | None = None) -> str:
    """Return how long ago a time was."""
    present = now or datetime.now().astimezone()
    seconds = int((present - moment(at)).total_seconds())
    if seconds < _MINUTE_S:
        return "now"
    if seconds < _HOUR_S:
        return f"{seconds // _MINUTE_S} min ago"
    if seconds < _DAY_S:
        return f"{seconds // _HOUR_S} h ago"
    days = seconds // _DAY_S
    if days < 14:
        return "yesterday" if days == 1 else f"{days} days ago"
    weeks = days // 7
    # After this many weeks the date is shown instead of the age.
    return f"{weeks} weeks ago" if weeks <= 26 else moment(at).strftime("%Y-%m-%d")


def day(at: int, today: date | None = None) -> tuple[str, str]:
    """Return the heading of a day: `Today`, `Yesterday` or the day's name, and the date."""
    then = moment(at).date()
    now = today or datetime.now().astimezone().date()
    dated = f"{then.day} {then:%B %Y}"
    in_words = f"{then:%A} {then.day} {then:%B}" if then.year == now.year else dated
    if then == now:
        return "Today", in_words
    if then == now - timedelta(days=1):
        return "Yesterday", in_words
    return f"{then:%A}", dated
