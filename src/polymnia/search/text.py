"""Case folding and trigrams: how text is compared when somebody searches for a part of it."""

from unicodedata import normalize

# From the commonest to the rarest in running text; whatever is not listed is rarer still.
_COMMON = " etaoinshrdlucmfwypvbgkjqxz"
_WEIGHT = {character: len(_COMMON) - place for place, character in enumerate(_COMMON)}


def fold(text: str) -> str:
    """The text with case and composition differences removed, so that `É` equals `é` however it is spelled."""
    if text.isascii():
        return text.lower()
    return normalize("NFC", normalize("NFC", text).casefold())


def trigrams(folded: str) -> list[str]:
    """Every distinct run of three characters, in order of appearance."""
    return list(dict.fromkeys(folded[start : start + 3] for start in range(len(folded) - 2)))


def rarest(grams: list[str], count: int) -> list[str]:
    """Those of the trigrams that look least common: a cheap guess that narrows a search most."""
    return sorted(grams, key=_commonness)[:count]


def _commonness(gram: str) -> int:
    return sum([_WEIGHT.get(character, 0) for character in gram])
