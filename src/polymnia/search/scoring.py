"""Score passages for a question: one formula, whose weights stand in one table.

    score = sum of signal x weight
    words + before + meaning             how well the text matches
    entity + date + tells_time           what the question names
    length - asks                        how much a text of that kind says

`words` is BM25 in units of 12, what the best turn of a conversation usually has. `meaning` is the
cosine of text and question above that of unrelated texts, in units of 0.12. WEIGHTS has a column
for passages without a vector, whose words must say everything, one for turns of a conversation, and
one for facts: the vectors of short ones have the name of the entity, and a short fact says as much
as a long one.

Every signal is on a fixed scale, so no other passage, filter or limit changes a score, and the hits
of several memories can be compared. Nothing reorders passages after the score.

The numbers come from backward elimination on LoCoMo, two-person chats, LongMemEval, BEAM (100K),
Cranfield and CISI: what could go without loss went. The column of facts was chosen on the nine
users of bench/agents, BEAM and Cranfield; leaving any of them out chooses the same.
`docs/benchmarks.md` has the figures, and `python -m bench.recall` measures them.
"""

import re
from collections.abc import Collection, Mapping, Sequence
from functools import cache
from math import log
from operator import mul

from msgspec import Struct
from msgspec.structs import replace

from polymnia.model import CosineScale, Neighbours, Passage, PassageKey, Signals, WordCounts
from polymnia.search.dates import agreement, tells_time, text_agreement
from polymnia.search.pieces import MAX_WHOLE_CHARACTERS, split_text
from polymnia.search.question import Question, request_terms, speaker_of
from polymnia.search.terms import fold, plain, terms_of

# What each signal counts: without a vector, for a turn, and for a fact.
WEIGHTS: dict[str, tuple[float, float, float]] = {
    "words": (4.0, 2.25, 2.25),
    "before": (2.5, 1.0, 0.0),  # of turns only
    "meaning": (0.0, 1.0, 1.75),
    "entity": (2.0, 2.0, 2.0),  # with 4, a question with a wrong name loses 30 points
    "date": (3.0, 3.0, 3.0),
    "tells_time": (2.0, 2.0, 2.0),
    "length": (0.15, 0.6, 0.15),
    "asks": (-2.0, -2.0, -2.0),
}
_COLUMNS = tuple(zip(*WEIGHTS.values(), strict=True))
# The unit of `words`, and that of `meaning` with its zero: the cosine of unrelated texts with the
# local model. Cosines of other models are put on this scale.
USUAL_BEST = 12.0
LOCAL_SCALE = CosineScale(0.1, 0.12)
# BM25: the saturation of repeated words, and the penalty for long texts. It compares lengths with
# the average, or with 100 words if the average is less: among short texts length matters little.
K1, B, MIN_AVERAGE_WORDS = 1.5, 0.7, 100
# A word in the name of its entity counts as much as this many in the text.
NAME_WORD_COUNT = 0.5
# From this many content words on, a question's rare words count more and its common ones less: of
# a long question only some words say what it is about.
LONG_QUESTION_TERMS = 12
# How much a preceding statement counts, compared with a question, whose answer probably follows.
STATEMENT_LEAD = 0.5
# A text with this many words depends on what precedes it half as much as an empty one, with whose
# vector those of the two turns before it are mixed. One with twice as many is long.
HALF_CONTEXT_WORDS = 30
# How much another phrasing of a question counts: a wrong guess at the answer does little harm.
ALSO_SHARE = 0.3

# The name of a signal, its value and its weight.
WeightedSignal = tuple[str, float, float]

# Compiled at the first use: a server's start does not need them.
_compiled = cache(re.compile)
_SENTENCE = r"[^.!?\u2026\u3002\uff1f\n]+[.!?\u2026\u3002\uff1f\n]*"


class Matcher:
    """BM25 for the weighted terms of a question, given how common they are.

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

    def score(self, terms: Sequence[str], name: str = "") -> float:
        """Return the BM25 score of a text with these terms, of an entity with that name."""
        present, in_name = self._rarity.keys() & terms, self._in_name(name)
        if not present and not in_name:  # true of nearly all passages found by meaning
            return 0.0
        norm = K1 * (1 - B + B * len(terms) / self._average)
        total = 0.0
        # In this order, because that of a set differs between processes, and so would the sum.
        for term, rarity in self._rarity.items():
            if term in present:
                count: float = terms.count(term)
            elif term in in_name:
                count = NAME_WORD_COUNT
            else:
                continue
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

    def _in_name(self, name: str) -> Collection[str]:
        """Return the terms that a name contains; many passages share one entity."""
        known = self._in_names.get(name)
        if known is None:
            words = f" {plain(name)}"
            known = self._in_names[name] = [term for term in self._rarity if f" {term}" in words]
        return known


class Query(Struct, frozen=True, kw_only=True):
    """A question prepared for one memory: names resolved, words weighted.

    `names` are the entities that it names, each with the share of the name that it contains.
    `terms` are its content words without these names. `widened` are terms of the memory that it
    does not contain but probably means, each with its kind of match. `search_terms` are those that
    passages are looked up by, and `rare_terms` those of them that few passages have. `brevity` says
    how short the texts of this memory are.
    """

    question: Question
    names: dict[str, float]
    terms: tuple[str, ...]
    search_terms: tuple[str, ...]
    matcher: Matcher
    folded: str
    rare_terms: tuple[str, ...] = ()
    widened: dict[str, str] = {}
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
        question = replace(
            self.question,
            period=self.question.period or asked.question.period,
            asks_when=self.question.asks_when or asked.question.asks_when,
        )
        return replace(self, question=question, names=self.names | asked.names)

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
) -> list[ScoredPassage]:
    """Score passages. `cosines` are by passage id, where there is a vector."""
    question = query.question
    # A turn is often also the one before another.
    word_scores: dict[PassageKey, tuple[list[str], float]] = {}

    def match_words(passage: Passage) -> tuple[list[str], float]:
        """Return the terms of a passage, or of its best piece, and its BM25 score."""
        known = word_scores.get(passage.key)
        if known is None:
            known = word_scores[passage.key] = _match_words(query, passage)
        return known

    scored = []
    for passage in passages:
        is_turn = passage.is_turn
        text = passage.words
        count = len(text.split())
        near = neighbours.get(passage.key) if is_turn else None
        if near is None:
            terms, words = _match_words(query, passage)
        else:
            terms, words = match_words(passage)
        before = 0.0
        earlier = near.before if near is not None else None
        # The previous message of the same person rarely leads to this one.
        if earlier is not None and earlier.entity != passage.entity:
            _, words_before = match_words(earlier)
            lead = STATEMENT_LEAD + (1 - STATEMENT_LEAD) * question_share(earlier.text)
            before = 2 * context_share(count) * lead * words_before / USUAL_BEST
        meaning = cosines.get(passage.id)
        if meaning is None and cosines and passage.kind == "entity":
            meaning = LOCAL_SCALE.zero  # a card has no vector: its words must not count for two
        date = 0.0
        if question.period is not None:
            at = passage.valid_at or passage.created_at
            date = max(
                agreement(question.period, at), text_agreement(question.period, passage.text, at)
            )
        signals = Signals(
            words=words / USUAL_BEST,
            before=before,
            meaning=meaning,
            entity=0.0 if passage.kind == "entity" else query.names.get(query.subject(passage), 0),
            date=date,
            tells_time=float(question.asks_when and tells_time(terms)),
            length=log(1 + min(count, 2 * HALF_CONTEXT_WORDS)),
            asks=question_share(passage.text),
            is_turn=is_turn,
            brevity=query.brevity,
        )
        scored.append(ScoredPassage(passage, terms, signals, score(signals), query))
    return scored


def score(signals: Signals) -> float:
    """Add up the signals."""
    total: float = sum(map(mul, _values(signals), _weights(signals)))
    return total


def weigh(signals: Signals) -> list[WeightedSignal]:
    """Return every signal with its weight: the score is the sum of their products.

    The value of `meaning` is on its scale, from 0 on for unrelated texts.
    """
    return list(zip(WEIGHTS, _values(signals), _weights(signals), strict=True))


def _values(signals: Signals) -> tuple[float, ...]:
    """Return the values of the signals in the order of WEIGHTS.

    Where texts are long, a turn is about several things, and its vector about none of them.
    """
    shortness = signals.brevity**2
    meaning = 0.0
    if signals.meaning is not None:
        meaning = (signals.meaning - LOCAL_SCALE.zero) / LOCAL_SCALE.unit
        if signals.is_turn:
            meaning *= shortness
    return (
        signals.words,
        signals.before,
        meaning,
        signals.entity,
        signals.date,
        signals.tells_time,
        signals.length * shortness,
        signals.asks * shortness,
    )


def _weights(signals: Signals) -> tuple[float, ...]:
    """Return the column of WEIGHTS for a passage."""
    if signals.meaning is None:
        return _COLUMNS[0]
    return _COLUMNS[1 if signals.is_turn else 2]


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
    joined = []
    for versions in zip(*scored, strict=True):
        first, *rest = versions
        best = max(versions, key=lambda version: version.score)
        moved = max(version.score for version in rest) - first.score
        joined.append(replace(best, score=first.score + ALSO_SHARE * newest * moved))
    return joined


def context_share(words: float) -> float:
    """Return how much a text with that many words depends on its neighbours.

    It is 1 for an empty text, and less the longer the text is.
    """
    return HALF_CONTEXT_WORDS / (HALF_CONTEXT_WORDS + words)


def brevity(counts: WordCounts) -> float:
    """Return how short the texts of a store are: 1 up to 30 words on average, then less.

    Among short texts, a longer one says more, a question does not answer one, and a turn is about
    what its vector says. Among long texts none of this is true.
    """
    average = counts.words / counts.passages if counts.passages else 0
    return min(1.0, 2 * context_share(average))


def question_share(text: str) -> float:
    """Return the share of the words that stand in sentences that end with a question mark."""
    if "?" not in text and "\uff1f" not in text:
        return 0.0
    total = asking = 0
    for sentence in _compiled(_SENTENCE).findall(text):
        words = len(sentence.split())
        total += words
        if "?" in sentence or "\uff1f" in sentence:
            asking += words
    return asking / total if total else 0.0


def best_piece(query: Query, passage: Passage) -> str:
    """Return the piece of a long text that answers the question best; a short text as it is."""
    pieces = split_text(passage.words)
    if len(pieces) == 1:
        return pieces[0]
    return max(pieces, key=lambda piece: query.matcher.score(terms_of(piece)))


def _match_words(query: Query, passage: Passage) -> tuple[list[str], float]:
    """Return the terms of a passage, or of its best piece, and its BM25 score.

    If no word of the question is known, the score is that of a usual best match for a substring. A
    long text has that of its best piece or of all of it: a long question may match everywhere.
    """
    text = passage.words
    is_long = len(text) > MAX_WHOLE_CHARACTERS
    terms = terms_of(best_piece(query, passage) if is_long else text)
    if not query.search_terms:
        return terms, USUAL_BEST * query.is_in(passage)
    words = query.matcher.score(terms, passage.entity)
    if is_long:
        words = max(words, query.matcher.score(terms_of(text), passage.entity))
    return terms, words


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
    return max(log(odds), log(1 + odds) / 2)
