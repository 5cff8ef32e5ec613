"""Find known names in a text, on word boundaries, in one pass over its words."""

import re
from collections import defaultdict
from collections.abc import Iterable, Iterator, Sequence
from functools import cache
from unicodedata import category, normalize

from polymnia.search.terms import STOP_WORDS, UNSPACED, fold

# A longer name is not repeated word for word.
MAX_NAME_WORDS = 20
# Where combining marks are; those beyond are variation selectors.
_FIRST_MARK, _LAST_MARK = 0x300, 0x20000


class MentionFinder:
    """The names that texts may mention.

    Case does not matter, with two exceptions: a name of one capitalized word (`Will`) is found
    where the text has a capital letter too, and a name in capitals (`IT`) only as it is written.
    A name that is a common word in lower case (`will`) is never found. Scripts without spaces
    between words have a boundary at every character.
    """

    def __init__(self, names: Iterable[str]) -> None:
        self._names: defaultdict[str, list[_Name]] = defaultdict(list)
        lengths: defaultdict[str, set[int]] = defaultdict(set)
        for name in names:
            words = _split(normalize("NFC", name))
            is_stop_word = len(words) == 1 and words[0] in STOP_WORDS
            if is_stop_word or not 0 < len(words) <= MAX_NAME_WORDS:
                continue
            folded = [fold(word) for word in words]
            self._names[" ".join(folded)].append(_Name(name, tuple(words)))
            lengths[folded[0]].add(len(words))
        # How many words the names have that start with a word, the longest first.
        self._lengths = {first: sorted(sizes, reverse=True) for first, sizes in lengths.items()}

    def find(self, text: str) -> Iterator[str]:
        """Yield the names in the text, once for each mention.

        Of names inside names only the longest counts.
        """
        words = _split(normalize("NFC", text))
        folded = list(map(str.lower if text.isascii() else fold, words))
        end = 0
        for start, word in enumerate(folded):
            if start < end or word not in self._lengths:
                continue
            for length in self._lengths[word]:
                if start + length > len(folded):
                    continue
                names = self._names.get(" ".join(folded[start : start + length]), ())
                mentioned = _choose(names, words[start : start + length])
                if mentioned:
                    yield from mentioned
                    end = start + length
                    break


class _Name:
    """A name, its words, and how a text must write it."""

    __slots__ = ("in_capitals", "is_capitalized", "name", "words")

    def __init__(self, name: str, words: tuple[str, ...]) -> None:
        self.name = name
        self.words = words
        self.in_capitals = len(words) == 1 and name.isupper()
        self.is_capitalized = len(words) == 1 and name.istitle()

    def is_written(self, words: Sequence[str]) -> bool:
        """Return True if the text has capital letters where the name needs them."""
        if self.in_capitals:
            return words[0] == self.words[0]
        return not self.is_capitalized or words[0][0].isupper()


def _choose(names: Sequence[_Name], words: Sequence[str]) -> list[str]:
    """Return the names that these words are: those written in the same way if there are any."""
    written = [name.name for name in names if name.is_written(words)]
    if len(names) < 2:
        return written
    exact = [name.name for name in names if name.words == tuple(words)]
    return exact or written


def _split(text: str) -> list[str]:
    """Return the words of a text, its punctuation marks and its characters of unspaced scripts."""
    pattern = _ascii_words() if text.isascii() else _words()
    return pattern.findall(text)


@cache
def _ascii_words() -> re.Pattern[str]:
    return re.compile(r"\w+|[^\w\s]")


@cache
def _words() -> re.Pattern[str]:
    # Python's \w has no combining marks, which Indic scripts have inside words.
    characters = map(chr, range(_FIRST_MARK, _LAST_MARK))
    marks = "".join(character for character in characters if category(character)[0] == "M")
    letter = rf"(?![{UNSPACED}])[\w{marks}]"
    return re.compile(rf"[{UNSPACED}]|(?:{letter})+|[^\w\s]")
