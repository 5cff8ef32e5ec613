"""Prefixes of words in an index of stems.

Prefixes need care: `organiz*` must find `organization`, whose stem is `organ`. Porter's stemmer changes nothing but
endings, so every word that begins with a prefix either has a stem that begins with it too, or continues the prefix with
the rest of an ending.
"""

from collections.abc import Iterator
from functools import cache, lru_cache

from polymnia.search.terms import stem, stems_of, word_with_stem

# English endings that the stemmer removes, alone or one after another.
_ENDINGS = """
able ably ability ableness al ally ality alism alitis alize alizer alization alness ance ancy ant antness ate ately
ateness ation ational ative atively ativeness ativity ator e ed eed eling ement ence ency ent entative entatively
entful ently entness er erative eratively erativeness erful erness ful fully fulness ible ibly ibility ibleness ic ical
ically icality icalism icate icately ication icational icative icatively icator icitis icity icness ing ion ional ism
itis ity ive ively iveness ivity ize izer ization l led ling lli ly ment mental mentative ness or ou ous ously ousness
rred rring ssed ssing tional y ying
"""


def index_prefix(prefix: str) -> str:
    """Return a word whose stem is the prefix, or its longest beginning that has one.

    The index stems the text of a query before it looks for words that begin with it.
    """
    starts = [prefix[:end] for end in range(len(prefix), 0, -1)]
    return next(
        (word_with_stem(start) for start in starts if stem(word_with_stem(start)) == start), prefix
    )


@lru_cache(maxsize=1024)
def words_with_shorter_stems(prefix: str) -> tuple[str, ...]:
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
