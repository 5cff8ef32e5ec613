"""Render query expressions in FTS5's syntax for the words index, which has only stems."""

from collections.abc import Iterable

from polymnia.search.expression import And, Column, Expression, Near, Not, Or, Phrase
from polymnia.search.matching import PARTS, is_exact
from polymnia.search.terms import index_prefix, pairs, words_with_shorter_stems

_NOTHING = '""'


def render(expression: Expression, columns: frozenset[str] | None = None) -> str:
    """Return the expression for MATCH, about these columns; None stands for all."""
    match expression:
        case Phrase():
            return _any_of(_phrase(expression, columns))
        case Near():
            return _near(expression, columns)
        case Column():
            both = expression.columns if columns is None else expression.columns & columns
            return render(expression.expression, both)
        case And():
            parts = [f"({render(part, columns)})" for part in expression.parts]
            return " AND ".join(parts) or _NOTHING
        case Or():
            return _any_of([render(part, columns) for part in expression.parts])
        case Not():
            wanted = render(expression.wanted, columns)
            if not is_exact(expression.unwanted):
                return wanted  # it could drop real matches; the texts are checked later
            return f"({wanted}) NOT ({render(expression.unwanted, columns)})"


def _phrase(phrase: Phrase, columns: frozenset[str] | None) -> list[str]:
    strings = _strings(phrase)
    if phrase.initial:
        strings = [f"^{string}" for string in strings]
    found = _within(strings, columns, without_parts=phrase.initial)
    if phrase.runs:
        runs = [f"{PARTS} : {_quote(pairs(run))}" for run in phrase.runs]
        found.append(" AND ".join(runs))
    return found


def _strings(phrase: Phrase) -> list[str]:
    """Return the quoted strings that find the phrase. Words have no quotes in them."""
    if not phrase.prefix or not phrase.words:
        return [_quote(phrase.words)]
    *before, prefix = phrase.words
    whole = [_quote([*before, word]) for word in words_with_shorter_stems(prefix)]
    return [f"{_quote([*before, index_prefix(prefix)])} *", *whole]


def _near(near: Near, columns: frozenset[str] | None) -> str:
    if not is_exact(near):  # NEAR takes no alternatives
        return render(And(near.phrases), columns)
    phrases = " ".join([_quote(phrase.words) for phrase in near.phrases])
    return _any_of(_within([f"NEAR({phrases}, {near.distance})"], columns))


def _within(
    items: list[str], columns: frozenset[str] | None, *, without_parts: bool = False
) -> list[str]:
    """Return each item with the columns that it is about. No column has nothing."""
    if columns is None:
        if without_parts:
            return [f"- {PARTS} : {item}" for item in items]
        return items
    if not columns:
        return [_NOTHING]
    names = " ".join(sorted(columns))
    return [f"{{{names}}} : {item}" for item in items]


def _any_of(alternatives: list[str]) -> str:
    if len(alternatives) == 1:
        return alternatives[0]
    return " OR ".join([f"({alternative})" for alternative in alternatives]) or _NOTHING


def _quote(words: Iterable[str]) -> str:
    return f'"{" ".join(words)}"'
