"""Hits: scored passages, best first, each fact once, with the reasons for it."""

import re
from collections.abc import Collection, Hashable, Iterable, Iterator, Mapping, Sequence
from functools import cache
from typing import Literal

from polymnia.model import Hit, Passage, Signals
from polymnia.search.dates import describe_period
from polymnia.search.scoring import Query, ScoredPassage, best_piece
from polymnia.search.terms import fold, terms_of, words_of

# Kinds of match, best first.
NAME = "name"
KEY = "key"
TEXT = "text"
PHRASE = "phrase"
ALL_WORDS = "all words"
ANY_WORD = "any word"
VARIANT = "variant"
PREFIX = "prefix"
SUBSTRING = "substring"
MEANING = "meaning"
CONTEXT = "context"

# Passages that equal the question come first, in this order, regardless of their scores.
EXACT_KINDS = (NAME, KEY, TEXT)
# Two passages with this share of common terms say the same.
MIN_SHARED_TERMS = 0.9
# A longer text is cut to the sentences that match best.
MAX_EXCERPT_CHARACTERS = 300
# A match with less of the question's words and with less meaning in common is weak.
WEAK_WORD_SHARE, WEAK_COSINE = 0.34, 0.3
# Meaning is a reason from this cosine on.
MIN_REASON_COSINE = 0.3

Fit = Literal["strong", "good", "fair", "weak"]
# The scores from which on a fit is strong, good and fair. On the 112 questions of bench/agents that
# facts answer, the best needed fact is strong in 56, good in 17, fair in 14; eight questions
# about nothing that is stored get no hit that is better than weak. Scores by words alone are on
# the same scale.
STRONG_SCORE, GOOD_SCORE, FAIR_SCORE = 8.0, 5.5, 4.0

# Compiled at the first use: a server's start does not need it.
_compiled = cache(re.compile)
_SENTENCE = r"\S[^.!?\n]*(?:[.!?]+(?!\s|$)[^.!?\n]*)*[.!?]*"
_CUT = "\u2026"


def best_hits(folded: str, scored: Sequence[ScoredPassage], limit: int) -> list[Hit]:
    """Return the best hits for a folded question.

    A hit stands for all passages that say the same about its entity.
    """
    ranked = []
    for item in scored:
        kind = exact_kind(item.passage, folded)
        place = EXACT_KINDS.index(kind) if kind else len(EXACT_KINDS)
        ranked.append((place, -item.score, item.passage.key, kind, item))
    ranked.sort()  # no two items have the same key

    def subjects() -> Iterator[tuple[Hashable, Sequence[str]]]:
        for _, _, _, _, item in ranked:
            # A note and a fact may say the same, but one may change without the other.
            yield (item.passage.entity, item.passage.kind == "note"), item.terms

    hits = []
    for position, alike in distinct(subjects(), limit):
        *_, kind, item = ranked[position]
        hits.append(_hit(item, kind, alike))
    return hits


def _hit(scored: ScoredPassage, exact: str, alike: int) -> Hit:
    passage, query = scored.passage, scored.query
    kind = exact or match_kind(scored)
    why = reasons(scored, kind)
    if exact:
        why = (kind, *why[1:])
    return Hit(
        passage,
        scored.score,
        kind,
        scored.signals,
        alike,
        why,
        _excerpt(scored),
        not exact and is_weak(query, scored.terms, scored.signals),
        share=1.0 if exact else query.matcher.share(scored.terms),
    )


def exact_kind(passage: Passage, folded: str) -> str:
    """Return the kind of match if the passage's name, key or text equals the folded question.

    Return "" if none does.
    """
    if passage.kind != "fact" and _equals(passage.entity.strip(), folded):
        return NAME if passage.kind == "entity" else KEY
    if passage.kind != "entity" and _equals(passage.text.strip(), folded):
        return TEXT
    return ""


def match_kind(scored: ScoredPassage) -> str:
    """Return the best kind of match of a passage."""
    query = scored.query
    kind = word_kind(query.question.spoken, query.terms, query.widened, scored.terms)
    if kind:
        return kind
    if query.is_in(scored.passage):
        return SUBSTRING
    return CONTEXT if scored.signals.meaning is None else MEANING


def word_kind(
    spoken: Sequence[str], content: Sequence[str], widened: Mapping[str, str], terms: Sequence[str]
) -> str:
    """Return how a passage with these terms contains the words of a question; "" if it does not.

    `spoken` are all words of the question, `content` those that mean something, `widened` terms
    that it probably means, each with the kind it stands for.
    """
    present = {term for term in content if term in terms}
    if present:
        if _contains_phrase(spoken, terms):
            return PHRASE
        return ALL_WORDS if len(present) == len(set(content)) else ANY_WORD
    for term, kind in widened.items():
        if term in terms:
            return kind
    return ""


def distinct(ranked: Iterable[tuple[Hashable, Sequence[str]]], limit: int) -> list[tuple[int, int]]:
    """Return the positions of the first `limit` items that say something new.

    An item is given as its subject and its terms. With each position comes how many later items
    say the same.
    """
    shown: list[int] = []
    alike: dict[int, int] = {}
    seen: dict[Hashable, list[tuple[int, frozenset[str]]]] = {}
    for position, (subject, terms) in enumerate(ranked):
        own = frozenset(terms)
        earlier = seen.setdefault(subject, [])
        twin = next((at for at, other in earlier if _say_the_same(own, other)), None)
        if twin is not None:
            alike[twin] = alike.get(twin, 0) + 1
        elif len(shown) == limit:
            break
        else:
            shown.append(position)
            earlier.append((position, own))
    return [(position, alike.get(position, 0)) for position in shown]


def reasons(scored: ScoredPassage, kind: str) -> tuple[str, ...]:
    """Return why a passage is a hit, most important first.

    Examples are `words: deploy, steps`, `about: Ada`, `time: May 2023`.
    """
    query, signals = scored.query, scored.signals
    why = [_word_reason(query, scored.passage, scored.terms) or kind]
    if signals.meaning is not None and signals.meaning >= MIN_REASON_COSINE:
        if why == [MEANING]:
            why = []  # the figure says it too
        why.append(f"meaning: {signals.meaning:.2f}")
    if signals.entity:
        part = "" if signals.entity == 1 else " (part of the name)"
        why.append(f"about: {query.subject(scored.passage)}{part}")
    if signals.date and query.question.period is not None:
        why.append(f"time: {describe_period(query.question.period)}")
    elif signals.tells_time:
        why.append("tells a time")
    return tuple(dict.fromkeys(why))


def is_weak(query: Query, terms: Collection[str], signals: Signals) -> bool:
    """Return True if a passage has few of the question's words and little of its meaning."""
    if signals.meaning is not None and signals.meaning >= WEAK_COSINE:
        return False
    return query.matcher.share(terms) < WEAK_WORD_SHARE


def fit_of(hit: Hit) -> Fit:
    """Return how well a hit answers, in absolute terms: other hits do not matter."""
    if hit.match_kind in EXACT_KINDS or hit.score >= STRONG_SCORE:
        return "strong"
    if hit.score >= GOOD_SCORE or hit.share >= 1:
        return "good"
    if hit.score >= FAIR_SCORE or hit.share >= WEAK_WORD_SHARE:
        return "fair"
    return "weak" if hit.is_weak else "fair"


def _excerpt(scored: ScoredPassage) -> str:
    """Return the part of a passage that matches best."""
    query = scored.query
    text = scored.passage.text
    piece = best_piece(query, scored.passage)
    terms = (*query.terms, *query.widened)
    if len(piece) < len(text):
        return f"{_CUT}{excerpt(piece.strip(), terms).strip(_CUT)}{_CUT}"
    return excerpt(text, terms)


def excerpt(text: str, terms: Collection[str]) -> str:
    """Return the text or, if it is long, its sentences from the one with most of the terms on."""
    if len(text) <= MAX_EXCERPT_CHARACTERS:
        return text
    start = _best_sentence(text, set(terms))
    shown = text[start : start + MAX_EXCERPT_CHARACTERS]
    if start + MAX_EXCERPT_CHARACTERS < len(text):
        # Cut at a word, unless that leaves less than half: some scripts have no spaces.
        last_space = shown.rfind(" ")
        if last_space >= MAX_EXCERPT_CHARACTERS // 2:
            shown = shown[:last_space]
        shown += _CUT
    return _CUT + shown if start else shown


def _best_sentence(text: str, terms: set[str]) -> int:
    """Return where the first sentence with the most of the terms starts."""
    start, most = 0, -1
    for sentence in _compiled(_SENTENCE).finditer(text):
        count = len(terms.intersection(terms_of(sentence[0])))
        if count > most:
            start, most = sentence.start(), count
    return start


def _word_reason(query: Query, passage: Passage, terms: Collection[str]) -> str:
    """Return the words of the question that the passage has, as they were asked for.

    If it has none, return other forms of them, as the passage has them.
    """
    asked = _words_by_term(query.question.text)
    words = [asked.get(term, term) for term in query.terms if term in terms]
    if not words:
        other_forms = [term for term in query.widened if term in terms]
        written = _words_by_term(passage.words) if other_forms else {}
        words = [written.get(term, term) for term in other_forms]
    if not words:
        return ""
    noun = "words" if len(words) > 1 else "word"
    return f"{noun}: {', '.join(dict.fromkeys(words))}"


def _words_by_term(text: str) -> dict[str, str]:
    return {term: word for word in words_of(text) for term in terms_of(word)}


def _equals(text: str, folded: str) -> bool:
    # Folding keeps the length of ASCII, so most texts need not be folded.
    if text.isascii() and len(text) != len(folded):
        return False
    return fold(text) == folded


def _contains_phrase(spoken: Sequence[str], terms: Sequence[str]) -> bool:
    size = len(spoken)
    if size < 2:
        return False
    phrase = list(spoken)
    starts = range(len(terms) - size + 1)
    return any(list(terms[start : start + size]) == phrase for start in starts)


def _say_the_same(one: frozenset[str], other: frozenset[str]) -> bool:
    if min(len(one), len(other)) < MIN_SHARED_TERMS * max(len(one), len(other)):
        return False
    return len(one & other) >= MIN_SHARED_TERMS * len(one | other)
