"""Correct a word with one typing mistake to a word of the memory.

A word that English or the memory knows is left alone. The words that one mistake could have made
out of it are listed: a letter too many, missing, wrong, or swapped with the next. Those that are
English words, and those that the index has under the same first letters, are looked up; the one in
most passages is meant. The work does not grow with the memory.
"""

from collections.abc import Collection
from functools import cache
from string import ascii_lowercase

from polymnia.embedders.wordpiece import read_vocabulary
from polymnia.search.terms import stem, stems_of
from polymnia.stores.contract import Reader

# In shorter words one other letter makes another word; longer ones are rarely words.
MIN_LETTERS, MAX_LETTERS = 5, 20
# Of a question with many unknown words, most are of another subject or language.
MAX_CORRECTED = 3
# Words of the memory with the same first letters.
MAX_COMPARED = 200


def correct_words(read: Reader, words: Collection[str]) -> dict[str, str]:
    """Return words that no passage has, each with the word of the memory that was meant."""
    corrections = {}
    for word in list(words)[:MAX_CORRECTED]:
        typed = word.lower()
        if not (MIN_LETTERS <= len(typed) <= MAX_LETTERS and typed.isascii() and typed.isalpha()):
            continue
        english = _english_words()
        if typed in english or stem(typed) in english:
            continue
        indexed = set(read.vocabulary(typed[:3], typed[:3] + "\U0010ffff", MAX_COMPARED))
        respelled = []
        for other in sorted(_respelled(typed)):
            # A stem begins like its word, so no other word can be among the indexed terms.
            if other in english or (indexed and other.startswith(typed[:3])):
                respelled.append(other)
        by_stem: dict[str, str] = {}
        for other, term in zip(respelled, stems_of(" ".join(respelled)), strict=True):
            if other in english:
                by_stem[term] = other
            elif term in indexed:
                by_stem.setdefault(term, other)
        if not by_stem:
            continue
        having = read.word_counts(by_stem).having
        if having:
            # Among equals the first in the alphabet: the same question is always read the same way.
            best = max(sorted(having), key=having.__getitem__)
            meant = by_stem[best]
            corrections[word] = meant.capitalize() if word[0].isupper() else meant
    return corrections


def _respelled(word: str) -> set[str]:
    """Return the words that are one typing mistake away from this one."""
    found = set()
    for place in range(len(word) + 1):
        head, tail = word[:place], word[place:]
        found.add(head + tail[1:])
        if len(tail) > 1:
            found.add(head + tail[1] + tail[0] + tail[2:])
        for letter in ascii_lowercase:
            found.add(head + letter + tail[1:])
            found.add(head + letter + tail)
    return found - {word}


@cache
def _english_words() -> frozenset[str]:
    """Return common English words and their stems, from the vocabulary of the local model."""
    words = [piece for piece in read_vocabulary() if piece.isalpha()]
    return frozenset([*words, *stems_of(" ".join(words))])
