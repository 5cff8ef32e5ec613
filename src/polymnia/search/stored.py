"""Tell whether anything about a question is stored, from the hits in one or several memories."""

from collections.abc import Collection, Sequence
from functools import cache

from msgspec import Struct

from polymnia.model import Hit
from polymnia.search.hits import EXACT_KINDS, MatchQuality
from polymnia.search.languages import language_of
from polymnia.search.question import request_terms, words_with
from polymnia.search.scoring import DAY, Query
from polymnia.search.terms import terms_of

# GAP times how far the highest cosine of the first ten hits stands out from those further down,
# plus TOPIC times how much of the topic is covered, less UNKNOWN_NAME if the question has a name
# that no passage has. The cosine itself does not carry over: unrelated turns of a conversation have
# 0.26 in common with a question, unrelated facts of an agent 0.06. Words count by their rarity in
# English, because in a memory of a hundred facts "old" is as rare as "invoice". The weights are
# those of a logistic regression on nine users' facts and two collections of conversations, rounded;
# docs/benchmarks.md has what it catches.
GAP, TOPIC, UNKNOWN_NAME = 9.3, 2.3, 1.5
MIN_PERHAPS, MIN_STORED = 1.5, 2.05
# Of turns of a conversation, more are told apart at the same price. Hits are turns if most of the
# nearest ones were said at a time of day.
MIN_STORED_TURNS = 2.45
NEAREST_HITS, MATCHING_HITS = 10, 5
# Hits that show what an unrelated passage has in common with the question. If there are few, the
# usual cosine counts as so many of them.
BACKGROUND_FROM, BACKGROUND_HITS = 5, 60
USUAL_COSINE, USUAL_COUNT = 0.1, 5
# Among fewer facts with a vector, a question in other words than its answer has as little in common
# with it as with the rest ("Which database do we use?", "runs on PostgreSQL").
MIN_COMPARED = 20
# Words that say nothing about the topic of a question.
_VAGUE_WORDS = """
use used using have has get got go went come run make made do know name called kind type many much
long often big large like want need thing people person someone somebody mean happen say said told
list show belong
"""
# Words with a capital letter that are no names.
_CALENDAR = """
monday tuesday wednesday thursday friday saturday sunday january february march april may june july
august september october november december christmas easter ok okay
"""


class Support(Struct, frozen=True):
    """What the hits in one memory say about whether the topic of a question is stored.

    `is_certain`: a passage equals the question or is of the time that it names. `is_named`: the
    question names an entity, or a part of it. `is_weak`: the first hits have little in common with
    it. `cosines` are those of the hits, and none if the best fact has no vector: what was just
    written has none yet, so the others say nothing about it. `nearest` is the highest of the first
    ones. `covered` is the share of the topic that is stored. `has_unknown_name`: the question has a
    name that no passage has. `is_said`: most of the hits are turns of a conversation.
    """

    is_certain: bool = False
    is_named: bool = False
    is_weak: bool = True
    cosines: tuple[float, ...] = ()
    nearest: float = 0.0
    covered: float = 0.0
    has_unknown_name: bool = False
    is_said: bool = False


def support_of(hits: Sequence[Hit], query: Query) -> Support:
    """Return what the hits in one memory, best first, say about a question."""
    is_certain = bool(hits) and hits[0].match_kind in EXACT_KINDS
    if query.question.period is not None:  # a date says more than words
        is_certain |= any(hit.signals.date > 0 for hit in hits[:NEAREST_HITS])
    is_named = any(hit.signals.entity > 0 for hit in hits[:MATCHING_HITS])
    is_weak = all(hit.is_weak for hit in hits[:3])
    facts = [hit for hit in hits if hit.passage.kind != "entity"]  # a card never has a vector
    if not facts or facts[0].signals.meaning is None:
        return Support(is_certain, is_named, is_weak)
    topic = _topic(query)
    turns = sum(bool(hit.passage.valid_at % DAY) for hit in hits[:NEAREST_HITS])
    return Support(
        is_certain,
        is_named,
        is_weak,
        tuple(_cosines(hits[:BACKGROUND_HITS])),
        max(_cosines(facts[:NEAREST_HITS])),
        _topic_coverage(hits, query, topic),
        _has_unknown_name(query, topic),
        turns > NEAREST_HITS / 2,
    )


def match_quality(supports: Sequence[Support]) -> MatchQuality:
    """Return whether the memories seem to answer the question; "none" if nothing about it is there.

    They are judged together: among the four facts of a small memory, each stands out. It can tell
    that a topic is missing, not that a detail is. By words alone it never says "none".
    """
    if any(support.is_certain for support in supports):
        return "clear"
    # A question that names an entity, or a part of it, is not about nothing, whatever it asks.
    is_named = any(support.is_named for support in supports)
    compared = [support for support in supports if support.cosines]
    if not compared:
        is_weak = all(support.is_weak for support in supports)
        return "perhaps" if is_weak and not is_named else "clear"
    if any(not support.cosines and not support.is_weak for support in supports):
        return "clear"
    weight = evidence(compared)
    count = sum(len(support.cosines) for support in compared)
    if weight < MIN_PERHAPS and count >= MIN_COMPARED and not is_named:
        return "none"
    is_said = max(compared, key=lambda support: support.nearest).is_said
    least = MIN_STORED_TURNS if is_said else MIN_STORED
    return "perhaps" if weight < least else "clear"


def evidence(supports: Sequence[Support]) -> float:
    """Return how much speaks for it that the topic is stored in one of the memories."""
    cosines: list[float] = []
    for support in supports:
        cosines += support.cosines
    others = sorted(cosines, reverse=True)[BACKGROUND_FROM:]
    background = (sum(others) + USUAL_COSINE * USUAL_COUNT) / (len(others) + USUAL_COUNT)
    nearest = max(support.nearest for support in supports)
    covered = max(support.covered for support in supports)
    weight = GAP * (nearest - background) + TOPIC * covered
    if all(support.has_unknown_name for support in supports):
        weight -= UNKNOWN_NAME
    return weight


def unknown_words(query: Query) -> tuple[str, ...]:
    """Return the words of the question, as they are written, that no passage has.

    Those that say little are left out.
    """
    unknown = set()
    for term in query.terms:
        if not _is_stored(query, term) and term not in _vague_terms():
            unknown.add(term)
    return tuple(dict.fromkeys(words_with(query.question.text, unknown)))


def _topic(query: Query) -> list[str]:
    """Return the terms of the question without names: what is asked about them.

    A known word with a capital letter is a name, too: facts that mention Paloma do not tell her
    gym.
    """
    named: set[str] = set()
    for name in query.names:
        named.update(terms_of(name))
    topic = []
    for term in query.terms:
        is_name = term in query.question.capitalised and query.matcher.knows(term)
        if not is_name and term not in named and term not in _vague_terms():
            topic.append(term)
    return topic


def _topic_coverage(hits: Sequence[Hit], query: Query, topic: Sequence[str]) -> float:
    """Return how much of the topic is stored: the mean of its share in one hit and in the memory.

    A question without a topic ("what happened?") is covered.
    """
    shares = []
    for hit in hits[:MATCHING_HITS]:
        terms = terms_of(f"{hit.passage.entity} {hit.passage.words}")
        present = query.matcher.with_asked_forms(query.relation_terms.union(terms))
        shares.append(_share(query, topic, present))
    stored = [term for term in topic if _is_stored(query, term)]
    return (max(shares) + _share(query, topic, stored)) / 2


def _has_unknown_name(query: Query, topic: Sequence[str]) -> bool:
    """Return True if a word with a capital letter is in no passage: "Which Kubernetes version …".

    In other languages than English, such a word need not be a name.
    """
    if language_of(query.question.text):
        return False
    names = query.question.capitalised.intersection(topic).difference(_calendar_terms())
    return any(not _is_stored(query, name) for name in names)


def _share(query: Query, topic: Sequence[str], present: Collection[str]) -> float:
    """Return the share of the topic, by rarity in English, that these terms contain."""
    total = sum(query.rarities.get(term, 0.0) for term in topic)
    if not total:
        return 1.0
    return sum(query.rarities.get(term, 0.0) for term in topic if term in present) / total


def _is_stored(query: Query, term: str) -> bool:
    return term in query.relation_terms or query.matcher.knows(term)


def _cosines(hits: Sequence[Hit]) -> list[float]:
    return [hit.signals.meaning for hit in hits if hit.signals.meaning is not None]


@cache
def _calendar_terms() -> frozenset[str]:
    return frozenset(terms_of(_CALENDAR))


@cache
def _vague_terms() -> frozenset[str]:
    return request_terms().union(terms_of(_VAGUE_WORDS))
