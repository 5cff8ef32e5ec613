"""Explain a recall: the signals behind every hit, and why a text is missing."""

from collections.abc import Sequence
from time import perf_counter
from typing import Literal

from msgspec import Struct

from polymnia.engine.memory import Memory
from polymnia.engine.recall.names import similar_names
from polymnia.engine.recall.passages import Search, score_candidates, start_searches
from polymnia.model import Entity, Hit, Passage, PassageKey, Within
from polymnia.search import hits
from polymnia.search.scoring import ScoredPassage, WeightedSignal, weigh
from polymnia.search.terms import fold, terms_of, words_of
from polymnia.stores.contract import Reader

# How long an explanation waits for the embedder, which may have to be loaded first.
EMBED_TIMEOUT_S = 20.0
# Passages that are examined to explain why a text is missing.
MAX_WANTED = 20

Outcome = Literal["shown", "ranked", "alike", "filtered", "not found", "unknown"]


class ExplainedHit(Struct, frozen=True):
    """A hit, the signals of its score, and its places by words alone and by meaning alone."""

    hit: Hit
    signals: list[WeightedSignal]
    by_words: int | None
    by_meaning: int | None


class Ranking(Struct, frozen=True):
    """The best passages of one ranking, and how many milliseconds it took."""

    passages: list[Passage]
    milliseconds: float


class Explanation(Struct, frozen=True):
    """How a question was answered.

    `note` says why meaning was left out; the other fields are as in RecallResult. `embedded` of all
    `passages` have a vector of the question's model. `candidates` were scored.
    """

    hits: list[ExplainedHit]
    words: Ranking
    meaning: Ranking
    milliseconds: float
    candidates: int
    embedded: int
    passages: int
    note: str
    corrections: dict[str, str]


class Absence(Struct, frozen=True, kw_only=True):
    """Why a passage is not among the hits.

    The outcome is `shown` if it is a hit after all, at `place`; `ranked` if it is too low, at
    `place`; `alike` if another hit, `twin`, stands for it; `filtered` by the filters in
    `kept_out_by`; `not found` if no search proposes it, and `place` is where its score would put
    it; `unknown` if there is no such passage. `last` is the last hit shown. `missing` are the words
    of the question that the passage does not have.
    """

    outcome: Outcome
    passage: Passage | None = None
    place: int = 0
    total: int = 0
    score: float = 0.0
    signals: list[WeightedSignal] = []
    last: ExplainedHit | None = None
    twin: Passage | None = None
    missing: tuple[str, ...] = ()
    has_vector: bool = False
    kept_out_by: tuple[str, ...] = ()
    similar_names: tuple[str, ...] = ()


def explain(
    memory: Memory, question: str, *, limit: int = 10, within: Within | None = None
) -> Explanation:
    """Return the hits of a recall with everything that led to their order."""
    with memory.reading() as read:
        words, _, _ = _rank_timed(Memory(memory.store), read, question, limit, within)
        both, search, scored = _rank_timed(memory, read, question, limit, within)
        meaning = _by_meaning(read, search, limit, within)
        embedded, passages = _coverage(read, search)
    found = hits.best_hits(search.query.folded, scored, limit)
    return Explanation(
        [_explain_hit(hit, search, words.passages, meaning.passages) for hit in found],
        Ranking(words.passages[:limit], words.milliseconds),
        Ranking(meaning.passages[:limit], meaning.milliseconds),
        both.milliseconds,
        len(scored),
        embedded,
        passages,
        search.note,
        search.corrections,
    )


def explain_absence(
    memory: Memory, question: str, wanted: str, *, limit: int = 10, within: Within | None = None
) -> Absence:
    """Say why an entity, or a text by some of its words, is not among the first hits."""
    with memory.reading() as read:
        _, search, scored = _rank_timed(memory, read, question, limit, within)
        asked = _find_wanted(read, search, wanted.strip())
        ranked = hits.best_hits(search.query.folded, scored, len(scored))
        places = {hit.passage.key: place for place, hit in enumerate(ranked, 1)}
        known = {scored_passage.passage.key: scored_passage for scored_passage in scored}
        others = [item for item in asked if item.key not in known]
        extra = search.score(read, others, read.neighbours(others)) if others else []
    if not asked:
        return Absence(
            outcome="unknown", similar_names=tuple(similar_names(memory, wanted.strip()))
        )
    best = _best([*[known[item.key] for item in asked if item.key in known], *extra], places)
    last = _explain_hit(ranked[min(limit, len(ranked)) - 1], search, (), ()) if ranked else None
    place = places.get(best.passage.key, 0)
    kept_out_by = _exclusions(within, best.passage)
    twin = None if place else _twin(best, ranked, known)
    return Absence(
        outcome=_outcome(place, limit, twin is not None, bool(kept_out_by)),
        passage=best.passage,
        place=place or 1 + sum(hit.score > best.score for hit in ranked),
        total=len(ranked),
        score=best.score,
        signals=_weigh(best, search),
        last=last,
        twin=twin,
        missing=_missing_words(search, best.terms),
        has_vector=best.signals.meaning is not None,
        kept_out_by=kept_out_by,
    )


def _rank_timed(
    memory: Memory, read: Reader, question: str, limit: int, within: Within | None
) -> tuple[Ranking, Search, list[ScoredPassage]]:
    """Rank all candidates as recall does."""
    started = perf_counter()
    (search,) = start_searches(memory, read, [question], within, EMBED_TIMEOUT_S)
    scored = score_candidates(read, [search], within)
    ranked = hits.best_hits(search.query.folded, scored, max(limit, len(scored)))
    return (
        Ranking([hit.passage for hit in ranked], 1000 * (perf_counter() - started)),
        search,
        scored,
    )


def _by_meaning(read: Reader, search: Search, limit: int, within: Within | None) -> Ranking:
    """Rank by meaning alone. Return twice as many as are shown, so that most hits have a place."""
    if search.vectors is None:
        return Ranking([], 0.0)
    started = perf_counter()
    nearest = read.vectors.nearest(search.vectors.model, search.vectors.question, 2 * limit, within)
    passages = {passage.id: passage for passage in read.passages(nearest)}
    ranked = [passages[item] for item in nearest if item in passages]
    return Ranking(ranked, 1000 * (perf_counter() - started))


def _coverage(read: Reader, search: Search) -> tuple[int, int]:
    if search.vectors is None:
        return 0, read.counts().facts
    return read.vectors.coverage(search.vectors.model)


def _explain_hit(
    hit: Hit, search: Search, words: Sequence[Passage], meaning: Sequence[Passage]
) -> ExplainedHit:
    key = hit.passage.key
    return ExplainedHit(hit, _weigh(hit, search), _place(words, key), _place(meaning, key))


def _weigh(found: Hit | ScoredPassage, search: Search) -> list[WeightedSignal]:
    subject = search.query.subject(found.passage)
    return weigh(found.signals, search.query.bonuses.get(subject, 0.0), search.coverage)


def _place(ranked: Sequence[Passage], key: PassageKey) -> int | None:
    return next((place for place, hit in enumerate(ranked, 1) if hit.key == key), None)


def _find_wanted(read: Reader, search: Search, wanted: str) -> list[Passage]:
    """Return the passages of the entity with that name, or else those that contain the text."""
    if not wanted:
        return []
    folded = fold(wanted)
    named = read.existing_names([wanted]) or {
        entity.name
        for entity in read.containing(folded, outlines=True)
        if fold(entity.name) == folded
    }
    if named:
        return _passages_of(read, search, min(named))
    found = read.passages_containing(folded, MAX_WANTED)
    terms = terms_of(wanted)
    return found or (read.candidates(terms, MAX_WANTED, every=True) if terms else [])


def _passages_of(read: Reader, search: Search, name: str) -> list[Passage]:
    """Return the card of an entity and its passages nearest to the question, else the first."""
    within = Within(names=(name,))
    found = read.passages(cards_of=[name]) + read.candidates(
        search.query.rare_terms, MAX_WANTED, within
    )
    if search.vectors is not None:
        nearest = read.vectors.nearest(
            search.vectors.model, search.vectors.question, MAX_WANTED, within
        )
        found += read.passages(nearest)
    if len(found) == 1:
        found += [
            passage for entity in read.entities([name]) for passage in _facts(entity)[:MAX_WANTED]
        ]
    return list({item.key: item for item in found}.values())


def _facts(entity: Entity) -> list[Passage]:
    return [
        Passage(
            entity.name,
            entity.type,
            fact.ordinal,
            fact.text,
            fact.created_at,
            fact.valid_at,
            tags=entity.tags,
            source=fact.source,
        )
        for fact in entity.facts
    ]


def _best(scored: Sequence[ScoredPassage], places: dict[PassageKey, int]) -> ScoredPassage:
    """Return the one with the best place or, if none has a place, with the best score."""
    return min(
        scored,
        key=lambda scored_passage: (
            places.get(scored_passage.passage.key, len(places) + 1),
            -scored_passage.score,
        ),
    )


def _twin(
    best: ScoredPassage, ranked: Sequence[Hit], known: dict[PassageKey, ScoredPassage]
) -> Passage | None:
    """Return the hit that keeps the passage out because it says the same; None if there is none."""
    if best.passage.key not in known:
        return None
    for hit in ranked:
        if hit.passage.entity == best.passage.entity:
            subjects = [("", known[hit.passage.key].terms), ("", best.terms)]
            if len(hits.distinct(subjects, 2)) == 1:
                return hit.passage
    return None


def _outcome(place: int, limit: int, is_alike: bool, is_kept_out: bool) -> Outcome:
    if place:
        return "shown" if place <= limit else "ranked"
    if is_alike:
        return "alike"
    return "filtered" if is_kept_out else "not found"


def _exclusions(within: Within | None, passage: Passage) -> tuple[str, ...]:
    """Return the names of the filters that the passage does not satisfy."""
    if within is None:
        return ()
    names = []
    for name in Within.__struct_fields__:
        value = getattr(within, name)
        if value is not None and not Within(**{name: value}).has(passage):
            names.append(name)
    return tuple(names)


def _missing_words(search: Search, terms: Sequence[str]) -> tuple[str, ...]:
    """Return the words of the question that a passage does not have, as the user spelled them."""
    asked = {term: word for word in words_of(search.query.question.text) for term in terms_of(word)}
    return tuple(asked.get(term, term) for term in search.query.terms if term not in terms)
