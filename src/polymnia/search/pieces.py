"""Split a long text into pieces: a question about its middle must find it, and see the middle."""

import re
from collections.abc import Iterator
from functools import cache

# A longer text is searched by its pieces.
MAX_WHOLE_CHARACTERS = 3_000
PIECE_CHARACTERS = 600
# Each piece begins with the end of the one before it, so that no sentence is torn from its context.
OVERLAP_CHARACTERS = 120

# Compiled at the first use: a server's start does not need it.
_compiled = cache(re.compile)
_SENTENCE = (
    r"[^.!?\u2026\u3002\uff1f\n]+[.!?\u2026\u3002\uff1f\n]*\s*|[.!?\u2026\u3002\uff1f\n]+\s*"
)


def split_text(text: str) -> list[str]:
    """Return the pieces of a long text, in order; a text that is not long is its only piece."""
    if len(text) <= MAX_WHOLE_CHARACTERS:
        return [text]
    pieces: list[str] = []
    current = ""
    for sentence in _short_sentences(text):
        if current and len(current) + len(sentence) > PIECE_CHARACTERS:
            pieces.append(current)
            end = current[-OVERLAP_CHARACTERS:]
            current = end[end.find(" ") + 1 :]  # from a whole word on
        current += sentence
    pieces.append(current)
    return pieces


def _short_sentences(text: str) -> Iterator[str]:
    """Yield the sentences and lines of a text; one that is too long for a piece in parts."""
    for sentence in _compiled(_SENTENCE).findall(text):
        for start in range(0, len(sentence), PIECE_CHARACTERS):
            yield sentence[start : start + PIECE_CHARACTERS]
