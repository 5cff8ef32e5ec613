"""WordPiece: text cut into the pieces that BERT-like models know, lower case, without accents."""

from collections.abc import Iterable, Sequence
from functools import lru_cache
from unicodedata import category, normalize

_LONGEST_WORD = 100
_CONTINUED = "##"
_UNKNOWN, _START, _END = "[UNK]", "[CLS]", "[SEP]"
# Whatever is neither letter nor digit in ASCII stands alone, as punctuation does elsewhere.
_ASCII_MARKS = frozenset("!\"#$%&'()*+,-./:;<=>?@[\\]^_`{|}~")
_HAN = ((0x4E00, 0x9FFF), (0x3400, 0x4DBF), (0x20000, 0x2CEAF), (0xF900, 0xFAFF), (0x2F800, 0x2FA1F))


class WordPiece:
    """A vocabulary, and how text is cut by it."""

    def __init__(self, vocabulary: Sequence[str], *, longest: int, lower: bool = True) -> None:
        self._ids = {piece: number for number, piece in enumerate(vocabulary)}
        self._unknown, self._start, self._end = (self._ids[each] for each in (_UNKNOWN, _START, _END))
        self._longest = longest
        self._lower = lower
        self._pieces = lru_cache(maxsize=32768)(self._cut)

    def ids(self, text: str) -> list[int]:
        """The numbers of the text's pieces between those of start and end, at most as many as the model takes."""
        inner = [number for word in split(text, lower=self._lower) for number in self._pieces(word)]
        return [self._start, *inner[: self._longest - 2], self._end]

    def _cut(self, word: str) -> tuple[int, ...]:
        """The longest known pieces from the left; a word that cannot be cut is unknown."""
        if len(word) > _LONGEST_WORD:
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
    """Words and marks, as models of this kind were trained on them."""
    if lower:
        text = text.lower() if text.isascii() else _without_accents(text.lower())
    return "".join(_spaced(text)).split()


def _without_accents(text: str) -> str:
    return "".join([each for each in normalize("NFD", text) if category(each) != "Mn"])


def _spaced(text: str) -> Iterable[str]:
    return [_form(character) for character in text]


@lru_cache(maxsize=16384)
def _form(character: str) -> str:
    """The character, alone where it is a mark or a Han character; nothing where it cannot be seen."""
    if character.isspace():
        return " "
    kind = category(character)
    if character in "\x00\ufffd" or kind.startswith("C"):
        return ""
    if character in _ASCII_MARKS or kind.startswith("P") or any(low <= ord(character) <= high for low, high in _HAN):
        return f" {character} "
    return character
