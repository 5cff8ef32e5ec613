"""Case folding and trigrams, for searches for a part of a text, and counts in sentences."""

from unicodedata import normalize

# The most common characters of English text, the most common first. All others are rarer.
_COMMON = " etaoinshrdlucmfwypvbgkjqxz"
_WEIGHT = {character: len(_COMMON) - position for position, character in enumerate(_COMMON)}


def fold(text: str) -> str:
    """Return the text without differences of case and composition: `É` and `é` are equal, composed or not."""
    if text.isascii():
        return text.lower()
    return normalize("NFC", normalize("NFC", text).casefold())


def trigrams(folded: str) -> list[str]:
    """Return the distinct trigrams of a text, in order of appearance."""
    return list(dict.fromkeys(folded[start : start + 3] for start in range(len(folded) - 2)))


def rarest(grams: list[str], count: int) -> list[str]:
    """Return the `count` trigrams that are probably the rarest, judged by their characters."""
    return sorted(grams, key=_commonness)[:count]


def count_noun(count: int, noun: str, several: str = "") -> str:
    """Return a count with its noun in the right number: 1 fact, 2 facts, 1,000 entities."""
    if count == 1:
        return f"1 {noun}"
    return f"{count:,} {several or (f'{noun[:-1]}ies' if noun.endswith('y') else f'{noun}s')}"


def _commonness(gram: str) -> int:
    return sum([_WEIGHT.get(character, 0) for character in gram])
