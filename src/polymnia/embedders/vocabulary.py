"""The vocabulary that comes with the package: the pieces of words that the local model knows, and English words."""

from functools import cache
from pathlib import Path

_PATH = Path(__file__).parent / "uncased.txt"
# Shorter entries are pieces of words rather than words.
MIN_WORD_LETTERS = 3


def read_vocabulary() -> list[str]:
    """Return the pieces in the order of their numbers."""
    return _PATH.read_text("utf-8").splitlines()


@cache
def english_words() -> dict[str, int]:
    """Return common English words in lower case, the most common first, each with its rank.

    Well-known names and some foreign words are among them.
    """
    words = [
        piece for piece in read_vocabulary() if piece.isalpha() and len(piece) >= MIN_WORD_LETTERS
    ]
    return {word: rank for rank, word in enumerate(words)}
