"""WordPiece: the tokenizer of BERT-like models, which splits words into known pieces."""

from collections.abc import Sequence
from functools import lru_cache
from unicodedata import category, normalize

# Longer words count as unknown.
_MAX_WORD_LETTERS = 100
_CONTINUED = "##"
_UNKNOWN, _START, _END = "[UNK]", "[CLS]", "[SEP]"
# In ASCII, every character that is neither letter nor digit is a token by itself, like punctuation.
_ASCII_MARKS = frozenset("!\"#$%&'()*+,-./:;<=>?@[\\]^_`{|}~")
_HAN = (
    (0x4E00, 0x9FFF),
    (0x3400, 0x4DBF),
    (0x20000, 0x2CEAF),
    (0xF900, 0xFAFF),
    (0x2F800, 0x2FA1F),
)


class WordPiece:
    """A tokenizer with a vocabulary of word pieces."""

    def __init__(self, vocabulary: Sequence[str], *, max_tokens: int, lower: bool = True) -> None:
        self._ids = {piece: number for number, piece in enumerate(vocabulary)}
        self._unknown, self._start, self._end = (
            self._ids[each] for each in (_UNKNOWN, _START, _END)
        )
        self._max_tokens = max_tokens
        self._lower = lower
        self._pieces = lru_cache(maxsize=32768)(self._split_word)

    def ids(self, text: str) -> list[int]:
        """Return the numbers of the text's pieces between those of start and end, at most `max_tokens`."""
        inner = [number for word in split(text, lower=self._lower) for number in self._pieces(word)]
        return [self._start, *inner[: self._max_tokens - 2], self._end]

    def _split_word(self, word: str) -> tuple[int, ...]:
        """Return the longest known pieces from the left; a word that cannot be split into pieces is unknown."""
        if len(word) > _MAX_WORD_LETTERS:
            return (self._unknown,)
        found: list[int] = []
        start = 0
        while start < len(word):
            prefix = _CONTINUED if start else ""
            ends = range(len(word), start, -1)
            end = next((end for end in ends if prefix + word[start:end] in self._ids), None)
            if end is None:
                return (self._unknown,)
            found.append(self._ids[prefix + word[start:end]])
            start = end
        return tuple(found)


def split(text: str, *, lower: bool = True) -> list[str]:
    """Return the words and punctuation marks of a text, as BERT splits it."""
    if lower:
        text = text.lower() if text.isascii() else _without_accents(text.lower())
    return "".join([_separate(character) for character in text]).split()


def _without_accents(text: str) -> str:
    return "".join([each for each in normalize("NFD", text) if category(each) != "Mn"])


@lru_cache(maxsize=16384)
def _separate(character: str) -> str:
    """Return the character, between spaces if it is a mark or a Han character; nothing if it is invisible."""
    if character.isspace():
        return " "
    kind = category(character)
    if character in "\x00\ufffd" or kind.startswith("C"):
        return ""
    if (
        character in _ASCII_MARKS
        or kind.startswith("P")
        or any(low <= ord(character) <= high for low, high in _HAN)
    ):
        return f" {character} "
    return character
