"""Porter's stemmer, step for step as SQLite's full-text index has it, so that every store finds the same words."""

from collections.abc import Iterable
from functools import lru_cache

_VOWELS = "aeiou"
# Words outside these lengths are left as they are.
_SHORTEST, _LONGEST = 3, 64

_ENDINGS = ("", "e", "s", "ed", "ing", "ly", "ion", "ment", "al", "y", "l", "er", "es")

Rules = tuple[tuple[str, str], ...]

_STEP_2: Rules = (
    ("ational", "ate"),
    ("tional", "tion"),
    ("enci", "ence"),
    ("anci", "ance"),
    ("izer", "ize"),
    ("logi", "log"),
    ("bli", "ble"),
    ("alli", "al"),
    ("entli", "ent"),
    ("eli", "e"),
    ("ousli", "ous"),
    ("ization", "ize"),
    ("ation", "ate"),
    ("ator", "ate"),
    ("alism", "al"),
    ("iveness", "ive"),
    ("fulness", "ful"),
    ("ousness", "ous"),
    ("aliti", "al"),
    ("iviti", "ive"),
    ("biliti", "ble"),
)
_STEP_3: Rules = (
    ("ical", "ic"),
    ("ness", ""),
    ("icate", "ic"),
    ("iciti", "ic"),
    ("ful", ""),
    ("ative", ""),
    ("alize", "al"),
)
_LAST_ENDINGS = "al ance ence er ic able ible ant ement ment ent ion ou ism ate iti ous ive ize"
_STEP_4 = tuple(_LAST_ENDINGS.split())


def stem(word: str) -> str:
    """What the word has in common with its other forms: `running` and `runs` give `run`."""
    return _STEMS[word]


def stems(words: Iterable[str]) -> list[str]:
    """The stems of the words, in their order."""
    return list(map(_STEMS.__getitem__, words))


class _Stems(dict[str, str]):
    """Stems that were asked for, by word. Every passage that a search weighs is stemmed, so a look-up must be short."""

    def __missing__(self, word: str) -> str:
        if len(self) >= _MOST_KEPT:
            self.clear()
        found = self[word] = _stemmed(word)
        return found


_MOST_KEPT = 65_536
_STEMS = _Stems()


@lru_cache(maxsize=8192)
def spelled(term: str) -> str:
    """A word whose stem the term is: stems are not always their own, and an index stems whatever it is asked for."""
    return next((word for ending in _ENDINGS if stem(word := term + ending) == term), term)


def _stemmed(word: str) -> str:
    if not word.isascii():  # the index counts bytes, so a letter outside ASCII is two consonants or more
        return _stem(word.encode().decode("latin-1")).encode("latin-1").decode()
    return _stem(word)


def _stem(word: str) -> str:
    if not _SHORTEST <= len(word) <= _LONGEST:
        return word
    word = _past_and_progressive(_plural(word))
    if word.endswith("y") and _has_vowel(word[:-1]):
        word = word[:-1] + "i"
    word = _exchanged(word, _STEP_2)
    word = _exchanged(word, _STEP_3)
    word = _without_ending(word)
    return _tidied(word)


def _plural(word: str) -> str:
    if not word.endswith("s"):
        return word
    if word.endswith("es"):
        shorter = (len(word) > 4 and word.endswith("sses")) or (len(word) > 3 and word.endswith("ies"))
        return word[:-2] if shorter else word[:-1]
    return word if word.endswith("ss") else word[:-1]


def _past_and_progressive(word: str) -> str:
    if len(word) > 3 and word.endswith("eed"):
        return word[:-1] if _measure(word[:-3]) > 0 else word
    for ending in ("ed", "ing"):
        if len(word) > len(ending) and word.endswith(ending):
            rest = word[: -len(ending)]
            return _mended(rest) if _has_vowel(rest) else word
    return word


def _mended(rest: str) -> str:
    """What `ed` or `ing` was taken from, as it is spelled without."""
    if len(rest) > 2 and rest.endswith(("at", "bl", "iz")):
        return rest + "e"
    last = rest[-1]
    if last not in _VOWELS and last not in "lsz" and rest[-2:-1] == last:
        return rest[:-1]
    return rest + "e" if _measure(rest) == 1 and _is_short(rest) else rest


def _exchanged(word: str, rules: Rules) -> str:
    for ending, instead in rules:
        if len(word) > len(ending) and word.endswith(ending):
            rest = word[: -len(ending)]
            return rest + instead if _measure(rest) > 0 else word
    return word


def _without_ending(word: str) -> str:
    for ending in _STEP_4:
        if len(word) > len(ending) and word.endswith(ending):
            rest = word[: -len(ending)]
            fits = _measure(rest) > 1 and (ending != "ion" or rest.endswith(("s", "t")))
            return rest if fits else word
    return word


def _tidied(word: str) -> str:
    if word.endswith("e"):
        rest = word[:-1]
        measure = _measure(rest)
        if measure > 1 or (measure == 1 and not _is_short(rest)):
            word = rest
    if word.endswith("ll") and _measure(word[:-1]) > 1:
        word = word[:-1]
    return word


def _measure(text: str) -> int:
    """How many times a vowel is followed by a consonant."""
    count = 0
    after_vowel = False
    for vowel in _vowels(text):
        count += after_vowel and not vowel
        after_vowel = vowel
    return count


def _is_short(text: str) -> bool:
    """Whether it ends in consonant, vowel, consonant, and the last is none of w, x, y."""
    if text[-1:] in ("w", "x", "y"):
        return False
    return _vowels(text)[-3:] == [False, True, False]


def _has_vowel(text: str) -> bool:
    return any(character in _VOWELS or (character == "y" and place) for place, character in enumerate(text))


def _vowels(text: str) -> list[bool]:
    """For each character whether it is a vowel; `y` is one after a consonant."""
    found: list[bool] = []
    vowel = True
    for character in text:
        vowel = character in _VOWELS or (character == "y" and not vowel)
        found.append(vowel)
    return found
