"""Render query expressions in FTS5's syntax for the words index, which has only the stems of words.

Prefixes need care: `organiz*` must find `organization`, whose stem is `organ`. Porter's stemmer changes nothing but
endings, so every word that begins with a prefix either has a stem that begins with it too, or continues the prefix with
the rest of an ending.
"""

from collections.abc import Iterable, Iterator
from functools import cache, lru_cache

from polymnia.search.expression import And, Column, Expression, Near, Not, Or, Phrase
from polymnia.search.matching import PARTS
from polymnia.search.terms import pairs, stem, stems_of, word_with_stem

_NOTHING = '""'
# English endings that the stemmer removes, alone or one after another.
_ENDINGS = """
able ably ability ableness al ally ality alism alitis alize alizer alization alness ance ancy ant antness ate ately
ateness ation ational ative atively ativeness ativity ator e ed eed eling ement ence ency ent entative entatively
entful ently entness er erative eratively erativeness erful erness ful fully fulness ible ibly ibility ibleness ic ical
ically icality icalism icate icately ication icational icative icatively icator icitis icity icness ing ion ional ism
itis ity ive ively iveness ivity ize izer ization l led ling lli ly ment mental mentative ness or ou ous ously ousness
rred rring ssed ssing tional y ying
"""


def is_exact(expression: Expression) -> bool:
    """Return True when the index finds exactly the passages that match.

    Otherwise it finds more, and `search.matching.matches` must decide for each: the index has stems, so it cannot tell
    how a word began, and it has pairs of characters in place of unspaced text.
    """
    match expression:
        case Phrase():
            return not expression.prefix and not expression.runs
        case Column():
            return is_exact(expression.expression)
        case Near():
            return all(map(is_exact, expression.phrases))
        case And() | Or():
            return all(map(is_exact, expression.parts))
        case Not():
            return is_exact(expression.wanted) and is_exact(expression.unwanted)


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
            return " AND ".join([f"({render(part, columns)})" for part in expression.parts]) or _NOTHING
        case Or():
            return _any_of([render(part, columns) for part in expression.parts])
        case Not():
            # Where the index finds too much it must not exclude.
            wanted, unwanted = render(expression.wanted, columns), render(expression.unwanted, columns)
            return f"({wanted}) NOT ({unwanted})" if is_exact(expression.unwanted) else wanted


def _phrase(phrase: Phrase, columns: frozenset[str] | None) -> list[str]:
    strings = [f"^{string}" if phrase.initial else string for string in _strings(phrase)]
    found = _within(strings, columns, without_parts=phrase.initial)
    if phrase.runs:
        found.append(" AND ".join([f'{PARTS} : "{" ".join(pairs(run))}"' for run in phrase.runs]))
    return found


def _strings(phrase: Phrase) -> list[str]:
    """Return the quoted strings that find the phrase. Words have no quotes in them."""
    if not phrase.prefix or not phrase.words:
        return [_quote(phrase.words)]
    *before, prefix = phrase.words
    whole = [_quote([*before, word]) for word in _words_with_shorter_stems(prefix)]
    return [f"{_quote([*before, _index_prefix(prefix)])} *", *whole]


def _near(near: Near, columns: frozenset[str] | None) -> str:
    if not is_exact(near):  # NEAR takes no alternatives
        return render(And(near.phrases), columns)
    phrases = " ".join([_quote(phrase.words) for phrase in near.phrases])
    return _any_of(_within([f"NEAR({phrases}, {near.distance})"], columns))


def _within(items: list[str], columns: frozenset[str] | None, *, without_parts: bool = False) -> list[str]:
    if columns is not None:
        return [f"{{{' '.join(sorted(columns))}}} : {item}" for item in items] if columns else [_NOTHING]
    return [f"- {PARTS} : {item}" for item in items] if without_parts else items


def _any_of(alternatives: list[str]) -> str:
    if len(alternatives) == 1:
        return alternatives[0]
    return " OR ".join([f"({each})" for each in alternatives]) or _NOTHING


def _quote(words: Iterable[str]) -> str:
    return f'"{" ".join(words)}"'


def _index_prefix(prefix: str) -> str:
    """Return a word whose stem is the prefix, or its longest beginning that has one.

    The index stems the text of a query before it looks for words that begin with it.
    """
    starts = [prefix[:end] for end in range(len(prefix), 0, -1)]
    return next((word_with_stem(start) for start in starts if stem(word_with_stem(start)) == start), prefix)


@lru_cache(maxsize=1024)
def _words_with_shorter_stems(prefix: str) -> tuple[str, ...]:
    """Return words that begin with the prefix and whose stems do not, one word for each possible stem."""
    words = [prefix + ending for ending in _ending_tails()]
    by_stem = dict(zip(stems_of(" ".join(words)), words, strict=True))
    return tuple([word for each, word in sorted(by_stem.items()) if not each.startswith(prefix)])


@cache
def _ending_tails() -> tuple[str, ...]:
    """Return every way to finish a word that was cut off within an ending, or before it."""
    endings = [form for ending in _ENDINGS.split() for form in _inflections(ending)]
    return tuple(sorted({ending[start:] for ending in endings for start in range(len(ending) + 1)}))


def _inflections(ending: str) -> Iterator[str]:
    yield from (ending, ending + "s")
    if ending.endswith("e"):
        yield from (ending[:-1] + "ed", ending[:-1] + "ing")
    elif ending.endswith("y"):
        yield from (ending[:-1] + "ies", ending[:-1] + "ied", ending + "ing")
    else:
        yield from (ending + "es", ending + "ed", ending + "ing")
