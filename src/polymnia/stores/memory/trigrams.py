"""A substring index in memory: find the texts that contain a string without reading all of them.

A query without white space lies within one word of a text. So the index has two steps: trigrams
lead to the words that may contain the query, and words lead to the texts that have them. The
vocabulary is much smaller than the texts, so this is quicker to build and takes less memory than
trigrams of all texts. Candidates are compared with the query; entries of removed texts may stay in
the index.
"""

from array import array
from collections.abc import Iterable

_GRAM_LENGTH = 3
# Joins the parts of a text. It separates words as white space does.
_SEPARATOR = "\x00"
_MIN_REMOVALS_TO_REBUILD = 1000


class TrigramIndex:
    """Folded texts with a number and a name each."""

    def __init__(self) -> None:
        self._texts: dict[int, tuple[str, str]] = {}
        # By word the numbers of its texts, and by trigram its words.
        self._having: dict[str, array[int]] = {}
        self._words: dict[str, list[str]] = {}
        self._removals = 0

    def put(self, number: int, name: str, text: str) -> None:
        """Add a text, or replace the one with the same number."""
        known = self._texts.get(number)
        self._texts[number] = (name, text)
        if known is not None and text.startswith(known[1]):
            # Facts are mostly appended, and the words before them are indexed already.
            text = text[known[1].rfind(_SEPARATOR) + 1 :]
        elif known is not None:
            self._count_removal()
        self._add(number, text)

    def remove(self, number: int) -> None:
        """Remove the text with that number."""
        del self._texts[number]
        self._count_removal()

    def containing(self, query: str) -> list[str]:
        """Return the names of the texts that contain the query, in the order of their numbers."""
        numbers = sorted(self._candidates(query))
        texts = [self._texts[number] for number in numbers if number in self._texts]
        return [name for name, text in texts if query in text]

    def _candidates(self, query: str) -> Iterable[int]:
        """Return the numbers of the texts that may contain the query."""
        longest = max(_split(query), key=len, default="")
        if len(longest) < _GRAM_LENGTH:
            return self._texts
        rarest = min([self._words.get(gram, []) for gram in _trigrams(longest)], key=len)
        return {number for word in rarest if longest in word for number in self._having[word]}

    def _add(self, number: int, text: str) -> None:
        for word in set(_split(text)):
            having = self._having.get(word)
            if having is None:
                having = self._having[word] = array("Q")
                for gram in _trigrams(word):
                    self._words.setdefault(gram, []).append(word)
            having.append(number)

    def _count_removal(self) -> None:
        """Build the index again when most of its entries may belong to removed texts."""
        self._removals += 1
        if self._removals <= max(_MIN_REMOVALS_TO_REBUILD, len(self._texts)):
            return
        self._having, self._words, self._removals = {}, {}, 0
        for number, (_, text) in self._texts.items():
            self._add(number, text)


def _split(text: str) -> list[str]:
    return text.replace(_SEPARATOR, " ").split()


def _trigrams(word: str) -> set[str]:
    return {word[start : start + _GRAM_LENGTH] for start in range(len(word) - _GRAM_LENGTH + 1)}
