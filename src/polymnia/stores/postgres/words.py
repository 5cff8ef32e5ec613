"""The words of a passage as PostgreSQL indexes them: a tsvector of the same terms that SQLite's index has."""

from collections import defaultdict
from collections.abc import Iterable
from typing import NamedTuple

from polymnia.search.terms import parts_of, stems_of

# PostgreSQL's limits: of a lexeme, of the positions it can tell apart, and of a tsvector, all of which it enforces.
_MAX_LEXEME_BYTES = 2046
_MAX_POSITION = 16_383
_MAX_VECTOR_BYTES = 1_000_000
# Longer words are not offered as a spelling; an index entry must fit a page.
_MAX_TERM_BYTES = 200
# Between the columns, so that no phrase matches across two of them.
_GAP = 100
_NAME, _LABELS, _CONTENT, _PARTS = "ABCD"


class PassageTexts(NamedTuple):
    """What a passage is found by: words of its name, labels and content."""

    id: int
    name: str | None
    labels: tuple[str, ...]
    content: str | None


class WordRow(NamedTuple):
    """The row of the words index for a passage, and its distinct terms."""

    passage: int
    length: int
    vector: str
    terms: list[str]


def word_row(texts: PassageTexts) -> WordRow:
    """Return the row of the words index for a passage."""
    labels = " ".join(texts.labels)
    whole = " ".join([text for text in (texts.name, labels, texts.content) if text])
    columns = ((_NAME, texts.name), (_LABELS, labels), (_CONTENT, texts.content), (_PARTS, parts_of(whole)))
    places: defaultdict[str, list[str]] = defaultdict(list)
    length = position = 0
    for label, text in columns:
        stems = stems_of(text) if text else []
        for number, term in enumerate(stems, position + 1):
            places[term].append(f"{min(number, _MAX_POSITION)}{label}")
        length += len(stems)
        position += len(stems) + _GAP
    return WordRow(texts.id, length, _literal(places.items()), [each for each in places if _is_spelling(each)])


def _literal(places: Iterable[tuple[str, list[str]]]) -> str:
    """Return a tsvector as PostgreSQL reads it, up to its largest size."""
    parts: list[str] = []
    size = 0
    for term, positions in places:
        encoded = len(term.encode())
        size += encoded + 4 * len(positions)
        if size > _MAX_VECTOR_BYTES:
            break
        if encoded <= _MAX_LEXEME_BYTES:
            parts.append(f"{_quote(term)}:{','.join(positions)}")
    return " ".join(parts)


def _quote(term: str) -> str:
    return "'" + term.replace("\\", "\\\\").replace("'", "''") + "'"


def _is_spelling(term: str) -> bool:
    return len(term.encode()) <= _MAX_TERM_BYTES
