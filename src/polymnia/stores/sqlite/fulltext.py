"""Full-text search with FTS5's own syntax over the words index; any other text is searched as words."""

import re
from collections import Counter

import apsw

from polymnia.search.terms import STOP_WORDS, derived, words_of
from polymnia.stores.sqlite.layout import run

# Words, perhaps with a star for a prefix, perhaps with AND between them.
_WORD = r"(?!(?:AND|OR|NOT|NEAR)\b)\w+\*?"
_WORDS = re.compile(rf"\s*{_WORD}(?:\s+(?:AND\s+)?{_WORD})*\s*")

# Each word is a question to the index: a page of text in place of a query is cut here.
_MOST_WORDS = 64

Scores = dict[int, float]


def rows_matching(connection: apsw.Connection, query: str) -> list[int]:
    """Row ids of the entities that match, best first.

    An FTS5 expression is about one text, a name with its type or an observation. Mere words may be in different texts
    of an entity; where no entity has all of them, those that have some are given.
    """
    if _WORDS.fullmatch(query):
        parts = dict.fromkeys(query.split())
        wanted = [_expression(part.rstrip("*"), prefix=part.endswith("*")) for part in parts if part != "AND"]
        return _having_words(connection, wanted[:_MOST_WORDS], all_of="AND" in parts)
    try:
        return list(_matching(connection, query))
    except apsw.SQLError:  # not an expression
        words = dict.fromkeys(words_of(query))
        telling = [word for word in words if word not in STOP_WORDS] or list(words)
        return _having_words(connection, [_expression(word) for word in telling[:_MOST_WORDS]], all_of=False)


def _expression(word: str, *, prefix: bool = False) -> str:
    """The word as an expression of its own; where words are not spaced, also the pairs of characters in it."""
    if prefix:
        return f'"{word}" *'
    pairs = " AND ".join([f'"{pair}"' for pair in derived(word).split()])
    return f'"{word}" OR ({pairs})' if pairs else f'"{word}"'


def _having_words(connection: apsw.Connection, expressions: list[str], *, all_of: bool) -> list[int]:
    found = [_matching(connection, expression) for expression in expressions]
    having = Counter([entity for scores in found for entity in scores])
    most = max(having.values(), default=0)
    if most < len(found) and all_of:
        return []
    scores = {entity: sum([each.get(entity, 0.0) for each in found]) for entity in having}
    whole = [entity for entity, count in having.items() if most < len(found) or count == most]
    return sorted(whole, key=lambda entity: (-having[entity], scores[entity], entity))


def _matching(connection: apsw.Connection, expression: str) -> Scores:
    """Entities by how well they match, best first; the smaller the better."""
    return dict(run(connection, "match_expression", expression))
