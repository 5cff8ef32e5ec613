"""How well a note answers a query, from 0 to 1: the words' share, the vector's share, and their blend.

- Words: BM25 divided by the best BM25 of the same search, times CEILING.
- Words and a vector on both sides: WORDS * words + MEANING * cosine, not below 0.
- A vector alone: MEANING * cosine.
- EXACT is kept for a note whose key or whole content is the query.
"""

from collections.abc import Mapping

EXACT = 1.0
# What the best gets for its words when it is not exact; the blend stays below EXACT because of it.
CEILING = 0.99
WORDS = 0.4
MEANING = 0.6

Scores = dict[int, float]


def by_words(bm25: Mapping[int, float]) -> Scores:
    """The words' share, from BM25 scores as FTS5 gives them: below 0, and the less the better."""
    best = -min(bm25.values(), default=0.0)
    return {note: CEILING * (-score / best if best > 0 else 1.0) for note, score in bm25.items()}


def blended(words: Mapping[int, float], cosines: Mapping[int, float]) -> Scores:
    """Both shares together; a note that only has a vector must at least point the same way."""
    found = {note: MEANING * cosine for note, cosine in cosines.items() if cosine > 0 and note not in words}
    for note, share in words.items():
        found[note] = max(0.0, WORDS * share + MEANING * cosines[note]) if note in cosines else share
    return found


def best(scores: Mapping[int, float], limit: int) -> list[tuple[int, float]]:
    """The best so many, best first; among equals the newest first."""
    return sorted(scores.items(), key=lambda item: (-item[1], -item[0]))[:limit]
