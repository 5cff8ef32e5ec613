"""The relevance of a note to a query, from 0 to 1.

- By words: BM25 divided by the best BM25 of the same search, times MAX_INEXACT.
- By words and vectors: WORDS * words + MEANING * cosine, not below 0.
- By vectors alone: MEANING * cosine.
- EXACT only for a note whose key or whole content is the query.
"""

from collections.abc import Mapping

EXACT = 1.0
# The relevance of the best inexact match by words. It keeps every inexact match below EXACT.
MAX_INEXACT = 0.99
WORDS = 0.4
MEANING = 0.6

Scores = dict[int, float]


def word_relevance(bm25: Mapping[int, float]) -> Scores:
    """Return the relevance by words, from the BM25 scores of FTS5: negative, smaller is better."""
    best = -min(bm25.values(), default=0.0)
    if best <= 0:
        return dict.fromkeys(bm25, MAX_INEXACT)
    return {note: MAX_INEXACT * (-score / best) for note, score in bm25.items()}


def blend(words: Mapping[int, float], cosines: Mapping[int, float]) -> Scores:
    """Return the relevance by words and vectors.

    A note found by its vector alone needs a positive cosine.
    """
    scores = {}
    for note, cosine in cosines.items():
        if note in words:
            scores[note] = max(0.0, WORDS * words[note] + MEANING * cosine)
        elif cosine > 0:
            scores[note] = MEANING * cosine
    return {**words, **scores}


def best(scores: Mapping[int, float], limit: int) -> list[tuple[int, float]]:
    """Return the best `limit` notes, best first; among equals the newest first."""
    return sorted(scores.items(), key=lambda item: (-item[1], -item[0]))[:limit]
