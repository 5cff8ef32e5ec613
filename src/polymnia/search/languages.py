"""Questions in other languages than English: which one it is, its stop words, and its stemmer.

The index has English stems of all words. They are harmless in other languages, but do not join the
forms of a word: `Katze` and `Katzen`. So a question is also searched by those terms of the store
that have the same stem in its language. Nothing is stored about languages.
"""

import re
from collections.abc import Sequence
from functools import cache, lru_cache
from pathlib import Path
from typing import Any

from polymnia.search.terms import STOP_WORDS, words_of

# Words that say nothing about what a question is for, without accents: a paragraph for each
# language, which begins with its name.
_STOP_WORDS = Path(__file__).with_name("stop_words.txt")
# Scripts that tell the language of a question well enough, as ranges of characters.
_SCRIPTS = {"russian": "[\u0400-\u04ff]", "arabic": "[\u0600-\u06ff]"}
# What Arabic writes before a word without a space: and, the, with the, for the, ...
_ARABIC_PREFIXES = ("", "ال", "و", "وال", "ب", "بال", "ل", "لل", "ف", "ك")
# How the letter alif may be written at the start of a word.
_ALIFS = "اأإآ"
# A stem may end otherwise than the word, so terms are looked up by a shorter beginning.
_MIN_PREFIX_LETTERS = 3


def language_of(text: str) -> str:
    """Return the language of a text; nothing for English, and if its words do not tell."""
    if not text.isascii():
        for language, script in _SCRIPTS.items():
            if re.search(script, text):
                return language
    words = set(words_of(text))
    english = words & STOP_WORDS
    if len(english) == len(words):
        return ""
    best, most = "", 0
    for language, stop_words in _stop_words().items():
        known = words & stop_words
        # A word that both have says nothing: `was`, `am`, `in`.
        if len(known - english) > len(english - known) and len(known) > most:
            best, most = language, len(known)
    return best


def stop_words_of(text: str) -> frozenset[str]:
    """Return the stop words of English and of the text's own language."""
    language = language_of(text)
    return STOP_WORDS | _stop_words()[language] if language else STOP_WORDS


@lru_cache(maxsize=8192)
def stem_in(language: str, word: str) -> str:
    """Return the stem of a word in a language."""
    stemmed: str = _stemmer(language).stemWord(word)
    return stemmed


def beginnings(language: str, term: str) -> Sequence[str]:
    """Return with what the forms of a term may begin in a language."""
    stem = stem_in(language, term)
    start = stem[: max(_MIN_PREFIX_LETTERS, len(stem) - 1)]
    if language != "arabic":
        return [start]
    starts = [stem]
    if stem[0] in _ALIFS:
        starts = [alif + stem[1:] for alif in _ALIFS]
    return [prefix + start for prefix in _ARABIC_PREFIXES for start in starts]


@cache
def _stop_words() -> dict[str, frozenset[str]]:
    stop_words = {}
    for paragraph in _STOP_WORDS.read_text("utf-8").split("\n\n"):
        language, *words = paragraph.split()
        stop_words[language] = frozenset(words)
    return stop_words


@cache
def _stemmer(language: str) -> Any:
    # Not `snowballstemmer.stemmer`: where PyStemmer is installed it takes that, whose stems differ.
    from importlib import import_module

    module = import_module(f"snowballstemmer.{language}_stemmer")
    return getattr(module, f"{language.capitalize()}Stemmer")()
