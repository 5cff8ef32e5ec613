"""Label groups of texts with the terms that tell each group from the others."""

from collections import Counter
from collections.abc import Sequence
from math import log

from polymnia.search.terms import STOP_WORDS, stems_of, words_of

# Shorter words and numbers say little.
MIN_LABEL_LETTERS = 3
# The part of a text that is read.
MAX_TEXT_CHARACTERS = 500


def label_groups(groups: Sequence[Sequence[str]], words: int = 3) -> list[str | None]:
    """Return the most distinctive words of each group of texts, joined by commas; None for a group without words.

    A term weighs by its share of the group and by its rarity over all groups (class-based TF-IDF). Forms of a word
    count as one; the most frequent form is shown.
    """
    forms: dict[str, Counter[str]] = {}
    counted = [_count_terms(texts, forms) for texts in groups]
    totals: Counter[str] = Counter()
    for counts in counted:
        totals.update(counts)
    mean = totals.total() / max(1, len(groups))
    rarity = {term: log(1 + mean / total) for term, total in totals.items()}
    return [_label(counts, rarity, forms, words) for counts in counted]


def _count_terms(texts: Sequence[str], forms: dict[str, Counter[str]]) -> Counter[str]:
    counts: Counter[str] = Counter()
    for text in texts:
        start = text[:MAX_TEXT_CHARACTERS]
        for word, term in zip(words_of(start), stems_of(start), strict=True):
            if len(word) >= MIN_LABEL_LETTERS and not word.isdigit() and word not in STOP_WORDS:
                counts[term] += 1
                forms.setdefault(term, Counter())[word] += 1
    return counts


def _label(
    counts: Counter[str], rarity: dict[str, float], forms: dict[str, Counter[str]], words: int
) -> str | None:
    best = sorted(counts, key=lambda term: (-counts[term] * rarity[term], term))[:words]
    return ", ".join([forms[term].most_common(1)[0][0] for term in best]) or None
