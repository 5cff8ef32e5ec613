"""Communities: groups of nodes that edges hold together, and labels for groups of texts."""

from collections import Counter
from collections.abc import Callable, Sequence
from math import log

from polymnia.search.terms import STOP_WORDS, stems_of, words_of

# Neighbours of each node, by number, with the weight of the edge.
Links = Sequence[dict[int, float]]

# A level ends when a pass over all nodes moves fewer than this share of them,
# or after this many passes.
_MIN_MOVED_SHARE = 0.02
_MAX_PASSES = 6
# Shorter words and numbers say little in a label.
MIN_LABEL_LETTERS = 3
# The part of a text that is read for a label.
MAX_LABEL_TEXT_CHARACTERS = 500


def find_communities(links: Links, check: Callable[[], None] = lambda: None) -> list[list[int]]:
    """Return the nodes in groups by Louvain's method. Nodes without links are left out."""
    members = [[node] for node in range(len(links))]
    loops = [0.0] * len(links)
    level: Links = links
    while True:
        group_of = _move_nodes(level, loops, check)
        if len(set(group_of)) == len(level):
            break
        members, level, loops = _join(group_of, members, level, loops)
    return [group for group in members if len(group) > 1]


def label_groups(groups: Sequence[Sequence[str]], words: int = 3) -> list[str | None]:
    """Return the most distinctive words of each group of texts, joined by commas.

    A term weighs by its share of the group and by its rarity over all groups (class-based TF-IDF).
    Forms of a word count as one; the most frequent form is shown. A group without words has None.
    """
    forms: dict[str, Counter[str]] = {}
    group_counts = [_count_terms(texts, forms) for texts in groups]
    totals: Counter[str] = Counter()
    for counts in group_counts:
        totals.update(counts)
    mean = totals.total() / max(1, len(groups))
    rarity = {term: log(1 + mean / total) for term, total in totals.items()}
    return [_label(counts, rarity, forms, words) for counts in group_counts]


def _move_nodes(links: Links, loops: Sequence[float], check: Callable[[], None]) -> list[int]:
    """Move nodes to the group of a neighbour while that raises modularity.

    Return the group of each node.
    """
    degrees = [sum(own.values()) + 2 * loop for own, loop in zip(links, loops, strict=True)]
    twice_weight = sum(degrees) or 1.0
    group_of = list(range(len(links)))
    totals = list(degrees)
    for _ in range(_MAX_PASSES):
        check()
        moved = 0
        for node, own in enumerate(links):
            if not own:
                continue
            here, degree = group_of[node], degrees[node]
            shared: dict[int, float] = {}
            for other, weight in own.items():
                group = group_of[other]
                shared[group] = shared.get(group, 0.0) + weight
            totals[here] -= degree
            best = here
            best_gain = shared.get(here, 0.0) - totals[here] * degree / twice_weight
            for group, weight in shared.items():
                gain = weight - totals[group] * degree / twice_weight
                # Rounding errors must not move nodes back and forth.
                if gain > best_gain + 1e-12:
                    best, best_gain = group, gain
            totals[best] += degree
            if best != here:
                group_of[node] = best
                moved += 1
        if moved <= _MIN_MOVED_SHARE * len(links):
            break
    return group_of


def _join(
    group_of: Sequence[int], members: Sequence[list[int]], links: Links, loops: Sequence[float]
) -> tuple[list[list[int]], Links, list[float]]:
    """Return the groups as the nodes of a smaller graph: members, links and weights inside."""
    number = {group: place for place, group in enumerate(dict.fromkeys(group_of))}
    joined: list[list[int]] = [[] for _ in number]
    smaller: list[dict[int, float]] = [{} for _ in number]
    inside = [0.0] * len(number)
    for node, own in enumerate(links):
        group = number[group_of[node]]
        joined[group] += members[node]
        inside[group] += loops[node]
        for other, weight in own.items():
            place = number[group_of[other]]
            if place == group:
                inside[group] += weight / 2  # both ends of the edge count it
            else:
                smaller[group][place] = smaller[group].get(place, 0.0) + weight
    return joined, smaller, inside


def _count_terms(texts: Sequence[str], forms: dict[str, Counter[str]]) -> Counter[str]:
    counts: Counter[str] = Counter()
    for text in texts:
        start = text[:MAX_LABEL_TEXT_CHARACTERS]
        for word, term in zip(words_of(start), stems_of(start), strict=True):
            if len(word) >= MIN_LABEL_LETTERS and not word.isdigit() and word not in STOP_WORDS:
                counts[term] += 1
                forms.setdefault(term, Counter())[word] += 1
    return counts


def _label(
    counts: Counter[str], rarity: dict[str, float], forms: dict[str, Counter[str]], words: int
) -> str | None:
    terms = sorted(counts, key=lambda term: (-counts[term] * rarity[term], term))
    shown = [forms[term].most_common(1)[0][0] for term in terms[:words]]
    return ", ".join(shown) or None
