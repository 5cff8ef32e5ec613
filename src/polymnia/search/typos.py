"""Typing mistakes: the indexed terms that a word nobody wrote was probably meant to be."""

from collections.abc import Collection

# Shorter words have too many neighbours; longer ones may be wrong twice.
_SHORTEST, _TWICE = 4, 8
_LAST_CHARACTER = "\U0010ffff"


def starts(term: str) -> list[tuple[str, str]]:
    """The stretches of the vocabulary in which what a term was meant to be can stand."""
    if len(term) < _SHORTEST:
        return []
    heads = dict.fromkeys((term[:2], term[1] + term[0], term[0] + term[2], term[1:3]))
    return [(head, head + _LAST_CHARACTER) for head in heads]


def nearest(term: str, vocabulary: Collection[str]) -> list[str]:
    """Those of the vocabulary that fewest mistakes away make the term, if they are few enough for its length."""
    most = 2 if len(term) >= _TWICE else 1
    near: dict[int, list[str]] = {}
    for known in vocabulary:
        if abs(len(known) - len(term)) <= most:
            near.setdefault(distance(term, known, most), []).append(known)
    best = min(near, default=most + 1)
    return near[best] if best <= most else []


def distance(one: str, other: str, most: int) -> int:
    """How many letters are wrong, missing, too many or swapped; anything above `most` is `most + 1`."""
    before: list[int] = []
    row = list(range(len(other) + 1))
    for place, letter in enumerate(one, 1):
        older, before, row = before, row, [place]
        for at, known in enumerate(other, 1):
            least = min(before[at] + 1, row[at - 1] + 1, before[at - 1] + (letter != known))
            if place > 1 and at > 1 and letter == other[at - 2] and one[place - 2] == known:
                least = min(least, older[at - 2] + 1)
            row.append(least)
        if min(row) > most:
            return most + 1
    return min(row[-1], most + 1)
