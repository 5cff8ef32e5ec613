"""Full-text queries on PostgreSQL: words, phrases, AND, OR, NOT, prefixes, columns, parentheses.

A query becomes a tsquery that finds passages, and the stems that they are scored by. Any other
syntax of FTS5 raises InvalidSyntax, and the text is searched as plain words.
"""

import re

from msgspec import Struct

from polymnia.search.fulltext import PARTS, InvalidSyntax, TextQuery
from polymnia.search.terms import pairs, stems_of, unspaced_runs, words_with_shorter_stems
from polymnia.stores.postgres.words import LABELS, quote

_TOKEN = re.compile(r'\w+\s*:|"(?:[^"]|"")*"\*?|[()]|[^\s()":]+|:')
_WORD = re.compile(r"\w+\*?")
_MAX_NESTING = 32


class ScoredStem(Struct, frozen=True):
    """A stem that matches are scored by: where its tsquery matches, its occurrences in columns."""

    stem: str
    tsquery: str
    labels: str = "".join(LABELS.values())


class StemQuery(Struct, frozen=True):
    """A tsquery, and what its matches are scored by. A stem that is asked for twice counts twice,
    as in FTS5.
    """

    tsquery: str
    stems: list[ScoredStem]


def translate(query: TextQuery) -> StemQuery:
    """Return the query for an index of stems. Raise InvalidSyntax."""
    stems: list[ScoredStem] = []
    if query.expression:
        # How near words are is not compared.
        expression = re.sub(r"\bNEAR\s*\(([^(),]*)(?:,[^(),]*)?\)", r"(\1)", query.expression)
        parser = _Parser(_TOKEN.findall(expression), query.columns, stems)
        return StemQuery(parser.parse(), stems)
    operator = " & " if query.every else " | "
    words = [_render_word(word, stems) for word in query.words]
    return StemQuery(operator.join(words), stems)


def word_query(term: str) -> str:
    """Return the tsquery of one stem."""
    return quote(term)


class _Parser:
    """A recursive descent over the tokens, from the loosest operator to the tightest."""

    def __init__(self, tokens: list[str], columns: dict[str, str], stems: list[ScoredStem]) -> None:
        self._tokens = [*tokens, ""]
        self._columns = columns
        self._stems = stems
        self._next = 0
        self._depth = 0

    def parse(self) -> str:
        rendered = self._any_of()
        if self._tokens[self._next]:
            raise InvalidSyntax
        return rendered

    def _any_of(self) -> str:
        parts = [self._all_of()]
        while self._take("OR"):
            parts.append(self._all_of())
        return f"({' | '.join(parts)})" if len(parts) > 1 else parts[0]

    def _all_of(self) -> str:
        parts = [self._difference()]
        while self._take("AND"):
            parts.append(self._difference())
        return f"({' & '.join(parts)})" if len(parts) > 1 else parts[0]

    def _difference(self) -> str:
        rendered = self._items()
        while self._take("NOT"):
            scored = len(self._stems)
            unwanted = self._items()
            del self._stems[scored:]  # what must be absent does not score
            rendered = f"({rendered} & !{unwanted})"
        return rendered

    def _items(self) -> str:
        if self._take("("):
            self._depth += 1
            if self._depth > _MAX_NESTING:
                raise InvalidSyntax
            rendered = self._any_of()
            if not self._take(")"):
                raise InvalidSyntax
            self._depth -= 1
            return rendered
        items = [self._item()]
        while self._tokens[self._next] not in ("", "AND", "OR", "NOT", "(", ")"):
            items.append(self._item())
        return f"({' & '.join(items)})" if len(items) > 1 else items[0]

    def _item(self, label: str = "") -> str:
        """Return a word, a prefix or a phrase, in any column or only in that with the label."""
        token = self._tokens[self._next]
        self._next += 1
        if token.endswith(":") and not label:
            column = self._columns.get(token[:-1].strip())
            if column is None:
                raise InvalidSyntax
            return self._item(LABELS[column])
        if not (token.startswith('"') or _WORD.fullmatch(token)):
            raise InvalidSyntax
        if token in ("AND", "OR", "NOT", "NEAR"):
            raise InvalidSyntax
        text, is_prefix = token.removesuffix("*"), token.endswith("*")
        if text.startswith('"'):
            text = text[1:-1].replace('""', '"')
        elif not is_prefix and not label:
            return _render_word(text, self._stems)
        stems = stems_of(text)
        if not stems:
            raise InvalidSyntax
        rendered = [quote(stem) + (f":{label}" if label else "") for stem in stems]
        self._stems += map(ScoredStem, stems, rendered)
        if not is_prefix:
            return f"({' <-> '.join(rendered)})"
        # A word that begins with the prefix may have a stem that does not.
        start = f"{quote(text.split()[-1].lower())}:*{label}"
        alternatives = [" <-> ".join([*rendered[:-1], start])]
        if len(stems) == 1:
            alternatives += [
                _render_word(word, self._stems) for word in words_with_shorter_stems(text)
            ]
        return f"({' | '.join(alternatives)})"

    def _take(self, token: str) -> bool:
        taken = self._tokens[self._next] == token
        self._next += taken
        return taken


def _render_word(word: str, stems: list[ScoredStem]) -> str:
    """Return a tsquery for a word; a run of an unspaced script is also looked for inside others."""
    own = stems_of(word)
    if not own:
        raise InvalidSyntax
    rendered = [quote(stem) for stem in own]
    stems += map(ScoredStem, own, rendered)
    whole = f"({' <-> '.join(rendered)})"
    if not unspaced_runs(word) or len(word) < 2:
        return whole
    parts = " <-> ".join([f"{quote(pair)}:{LABELS[PARTS]}" for pair in pairs(word)])
    # All its pairs score as one stem: the last of them, where all stand in a row.
    stems.append(ScoredStem(pairs(word)[-1], parts, LABELS[PARTS]))
    return f"({whole} | ({parts}))"
