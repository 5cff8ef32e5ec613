"""Explain a hit: the sentence that matches, the reasons, and whether the match is weak."""

import re
from collections.abc import Collection

from polymnia.model import Passage, Signals
from polymnia.search.dates import describe_period
from polymnia.search.scoring import Query, ScoredPassage
from polymnia.search.terms import terms_of, words_of

# A longer text is cut to the sentences that match best.
MAX_EXCERPT_CHARACTERS = 300
# A match with less of the question's words and with less meaning in common is weak.
WEAK_WORD_SHARE, WEAK_COSINE = 0.34, 0.3
# Meaning is a reason from this cosine on.
MIN_REASON_COSINE = 0.3

_SENTENCE = re.compile(r"\S[^.!?\n]*(?:[.!?]+(?!\s|$)[^.!?\n]*)*[.!?]*")
_CUT = "\u2026"


def reasons(scored: ScoredPassage, kind: str) -> tuple[str, ...]:
    """Return why a passage was found, most important first: `words: deploy, steps`, `about: Ada`, `time: May 2023`."""
    query, signals = scored.query, scored.signals
    first = _word_reason(query, scored.passage, scored.terms) or kind
    found = [first]
    if signals.meaning is not None and signals.meaning >= MIN_REASON_COSINE:
        found = [*([first] if first != "meaning" else []), f"meaning: {signals.meaning:.2f}"]
    if signals.entity:
        found.append(
            f"about: {scored.passage.entity}"
            + ("" if signals.entity == 1 else " (part of the name)")
        )
    if signals.linked:
        found.append(f"related to: {', '.join(query.whole_names)}")
    if signals.date and query.question.period is not None:
        found.append(f"time: {describe_period(query.question.period)}")
    elif signals.tells_time:
        found.append("tells a time")
    return tuple(dict.fromkeys(found))


def is_weak(query: Query, terms: Collection[str], signals: Signals) -> bool:
    """Return True if a passage has little in common with the question: few of its words and little of its meaning."""
    meant = signals.meaning is not None and signals.meaning >= WEAK_COSINE
    return not meant and query.matcher.share(terms) < WEAK_WORD_SHARE


def excerpt(text: str, wanted: Collection[str]) -> str:
    """Return the text or, if it is long, the sentences from the one with the most of the wanted terms on."""
    if len(text) <= MAX_EXCERPT_CHARACTERS:
        return text
    sentences = [
        (found.start(), set(wanted).intersection(terms_of(found[0])))
        for found in _SENTENCE.finditer(text)
    ]
    start = max(sentences, key=lambda each: (len(each[1]), -each[0]))[0] if sentences else 0
    shown = text[start : start + MAX_EXCERPT_CHARACTERS]
    if start + MAX_EXCERPT_CHARACTERS < len(text):
        shown = (
            shown[: shown.rfind(" ")] if " " in shown[MAX_EXCERPT_CHARACTERS // 2 :] else shown
        ) + _CUT
    return _CUT + shown if start else shown


def _word_reason(query: Query, passage: Passage, terms: Collection[str]) -> str:
    """Return the words of the question that the passage has, as they were asked for, else other forms, as written."""
    asked = _words_by_term(query.question.text)
    found = [asked.get(term, term) for term in query.terms if term in terms]
    if not found and (other := [term for term in query.widened if term in terms]):
        written = _words_by_term(passage.words)
        found = [written.get(term, term) for term in other]
    return (
        f"word{'s' if len(found) > 1 else ''}: {', '.join(dict.fromkeys(found))}" if found else ""
    )


def _words_by_term(text: str) -> dict[str, str]:
    return {term: word for word in words_of(text) for term in terms_of(word)}
