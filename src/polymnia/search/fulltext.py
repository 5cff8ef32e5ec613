"""Full-text queries: FTS5's syntax where the text is such a query, plain words for any other text.

SQLite gets FTS5's syntax as it is. PostgreSQL translates words, phrases, AND, OR, NOT, prefixes and
parentheses (`stores/postgres/match.py`). What a store does not understand is searched as words.
"""

import re
from collections import Counter
from collections.abc import Callable, Mapping, Sequence, Sized
from typing import TypeVar

from msgspec import Struct

from polymnia.search.terms import (
    STOP_WORDS,
    pairs,
    unspaced_runs,
    without_unspaced,
    words_of,
    words_with_shorter_stems,
)

# The column of what `parts_of` returns.
PARTS = "parts"
# A longer text is cut to so many words, and no query has more.
MAX_WORDS = 64
_OPERATORS = re.compile(r'["*()^:+{}]|\b(?:AND|OR|NOT|NEAR)\b')
_TOKEN = re.compile(r'"(?:[^"]|"")*"|[()]|[^\s()"]+')
# A word, a prefix or a phrase.
_SIMPLE = re.compile(r'(?!(?:OR|NOT|NEAR)$)\w+\*?|"[^"]*"')

Key = TypeVar("Key")
Found = TypeVar("Found", bound=Sized)


class InvalidSyntax(Exception):
    """The text is not a query that the store understands."""


class TextQuery(Struct, frozen=True):
    """What is searched for: words, all of them or any, or an expression in FTS5's syntax.

    `columns` maps the names of columns that an expression may use to those of the index.
    """

    words: tuple[str, ...] = ()
    every: bool = True
    expression: str = ""
    columns: dict[str, str] = {}


def wants_everything(query: str) -> bool:
    """Return True when the query is empty or a lone star."""
    return query.strip() in ("", "*")


def plain_words(text: str) -> list[str]:
    """Return the different words of any text, and its runs of scripts without spaces."""
    words = words_of(without_unspaced(text)) + unspaced_runs(text)
    return list(dict.fromkeys(words))[:MAX_WORDS]


def first_matches(
    text: str, columns: Mapping[str, str], match: Callable[[TextQuery], Found]
) -> Found:
    """Return what matches a text as a query, or else what matches its words.

    If nothing has all of its words, return what has all that mean something, or else any of them.
    """
    text = text.encode(errors="replace").decode()  # half of a surrogate pair is no character
    if _is_expression(text):
        try:
            return match(TextQuery(expression=text, columns=dict(columns)))
        except InvalidSyntax:
            pass
    words = tuple(plain_words(text))
    telling = tuple(_telling(words))
    found = match(TextQuery(words))
    if not found and telling != words:
        found = match(TextQuery(telling))
    if not found and len(telling) > 1:
        found = match(TextQuery(telling, every=False))
    return found


def match_entities(
    text: str, columns: Mapping[str, str], match: Callable[[TextQuery], Mapping[Key, float]]
) -> list[Key]:
    """Return the entities that match a text, best first.

    `match` returns the entities that have a matching passage, with the score of the best one; less
    is better. One passage must match the whole of an expression, but words that are listed, or
    joined by AND, may be in different passages of an entity. If no entity has all words of a list,
    return those with some of them, those with most first.
    """
    text = text.encode(errors="replace").decode()  # half of a surrogate pair is no character
    if _is_expression(text):
        parts = [token for token in _TOKEN.findall(text) if token != "AND"]
        if not all(_SIMPLE.fullmatch(part) for part in parts):
            parts = [text]
        try:
            queries = [TextQuery(expression=part, columns=dict(columns)) for part in parts]
            return _with_most([match(query) for query in queries], requires_all=True)
        except InvalidSyntax:
            pass
    words = _telling(plain_words(text))
    return _with_most([match(TextQuery((word,))) for word in words], requires_all=False)


def to_fts5(query: TextQuery) -> str:
    """Return the query in FTS5's syntax for the index of stems, which has our columns."""
    if not query.expression:
        operator = " AND " if query.every else " OR "
        return operator.join(map(_quote_word, query.words)) or '""'
    tokens = _TOKEN.findall(query.expression)
    if re.search(r"[{:+^]|NEAR", query.expression):
        renamed = []
        for token in tokens:
            if not token.startswith('"'):
                token = re.sub(r"\w+", lambda name: query.columns.get(name[0], name[0]), token)
            renamed.append(token)
        return " ".join(renamed)
    # The index has stems, so a word that begins with the prefix may have a stem that does not.
    # Groups need an explicit AND beside other words.
    rendered: list[str] = []
    was_item = False
    for token in tokens:
        is_item = token not in ("AND", "OR", "NOT", "(", ")")
        shorter: tuple[str, ...] = ()
        if re.fullmatch(r"\w+\*", token):
            shorter = words_with_shorter_stems(token[:-1])
        if shorter and was_item:
            rendered.append("AND")
        if shorter:
            token = f"({' OR '.join([token, *shorter])})"
        elif is_item and was_item and rendered[-1].startswith("("):
            rendered.append("AND")
        rendered.append(token)
        was_item = is_item
    return " ".join(rendered)


def _is_expression(text: str) -> bool:
    if not _OPERATORS.search(text):
        return False
    words = words_of(re.sub(r"\b(?:AND|OR|NOT|NEAR)\b", " ", text))
    return len(words) <= MAX_WORDS


def _telling(words: Sequence[str]) -> Sequence[str]:
    """Return the words that are more than stop words; all of them if nothing else is left."""
    return [word for word in words if word not in STOP_WORDS] or words


def _quote_word(word: str) -> str:
    if not unspaced_runs(word) or len(word) < 2:
        return f'"{word}"'
    return f'("{word}" OR {PARTS} : "{" ".join(pairs(word))}")'


def _with_most(scores_by_word: Sequence[Mapping[Key, float]], *, requires_all: bool) -> list[Key]:
    """Return the entities that have all words; if there are none, those with most come first."""
    counts = Counter(entity for scores in scores_by_word for entity in scores)
    words = len(scores_by_word)
    if requires_all or words in counts.values():
        counts = Counter({entity: count for entity, count in counts.items() if count == words})
    totals: dict[Key, float] = {}
    for entity in counts:
        totals[entity] = sum(scores.get(entity, 0.0) for scores in scores_by_word)
    return sorted(counts, key=lambda entity: (-counts[entity], totals[entity]))
