"""Words of passages as PostgreSQL indexes them.

The labels of the tsvector are the columns of the words index.
"""

from collections.abc import Iterable
from hashlib import sha256
from typing import NamedTuple

from polymnia.search.fulltext import PARTS
from polymnia.search.terms import parts_of, stems_of

# The label of each column.
LABELS = {"name": "A", "labels": "B", "content": "C", PARTS: "D"}

# PostgreSQL's bounds of a tsvector: bytes of a lexeme, positions of a lexeme, and bytes in all,
# with some to spare. Words beyond `_MAX_BYTES` are not indexed; only substring search finds them.
_MAX_LEXEME_BYTES = 2046
_MAX_POSITIONS = 255
_MAX_BYTES = 1_000_000
_POSITION_BYTES = 2
_ENTRY_BYTES = 8


class WordVector(NamedTuple):
    """The words of one passage: their number, the tsvector as text, and the different ones."""

    length: int
    vector: str
    lexemes: tuple[str, ...]


def word_vector(name: str | None, labels: Iterable[str], content: str | None) -> WordVector:
    """Return the words of a passage. A fact has content only."""
    joined = " ".join(labels)
    parts = parts_of(" ".join([text for text in (name, joined, content) if text]))
    positions: dict[str, list[str]] = {}
    length = last = 0
    for label, text in zip(LABELS.values(), (name, joined, content, parts), strict=True):
        stems = stems_of(text) if text else []
        for position, stem in enumerate(stems, last + 1):
            positions.setdefault(stem, []).append(f"{position}{label}")
        length += len(stems)
        # Positions between two columns, so that no phrase matches across them.
        last += len(stems) + 1
    return WordVector(length, *_literal(positions))


def lexeme(term: str) -> str:
    """Return what stands for a term in the index.

    That is the term itself, unless PostgreSQL finds it too long.
    """
    encoded = term.encode()
    if len(encoded) <= _MAX_LEXEME_BYTES:
        return term
    return encoded[:1000].decode(errors="ignore") + sha256(encoded).hexdigest()


def quote(term: str) -> str:
    """Return the lexeme of a term as text for a tsvector or a tsquery."""
    return "'" + lexeme(term).replace("\\", "\\\\").replace("'", "''") + "'"


def _literal(positions: dict[str, list[str]]) -> tuple[str, tuple[str, ...]]:
    entries: list[str] = []
    lexemes: list[str] = []
    size = 0
    for stem, found in positions.items():
        size += len(stem.encode()) + _POSITION_BYTES * len(found) + _ENTRY_BYTES
        if size > _MAX_BYTES:
            break
        entries.append(f"{quote(stem)}:{','.join(found[:_MAX_POSITIONS])}")
        lexemes.append(lexeme(stem))
    return " ".join(entries), tuple(lexemes)
