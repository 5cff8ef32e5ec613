"""Score passages for a question: measure the evidence for each and add it up on fixed scales.

    match = 4 words + 2.5 before + 0.3 near                                   without a vector
    match = 2 words + 0.8 before + 0.3 near + (meaning - 0.1) / 0.12          with a vector, when every passage has one
    score = match + 2.8 tells_time + 0.7 length - 2 asks + 0.5 linked
        + entity (bonus + 0.35 max(0, match - 1)) + date (3 + 0.35 max(0, match - 1))

While only a share of the passages has vectors, `match` lies between the two forms by that share; up to a tenth, words
alone count. A passage without a vector then counts as if its vector were better than three quarters of those that are
known, so it is not at a disadvantage. Scales that come from the store are taken without a filter: no filter or limit
changes a score.
"""

import re
from collections.abc import Collection, Mapping, Sequence
from itertools import pairwise
from math import log

from msgspec import Struct
from msgspec.structs import replace

from polymnia.model import Neighbours, Passage, PassageKey, Signals, WordCounts
from polymnia.search.dates import Period, agreement, tells_time, text_agreement
from polymnia.search.question import Question, request_terms
from polymnia.search.terms import plain, terms_of
from polymnia.search.text import fold

# BM25: the saturation of repeated words, and the penalty for long texts.
K1, B = 1.5, 0.7
# BM25 compares lengths with the average, or with this many words if the average is less: among short texts length
# matters little.
MIN_AVERAGE_WORDS = 100
# The lowest weight of a common term, as a share of a measure that never goes below zero.
MIN_RARITY_SHARE = 0.5
# A word in the name of its entity counts as much as this many in the text.
NAME_WORD_COUNT = 0.5
# Two words of the question count as near each other up to this many words apart.
MAX_WORD_DISTANCE = 4
# The most that such words count together: in a long text they meet by chance.
MAX_NEAR = 1.0

WORDS, BEFORE, NEAR = 4.0, 2.5, 0.3
# How much less the words count when every passage has a vector.
WORDS_COVERED, BEFORE_COVERED = 2.0, 1.7
# Meaning counts once more than this share of the passages has vectors: a few vectors say little about a question.
MIN_COVERAGE = 0.1
# The cosine of unrelated texts, and the difference that counts 1.
COSINE_ZERO, COSINE_UNIT = 0.1, 0.12
DATE, TELLS_TIME, LENGTH, ASKS, LINKED = 3.0, 2.8, 0.7, -2.0, 0.5
MAX_LENGTH_WORDS = 60
# How much a preceding statement counts, compared with a question, whose answer probably follows.
STATEMENT_LEAD = 0.5
# A text with this many words depends on its neighbours half as much as an empty one.
HALF_CONTEXT_WORDS = 30
# The lowest bonus of a named entity, its growth with the entity's rarity, and the highest. An entity with a high bonus
# has few passages, so a wrong name puts only these few before the answer.
MIN_ENTITY_BONUS, ENTITY_RARITY, MAX_ENTITY_BONUS = 0.75, 0.5, 4.0
# Both grow with a match above 1, so that a wrong name or a wrong date raises only passages that match.
MATCH_SHARE = 0.35

# How much another phrasing of a question counts: a wrong guess at the answer then does little harm.
ALSO_SHARE = 0.3

# The name of a signal, its value and its weight.
WeightedSignal = tuple[str, float, float]

_SENTENCE = re.compile(r"[^.!?\u2026\u3002\uff1f\n]+[.!?\u2026\u3002\uff1f\n]*")


class Matcher:
    """BM25 and word proximity for the weighted terms of a question, given how common they are.

    `forms` has terms that are other forms of a word: a rare spelling of a common word says no more than the word.
    """

    def __init__(
        self,
        terms: Mapping[str, float],
        counts: WordCounts,
        sequence: Sequence[str] = (),
        forms: Mapping[str, str] | None = None,
    ) -> None:
        self._rarity = {term: share * _rarity(counts, term) for term, share in terms.items()}
        self._forms = forms or {}
        for form, term in self._forms.items():
            self._rarity[form] = min(self._rarity[form], self._rarity[term])
        self._average = max(
            MIN_AVERAGE_WORDS, counts.words / counts.passages if counts.passages else 0
        )
        self._in_names: dict[str, Collection[str]] = {}
        asked = [self._rarity[term] for term in sequence if term in self._rarity]
        self._mean_rarity = sum(asked) / len(asked) if asked else 1.0
        self._pairs = [
            (one, other, min(self._rarity[one], self._rarity[other]))
            for one, other in pairwise(sequence)
            if one in self._rarity and other in self._rarity
        ]

    def score(self, terms: Sequence[str], name: str = "") -> float:
        """Return the BM25 score of a text with these terms, of an entity with that name."""
        present, in_name = self._rarity.keys() & terms, self._in_name(name)
        if not present and not in_name:  # true of nearly all passages found by meaning
            return 0.0
        norm = K1 * (1 - B + B * len(terms) / self._average)
        total = 0.0
        for term, rarity in self._rarity.items():
            count = (
                terms.count(term) if term in present else NAME_WORD_COUNT if term in in_name else 0
            )
            total += rarity * count * (K1 + 1) / (count + norm)
        return total

    def share(self, terms: Collection[str]) -> float:
        """Return the share of the question's words that these terms contain, by count or by rarity, the larger one.

        Another form of a word counts as the word.
        """
        present = {self._forms.get(term, term) for term in self._rarity.keys() & terms}
        asked = self._rarity.keys() - self._forms.keys()
        total = sum([self._rarity[term] for term in asked])
        by_rarity = sum([self._rarity[term] for term in present]) / total if total else 1.0
        return max(by_rarity, len(present) / max(1, len(asked)))

    def new_share(self, terms: Collection[str], known: Collection[str]) -> float:
        """Return the share of some terms of the question, by rarity, that are not known."""
        total = sum([self._rarity[term] for term in terms])
        return (
            sum([self._rarity[term] for term in terms if term not in known]) / total
            if total
            else 0.0
        )

    def proximity(self, terms: Sequence[str]) -> float:
        """Return how close together neighbouring words of the question stand among the terms."""
        present = self._rarity.keys() & terms
        if len(present) < 2:
            return 0.0
        positions = {
            term: [at for at, each in enumerate(terms) if each == term] for term in present
        }
        total = 0.0
        for one, other, rarity in self._pairs:
            distance = _shortest_distance(positions.get(one, []), positions.get(other, []))
            if 0 < distance <= MAX_WORD_DISTANCE:
                total += rarity / distance
        return min(MAX_NEAR, total / self._mean_rarity)

    def _in_name(self, name: str) -> Collection[str]:
        """Return the terms that a name contains; many passages share one entity."""
        known = self._in_names.get(name)
        if known is None:
            words = f" {plain(name)}"
            known = self._in_names[name] = [term for term in self._rarity if f" {term}" in words]
        return known


def _shortest_distance(ones: Sequence[int], others: Sequence[int]) -> int:
    """Return the shortest distance between a number of each ascending list, in one pass; 0 if one is empty."""
    if not ones or not others:
        return 0
    shortest, at, beside = abs(ones[0] - others[0]), 0, 0
    while at < len(ones) and beside < len(others):
        shortest = min(shortest, abs(ones[at] - others[beside]))
        if ones[at] < others[beside]:
            at += 1
        else:
            beside += 1
    return shortest


class Query(Struct, frozen=True):
    """A question prepared for one store: spelling corrected, names resolved, words weighted.

    `terms` are its content words without the names in it; `widened` are terms it does not contain but probably means,
    each with its kind of match. `bonuses` has what each named entity adds to its passages. `brevity` is how much the
    length of a text and the questions in it say in this store.
    """

    question: Question
    names: dict[str, float]
    bonuses: dict[str, float]
    linked: frozenset[str]
    terms: tuple[str, ...]
    widened: dict[str, str]
    corrected: frozenset[str]
    find_by: tuple[str, ...]
    matcher: Matcher
    folded: str
    brevity: float = 1.0

    @property
    def whole_names(self) -> list[str]:
        """The entities whose whole name the question contains."""
        return [name for name, share in self.names.items() if share == 1]

    @property
    def known_terms(self) -> frozenset[str]:
        """The terms that another phrasing must go beyond."""
        return request_terms().union(self.question.content)

    def about_the_same(self, asked: "Query") -> "Query":
        """Return the query with the names of another, its date, and whether it asks for a time.

        A guess at the answer hardly repeats them.
        """
        period, asks_when = self.question.period or asked.question.period, asked.question.asks_when
        return replace(
            self,
            question=replace(
                self.question, period=period, asks_when=asks_when or self.question.asks_when
            ),
            names=self.names | asked.names,
            bonuses=self.bonuses | asked.bonuses,
            linked=self.linked | asked.linked,
        )

    def is_in(self, passage: Passage) -> bool:
        """Return True if the passage contains the question as a substring."""
        return bool(self.folded) and self.folded in fold(passage.words)


class ScoredPassage(Struct, frozen=True):
    """A passage, its terms, the evidence for it, its score, and the query that they answer."""

    passage: Passage
    terms: list[str]
    signals: Signals
    score: float
    query: Query


def score_passages(
    query: Query,
    passages: Collection[Passage],
    neighbours: Mapping[PassageKey, Neighbours],
    cosines: Mapping[int, float],
    *,
    scale: Collection[Passage],
    coverage: float,
) -> list[ScoredPassage]:
    """Score all passages.

    `scale` are the passages whose best word score is the unit. `cosines` are by passage id, where there is a vector,
    also of the scale.
    """
    measures = _Measures(query, passages, neighbours, scale)
    gains = (
        []
        if coverage >= 1
        else [measures.gain(each, cosines[each.id]) for each in scale if each.id in cosines]
    )
    assumed = sorted(gains)[len(gains) * 3 // 4] if gains else 0.0
    scored = []
    for passage in passages:
        signals = measures.signals(passage, cosines.get(passage.id), assumed)
        total = score(signals, query.bonuses.get(passage.entity, 0.0), coverage)
        scored.append(ScoredPassage(passage, measures.terms[passage.key], signals, total, query))
    return scored


def fuse(scored: Sequence[Sequence[ScoredPassage]]) -> list[ScoredPassage]:
    """Join the scores of the same passages for a question and for other phrasings of it.

    The score of a passage moves towards that for the phrasing that it answers best, the further the more is new in
    the phrasings. It has the evidence for the text that it answers best.
    """
    asked, *others = scored
    if not asked or not others:
        return list(asked)
    known, queries = asked[0].query.known_terms, [each[0].query for each in others]
    weight = ALSO_SHARE * max([each.matcher.new_share(each.terms, known) for each in queries])
    return [_fuse(each, weight) for each in zip(*scored, strict=True)]


def score(signals: Signals, bonus: float, coverage: float) -> float:
    """Add up the signals; `bonus` is what its entity adds when it is named, `coverage` the share that has vectors."""
    return sum([value * weight for _, value, weight in weigh(signals, bonus, coverage)])


def weigh(signals: Signals, bonus: float, coverage: float) -> list[WeightedSignal]:
    """Return every signal with its weight: the score is the sum of their products.

    The value of `meaning` is the cosine above that of unrelated texts, and 0 without a vector; then `assumed` counts.
    """
    share = coverage if coverage > MIN_COVERAGE else 0.0
    embedded = share if signals.meaning is not None else 0.0
    matching = [
        ("words", signals.words, WORDS - WORDS_COVERED * embedded),
        ("before", signals.before, BEFORE - BEFORE_COVERED * embedded),
        ("near", signals.near, NEAR),
        (
            "meaning",
            (signals.meaning or 0.0) - COSINE_ZERO if embedded else 0.0,
            embedded / COSINE_UNIT,
        ),
        ("assumed", signals.assumed, share - embedded),
    ]
    above = max(0.0, sum([value * weight for _, value, weight in matching]) - 1)
    return [
        *matching,
        ("entity", signals.entity, bonus + MATCH_SHARE * above),
        ("linked", signals.linked, LINKED),
        ("date", signals.date, DATE + MATCH_SHARE * above),
        ("tells_time", signals.tells_time, TELLS_TIME),
        ("length", signals.length, LENGTH),
        ("asks", signals.asks, ASKS),
    ]


def entity_bonus(passages: int, own: int) -> float:
    """Return what being named adds to the passages of an entity that has `own` of all passages."""
    rarity = log(max(passages, 1) / max(own, 1))
    return min(MAX_ENTITY_BONUS, MIN_ENTITY_BONUS + ENTITY_RARITY * max(0.0, rarity))


def context_share(words: float) -> float:
    """Return how much a text with that many words depends on its neighbours: 1 if empty, less the longer it is."""
    return HALF_CONTEXT_WORDS / (HALF_CONTEXT_WORDS + words)


def brevity(counts: WordCounts) -> float:
    """Return how short the texts of a store are: 1 up to 30 words on average, less the longer they are.

    Among short texts, a longer one says more, and a question is no answer. Of long ones this is not true.
    """
    return min(1.0, 2 * context_share(counts.words / counts.passages if counts.passages else 0))


def lead_share(text: str) -> float:
    """Return how much a text says about the passage after it: 1 for a question, less for a statement."""
    return STATEMENT_LEAD + (1 - STATEMENT_LEAD) * question_share(text)


def question_share(text: str) -> float:
    """Return the share of the words that stand in sentences that end with a question mark."""
    if "?" not in text and "\uff1f" not in text:
        return 0.0
    sentences = [
        (len(each.split()), "?" in each or "\uff1f" in each) for each in _SENTENCE.findall(text)
    ]
    total = sum([count for count, _ in sentences])
    return sum([count for count, asks in sentences if asks]) / total if total else 0.0


def _fuse(scored: Sequence[ScoredPassage], weight: float) -> ScoredPassage:
    asked, *others = scored
    best = max([each.score for each in others])
    return replace(
        max(scored, key=lambda each: each.score), score=asked.score + weight * (best - asked.score)
    )


class _Measures:
    """What the evidence for passages is measured with: their terms and word scores, and the best of these."""

    def __init__(
        self,
        query: Query,
        passages: Collection[Passage],
        neighbours: Mapping[PassageKey, Neighbours],
        scale: Collection[Passage],
    ) -> None:
        self._query = query
        self._before = {
            key: near.before for key, near in neighbours.items() if near.before is not None
        }
        measured = {each.key: each for each in [*passages, *scale, *self._before.values()]}
        self.terms = {key: terms_of(each.words) for key, each in measured.items()}
        self._words = {
            key: _word_score(query, each, self.terms[key]) for key, each in measured.items()
        }
        self._unit = max([self._words[each.key] for each in scale], default=0.0) or 1.0

    def gain(self, passage: Passage, cosine: float) -> float:
        """Return how much better the match of a passage is with its vector than without, when all have one."""
        before = self._before_signal(passage, len(passage.words.split()))
        words = self._words[passage.key] / self._unit
        return (
            (cosine - COSINE_ZERO) / COSINE_UNIT - WORDS_COVERED * words - BEFORE_COVERED * before
        )

    def signals(self, passage: Passage, meaning: float | None, assumed: float) -> Signals:
        query, terms = self._query, self.terms[passage.key]
        question = query.question
        count = len(passage.words.split())
        return Signals(
            words=self._words[passage.key] / self._unit,
            before=self._before_signal(passage, count),
            meaning=meaning,
            assumed=assumed if meaning is None else 0.0,
            near=query.matcher.proximity(terms),
            entity=query.names.get(passage.entity, 0.0) if passage.kind != "entity" else 0.0,
            linked=1.0 if passage.entity in query.linked else 0.0,
            date=_date_agreement(question.period, passage) if question.period else 0.0,
            tells_time=1.0 if question.asks_when and tells_time(terms) else 0.0,
            length=query.brevity * log(1 + min(count, MAX_LENGTH_WORDS)),
            asks=query.brevity * question_share(passage.text),
        )

    def _before_signal(self, passage: Passage, count: int) -> float:
        earlier = self._before.get(passage.key)
        if earlier is None or not (words := self._words[earlier.key]):
            return 0.0
        return 2 * context_share(count) * lead_share(earlier.text) * words / self._unit


def _date_agreement(period: Period, passage: Passage) -> float:
    at = passage.valid_at or passage.created_at
    return max(agreement(period, at), text_agreement(period, passage.text, at))


def _word_score(query: Query, passage: Passage, terms: Sequence[str]) -> float:
    """Return BM25 or, when no word of the question is known, whether the passage contains its characters."""
    return (
        query.matcher.score(terms, passage.entity) if query.find_by else float(query.is_in(passage))
    )


def _rarity(counts: WordCounts, term: str) -> float:
    """Return the weight of a term by its rarity. It is positive even if most passages contain the term."""
    having = counts.having.get(term, 0)
    odds = (counts.passages - having + 0.5) / (having + 0.5)
    return max(log(odds), MIN_RARITY_SHARE * log(1 + odds))
