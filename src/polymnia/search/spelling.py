"""Spelling of English words: likely mistakes, British and American forms, short forms."""

from collections import Counter
from collections.abc import Callable, Iterator
from itertools import groupby

_LETTERS = "abcdefghijklmnopqrstuvwxyz"
# How many letters come before an ending with two spellings.
MIN_HEAD_LETTERS = 3
# Shorter base forms are found in too many mistyped words.
MIN_BASE_LETTERS = 4
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
# Words whose spellings differ in no regular way, and the short forms of words.
_OTHER_SPELLINGS = """
grey gray; aeroplane airplane; tyre tire; pyjamas pajamas; programme program; cheque check;
jewellery jewelry; mum mom; mould mold; plough plow; sceptical skeptical; ageing aging; judgement
judgment; enrol enroll; fulfil fulfill; gf girlfriend; bf boyfriend; bday birthday; fav favorite
favourite; fave favorite favourite; pic picture photo; pics pictures photos; info information; tv
television; uni university; vacay vacation; apt apartment; appt appointment; dept department; mgr
manager; dev developer; devs developers; env environment; config configuration; db database; repo
repository; repos repositories; prod production; admin administrator; auth authentication; doc
document; docs documents; msg message; msgs messages; app application; apps applications; spec
specification; ref reference; min minute; mins minutes; hr hour; hrs hours; wk week; wks weeks; yr
year; yrs years; mon monday; tue tuesday; wed wednesday; thu thursday; fri friday; bike bicycle;
fridge refrigerator; gym gymnasium; lab laboratory; math maths; vet veterinarian; phone telephone;
k8s kubernetes; postgres postgresql; js javascript; py python
"""
# Regular endings, and what the base form has instead.
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
# How much likelier people leave out, double or swap letters than type a certain wrong one.
SLIP_WEIGHT = 20.0


def _read_groups(text: str) -> dict[str, list[str]]:
    """Return the other forms of each word. The first word of a group has all others."""
    words: dict[str, list[str]] = {}
    for group in text.split(";"):
        first, *others = group.split()
        words.setdefault(first, []).extend(others)
        for other in others:
            words.setdefault(other, []).append(first)
    return words


_OTHERS = _read_groups(_OTHER_SPELLINGS)


def variants(word: str) -> list[str]:
    """Return the other forms a word may have: `favourite` for `favorite`, `girlfriend` for `gf`."""
    return list(dict.fromkeys([*_variants(word), *_OTHERS.get(word, ())]))


def is_form(word: str, is_known: Callable[[str], bool]) -> bool:
    """Return True if the word is known, or its base form, if that is not too short."""
    if is_known(word):
        return True
    for ending, rest in _ENDINGS:
        if word.endswith(ending):
            base = word.removesuffix(ending) + rest
            if len(base) >= MIN_BASE_LETTERS and is_known(base):
                return True
    return False


def edits(word: str) -> list[str]:
    """Return every text that is one edit away.

    A letter is removed, swapped with the next, replaced or added.
    """
    splits = [(word[:at], word[at:]) for at in range(len(word) + 1)]
    missing = [head + tail[1:] for head, tail in splits if tail]
    swapped = [head + tail[1] + tail[0] + tail[2:] for head, tail in splits if len(tail) > 1]
    wrong = [head + letter + tail[1:] for head, tail in splits if tail for letter in _LETTERS]
    added = [head + letter + tail for head, tail in splits for letter in _LETTERS]
    texts = dict.fromkeys([*missing, *swapped, *wrong, *added])
    texts.pop(word, None)
    return list(texts)


def slip_weight(typed: str, meant: str) -> float:
    """Return how likely one types a word when one means another that is one edit away."""
    is_shorter = len(typed) < len(meant)
    is_swapped = sorted(typed) == sorted(meant)
    is_doubled = _without_doubles(typed) == _without_doubles(meant)
    return SLIP_WEIGHT if is_shorter or is_swapped or is_doubled else 1.0


def only_slips(typed: str, meant: str) -> bool:
    """Return True if letters were left out, doubled or swapped, but none is wrong."""
    return not Counter(_without_doubles(typed)) - Counter(meant)


def within_two_edits(one: str, other: str) -> bool:
    """Return True if at most two edits turn one word into the other. A swap is one edit."""
    if abs(len(one) - len(other)) > 2:
        return False
    before: list[int] = []
    row = list(range(len(other) + 1))
    for at, letter in enumerate(one, 1):
        earlier, before, row = before, row, [at]
        for place, its in enumerate(other, 1):
            best = min(before[place] + 1, row[place - 1] + 1, before[place - 1] + (letter != its))
            if at > 1 and place > 1 and letter == other[place - 2] and one[at - 2] == its:
                best = min(best, earlier[place - 2] + 1)
            row.append(best)
        if min(row) > 2:
            return False
    return row[-1] <= 2


def _without_doubles(word: str) -> str:
    return "".join(letter for letter, _ in groupby(word))


def _variants(word: str) -> Iterator[str]:
    for british, american, endings in _SPELLINGS:
        for one, other in ((british, american), (american, british)):
            for ending in endings:
                head = word.removesuffix(one + ending)
                if MIN_HEAD_LETTERS <= len(head) < len(word):
                    yield head + other + ending
