"""Terms: the words of a text as the full-text index has them, split and stemmed by SQLite's own tokenizers."""

import re
import threading
from functools import cache, lru_cache
from typing import cast
from unicodedata import category, normalize

import apsw

_FOLDED = ["unicode61", "remove_diacritics", "2"]
# Compiled at the first use: a server's start does not need them.
_compiled = cache(re.compile)
_WORD = r"[^\W_]+"
# A capital letter inside a word: the text may have a word that joins several.
_JOINED = r"[A-Z](?<=[^\W_].)"
# The parts of a word that joins several: `getUserName`, `HTTPServer2`.
_PART = r"[A-Z]+(?![a-z])|[A-Z]?[^\WA-Z\d_]+|\d+"
# Scripts without spaces between words, as ranges of characters: Thai, Lao, Burmese, Khmer, kana and Han.
UNSPACED = "\u0e00-\u0eff\u1000-\u109f\u1780-\u17ff\u3040-\u30ff\u3400-\u4dbf\u4e00-\u9fff\uf900-\ufaff\U00020000-\U0003ffff"
_UNSPACED = f"[{UNSPACED}]+"
# Endings that turn most stems back into a word with that stem.
_ENDINGS = ("", "e", "s", "ed", "ing", "ly", "ion", "ment", "al", "y", "l", "er", "es")

_STOP_WORDS = """
a about after again all also am an and any are as at be because been before being between both but by can could
did do does doing done during each ever few for from further had has have having he her here hers herself him
himself his how i if in into is it its itself just me more most my myself no nor not now of off on once only or
other our ours out over own same she should so some such than that the their theirs them themselves then there
these they this those through to too under until up us very was we were what when where which while who whom
whose why will with would you your yours s t ll re ve d m
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
    """Return the terms that a text is indexed under: the stems of its words, then those of `parts_of`."""
    parts = parts_of(text)
    return stems_of(text) + stems_of(parts) if parts else stems_of(text)


def stem(word: str) -> str:
    """Return the stem of one word."""
    return "".join(stems_of(word)) or word


def parts_of(text: str) -> str:
    """Return what is indexed beside the words: the parts of joined words, and pairs of characters of unspaced scripts.

    They have their own column, so that the words of a text stay next to each other for phrases.
    """
    parts: list[str] = []
    # Every text is tested on every write: the quick tests come first. `lower` is quicker than `islower`.
    rest = text[1:]
    has_joined = rest != rest.lower() and _compiled(_JOINED).search(text)
    if not has_joined and text.isascii():
        return ""
    if has_joined:
        joined = [_compiled(_PART).findall(word) for word in _compiled(_WORD).findall(text)]
        parts = [part for word in joined if len(word) > 1 for part in word]
    return " ".join(parts + [pair for run in unspaced_runs(text) for pair in pairs(run)])


def unspaced_runs(text: str) -> list[str]:
    """Return the stretches of a text in scripts that put no spaces between words."""
    return [] if text.isascii() else _compiled(_UNSPACED).findall(normalize("NFC", text))


def without_unspaced(text: str) -> str:
    """Return the text with a space in place of each of its unspaced runs."""
    return text if text.isascii() else _compiled(_UNSPACED).sub(" ", normalize("NFC", text))


def pairs(run: str) -> list[str]:
    """Return every two neighbouring characters of an unspaced run; a single character is returned as it is."""
    return [run[start : start + 2] for start in range(len(run) - 1)] or [run]


def plain(text: str) -> str:
    """Return the text in lower case, without accents."""
    if text.isascii():
        return text.lower()
    return "".join([_plain_character(each) for each in text.lower()])


@lru_cache(maxsize=8192)
def word_with_stem(term: str) -> str:
    """Return a word whose stem is the term, because the index stems every query; the term itself if none is known."""
    return next((word for ending in _ENDINGS if stem(word := term + ending) == term), term)


def _tokens(tokenizer: apsw.FTS5Tokenizer, text: str) -> list[str]:
    utf8 = text.encode(errors="replace")  # a lone surrogate separates words
    found = tokenizer(
        utf8, apsw.FTS5_TOKENIZE_DOCUMENT, None, include_offsets=False, include_colocated=False
    )
    return cast("list[str]", found)  # without offsets and colocated tokens it is a plain list


@lru_cache(maxsize=8192)
def _plain_character(character: str) -> str:
    """Return the character without its accents; a combining accent alone is nothing."""
    if category(character) == "Mn" and character < "\u0370":
        return ""
    first = normalize("NFD", character)[0]
    return first if first.isascii() and first.isalpha() else character
