"""Words: how text is cut into what the words index holds, and which words of a question carry nothing."""

import re
from functools import cache, lru_cache
from unicodedata import category, normalize

from polymnia.search.stem import stems

# Compiled when they are first needed, since that takes longer than all the rest of a server's start would like.
_WORD = r"[^\W_]+"
# A capital inside a word: the text may have a word that is written as several.
_JOINED = r"[A-Z](?<=[^\W_].)"
# What a word that is written as several is made of: `getUserName`, `HTTPServer2`.
_PIECE = r"[A-Z]+(?![a-z])|[A-Z]?[^\WA-Z\d_]+|\d+"
# Scripts that put no space between words: Han, kana, Hangul's neighbours in Thai, Lao, Khmer and Burmese.
_UNSPACED = (
    "[\u0e00-\u0eff\u1000-\u109f\u1780-\u17ff\u3040-\u30ff\u3400-\u4dbf"
    "\u4e00-\u9fff\uf900-\ufaff\U00020000-\U0003ffff]+"
)
_compiled = cache(re.compile)
# Of ASCII text, each byte as it is in a word, or a space: several times quicker than to look for words.
_BYTES = bytes([ord(chr(code).lower()) if code < 128 and chr(code).isalnum() else ord(" ") for code in range(256)])

_EMPTY = """
a about after again all also am an and any are as at be because been before being between both but by can could
did do does doing done during each ever few for from further had has have having he her here hers herself him
himself his how i if in into is it its itself just me more most my myself no nor not now of off on once only or
other our ours out over own same she should so some such than that the their theirs them themselves then there
these they this those through to too under until up us very was we were what when where which while who whom
whose why will with would you your yours s t ll re ve d m
"""
# Words that every text has and no question means.
STOP_WORDS = frozenset(_EMPTY.split())


def words_of(text: str) -> list[str]:
    """The text's words in order, in lower case and without accents, as the words index cuts them."""
    if text.isascii():
        return text.encode().translate(_BYTES).decode().split()
    return _compiled(_WORD).findall(plain(text))


def terms_of(text: str) -> list[str]:
    """What a text is indexed under: its words stemmed, then what `derived` adds."""
    terms = stems(words_of(text))
    added = derived(text)
    return terms + stems(words_of(added)) if added else terms


def derived(text: str) -> str:
    """What the words of a text leave out: the parts of joined words, and pairs of characters where no spaces are.

    They are indexed beside the words, so that words keep their places for phrases.
    """
    parts: list[str] = []
    if not text[1:].islower() and _compiled(_JOINED).search(
        text
    ):  # every text that is written is asked: the quick way first
        pieces = [_compiled(_PIECE).findall(word) for word in _compiled(_WORD).findall(text)]
        parts = [piece for word in pieces if len(word) > 1 for piece in word]
    if not text.isascii():
        parts += [pair for run in _compiled(_UNSPACED).findall(normalize("NFC", text)) for pair in _pairs(run)]
    return " ".join(parts)


def plain(text: str) -> str:
    """The text in lower case, without accents."""
    if text.isascii():
        return text.lower()
    return "".join([_plain_character(each) for each in text.lower()])


def _pairs(run: str) -> list[str]:
    return [run[place : place + 2] for place in range(len(run) - 1)] or [run]


@lru_cache(maxsize=8192)
def _plain_character(character: str) -> str:
    """The character without its accents; a combining accent alone is nothing."""
    if category(character) == "Mn" and character < "\u0370":
        return ""
    first = normalize("NFD", character)[0]
    return first if first.isascii() and first.isalpha() else character
