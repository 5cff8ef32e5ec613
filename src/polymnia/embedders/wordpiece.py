"""WordPiece: the tokenizer of BERT-like models, and the vocabulary that comes with the package."""

from collections.abc import Sequence
from functools import lru_cache
from math import ceil
from pathlib import Path
from unicodedata import category, normalize

_VOCABULARY = Path(__file__).parent / "uncased.txt"
# Longer words count as unknown.
_MAX_WORD_LETTERS = 100
_CONTINUED = "##"
_UNKNOWN, _START, _END = "[UNK]", "[CLS]", "[SEP]"
# In ASCII, every character that is neither letter nor digit is a token of its own.
_ASCII_MARKS = frozenset("!\"#$%&'()*+,-./:;<=>?@[\\]^_`{|}~")
_HAN_RANGES = (
    (0x4E00, 0x9FFF),
    (0x3400, 0x4DBF),
    (0x20000, 0x2CEAF),
    (0xF900, 0xFAFF),
    (0x2F800, 0x2FA1F),
)


def read_vocabulary() -> list[str]:
    """Return the pieces of words that the local model knows, in the order of their numbers."""
    return _VOCABULARY.read_text("utf-8").splitlines()


class WordPiece:
    """A tokenizer with a vocabulary of word pieces."""

    def __init__(self, vocabulary: Sequence[str], *, max_tokens: int, lower: bool = True) -> None:
        self._ids = {piece: number for number, piece in enumerate(vocabulary)}
        self._unknown = self._ids[_UNKNOWN]
        self._start = self._ids[_START]
        self._end = self._ids[_END]
        self._max_tokens = max_tokens
        self._lower = lower
        self._pieces = lru_cache(maxsize=32768)(self._split_word)

    def parts(self, text: str) -> list[list[int]]:
        """Return the numbers of the text's pieces, each part between those of start and end.

        A part has at most `max_tokens`. Parts are equally long, so that none counts too much.
        """
        ids: list[int] = []
        for word in split(text, lower=self._lower):
            ids += self._pieces(word)
        count = ceil(len(ids) / (self._max_tokens - 2)) or 1
        size = ceil(len(ids) / count)
        bodies = [ids[size * part : size * (part + 1)] for part in range(count)]
        return [[self._start, *body, self._end] for body in bodies]

    def _split_word(self, word: str) -> tuple[int, ...]:
        """Return the longest known pieces from the left.

        A word that cannot be split into pieces is unknown.
        """
        if len(word) > _MAX_WORD_LETTERS:
            return (self._unknown,)
        ids: list[int] = []
        start = 0
        while start < len(word):
            prefix = _CONTINUED if start else ""
            end = len(word)
            while prefix + word[start:end] not in self._ids:
                end -= 1
                if end == start:
                    return (self._unknown,)
            ids.append(self._ids[prefix + word[start:end]])
            start = end
        return tuple(ids)


def split(text: str, *, lower: bool = True) -> list[str]:
    """Return the words and punctuation marks of a text, as BERT splits it."""
    if lower:
        text = text.lower() if text.isascii() else _without_accents(text.lower())
    return "".join(map(_separate, text)).split()


def _without_accents(text: str) -> str:
    decomposed = normalize("NFD", text)
    return "".join(character for character in decomposed if category(character) != "Mn")


@lru_cache(maxsize=16384)
def _separate(character: str) -> str:
    """Return the character, between spaces if it is a mark or a Han character.

    Return nothing for an invisible character.
    """
    if character.isspace():
        return " "
    kind = category(character)
    if character in "\x00\ufffd" or kind.startswith("C"):
        return ""
    is_mark = character in _ASCII_MARKS or kind.startswith("P")
    is_han = any(low <= ord(character) <= high for low, high in _HAN_RANGES)
    if is_mark or is_han:
        return f" {character} "
    return character
