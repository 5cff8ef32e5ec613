"""Query expressions: FTS5's query syntax as a tree that a store renders or evaluates."""

# The syntax, from the loosest operator to the tightest. Items next to each other must all match.
#
#   expression = expression OR expression | expression AND expression | expression NOT expression
#              | [columns :] ( expression ) | item item ...
#   item       = [columns :] [^] phrase | [columns :] NEAR ( phrase phrase ... [, distance] )
#   phrase     = string + string ... [*]
#   string     = word | "any text, with "" for a quote"
#   columns    = [-] name | [-] { name name ... }

import re
from collections.abc import Mapping, Sequence
from typing import TypeAlias

from msgspec import Struct

from polymnia.search.terms import STOP_WORDS, unspaced_runs, without_unspaced, words_of

MAX_WORDS = 64
MAX_NEAR_PHRASES = 8
MAX_NESTING = 32
# NEAR's distance where the query gives none, and a bound that no passage reaches.
_NEAR_DISTANCE, _MAX_DISTANCE = 10, 1_000_000_000

# Compiled at the first use: a server's start does not need them.
_TOKEN = r'[(){}:,+*^-]|"(?:[^"]++|"")*+"|[0-9A-Za-z_\x1a\x80-\U0010ffff]+|[^ \t\n\r]'
_NO_STRING = {*"(){}:,+*^-", "AND", "OR", "NOT", ""}
_BARE = r"[0-9A-Za-z_\x1a\x80-\U0010ffff]+"


class Phrase(Struct, frozen=True):
    """Words next to each other, in lower case and without accents.

    A phrase without words matches nothing. `runs` are the stretches of the query in scripts without
    spaces: a text that contains them all matches too.
    """

    words: tuple[str, ...]
    prefix: bool = False  # the last word is the beginning of one
    initial: bool = False  # the phrase begins a column
    runs: tuple[str, ...] = ()


class Near(Struct, frozen=True):
    """Phrases in one column, with at most `distance` words between the first and the last."""

    phrases: tuple[Phrase, ...]
    distance: int


class Column(Struct, frozen=True):
    """An expression that is restricted to some columns."""

    columns: frozenset[str]
    expression: "Expression"


class And(Struct, frozen=True):
    """All of the parts.

    With `implicit` no AND joins them, so a search may accept passages with only some of them.
    """

    parts: tuple["Expression", ...]
    implicit: bool = False


class Or(Struct, frozen=True):
    """Any of the parts."""

    parts: tuple["Expression", ...]


class Not(Struct, frozen=True):
    """The wanted expression without the unwanted one."""

    wanted: "Expression"
    unwanted: "Expression"


Expression: TypeAlias = Phrase | Near | Column | And | Or | Not


def parse(query: str, columns: Mapping[str, str]) -> Expression | None:
    """Parse a query in FTS5's syntax. Return None if it is invalid or too large.

    `columns` maps the column names that a query may use to those of the passages.
    """
    try:
        return _Parser(re.findall(_TOKEN, query), columns).parse()
    except _InvalidSyntax:
        return None


def plain_words(query: str) -> And:
    """Return the different words of any text."""
    words = [Phrase((word,)) for word in words_of(without_unspaced(query))]
    words += [_word(run) for run in unspaced_runs(query)]
    return And(tuple(dict.fromkeys(words))[:MAX_WORDS], implicit=True)


def alternatives(query: str, columns: Mapping[str, str]) -> list[Expression]:
    """Return what to search for, one after the other until something matches.

    An expression is searched for as it is. Mere words are searched for all together, then without
    stop words, then one by one.
    """
    expression = parse(query, columns) or plain_words(query)
    words = mere_words(expression)
    if words is None:
        return [expression]
    telling = without_stop_words(words)
    if not telling:
        return []
    attempts = [expression, And(telling, implicit=True), Or(telling)]
    return list(dict.fromkeys(map(_unwrap, attempts)))


def mere_words(expression: Expression) -> tuple[Phrase, ...] | None:
    """Return the words of an expression that only lists some; None for any other expression."""
    if isinstance(expression, Phrase):
        return (expression,)
    if not isinstance(expression, And) or not expression.implicit:
        return None
    words = []
    for part in expression.parts:
        if not isinstance(part, Phrase) or part.initial:
            return None
        words.append(part)
    return tuple(words)


def without_stop_words(phrases: Sequence[Phrase]) -> tuple[Phrase, ...]:
    """Return the phrases that are more than a stop word; all of them if nothing else is left."""
    telling = []
    for phrase in phrases:
        if phrase.prefix or not STOP_WORDS.issuperset(phrase.words):
            telling.append(phrase)
    return tuple(telling or phrases)


def wants_everything(query: str) -> bool:
    """Return True when the query is empty or a lone star."""
    return query.strip() in ("", "*")


class _InvalidSyntax(Exception):
    """The text is not FTS5 syntax, or exceeds a bound."""


class _Parser:
    """A recursive descent over the tokens of one query.

    A quoted string keeps its quotes until it is used.
    """

    def __init__(self, tokens: list[str], columns: Mapping[str, str]) -> None:
        self._tokens = [*tokens, "", ""]
        self._columns = columns
        self._next = 0
        self._depth = 0
        self._words = 0

    def parse(self) -> Expression:
        expression = self._any_of()
        self._expect("")
        return expression

    def _any_of(self) -> Expression:
        parts = [self._all_of()]
        while self._take("OR"):
            parts.append(self._all_of())
        return parts[0] if len(parts) == 1 else Or(tuple(parts))

    def _all_of(self) -> Expression:
        parts = [self._difference()]
        while self._take("AND"):
            parts.append(self._difference())
        return parts[0] if len(parts) == 1 else And(tuple(parts))

    def _difference(self) -> Expression:
        expression = self._items()
        while self._take("NOT"):
            expression = Not(expression, self._items())
        return expression

    def _items(self) -> Expression:
        if self._peek() == "(":
            return self._group()
        columns = self._filter()
        if columns is not None and self._peek() == "(":
            return Column(columns, self._group())
        items = [self._item(columns)]
        while self._peek() in ("^", "-", "{") or self._peek() not in _NO_STRING:
            items.append(self._item(self._filter()))
        # FTS5 drops what has no words from a list, such as a lone "-" in quotes.
        items = [item for item in items if not _is_empty(item)] or items[:1]
        return items[0] if len(items) == 1 else And(tuple(items), implicit=True)

    def _group(self) -> Expression:
        self._expect("(")
        self._depth += 1
        if self._depth > MAX_NESTING:
            raise _InvalidSyntax
        expression = self._any_of()
        self._expect(")")
        self._depth -= 1
        return expression

    def _filter(self) -> frozenset[str] | None:
        """Take the column filter in front of an item or a group, if there is one."""
        if self._peek() not in ("-", "{") and self._peek(1) != ":":
            return None
        excluded = self._take("-")
        names = self._names() if self._take("{") else [self._string()]
        self._expect(":")
        folded = {name.lower(): column for name, column in self._columns.items()}
        if not all(name.lower() in folded for name in names):
            raise _InvalidSyntax
        columns = frozenset(folded[name.lower()] for name in names)
        return frozenset(folded.values()) - columns if excluded else columns

    def _names(self) -> list[str]:
        names = [self._string()]
        while not self._take("}"):
            names.append(self._string())
        return names

    def _item(self, columns: frozenset[str] | None) -> Expression:
        item: Expression
        if self._peek() == "NEAR" and self._peek(1) == "(":
            item = self._near()
        else:
            item = self._phrase(initial=self._take("^"))
        return item if columns is None else Column(columns, item)

    def _near(self) -> Expression:
        self._next += 2
        phrases = [self._phrase()]
        while self._peek() not in (",", ")"):
            phrases.append(self._phrase())
        distance = self._distance() if self._take(",") else _NEAR_DISTANCE
        self._expect(")")
        if len(phrases) > MAX_NEAR_PHRASES:
            raise _InvalidSyntax
        phrases = [phrase for phrase in phrases if phrase.words] or phrases[:1]
        return Near(tuple(phrases), distance) if len(phrases) > 1 else phrases[0]

    def _distance(self) -> int:
        digits = self._take_token()
        if not (digits.isascii() and digits.isdigit()):
            raise _InvalidSyntax
        return min(int(digits[:10]), _MAX_DISTANCE)

    def _phrase(self, *, initial: bool = False) -> Phrase:
        first = self._string()
        strings = [first]
        while self._take("+"):
            strings.append(self._string())
        prefix = self._take("*")
        if len(strings) == 1 and not prefix and not initial:
            return self._count(_word(first))
        words = [word for string in strings for word in words_of(string)]
        return self._count(Phrase(tuple(words), prefix, initial))

    def _count(self, phrase: Phrase) -> Phrase:
        self._words += max(1, len(phrase.words))
        if self._words > MAX_WORDS:
            raise _InvalidSyntax
        return phrase

    def _string(self) -> str:
        token = self._take_token()
        if token.startswith('"') and len(token) > 1:
            return token[1:-1].replace('""', '"')
        if token in _NO_STRING or not re.fullmatch(_BARE, token):
            raise _InvalidSyntax
        return token

    def _peek(self, ahead: int = 0) -> str:
        return self._tokens[self._next + ahead]

    def _take(self, token: str) -> bool:
        taken = self._peek() == token
        self._next += taken
        return taken

    def _take_token(self) -> str:
        token = self._peek()
        self._expect(token)
        return token

    def _expect(self, token: str) -> None:
        if self._peek() != token:
            raise _InvalidSyntax
        self._next += bool(token)  # nothing comes after the end


def _word(text: str) -> Phrase:
    runs: list[str] = []
    if len(text.split()) == 1:
        runs = [run for run in unspaced_runs(text) if len(run) > 1]
    return Phrase(tuple(words_of(text)), runs=tuple(runs))


def _is_empty(item: Expression) -> bool:
    inner = item.expression if isinstance(item, Column) else item
    return isinstance(inner, Phrase) and not inner.words


def _unwrap(expression: Expression) -> Expression:
    if isinstance(expression, And | Or) and len(expression.parts) == 1:
        return expression.parts[0]
    return expression
