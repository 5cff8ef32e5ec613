"""Score passages for a question: measure the evidence for each and add it up on fixed scales.

Without a vector:
    match = 4 words + 2.5 before + 0.8 near
With a vector, when every passage has one:
    match = 2.25 words + before + 0.8 near + (meaning - 0.1) / 0.12
Then:
    score = match + 2 tells_time + 0.6 length - 2 asks + 1.5 linked
        + entity (bonus + 0.35 max(0, match - 1)) + date (3 + 0.35 max(0, match - 1))

`words` is BM25 as a share of the best in the store, times sqrt(best / 12): many rare words found at
once can be trusted more than one common word.

While only a share of the passages has vectors, `match` lies between the two forms by that share; up
to a tenth, words alone count. A passage without a vector then counts as if its vector were better
than three quarters of those that are known, so it is not at a disadvantage. Scales that come from
the store are taken without a filter: no filter or limit changes a score.
"""

import re
from collections.abc import Collection, Mapping, Sequence
from functools import cache
from itertools import pairwise
from math import log, sqrt

from msgspec import Struct
from msgspec.structs import replace

from polymnia.model import CosineScale, Neighbours, Passage, PassageKey, Signals, WordCounts
from polymnia.search.dates import Period, agreement, tells_time, text_agreement
from polymnia.search.pieces import MAX_WHOLE_CHARACTERS, split_text
from polymnia.search.question import Question, request_terms, speaker_of
from polymnia.search.terms import fold, plain, terms_of

# BM25: the saturation of repeated words, and the penalty for long texts.
K1, B = 1.5, 0.7
# BM25 compares lengths with the average, or with this many words if the average is less: among
# short texts length matters little.
MIN_AVERAGE_WORDS = 100
# The lowest weight of a common term, as a share of a measure that never goes below zero.
MIN_RARITY_SHARE = 0.5
# A word in the name of its entity counts as much as this many in the text.
NAME_WORD_COUNT = 0.5
# From this many content words on, a question's rare words count more and its common ones less: of
# a long question only some words say what it is about.
LONG_QUESTION_TERMS = 12
# Two words of the question count as near each other up to this many words apart.
MAX_WORD_DISTANCE = 4
# The most that such words count together: in a long text they meet by chance.
MAX_NEAR = 1.0

WORDS, BEFORE, NEAR = 4.0, 2.5, 0.8
# How much less the words count when every passage has a vector.
WORDS_COVERED, BEFORE_COVERED = 1.75, 1.5
# The best BM25 score of a question at which words have just their weight, as in conversations, and
# the lowest that counts: in a memory of few passages every score is low.
USUAL_BEST, MIN_BEST = 12.0, 6.0
# Meaning counts once more than this share of the passages has vectors: a few vectors say little
# about a question.
MIN_COVERAGE = 0.1
# The cosine of unrelated texts, and the difference that counts 1, with the local model. Cosines of
# other models are put on this scale.
LOCAL_SCALE = CosineScale(0.1, 0.12)
DATE, TELLS_TIME, LENGTH, ASKS, LINKED = 3.0, 2.0, 0.6, -2.0, 1.5
MAX_LENGTH_WORDS = 60
# How much a question sentence counts that speaks of its author: "I have two cats, can you …?"
# states something, too.
FIRST_PERSON_SHARE = 0.25
# How much a preceding statement counts, compared with a question, whose answer probably follows.
STATEMENT_LEAD = 0.5
# A text with this many words depends on its neighbours half as much as an empty one.
HALF_CONTEXT_WORDS = 30
# The lowest bonus of a named entity, its growth with the entity's rarity, and the highest. An
# entity with a high bonus has few passages, so a wrong name puts only these before the answer.
MIN_ENTITY_BONUS, ENTITY_RARITY, MAX_ENTITY_BONUS = 0.75, 0.5, 4.0
# Names and dates grow with a match above 1, so that a wrong one raises only passages that match.
MATCH_SHARE = 0.35

# How much another phrasing of a question counts: a wrong guess at the answer does little harm.
ALSO_SHARE = 0.3

# Microseconds.
DAY = 86_400_000_000

# The name of a signal, its value and its weight.
WeightedSignal = tuple[str, float, float]

# Compiled at the first use: a server's start does not need them.
_compiled = cache(re.compile)
_SENTENCE = r"[^.!?\u2026\u3002\uff1f\n]+[.!?\u2026\u3002\uff1f\n]*"
_FIRST_PERSON = (
    r"(?i)\b(?:i|i[\u2019'](?:m|ve|d|ll)|my|me|mine|we|we[\u2019'](?:re|ve|d|ll)|our|us)\b"
)


class Matcher:
    """BM25 and word proximity for the weighted terms of a question, given how common they are.

    `forms` has terms that are other forms of a word: a rare spelling of a common word says no more
    than the word.
    """

    def __init__(
        self,
        terms: Mapping[str, float],
        counts: WordCounts,
        sequence: Sequence[str] = (),
        forms: Mapping[str, str] | None = None,
    ) -> None:
        self._counts = counts
        rarity = {term: _rarity(counts, term) for term in terms}
        known = [term for term in sequence if term in counts.having]
        emphasis = _emphasis(known, rarity)
        self._rarity: dict[str, float] = {}
        for term, share in terms.items():
            self._rarity[term] = share * rarity[term] * emphasis.get(term, 1.0)
        self._forms = forms or {}
        for form, term in self._forms.items():
            self._rarity[form] = min(self._rarity[form], self._rarity[term])
        average = counts.words / counts.passages if counts.passages else 0
        self._average = max(MIN_AVERAGE_WORDS, average)
        self._in_names: dict[str, Collection[str]] = {}
        asked = [self._rarity[term] for term in sequence if term in self._rarity]
        self._mean_rarity = sum(asked) / len(asked) if asked else 1.0
        self._pairs: list[tuple[str, str, float]] = []
        for one, other in pairwise(sequence):
            if one in self._rarity and other in self._rarity:
                lower = min(self._rarity[one], self._rarity[other])
                self._pairs.append((one, other, lower))

    def score(self, terms: Sequence[str], name: str = "") -> float:
        """Return the BM25 score of a text with these terms, of an entity with that name."""
        present, in_name = self._rarity.keys() & terms, self._in_name(name)
        if not present and not in_name:  # true of nearly all passages found by meaning
            return 0.0
        norm = K1 * (1 - B + B * len(terms) / self._average)
        total = 0.0
        for term, rarity in self._rarity.items():
            count: float = 0
            if term in present:
                count = terms.count(term)
            elif term in in_name:
                count = NAME_WORD_COUNT
            total += rarity * count * (K1 + 1) / (count + norm)
        return total

    def share(self, terms: Collection[str]) -> float:
        """Return the share of the question's words that these terms contain.

        It is the share by count or by rarity, whichever is larger. Another form of a word counts
        as the word.
        """
        present = {self._forms.get(term, term) for term in self._rarity.keys() & terms}
        asked = self._rarity.keys() - self._forms.keys()
        total = sum(self._rarity[term] for term in asked)
        by_rarity = 1.0
        if total:
            by_rarity = sum(self._rarity[term] for term in present) / total
        return max(by_rarity, len(present) / max(1, len(asked)))

    def with_asked_forms(self, terms: Collection[str]) -> set[str]:
        """Return the terms; another form of a word of the question counts as the word."""
        return {self._forms.get(term, term) for term in terms}

    def knows(self, term: str) -> bool:
        """Return True if a passage has the term, or another form of it."""
        forms = [form for form, meant in self._forms.items() if meant == term]
        return any(self._counts.having.get(form) for form in (term, *forms))

    def new_share(self, terms: Collection[str], known: Collection[str]) -> float:
        """Return the share of some terms of the question, by rarity, that are not known."""
        total = sum(self._rarity[term] for term in terms)
        if not total:
            return 0.0
        return sum(self._rarity[term] for term in terms if term not in known) / total

    def proximity(self, terms: Sequence[str]) -> float:
        """Return how close together neighbouring words of the question stand among the terms."""
        present = self._rarity.keys() & terms
        if len(present) < 2:
            return 0.0
        positions: dict[str, list[int]] = {term: [] for term in present}
        for position, term in enumerate(terms):
            if term in present:
                positions[term].append(position)
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
    """Return the shortest distance between numbers of two ascending lists; 0 if one is empty."""
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

    `terms` are its content words without the names in it; `widened` are terms it does not contain
    but probably means, each with its kind of match; `search_terms` are those that candidates are
    searched by, and `rare_terms` those of them that together occur in few passages. `bonuses` has
    what a named entity adds to its passages, `linked` the entities one relation away from it,
    `relation_terms` the words of these relations. `brevity` is how much the length of a text and
    the questions in it say in this store. `rarities` has how rare the terms are in English.
    """

    question: Question
    names: dict[str, float]
    bonuses: dict[str, float]
    linked: frozenset[str]
    terms: tuple[str, ...]
    widened: dict[str, str]
    corrected: frozenset[str]
    search_terms: tuple[str, ...]
    matcher: Matcher
    folded: str
    brevity: float = 1.0
    relation_terms: frozenset[str] = frozenset()
    rare_terms: tuple[str, ...] = ()
    rarities: dict[str, float] = {}

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
        question = replace(
            self.question,
            period=self.question.period or asked.question.period,
            asks_when=self.question.asks_when or asked.question.asks_when,
        )
        return replace(
            self,
            question=question,
            names=self.names | asked.names,
            bonuses=self.bonuses | asked.bonuses,
            linked=self.linked | asked.linked,
        )

    def subject(self, passage: Passage) -> str:
        """Return whom a passage is about: its entity or, if the question names it, its speaker."""
        if passage.entity not in self.names:
            speaker = speaker_of(passage.text)
            if speaker in self.names:
                return speaker
        return passage.entity

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

    `scale` are the passages whose best word score is the unit. `cosines` are by passage id, where
    there is a vector, also of the scale.
    """
    measures = _Measures(query, passages, neighbours, scale)
    gains = []
    if coverage < 1:
        for passage in scale:
            if passage.id in cosines:
                gains.append(measures.gain(passage, cosines[passage.id]))
    # The upper quartile: with the mean, a memory that is half embedded found less than by words.
    assumed = sorted(gains)[len(gains) * 3 // 4] if gains else 0.0
    scored = []
    for passage in passages:
        signals = measures.signals(passage, cosines.get(passage.id), assumed)
        total = score(signals, query.bonuses.get(query.subject(passage), 0.0), coverage)
        scored.append(ScoredPassage(passage, measures.terms[passage.key], signals, total, query))
    return scored


def fuse(scored: Sequence[Sequence[ScoredPassage]]) -> list[ScoredPassage]:
    """Join the scores of the same passages for a question and for other phrasings of it.

    The score of a passage moves towards that for the phrasing that it answers best, the further
    the more is new in the phrasings. It has the evidence for the text that it answers best.
    """
    asked, *others = scored
    if not asked or not others:
        return list(asked)
    known = asked[0].query.known_terms
    queries = [phrasing[0].query for phrasing in others]
    newest = max(query.matcher.new_share(query.terms, known) for query in queries)
    return [_fuse(versions, ALSO_SHARE * newest) for versions in zip(*scored, strict=True)]


def _fuse(versions: Sequence[ScoredPassage], weight: float) -> ScoredPassage:
    """Join the scores of one passage, the first of which is that for the question."""
    asked, *others = versions
    best_other = max(version.score for version in others)
    best = max(versions, key=lambda version: version.score)
    return replace(best, score=asked.score + weight * (best_other - asked.score))


def score(signals: Signals, bonus: float, coverage: float) -> float:
    """Add up the signals.

    `bonus` is what its entity adds when it is named, `coverage` the share that has vectors.
    """
    return sum(value * weight for _, value, weight in weigh(signals, bonus, coverage))


def weigh(signals: Signals, bonus: float, coverage: float) -> list[WeightedSignal]:
    """Return every signal with its weight: the score is the sum of their products.

    The value of `meaning` is the cosine above that of unrelated texts. Without a vector it is 0,
    and `assumed` counts instead.
    """
    share = coverage if coverage > MIN_COVERAGE else 0.0
    embedded, cosine_above = 0.0, 0.0
    if share and signals.meaning is not None:
        embedded = share
        cosine_above = signals.meaning - LOCAL_SCALE.zero
    matching = [
        ("words", signals.words, WORDS - WORDS_COVERED * embedded),
        ("before", signals.before, BEFORE - BEFORE_COVERED * embedded),
        ("near", signals.near, NEAR),
        ("meaning", cosine_above, embedded / LOCAL_SCALE.unit),
        ("assumed", signals.assumed, share - embedded),
    ]
    match = sum(value * weight for _, value, weight in matching)
    above = max(0.0, match - 1)
    return [
        *matching,
        ("entity", signals.entity, bonus + MATCH_SHARE * above),
        ("linked", signals.linked, LINKED),
        ("date", signals.date, DATE + MATCH_SHARE * above),
        ("tells_time", signals.tells_time, TELLS_TIME),
        ("length", signals.length, LENGTH),
        ("asks", signals.asks, ASKS),
    ]


def on_local_scale(cosine: float, scale: CosineScale) -> float:
    """Return what a cosine of a model with another scale would be with the local model."""
    return LOCAL_SCALE.zero + (cosine - scale.zero) / scale.unit * LOCAL_SCALE.unit


def entity_bonus(passages: int, own: int) -> float:
    """Return what being named adds to the passages of an entity that has `own` of all passages."""
    rarity = log(max(passages, 1) / max(own, 1))
    return min(MAX_ENTITY_BONUS, MIN_ENTITY_BONUS + ENTITY_RARITY * max(0.0, rarity))


def context_share(words: float) -> float:
    """Return how much a text with that many words depends on its neighbours.

    It is 1 for an empty text, and less the longer the text is.
    """
    return HALF_CONTEXT_WORDS / (HALF_CONTEXT_WORDS + words)


def is_turn(passage: Passage) -> bool:
    """Return True if what was written just before and after probably has the same topic.

    A fact that is true from a day on was noted, not said: the facts beside it are about other
    things.
    """
    return bool(passage.source) or not passage.valid_at or bool(passage.valid_at % DAY)


def brevity(counts: WordCounts) -> float:
    """Return how short the texts of a store are: 1 up to 30 words on average, then less.

    Among short texts, a longer one says more, and a question is no answer. Among long texts
    neither is true.
    """
    average = counts.words / counts.passages if counts.passages else 0
    return min(1.0, 2 * context_share(average))


def lead_share(text: str) -> float:
    """Return how much a text says about the next passage: 1 for a question, less otherwise."""
    return STATEMENT_LEAD + (1 - STATEMENT_LEAD) * question_share(text)


def question_share(text: str, first_person: float = 1.0) -> float:
    """Return the share of the words that stand in sentences that end with a question mark.

    Words of a question that speaks of its author count by `first_person`.
    """
    if "?" not in text and "\uff1f" not in text:
        return 0.0
    total, asking = 0, 0.0
    for sentence in _compiled(_SENTENCE).findall(text):
        words = len(sentence.split())
        total += words
        if "?" in sentence or "\uff1f" in sentence:
            is_own = first_person != 1 and _compiled(_FIRST_PERSON).search(sentence)
            share = first_person if is_own else 1.0
            asking += share * words
    return asking / total if total else 0.0


class _Measures:
    """The terms and word scores of passages, and the unit of these scores."""

    def __init__(
        self,
        query: Query,
        passages: Collection[Passage],
        neighbours: Mapping[PassageKey, Neighbours],
        scale: Collection[Passage],
    ) -> None:
        self._query = query
        self._before: dict[PassageKey, Passage] = {}
        for key, near in neighbours.items():
            if near.before is not None:
                self._before[key] = near.before
        self.terms: dict[PassageKey, list[str]] = {}
        self._words: dict[PassageKey, float] = {}
        for passage in [*passages, *scale, *self._before.values()]:
            if passage.key not in self.terms:
                terms = _best_terms(query, passage)
                self.terms[passage.key] = terms
                self._words[passage.key] = _word_score(query, passage, terms)
        best = max((self._words[passage.key] for passage in scale), default=0.0)
        self._unit = best or 1.0
        if query.search_terms:  # a substring match has no BM25 score
            self._unit /= sqrt(max(best, MIN_BEST) / USUAL_BEST)

    def gain(self, passage: Passage, cosine: float) -> float:
        """Return how much a passage's vector adds to its match when all passages have one."""
        meaning = (cosine - LOCAL_SCALE.zero) / LOCAL_SCALE.unit
        words = self._words[passage.key] / self._unit
        before = self._before_signal(passage, len(passage.words.split()))
        return meaning - WORDS_COVERED * words - BEFORE_COVERED * before

    def signals(self, passage: Passage, meaning: float | None, assumed: float) -> Signals:
        query, terms = self._query, self.terms[passage.key]
        question = query.question
        count = len(passage.words.split())
        names_entity = 0.0
        if passage.kind != "entity":
            names_entity = query.names.get(query.subject(passage), 0.0)
        return Signals(
            words=self._words[passage.key] / self._unit,
            before=self._before_signal(passage, count),
            meaning=meaning,
            assumed=assumed if meaning is None else 0.0,
            near=query.matcher.proximity(terms),
            entity=names_entity,
            linked=float(passage.entity in query.linked),
            date=_date_agreement(question.period, passage),
            tells_time=float(question.asks_when and tells_time(terms)),
            length=query.brevity**2 * log(1 + min(count, MAX_LENGTH_WORDS)),
            asks=query.brevity**2 * question_share(passage.text, FIRST_PERSON_SHARE),
        )

    def _before_signal(self, passage: Passage, count: int) -> float:
        earlier = self._before.get(passage.key)
        if earlier is None or not self._words[earlier.key]:
            return 0.0
        if earlier.entity == passage.entity:
            return 0.0  # the previous message of the same person rarely leads to this one
        share = 2 * context_share(count) * lead_share(earlier.text)
        return share * self._words[earlier.key] / self._unit


def _date_agreement(period: Period | None, passage: Passage) -> float:
    if period is None:
        return 0.0
    at = passage.valid_at or passage.created_at
    return max(agreement(period, at), text_agreement(period, passage.text, at))


def best_piece(query: Query, passage: Passage) -> str:
    """Return the piece of a long text that answers the question best; a short text as it is."""
    pieces = split_text(passage.words)
    if len(pieces) == 1:
        return pieces[0]
    return max(pieces, key=lambda piece: query.matcher.score(terms_of(piece)))


def _best_terms(query: Query, passage: Passage) -> list[str]:
    return terms_of(best_piece(query, passage))


def _word_score(query: Query, passage: Passage, terms: Sequence[str]) -> float:
    """Return BM25. If no word of the question is known, return 1 for a substring.

    A long text has that of its best piece or of all of it: a long question may match everywhere.
    """
    if not query.search_terms:
        return float(query.is_in(passage))
    best = query.matcher.score(terms, passage.entity)
    if len(passage.words) > MAX_WHOLE_CHARACTERS:
        best = max(best, query.matcher.score(terms_of(passage.words), passage.entity))
    return best


def _emphasis(terms: Sequence[str], rarity: Mapping[str, float]) -> dict[str, float]:
    """Return how much more or less each term of a long question counts than by its rarity.

    The longer the question, the closer its terms come to counting by the square of it.
    """
    if len(terms) <= LONG_QUESTION_TERMS:
        return {}
    exponent = 1 - LONG_QUESTION_TERMS / len(terms)
    mean = sum([rarity[term] for term in terms]) / len(terms)
    return {term: (rarity[term] / mean) ** exponent for term in terms}


def _rarity(counts: WordCounts, term: str) -> float:
    """Return the weight of a term by its rarity, positive even for a term that most texts have."""
    having = counts.having.get(term, 0)
    odds = (counts.passages - having + 0.5) / (having + 0.5)
    return max(log(odds), MIN_RARITY_SHARE * log(1 + odds))
