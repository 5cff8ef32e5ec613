"""Terms: the words of a text as the full-text index has them.

SQLite's own tokenizers split and stem them. Also case folding and trigrams, which find parts of
texts.
"""

import re
import threading
from collections.abc import Iterable, Iterator, Mapping
from functools import cache, lru_cache
from typing import cast
from unicodedata import category, normalize

import apsw

from polymnia.search.hidden import without_hidden

_FOLDED = ["unicode61", "remove_diacritics", "2"]
# Compiled at the first use: a server's start does not need them.
_compiled = cache(re.compile)
_WORD = r"[^\W_]+"
# A capital letter inside a word: the text may have a word that joins several.
_JOINED = r"[A-Z](?<=[^\W_].)"
# The parts of a word that joins several: `getUserName`, `HTTPServer2`.
_PART = r"[A-Z]+(?![a-z])|[A-Z]?[^\WA-Z\d_]+|\d+"
# Scripts without spaces between words, as ranges of characters:
# Thai, Lao, Burmese, Khmer, kana and Han.
UNSPACED = (
    "\u0e00-\u0eff\u1000-\u109f\u1780-\u17ff\u3040-\u30ff"
    "\u3400-\u4dbf\u4e00-\u9fff\uf900-\ufaff\U00020000-\U0003ffff"
)
_UNSPACED = f"[{UNSPACED}]+"
# Endings that turn most stems back into a word with that stem.
_STEM_ENDINGS = ("", "e", "s", "ed", "ing", "ly", "ion", "ment", "al", "y", "l", "er", "es")
# English endings that the stemmer removes, alone or one after another.
_REMOVED_ENDINGS = """
able ably ability ableness al ally ality alism alitis alize alizer alization alness ance ancy ant
antness ate ately ateness ation ational ative atively ativeness ativity ator e ed eed eling ement
ence ency ent entative entatively entful ently entness er erative eratively erativeness erful
erness ful fully fulness ible ibly ibility ibleness ic ical ically icality icalism icate icately
ication icational icative icatively icator icitis icity icness ing ion ional ism itis ity ive ively
iveness ivity ize izer ization l led ling lli ly ment mental mentative ness or ou ous ously ousness
rred rring ssed ssing tional y ying
"""
# The most common characters of English text, the most common first. All others are rarer.
_COMMON = " etaoinshrdlucmfwypvbgkjqxz"
_COMMONNESS = {character: len(_COMMON) - rank for rank, character in enumerate(_COMMON)}

# Terms are rare as long as they occur in no more passages than this, all together.
MAX_RARE_PASSAGES = 2_000

_STOP_WORDS = """
a about after again all also am an and any are as at be because been before being between both but
by can could did do does doing done during each ever few for from further had has have having he her
here hers herself him himself his how i if in into is it its itself just me more most my myself no
nor not now of off on once only or other our ours out over own same she should so some such than
that the their theirs them themselves then there these they this those through to too under until up
us very was we were what when where which while who whom whose why will with would you your yours
s t ll re ve d m
"""
# Words that say nothing about what a question is for.
STOP_WORDS = frozenset(_STOP_WORDS.split())


class _Tokenizers(threading.local):
    """FTS5's tokenizers, one pair per thread: each keeps its own buffer between calls."""

    def __init__(self) -> None:
        connection = apsw.Connection(":memory:")
        self.words = connection.fts5_tokenizer("unicode61", _FOLDED[1:])
        self.stems = connection.fts5_tokenizer("porter", _FOLDED)


_tokenizers = _Tokenizers()


def words_of(text: str) -> list[str]:
    """Return the words of a text in order, in lower case and without accents."""
    return _tokens(_tokenizers.words, text)


def stems_of(text: str) -> list[str]:
    """Return the stems of a text's words in order: `running` and `runs` give `run`."""
    return _tokens(_tokenizers.stems, text)


def terms_of(text: str) -> list[str]:
    """Return the terms that a text is indexed under: the stems of its words and of `parts_of`."""
    parts = parts_of(text)
    if not parts:
        return stems_of(text)
    return stems_of(text) + stems_of(parts)


def stem(word: str) -> str:
    """Return the stem of one word."""
    return "".join(stems_of(word)) or word


def parts_of(text: str) -> str:
    """Return what is indexed beside the words: the parts of joined words, and pairs of characters
    of unspaced scripts.

    They have their own column, so that the words of a text stay next to each other for phrases.
    """
    # Every text is tested on every write, so the quick tests come first.
    # `lower` is quicker than `islower`.
    rest = text[1:]
    has_joined = rest != rest.lower() and _compiled(_JOINED).search(text)
    if not has_joined and text.isascii():
        return ""
    parts: list[str] = []
    if has_joined:
        for word in _compiled(_WORD).findall(text):
            word_parts = _compiled(_PART).findall(word)
            if len(word_parts) > 1:
                parts += word_parts
    for run in unspaced_runs(text):
        parts += pairs(run)
    return " ".join(parts)


def unspaced_runs(text: str) -> list[str]:
    """Return the stretches of a text in scripts that put no spaces between words."""
    if text.isascii():
        return []
    return _compiled(_UNSPACED).findall(normalize("NFC", text))


def without_unspaced(text: str) -> str:
    """Return the text with a space in place of each of its unspaced runs."""
    if text.isascii():
        return text
    return _compiled(_UNSPACED).sub(" ", normalize("NFC", text))


def pairs(run: str) -> list[str]:
    """Return every two neighbouring characters of an unspaced run, or its only character."""
    return [run[start : start + 2] for start in range(len(run) - 1)] or [run]


def plain(text: str) -> str:
    """Return the text in lower case, without accents."""
    if text.isascii():
        return text.lower()
    return "".join(map(_plain_character, text.lower()))


@lru_cache(maxsize=8192)
def word_with_stem(term: str) -> str:
    """Return a word whose stem is the term; the term itself if none is known.

    The index stems every query, so it must be asked for a word, not for a stem.
    """
    for ending in _STEM_ENDINGS:
        if stem(term + ending) == term:
            return term + ending
    return term


# Prefixes need care: `organiz*` must find `organization`, whose stem is `organ`. Porter's stemmer
# changes nothing but endings. So every word that begins with a prefix either has a stem that begins
# with it too, or continues the prefix with the rest of an ending.


@lru_cache(maxsize=1024)
def words_with_shorter_stems(prefix: str) -> tuple[str, ...]:
    """Return words that begin with the prefix and whose stems do not: one for each stem."""
    words = [prefix + tail for tail in _ending_tails()]
    stems = stems_of(" ".join(words))
    if len(stems) != len(words):  # no single word to the index, like `user_i`
        return ()
    word_by_stem = dict(zip(stems, words, strict=True))
    shorter = [term for term in word_by_stem if not term.startswith(prefix)]
    return tuple(word_by_stem[term] for term in sorted(shorter))


def fold(text: str) -> str:
    """Return the text without differences of case and composition.

    `É` and `é` become equal, composed or not.
    """
    if text.isascii():
        return text.lower()
    return normalize("NFC", normalize("NFC", text).casefold())


def trigrams(folded: str) -> list[str]:
    """Return the distinct trigrams of a text, in order of appearance."""
    return list(dict.fromkeys(folded[start : start + 3] for start in range(len(folded) - 2)))


def rarest(grams: list[str], count: int) -> list[str]:
    """Return the `count` trigrams that are probably the rarest, judged by their characters."""

    def commonness(gram: str) -> int:
        return sum(_COMMONNESS.get(character, 0) for character in gram)

    return sorted(grams, key=commonness)[:count]


def one_line(text: str) -> str:
    """Return the text without line breaks, so that stored text cannot look like a new line."""
    return without_hidden(" ".join(text.split()))


def choose_rare(terms: Iterable[str], having: Mapping[str, int]) -> list[str]:
    """Return the rarest terms, given how many passages have each, that few passages have in all.

    None is returned if every known term is common.
    """
    known_terms = [term for term in terms if having.get(term)]
    known_terms.sort(key=having.__getitem__)
    chosen: list[str] = []
    passages = 0
    for term in known_terms:
        passages += having[term]
        if passages > MAX_RARE_PASSAGES:
            break
        chosen.append(term)
    return chosen


def count_noun(count: int, noun: str, plural: str = "") -> str:
    """Return a count with its noun in the right number: 1 fact, 2 facts, 1,000 entities."""
    if count == 1:
        return f"1 {noun}"
    if not plural:
        plural = f"{noun[:-1]}ies" if noun.endswith("y") else f"{noun}s"
    return f"{count:,} {plural}"


def _tokens(tokenizer: apsw.FTS5Tokenizer, text: str) -> list[str]:
    utf8 = text.encode(errors="replace")  # a lone surrogate separates words
    tokens = tokenizer(
        utf8, apsw.FTS5_TOKENIZE_DOCUMENT, None, include_offsets=False, include_colocated=False
    )
    return cast("list[str]", tokens)  # without offsets and colocated tokens it is a plain list


@lru_cache(maxsize=8192)
def _plain_character(character: str) -> str:
    """Return the character without its accents; nothing for a combining accent."""
    if category(character) == "Mn" and character < "\u0370":
        return ""
    first = normalize("NFD", character)[0]
    return first if first.isascii() and first.isalpha() else character


@cache
def _ending_tails() -> tuple[str, ...]:
    """Return every way to finish a word that was cut off within an ending, or before it."""
    tails: set[str] = set()
    for ending in _REMOVED_ENDINGS.split():
        for form in _inflections(ending):
            tails.update(form[start:] for start in range(len(form) + 1))
    return tuple(sorted(tails))


def _inflections(ending: str) -> Iterator[str]:
    yield from (ending, ending + "s")
    if ending.endswith("e"):
        yield from (ending[:-1] + "ed", ending[:-1] + "ing")
    elif ending.endswith("y"):
        yield from (ending[:-1] + "ies", ending[:-1] + "ied", ending + "ing")
    else:
        yield from (ending + "es", ending + "ed", ending + "ing")
