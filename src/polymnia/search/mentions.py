"""Find known names in a text, on word boundaries, in one pass over its words."""

import re
from collections import defaultdict
from collections.abc import Iterable, Iterator
from functools import cache
from unicodedata import category, normalize

from polymnia.search.terms import STOP_WORDS, UNSPACED
from polymnia.search.text import fold

# Nobody repeats a longer name word for word.
MAX_NAME_WORDS = 20
# Where combining marks are; those beyond are variation selectors.
_FIRST_MARK, _LAST_MARK = 0x300, 0x20000


class MentionFinder:
    """The names that texts may mention.

    Case does not matter, with two exceptions: a name of one capitalized word (`Will`) is found where the text has a
    capital letter too, and a name in capitals (`IT`) only as it is written. A name that is a common word in lower case
    (`will`) is never found. Scripts without spaces between words have a boundary at every character.
    """

    def __init__(self, names: Iterable[str]) -> None:
        self._names: defaultdict[str, list[str]] = defaultdict(list)
        lengths: defaultdict[str, set[int]] = defaultdict(set)
        for name in names:
            words = _split(normalize("NFC", name))
            if not 0 < len(words) <= MAX_NAME_WORDS or (len(words) == 1 and words[0] in STOP_WORDS):
                continue
            folded = [fold(word) for word in words]
            self._names[" ".join(folded)].append(name)
            lengths[folded[0]].add(len(words))
        # How many words the names have that start with a word, the longest first.
        self._lengths = {first: sorted(found, reverse=True) for first, found in lengths.items()}

    def find(self, text: str) -> Iterator[str]:
        """Yield the names in the text, once for each mention. Of names inside names only the longest counts."""
        folded = _folded_words(text)
        if self._lengths.keys().isdisjoint(folded):
            return
        words: list[str] | None = None
        end = 0
        for start, first in enumerate(folded):
            if start < end or first not in self._lengths:
                continue
            words = words if words is not None else _split(normalize("NFC", text))
            for length in self._lengths[first]:
                found = self._mentioned(folded[start : start + length], words[start : start + length])
                if found and start + length <= len(folded):
                    yield from found
                    end = start + length
                    break

    def _mentioned(self, folded: list[str], words: list[str]) -> list[str]:
        """Return the names that these words are: those written in the same way if there are any."""
        names = [name for name in self._names.get(" ".join(folded), ()) if _is_written(name, words)]
        exact = [name for name in names if len(names) > 1 and _split(normalize("NFC", name)) == words]
        return exact or names


def _is_written(name: str, words: list[str]) -> bool:
    if len(words) > 1:
        return True
    if name.isupper():
        return words[0] == normalize("NFC", name)
    return not name.istitle() or words[0][0].isupper()


def _folded_words(text: str) -> list[str]:
    if text.isascii():
        return _split(text.lower())
    return [fold(word) for word in _split(normalize("NFC", text))]


def _split(text: str) -> list[str]:
    """Return the words of a text and, each by itself, its punctuation marks and characters of unspaced scripts."""
    return _ascii_words().findall(text) if text.isascii() else _words().findall(text)


@cache
def _ascii_words() -> re.Pattern[str]:
    return re.compile(r"\w+|[^\w\s]")


@cache
def _words() -> re.Pattern[str]:
    # Python's \w has no combining marks, which Indic scripts have inside words.
    marks = "".join([chr(code) for code in range(_FIRST_MARK, _LAST_MARK) if category(chr(code)).startswith("M")])
    letter = rf"(?![{UNSPACED}])[\w{marks}]"
    return re.compile(rf"[{UNSPACED}]|(?:{letter})+|[^\w\s]")
