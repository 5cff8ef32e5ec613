"""Search a memory as it was: hits of today that were there already, and what is gone since."""

from collections.abc import Iterator, Mapping, Set
from typing import Literal

from msgspec import Struct

from polymnia.engine.history.changes import history_of
from polymnia.engine.memory import Memory
from polymnia.engine.recall.passages import recall
from polymnia.model import Change, ChangeQuery, Entity, Hit, Observation, PassageKey, Within
from polymnia.search.hits import Fit, fit_of
from polymnia.search.question import content_words
from polymnia.search.terms import terms_of
from polymnia.stores.contract import HistoryReader

# Hits of today that are looked up in the past.
MAX_HITS = 100
# Changes after the moment that are searched for what they ended, and the rows of these changes.
MAX_CHANGES, MAX_ROWS = 2_000, 5_000
# A fact that is gone is a hit with this share of the question's words.
MIN_SHARE = 0.5
_FITS: tuple[Fit, ...] = ("strong", "good", "fair", "weak")

How = Literal["same", "changed", "gone"]


class PastHit(Struct, frozen=True):
    """A fact as it was, how it differs from now, and the change that made the difference.

    The fact of an entity's own card is None. `now` is the text that the fact has today.
    """

    entity: Entity
    fact: Observation | None
    how: How
    fit: Fit
    now: str = ""
    cause: Change | None = None
    name_now: str = ""  # empty if the entity is deleted

    @property
    def key(self) -> PassageKey:
        """The key that the passage has today."""
        return self.name_now, self.fact.ordinal if self.fact else 0


class PastResult(Struct, frozen=True):
    """What was found, the best first, and the hits of today that came later.

    `is_complete` is False if too much ended since then to be searched.
    """

    hits: list[PastHit]
    later: list[Hit]
    is_complete: bool


class _EndedFact(Struct, frozen=True):
    """A fact that a change ended."""

    entity: str
    fact: Observation
    change: Change


def recall_at(
    memory: Memory, question: str, time: int, *, within: Within | None = None
) -> PastResult:
    """Return what a question finds among the facts that were stored at a time.

    Facts that are still there are ranked as today, by words and meaning. Those that were changed
    or removed since are found by words. Raise NotSupported, or BadInput for a purged time.
    """
    today = recall(memory, question, limit=MAX_HITS, within=within)
    asked = frozenset(terms_of(" ".join(content_words(question))))
    with memory.reading() as read:
        history = history_of(memory, read)
        ended, is_complete = _ended_since(history, time)
        matching = []
        for fact in ended:
            if _share(asked, f"{fact.entity} {fact.fact.text}") >= MIN_SHARE:
                matching.append(fact)
        names = {hit.passage.entity for hit in today.hits if hit.passage.kind != "note"}
        names |= {fact.entity for fact in matching}
        all_names = history.all_names(names)
        then = history.state_at(time, all_names)
        now = {entity.id: entity for entity in read.entities(all_names)}
    places = {hit.passage.key: place for place, hit in enumerate(today.hits)}
    fits = {hit.passage.key: fit_of(hit, today.match) for hit in today.hits}
    causes = {(fact.fact.ordinal, fact.fact.text): fact.change for fact in matching}
    hits: list[PastHit] = []
    for entity in then.entities:
        if within is None or _is_within(entity, within):
            hits += _hits_of(entity, now.get(entity.id), fits, asked, causes)
    # Who goes back to a moment asks for what differs, so that comes first.
    hits.sort(
        key=lambda hit: (hit.how == "same", _FITS.index(hit.fit), places.get(hit.key, MAX_HITS))
    )
    shown = {hit.key for hit in hits}
    later = [
        hit for hit in today.hits if hit.passage.kind != "note" and hit.passage.key not in shown
    ]
    return PastResult(hits, later, is_complete)


def _ended_since(history: HistoryReader, time: int) -> tuple[list[_EndedFact], bool]:
    """Return the facts that changes after a time ended, and whether these are all."""
    heads = history.change_heads(ChangeQuery(limit=MAX_CHANGES, since=time + 1))
    sizes = history.change_sizes([head.id for head in heads])
    is_complete = len(heads) < MAX_CHANGES
    chosen: list[int] = []
    rows = 0
    for number, size in sorted(sizes.items()):  # the oldest first: it ended what was there then
        if not size.before.total:
            continue
        rows += size.total
        if rows > MAX_ROWS:
            is_complete = False
            break
        chosen.append(number)
    if not chosen:
        return [], is_complete
    changes = history.changes(ChangeQuery(limit=None, ids=tuple(chosen)))
    return [fact for change in changes for fact in _facts_before(change)], is_complete


def _facts_before(change: Change) -> Iterator[_EndedFact]:
    head = Change(change.operation, change.actor, change.at, id=change.id)
    for entity in change.before.entities:
        for fact in entity.observations:
            yield _EndedFact(entity.name, fact, head)
    for group in change.before.observations:
        for fact in group.observations:
            yield _EndedFact(group.entity, fact, head)


def _hits_of(
    entity: Entity,
    now: Entity | None,
    fits: Mapping[PassageKey, Fit],
    asked: Set[str],
    causes: Mapping[tuple[int, str], Change],
) -> Iterator[PastHit]:
    """Yield what answers the question among the facts that an entity had."""
    name_now = now.name if now else ""
    texts_now = {fact.ordinal: fact.text for fact in now.observations} if now else {}
    if (name_now, 0) in fits:
        yield PastHit(entity, None, "same", fits[name_now, 0], name_now=name_now)
    for fact in entity.observations:
        text_now = texts_now.get(fact.ordinal)
        if text_now == fact.text:
            if (name_now, fact.ordinal) in fits:
                fit = fits[name_now, fact.ordinal]
                yield PastHit(entity, fact, "same", fit, text_now, name_now=name_now)
            continue
        share = _share(asked, f"{entity.name} {fact.text}")
        if share >= MIN_SHARE:
            how: How = "gone" if text_now is None else "changed"
            word_fit: Fit = "good" if share == 1 else "fair"
            cause = causes.get((fact.ordinal, fact.text))
            yield PastHit(entity, fact, how, word_fit, text_now or "", cause, name_now)


def _share(asked: Set[str], text: str) -> float:
    """Return the share of the question's terms that a text has."""
    if not asked:
        return 0.0
    return len(asked & set(terms_of(text))) / len(asked)


def _is_within(entity: Entity, within: Within) -> bool:
    has_type = within.types is None or entity.type in within.types
    return has_type and (within.tags is None or set(within.tags) <= set(entity.tags))
