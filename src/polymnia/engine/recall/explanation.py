"""Explain a recall: why a passage is a hit at its place, or why it is not among the hits."""

from collections.abc import Sequence
from typing import Literal

from msgspec import Struct

from polymnia.engine.memory import Memory
from polymnia.engine.recall.names import similar_names
from polymnia.engine.recall.passages import Search, score_candidates, start_searches
from polymnia.model import NOTE, NOTE_TYPE, VAULT, Hit, Passage, PassageKey, Within
from polymnia.search import hits
from polymnia.search.scoring import ScoredPassage, WeightedSignal, weigh
from polymnia.search.terms import fold, terms_of, words_of
from polymnia.stores.contract import Reader, find_note

# Passages that are examined for an entity or text.
MAX_EXAMINED = 20

Outcome = Literal["shown", "ranked", "alike", "filtered", "not found", "unknown"]


class Explanation(Struct, frozen=True, kw_only=True):
    """The place of a passage among the hits, and the signals that its score is the sum of.

    The outcome is `shown` or `ranked` for a hit at `place`, above or below the limit; `alike` if
    the hit `twin` stands for it; `filtered` by the filters in `kept_out_by`; `not found` if no
    search proposes it, and `place` is where its score would put it; `unknown` if there is no such
    passage. `missing` are words of the question that the passage does not have.
    """

    outcome: Outcome
    passage: Passage | None = None
    place: int = 0
    total: int = 0
    score: float = 0.0
    signals: list[WeightedSignal] = []
    twin: Passage | None = None
    missing: tuple[str, ...] = ()
    has_vector: bool = False
    kept_out_by: tuple[str, ...] = ()
    similar_names: tuple[str, ...] = ()


def explain(
    memory: Memory,
    question: str,
    wanted: str | PassageKey,
    *,
    limit: int = 10,
    within: Within | None = None,
) -> Explanation:
    """Explain the place of a passage, of an entity, or of a text by some of its words."""
    if isinstance(wanted, str):
        wanted = wanted.strip()
    with memory.reading() as read:
        # The embedder may have to be loaded first.
        (search,) = start_searches(memory, read, [question], within, 20.0)
        scored = score_candidates(read, [search], within)
        ranked = hits.best_hits(search.query.folded, scored, max(limit, len(scored)))
        asked = _find(read, search, wanted)
        known = {item.passage.key: item for item in scored}
        others = [item for item in asked if item.key not in known]
        extra = search.score(read, others, read.neighbours(others)) if others else []
    if not asked:
        name = wanted if isinstance(wanted, str) else wanted[0]
        return Explanation(outcome="unknown", similar_names=tuple(similar_names(memory, name)))
    places = {hit.passage.key: place for place, hit in enumerate(ranked, 1)}
    candidates = [*[known[item.key] for item in asked if item.key in known], *extra]
    # The one with the best place or, if none has a place, with the best score.
    best = min(
        candidates,
        key=lambda item: (places.get(item.passage.key, len(places) + 1), -item.score),
    )
    place = places.get(best.passage.key, 0)
    twin = None if place else _twin(best, ranked, known)
    kept_out_by = _exclusions(within, best.passage)
    outcome: Outcome = "not found"
    if place:
        outcome = "shown" if place <= limit else "ranked"
    elif twin is not None:
        outcome = "alike"
    elif kept_out_by:
        outcome = "filtered"
    words = {term: word for word in words_of(question) for term in terms_of(word)}
    missing = [words.get(term, term) for term in search.query.terms if term not in best.terms]
    return Explanation(
        outcome=outcome,
        passage=best.passage,
        place=place or 1 + sum(hit.score > best.score for hit in ranked),
        total=len(ranked),
        score=best.score,
        signals=weigh(best.signals),
        twin=twin,
        missing=tuple(missing),
        has_vector=best.signals.meaning is not None,
        kept_out_by=kept_out_by,
    )


def _find(read: Reader, search: Search, wanted: str | PassageKey) -> list[Passage]:
    """Return the passages that are meant: one, those of an entity, or those with the text."""
    if not isinstance(wanted, str):
        return _passage(read, *wanted)
    if not wanted:
        return []
    folded = fold(wanted)
    named = read.existing_names([wanted]) or {
        entity.name
        for entity in read.containing(folded, outlines=True)
        if fold(entity.name) == folded
    }
    if not named:
        found = read.passages_containing(folded, MAX_EXAMINED)
        terms = terms_of(wanted)
        return found or (read.candidates(terms, MAX_EXAMINED, every=True) if terms else [])
    # The card of the entity and its passages nearest to the question, else its first facts.
    name = min(named)
    within = Within(names=(name,))
    found = read.passages(cards_of=[name])
    found += read.candidates(search.query.rare_terms, MAX_EXAMINED, within)
    if search.vectors is not None:
        model, vector = search.vectors.model, search.vectors.question
        found += read.passages(read.vectors.nearest(model, vector, MAX_EXAMINED, within))
    if len(found) == 1:
        found += _facts(read, name)[:MAX_EXAMINED]
    return list({item.key: item for item in found}.values())


def _passage(read: Reader, name: str, ordinal: int) -> list[Passage]:
    """Return the living passage with a key; nothing if there is none any more."""
    if ordinal == 0:
        return read.passages(cards_of=[name])
    if ordinal < 0:
        note = find_note(read.notes, VAULT, name)
        if note is None:
            return []
        at = note.updated_at or note.created_at
        return [Passage(note.key, NOTE_TYPE, NOTE, note.content, at, tags=note.tags)]
    return [item for item in _facts(read, name) if item.ordinal == ordinal]


def _facts(read: Reader, name: str) -> list[Passage]:
    return [Passage.of(entity, fact) for entity in read.entities([name]) for fact in entity.facts]


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


def _exclusions(within: Within | None, passage: Passage) -> tuple[str, ...]:
    """Return the names of the filters that the passage does not satisfy."""
    names = []
    for name in Within.__struct_fields__ if within is not None else ():
        value = getattr(within, name)
        if value is not None and not Within(**{name: value}).has(passage):
            names.append(name)
    return tuple(names)
