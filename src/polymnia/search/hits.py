"""Turn scored passages into hits: best first, each fact once, with the kind of match."""

from collections.abc import Hashable, Iterable, Mapping, Sequence

from polymnia.model import Hit, Passage
from polymnia.search import explain
from polymnia.search.scoring import ScoredPassage
from polymnia.search.text import fold

# Kinds of match, best first.
NAME, KEY, TEXT, PHRASE, ALL_WORDS, ANY_WORD = (
    "name",
    "key",
    "text",
    "phrase",
    "all words",
    "any word",
)
VARIANT, PREFIX, TYPO, SUBSTRING, MEANING, CONTEXT = (
    "variant",
    "prefix",
    "typo",
    "substring",
    "meaning",
    "context",
)

# Passages that equal the question come first, in this order, whatever their scores.
EXACT_KINDS = (NAME, KEY, TEXT)
# Two passages with this share of common terms say the same.
MIN_SHARED_TERMS = 0.9


def best_hits(folded: str, scored: Sequence[ScoredPassage], limit: int) -> list[Hit]:
    """Return the best hits for a folded question, each standing for all passages that say the same about its entity."""
    exact = {each.passage.key: exact_kind(each.passage, folded) for each in scored}

    def order(each: ScoredPassage) -> tuple[int, float, tuple[str, int]]:
        kind = exact[each.passage.key]
        return EXACT_KINDS.index(kind) if kind else len(EXACT_KINDS), -each.score, each.passage.key

    ranked = sorted(scored, key=order)
    # A note and an observation may say the same, but one may change without the other.
    subjects = [((each.passage.entity, each.passage.kind == "note"), each.terms) for each in ranked]
    return [
        _hit(ranked[at], exact[ranked[at].passage.key], alike)
        for at, alike in distinct(subjects, limit)
    ]


def _hit(scored: ScoredPassage, exact: str, alike: int) -> Hit:
    passage, query, kind = scored.passage, scored.query, exact or match_kind(scored)
    return Hit(
        passage,
        scored.score,
        kind,
        scored.signals,
        alike,
        (kind, *explain.reasons(scored, kind)[1:]) if exact else explain.reasons(scored, kind),
        explain.excerpt(passage.text, (*query.terms, *query.widened)),
        not exact and explain.is_weak(query, scored.terms, scored.signals),
    )


def exact_kind(passage: Passage, folded: str) -> str:
    """Return the kind of exact match if the passage's name, key or text equals the folded question; else nothing."""
    if passage.kind != "observation" and _equals(passage.entity.strip(), folded):
        return NAME if passage.kind == "entity" else KEY
    return TEXT if passage.kind != "entity" and _equals(passage.text.strip(), folded) else ""


def match_kind(scored: ScoredPassage) -> str:
    """Return the best kind of match of a passage."""
    query = scored.query
    kind = word_kind(query.question.spoken, query.terms, query.widened, scored.terms)
    if kind:
        return TYPO if query.corrected.intersection(scored.terms) else kind
    if query.is_in(scored.passage):
        return SUBSTRING
    return CONTEXT if scored.signals.meaning is None else MEANING


def word_kind(
    spoken: Sequence[str], content: Sequence[str], widened: Mapping[str, str], terms: Sequence[str]
) -> str:
    """Return how a passage with these terms contains the words of a question; nothing if it does not.

    `spoken` are all words of the question, `content` those that mean something, `widened` terms that it probably
    means, each with the kind it stands for.
    """
    found = {term for term in content if term in terms}
    if found and _contains_phrase(spoken, terms):
        return PHRASE
    if found:
        return ALL_WORDS if len(found) == len(set(content)) else ANY_WORD
    return next((kind for term, kind in widened.items() if term in terms), "")


def distinct(ranked: Iterable[tuple[Hashable, Sequence[str]]], limit: int) -> list[tuple[int, int]]:
    """Return the positions of the first `limit` that say something new, and how many later ones say the same.

    Each is given as its subject and its terms.
    """
    shown: list[int] = []
    alike: dict[int, int] = {}
    seen: dict[Hashable, list[tuple[int, frozenset[str]]]] = {}
    for position, (subject, terms) in enumerate(ranked):
        own = frozenset(terms)
        twin = next((at for at, other in seen.get(subject, ()) if _say_the_same(own, other)), None)
        if twin is not None:
            alike[twin] = alike.get(twin, 0) + 1
        elif len(shown) == limit:
            break
        else:
            shown.append(position)
            seen.setdefault(subject, []).append((position, own))
    return [(position, alike.get(position, 0)) for position in shown]


def _equals(text: str, folded: str) -> bool:
    # Folding keeps the length of ASCII, so most texts need not be folded.
    return (len(text) == len(folded) or not text.isascii()) and fold(text) == folded


def _contains_phrase(spoken: Sequence[str], terms: Sequence[str]) -> bool:
    size = len(spoken)
    if size < 2:
        return False
    return any(
        list(terms[position : position + size]) == list(spoken)
        for position in range(len(terms) - size + 1)
    )


def _say_the_same(one: frozenset[str], other: frozenset[str]) -> bool:
    if min(len(one), len(other)) < MIN_SHARED_TERMS * max(len(one), len(other)):
        return False
    return len(one & other) >= MIN_SHARED_TERMS * len(one | other)
