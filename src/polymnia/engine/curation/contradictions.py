"""Facts of one entity that cannot both be true: the same words with another value or a `not`."""

import re
from collections.abc import Collection
from itertools import combinations

from msgspec import Struct
from msgspec.structs import replace

from polymnia.engine.curation.findings import (
    Check,
    Progress,
    ignore_progress,
    never_stop,
    scan,
)
from polymnia.engine.memory import Memory
from polymnia.model import Entity, Fact
from polymnia.search.question import content_words
from polymnia.search.terms import plain, stem

# The facts of an entity that are compared, the newest ones.
MAX_COMPARED = 60
# Longer texts tell stories: sharing words says little about them.
MAX_FACT_CHARS = 300
# The share of words besides values that two facts have in common.
MIN_SHARED = 0.6

_NEGATION = re.compile(r"\b(?:not|never|no longer|without|cannot|\w+n't)\b")
_NEGATION_STEMS = frozenset(map(stem, ("longer", "never", "cannot", "without")))
_VALUE_WORDS = (
    "monday tuesday wednesday thursday friday saturday sunday mondays tuesdays wednesdays "
    "thursdays fridays saturdays sundays january february march april may june july august "
    "september october november december one two three four five six seven eight nine ten eleven "
    "twelve daily weekly monthly yearly morning afternoon evening night"
)
_VALUES = frozenset(map(stem, _VALUE_WORDS.split()))


class Contradiction(Struct, frozen=True):
    """Two facts of an entity, the older one first, and how they differ."""

    entity: str
    older: Fact
    newer: Fact
    difference: str


def contradictions(
    memory: Memory,
    *,
    among: Collection[str] | None = None,
    limit: int | None = None,
    progress: Progress = ignore_progress,
    check: Check = never_stop,
) -> list[Contradiction]:
    """Return pairs of facts that say the same of an entity with another value, the latest first.

    Values are numbers, days, months and times of the day. A fact and its denial count too.
    """
    pairs: list[Contradiction] = []
    with memory.reading() as read:
        for entity in scan(read, "comparing facts", among, progress=progress, check=check):
            if len(entity.facts) > 1:
                pairs += contradictions_of(entity)
    pairs.sort(key=lambda pair: -_said_at(pair.newer))
    return pairs[:limit]


def contradictions_of(entity: Entity) -> list[Contradiction]:
    """Return the pairs among an entity's newest facts."""
    statements = []
    for fact in entity.facts[-MAX_COMPARED:]:
        if len(fact.text) <= MAX_FACT_CHARS:
            statements.append(_Statement.of(fact))
    pairs = []
    for one, other in combinations(statements, 2):
        difference = one.difference(other)
        if difference:
            older, newer = sorted((one.fact, other.fact), key=_said_at)
            pairs.append(Contradiction(entity.name, older, newer, difference))
    return pairs


def differs_in_value(text: str, other: str, names: Collection[str] = ()) -> bool:
    """Return True if two texts say the same with another value, or one denies the other.

    `names` are terms that do not count: the names of what the texts are about.
    """
    if max(len(text), len(other)) > MAX_FACT_CHARS:
        return False
    one, two = _Statement.of(Fact(0, text)), _Statement.of(Fact(0, other))
    one = replace(one, words=one.words.difference(names))
    two = replace(two, words=two.words.difference(names))
    return bool(one.difference(two))


class _Statement(Struct, frozen=True):
    """A fact as words and values, and whether it denies them."""

    fact: Fact
    words: frozenset[str]
    values: frozenset[str]
    is_denied: bool

    @classmethod
    def of(cls, fact: Fact) -> "_Statement":
        text = plain(fact.text).replace("\u2019", "'")
        stems = {stem(word) for word in content_words(text)}
        values = frozenset(term for term in stems if term in _VALUES or _has_digit(term))
        words = frozenset(stems - values - _NEGATION_STEMS)
        return cls(fact, words, values, bool(_NEGATION.search(text)))

    def difference(self, other: "_Statement") -> str:
        """Return how two statements contradict each other; empty if they do not."""
        all_words = self.words | other.words
        if not all_words or len(self.words & other.words) < MIN_SHARED * len(all_words):
            return ""
        if self.is_denied != other.is_denied and self.values == other.values:
            return "one denies the other"
        if self.values and other.values and not self.is_denied and not other.is_denied:
            only_here = self.values - other.values
            only_there = other.values - self.values
            if only_here or only_there:
                return "another value"
        return ""


def _has_digit(term: str) -> bool:
    return any(map(str.isdigit, term))


def _said_at(fact: Fact) -> int:
    return fact.valid_at or fact.created_at
