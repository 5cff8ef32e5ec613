"""Spelling: corrections of a mistyped word, and other spellings of a word."""

from collections.abc import Collection, Iterator

# How many letters come before an ending with two spellings.
MIN_HEAD_LETTERS = 3

_LETTERS = "abcdefghijklmnopqrstuvwxyz"
# British and American spelling, and the endings that may follow.
_SPELLINGS = (
    ("our", "or", ("", "s", "ed", "ing", "ite", "ites", "able", "ful", "less")),
    ("is", "iz", ("e", "es", "ed", "er", "ers", "ing", "ation", "ations")),
    ("ys", "yz", ("e", "es", "ed", "er", "ers", "ing")),
    ("tre", "ter", ("", "s")),
    ("ogue", "og", ("", "s")),
    ("ence", "ense", ("", "s")),
    ("ll", "l", ("ed", "er", "ers", "ing", "ings")),
)
# Regular endings, and what the word has in their place without them.
_ENDINGS = (
    ("s", ""),
    ("es", ""),
    ("ies", "y"),
    ("ed", ""),
    ("ed", "e"),
    ("ing", ""),
    ("ing", "e"),
    ("er", ""),
    ("er", "e"),
    ("ly", ""),
)


def variants(word: str) -> list[str]:
    """Return the other spellings a word may have: `favourite` for `favorite`, `organise` for `organize`."""
    return list(dict.fromkeys(_variants(word)))


def is_form(word: str, known: Collection[str]) -> bool:
    """Return True if the word or what it is regularly formed from is among the known ones."""
    if word in known:
        return True
    return any(word.endswith(ending) and word.removesuffix(ending) + rest in known for ending, rest in _ENDINGS)


def edits(word: str) -> list[str]:
    """Return every word that is one mistake away: a letter missing, swapped with the next, wrong or too many."""
    splits = [(word[:at], word[at:]) for at in range(len(word) + 1)]
    missing = [head + tail[1:] for head, tail in splits if tail]
    swapped = [head + tail[1] + tail[0] + tail[2:] for head, tail in splits if len(tail) > 1]
    wrong = [head + letter + tail[1:] for head, tail in splits if tail for letter in _LETTERS]
    added = [head + letter + tail for head, tail in splits for letter in _LETTERS]
    return list(dict.fromkeys(each for each in [*missing, *swapped, *wrong, *added] if each != word))


def _variants(word: str) -> Iterator[str]:
    for british, american, endings in _SPELLINGS:
        for one, other in ((british, american), (american, british)):
            for ending in endings:
                head = word.removesuffix(one + ending)
                if MIN_HEAD_LETTERS <= len(head) < len(word):
                    yield head + other + ending
