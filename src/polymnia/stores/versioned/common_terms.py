"""Common terms: how many passages have each, and its best passages, so that no search reads all.

The counts and the lists cover the passages up to a row id, the ranked one. A write that leaves
RECENT_ROWS or more behind it moves it on; passages after it are read from the index of words. A
term that has no list is searched for exactly, so a missing list costs time, never a hit.
"""

from collections import Counter, defaultdict
from collections.abc import Collection, Mapping
from math import log

from polymnia.model import Within, WordCounts
from polymnia.search.relevance import Scores
from polymnia.search.terms import MAX_RARE_PASSAGES, choose_rare
from polymnia.stores.versioned.port import CommonTerm, DatabasePort, Posting, WordSearch

# A term in more passages than this gets a list, and loses it again below half of that.
COMMON_PASSAGES = MAX_RARE_PASSAGES
# How many passages a list has, and from how many on it is cut back to that.
LISTED, MAX_LISTED = 1_000, 1_500
# Rows are ranked when there are this many, and at most so many by one write.
RECENT_ROWS, MAX_RANKED_ROWS = 500, 10_000
# A new list reads all passages of its term, so a write makes only some.
MAX_NEW_LISTS = 50
# Longer terms get no list.
MAX_TERM_LENGTH = 100
# Passages with every term of a question that are scored: the newest.
MAX_WITH_EVERY = 1_000
# FTS5's constants of BM25, and its rarity of a term that at least half of all passages have.
K1, B, MIN_RARITY = 1.2, 0.75, 1e-6


def rarity(passages: int, having: int) -> float:
    """Return the idf of FTS5."""
    if passages <= 2 * having:
        return MIN_RARITY
    return log((passages - having + 0.5) / (having + 0.5))


def term_score(count: float, length: int, average: float) -> float:
    """Return BM25 of one term without its rarity, given the lengths in words."""
    return (count * (K1 + 1.0)) / (count + K1 * (1 - B + B * length / average))


def find_candidates(
    words: WordSearch, terms: Collection[str], limit: int, within: Within | None, *, every: bool
) -> list[int]:
    """Return the best passages with one of the terms, or with every one, best first.

    Without a filter, rare terms are looked up, and of the others those with a list add its
    passages.
    """
    counts = words.word_counts(terms)
    common = words.common_terms(terms)
    if every or within is not None:
        found = words.best_passages(terms, counts, common, limit, within, every=every)
        return best_first(found)[:limit]
    rare_terms = choose_rare([term for term in terms if term not in common], counts.having)
    if len(rare_terms) == len(counts.having):
        return best_first(words.best_passages(terms, counts, (), limit, None, every=False))
    scores: Scores = {}
    if rare_terms:
        scores = words.score_passages(rare_terms, list(counts.having), counts)
    average = counts.words / max(counts.passages, 1)
    listed: defaultdict[int, float] = defaultdict(float)
    for term in common:
        weight = rarity(counts.passages, counts.having[term])
        for passage, count, length in words.listed(term):
            if passage not in scores:
                listed[passage] += weight * term_score(count, length, average)
    return best_first(scores | listed)[:limit]


def best_first(scores: Scores) -> list[int]:
    """Return passages by their scores; among equals the oldest first."""
    return sorted(scores, key=lambda passage: (-scores[passage], passage))


def rank_recent(port: DatabasePort, ranked_row: int, last_row: int) -> None:
    """Bring counts and lists up to date, if many rows are new."""
    if last_row - ranked_row < RECENT_ROWS:
        return
    last_row = min(last_row, ranked_row + MAX_RANKED_ROWS)
    new_terms = port.words.terms_between(ranked_row, last_row)
    if new_terms:
        _Ranking(port, new_terms).run(last_row)
    port.write("set_ranked_row", last_row)


class _Ranking:
    """The terms of new passages while they are added to counts and lists."""

    def __init__(self, port: DatabasePort, new_terms: Mapping[int, list[str]]) -> None:
        self._port = port
        self._new_terms = new_terms
        self._counts: Counter[str] = Counter()
        for terms in new_terms.values():
            self._counts.update(set(terms))
        self._updated: list[tuple[object, ...]] = []
        self._listed: list[tuple[object, ...]] = []

    def run(self, last_row: int) -> None:
        words = self._port.words
        totals = words.word_counts([next(iter(self._counts))])
        if totals.passages <= COMMON_PASSAGES:
            return
        self._average = totals.words / totals.passages
        common = words.common_terms(self._counts)
        better = self._better_postings(common)
        for term, known in common.items():
            self._extend(term, known, better[term])
        likely = self._likely_common(totals.passages, common)
        having = words.word_counts(likely).having if likely else {}
        for term in likely:
            if having.get(term, 0) > COMMON_PASSAGES:
                postings = words.postings(term, last_row)
                self._list(term, len(postings), postings)
        self._port.write_rows("put_common_terms", self._updated)
        self._port.write_rows("put_best_passages", self._listed)

    def _better_postings(self, common: Mapping[str, CommonTerm]) -> dict[str, list[Posting]]:
        """Return the new passages that belong into the lists.

        No others, even if a list has room: all passages above its bound are in it.
        """
        better: dict[str, list[Posting]] = {term: [] for term in common}
        bounds = {term: known.bound for term, known in common.items()}
        for passage, terms in self._new_terms.items():
            length, distinct = len(terms), set(terms)
            once = self._score((passage, 1, length))
            has_repeats = len(distinct) < length
            for term in bounds.keys() & distinct:
                if has_repeats:
                    posting = (passage, terms.count(term), length)
                    if self._score(posting) > bounds[term]:
                        better[term].append(posting)
                elif once > bounds[term]:
                    better[term].append((passage, 1, length))
        return better

    def _likely_common(self, passages: int, common: Collection[str]) -> list[str]:
        """Return terms without a list that are common, if older passages are like the new ones.

        Counting the others would cost more than it finds. Half of what makes a term common is
        enough, because it may be more common in older passages.
        """
        share = COMMON_PASSAGES / 2 / passages
        least = max(2.0, share * len(self._new_terms))
        likely: list[str] = []
        for term, count in self._counts.most_common():
            if count < least or len(likely) == MAX_NEW_LISTS:
                break
            if term not in common and len(term) <= MAX_TERM_LENGTH:
                likely.append(term)
        return likely

    def _extend(self, term: str, known: CommonTerm, better: list[Posting]) -> None:
        passages = known.passages + self._counts[term]
        listed = known.listed + len(better)
        if listed > MAX_LISTED:
            self._list(term, passages, [*self._port.words.stored_postings(term), *better])
            return
        self._updated.append((term, passages, listed, known.bound))
        self._listed += [(term, *posting) for posting in better]

    def _list(self, term: str, passages: int, postings: list[Posting]) -> None:
        """Replace the list of a term by the best of these postings."""
        best = sorted(postings, key=lambda posting: (-self._score(posting), posting))[:LISTED]
        if not best:
            return
        self._port.write_rows("delete_best_passages", [(term,)])
        self._updated.append((term, passages, len(best), self._score(best[-1])))
        self._listed += [(term, *posting) for posting in best]

    def _score(self, posting: Posting) -> float:
        _, count, length = posting
        return term_score(count, length, self._average)


def weights_of(terms: Collection[str], counts: WordCounts) -> list[float]:
    """Return the rarity of each term."""
    return [rarity(counts.passages, counts.having.get(term, 0)) for term in terms]
