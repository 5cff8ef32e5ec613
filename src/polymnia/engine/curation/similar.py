"""Pairs of entities that may be the same thing: by similar names, or by similar meaning."""

import re
from collections import defaultdict
from collections.abc import Collection, Iterator
from importlib.util import find_spec
from itertools import combinations
from typing import TYPE_CHECKING

from msgspec import Struct

from polymnia.engine.curation.findings import Check, Progress, ignore_progress, never_stop
from polymnia.engine.memory import Memory
from polymnia.errors import MissingPackage
from polymnia.search.terms import plain
from polymnia.stores.contract import TEXT, Reader

if TYPE_CHECKING:
    from polymnia.engine.curation.comparison import BestPairs, Points


# Shorter words that differ by a letter are different names: `Team A` and `Team B`, `node` and
# `code`.
MIN_TYPO_LETTERS = 5
# Longer names are only compared as wholes.
MAX_TYPO_NAME_LETTERS = 60
# If more names are all alike, only this many are compared.
MAX_ALIKE = 50
REORDERED = 0.95
_CHECK_EVERY = 10_000

_WORD = re.compile(r"[^\W_]+")


class DuplicateNames(Struct, frozen=True):
    """Two entities with similar names.

    The similarity is 1 if only case, accents, spaces or punctuation differ.
    """

    a: str
    b: str
    similarity: float
    a_type: str
    b_type: str


def duplicate_names(
    memory: Memory,
    *,
    among: Collection[str] | None = None,
    limit: int | None = None,
    progress: Progress = ignore_progress,
    check: Check = never_stop,
) -> list[DuplicateNames]:
    """Return pairs of entities that may be the same thing, the most similar names first.

    Their names have the same letters, or the same words in another order, or one word differs by a
    letter. Numbers and short words must be equal.
    """
    with memory.reading() as read:
        types = {entity.name: entity.type for entity in read.outlines(among)}
    pairs: dict[tuple[str, str], float] = {}
    for alike in _alike(list(types), progress, check):
        for a, b in combinations(alike[:MAX_ALIKE], 2):
            pair = (a, b) if a < b else (b, a)
            if pair not in pairs and (score := name_similarity(a, b)):
                pairs[pair] = score
    ranked = sorted(pairs.items(), key=lambda item: (-item[1], item[0]))
    return [DuplicateNames(a, b, score, types[a], types[b]) for (a, b), score in ranked[:limit]]


def name_similarity(a: str, b: str) -> float:
    """Return how similar two names are, from 0 to 1; 0 unless they may mean the same."""
    one, other = _words(a), _words(b)
    if "".join(one) == "".join(other):
        return 1.0
    if sorted(one) == sorted(other):
        return REORDERED
    text, other_text = " ".join(one), " ".join(other)
    if not _differ_by_a_letter(text, other_text):
        return 0.0
    from difflib import SequenceMatcher  # a server's start does not need it

    return min(REORDERED, SequenceMatcher(None, text, other_text, autojunk=False).ratio())


def _differ_by_a_letter(a: str, b: str) -> bool:
    """Return True if a letter was added, left out, replaced or swapped with the next."""
    start = _common_start(a, b)
    end = _common_start(a[start:][::-1], b[start:][::-1])
    a, b = a[start : len(a) - end], b[start : len(b) - end]
    return max(len(a), len(b)) == 1 or (len(a) == 2 and a == b[::-1])


def _common_start(a: str, b: str) -> int:
    return next(
        (at for at, (x, y) in enumerate(zip(a, b, strict=False)) if x != y), min(len(a), len(b))
    )


def _alike(names: list[str], progress: Progress, check: Check) -> Iterator[list[str]]:
    """Yield groups of names that share a key."""
    by_key: defaultdict[str, list[str]] = defaultdict(list)
    for place, name in enumerate(names):
        if place % _CHECK_EVERY == 0:
            check()
            progress(place + 1, len(names), "comparing names")
        for key in _keys(name):
            by_key[key].append(name)
    return (alike for alike in by_key.values() if len(alike) > 1)


def _keys(name: str) -> set[str]:
    """Return keys for a name. Two names that are alike share a key."""
    words = _words(name)
    if not words:
        return set()
    keys = {"".join(words), " ".join(sorted(words))}
    if len(name) > MAX_TYPO_NAME_LETTERS:
        return keys
    for place, word in enumerate(words):
        if len(word) >= MIN_TYPO_LETTERS and not any(map(str.isdigit, word)):
            before, after = " ".join(words[:place]), " ".join(words[place + 1 :])
            # With one letter less, words that differ by one letter are equal.
            shorter = [word[:at] + word[at + 1 :] for at in range(len(word))]
            keys.update([f"{before}|{item}|{after}" for item in (word, *shorter)])
    return keys


def _words(name: str) -> list[str]:
    return _WORD.findall(plain(name))


class SimilarPair(Struct, frozen=True):
    """Two entities without a relation between them, and the cosine of their mean vectors."""

    a: str
    b: str
    similarity: float
    a_type: str
    b_type: str


def similar_pairs(
    memory: Memory,
    *,
    limit: int = 20,
    min_score: float = 0.75,
    perspective: str = TEXT,
    progress: Progress = ignore_progress,
    check: Check = never_stop,
) -> list[SimilarPair]:
    """Return the most similar unrelated pairs, best first, 10,000 at most.

    There are none while nothing is embedded. Raise MissingPackage without numpy, NotSupported in a
    store without vectors.
    """
    with memory.reading() as read:
        points = load_points(memory, read, perspective)
        from polymnia.engine.curation.comparison import (
            compare,
        )  # imports numpy, which is installed, as checked above

        best = best_pairs(read, points, limit=limit, min_score=min_score)
        for block in compare(points.rows, progress=progress, check=check):
            best.add(block)
        return name_pairs(read, points, best)


def load_points(memory: Memory, read: Reader, perspective: str = TEXT) -> "Points":
    """Return the entities that have vectors. Raise MissingPackage, NotSupported."""
    if find_spec("numpy") is None:
        raise MissingPackage("comparing entities", "numpy", "semantic")
    from polymnia.engine.curation import comparison

    return comparison.load_points(memory, read, perspective)


def best_pairs(read: Reader, points: "Points", *, limit: int, min_score: float) -> "BestPairs":
    """Return a collector of the most similar pairs of these entities that no relation joins."""
    from polymnia.engine.curation.comparison import BestPairs

    related = [(relation.source, relation.target) for relation in read.relations()]
    return BestPairs(points.names, related, limit=limit, min_score=min_score)


def name_pairs(read: Reader, points: "Points", best: "BestPairs") -> list[SimilarPair]:
    """Return the pairs that were collected, with names and types."""
    pairs = [(points.names[a], points.names[b], similarity) for a, b, similarity in best.pairs()]
    types = {
        entity.name: entity.type
        for entity in read.outlines({name for a, b, _ in pairs for name in (a, b)})
    }
    return [SimilarPair(a, b, similarity, types[a], types[b]) for a, b, similarity in pairs]
