"""The verb that finds what answers a question: words, meaning, who it is about and when, in one ranking."""

from collections.abc import Collection, Mapping
from itertools import accumulate
from typing import TYPE_CHECKING

from msgspec import Struct

from polymnia.engine.memory import Memory
from polymnia.model import NOTE, NOTE_TYPE, Hit, Passage, PassageKey, Signals, Within, WordCounts
from polymnia.search import ladder
from polymnia.search.dates import agreement, tells_time
from polymnia.search.diversity import distinct
from polymnia.search.question import Question, named, parse, possible_names, repaired, unnamed, without
from polymnia.search.scoring import WITH_MEANING, WORDS_ONLY, Matcher, Weights, length_of, scores
from polymnia.search.terms import terms_of
from polymnia.search.text import fold
from polymnia.search.typos import nearest, starts
from polymnia.stores.contract import Reader

if TYPE_CHECKING:
    from polymnia.engine.semantics import Asked, Asking

# How many passages are looked at closely: for their words, and of each entity or time that the question names.
CANDIDATES = 100
NEAREST = 60
# A question may be a whole page: its rarest terms are enough to find it by.
_MOST_TERMS = 40
# Rarest first, terms are looked up until so many passages have one of them: the common ones only weigh what is found.
_MOST_PASSAGES = 2_000
_MOST_NAMES = 8
# A term that so many passages have is no help in finding a name by it.
_TOO_COMMON = 5_000
_MOST_PREFIXED = 20
_MOST_VOCABULARY = 2_000
# What a term counts that the question does not have but probably means.
_WIDENED = 0.5
_LAST_CHARACTER = "\U0010ffff"


class Recalled(Struct, frozen=True):
    """What was found, the best first; `note` says why meaning was left out, if it was."""

    hits: list[Hit]
    note: str = ""


def recall(
    memory: Memory, question: str, *, limit: int = 10, within: Within | None = None, patience: float | None = None
) -> Recalled:
    """The passages that answer the question, the best first, each with what speaks for it.

    With `patience` it waits so many seconds for the model to be loaded and done; else it answers with what there is.
    """
    if memory.semantics is not None and patience is not None:
        memory.semantics.settle(patience)
    with memory.reading() as read:
        search = _prepare(read, parse(question))
        asking = _begin(memory, search, patience)
        by_words = _by_words(read, search, None)  # while the model makes a vector of the question
    asked = asking if isinstance(asking, str) else asking.answer()
    with memory.reading() as read:
        found = _gather(read, search, by_words, asked, None)
        scale = [each.signals for each in found]
        if within is not None:
            more = _gather(read, search, _by_words(read, search, within), asked, within)
            found = _within(within, found, more)
    weights = WORDS_ONLY if isinstance(asked, str) else WITH_MEANING
    return Recalled(_ranked(search, found, scale, limit, weights), asked if isinstance(asked, str) else "")


def _begin(memory: Memory, search: "_Search", patience: float | None) -> "Asking | str":
    """Let the question be embedded, without the names in it: they are weighed apart, and would drown the rest."""
    semantics = memory.semantics
    if semantics is None:
        return "no embedder is chosen, or the store keeps no vectors"
    whole = [name for name, share in search.named.items() if share == 1]
    return semantics.begin(unnamed(search.question.text, whole), patience)


class _Search(Struct, frozen=True):
    """A question made ready: what it asks for, of whom, and the measure of words."""

    question: Question
    named: dict[str, float]
    terms: tuple[str, ...]
    other: dict[str, str]
    matcher: Matcher
    find_by: tuple[str, ...]
    meant: frozenset[str]
    folded: str

    @property
    def about(self) -> Within | None:
        """Those of the entities it names that it says most of; None when it names nobody."""
        names = sorted(self.named, key=lambda name: -self.named[name])[:_MOST_NAMES]
        return Within(names=tuple(names)) if names else None


class _Candidate(Struct, frozen=True):
    """A passage worth a closer look, its terms, and what speaks for it."""

    passage: Passage
    terms: list[str]
    signals: Signals


def _prepare(read: Reader, question: Question) -> _Search:
    counts = read.word_counts(possible_names(question))
    question, counts, meant = _repair(read, question, counts)
    names = [term for term in possible_names(question) if 0 < counts.having.get(term, 0) <= _TOO_COMMON]
    about = named(question, {*read.known([question.text.strip()]), *read.named_with(names, 5 * _MOST_NAMES)})
    terms = without(question, [name for name, share in about.items() if share == 1])
    other = _widened(read, terms, counts)
    weights = dict.fromkeys(terms, 1.0) | dict.fromkeys(other, _WIDENED)
    if other:
        counts = read.word_counts(weights)
    rarest = sorted([term for term in weights if counts.having.get(term)], key=lambda term: counts.having[term])
    return _Search(
        question,
        about,
        terms,
        other,
        Matcher(weights, counts),
        _rare_enough(rarest, counts),
        meant,
        fold(question.text.strip()),
    )


def _rare_enough(rarest: list[str], counts: WordCounts) -> tuple[str, ...]:
    total = list(accumulate([counts.having[term] for term in rarest]))
    return tuple(
        [term for term, sofar in zip(rarest, total, strict=True) if sofar <= _MOST_PASSAGES][:_MOST_TERMS]
    ) or (tuple(rarest[:1]))


def _repair(read: Reader, question: Question, counts: WordCounts) -> tuple[Question, WordCounts, frozenset[str]]:
    """Exchange terms that nothing has, and nothing starts with, for those they are a typing mistake of."""
    meant = {}
    for term in question.content:
        if term not in counts.having and not _prefixed(read, term):
            near = nearest(term, {each for start in starts(term) for each in read.vocabulary(*start, _MOST_VOCABULARY)})
            if near:
                common = read.word_counts(near).having
                meant[term] = max(near, key=lambda each: (common.get(each, 0), each))
    if meant:
        question = repaired(question, meant)
        counts = read.word_counts(possible_names(question))
    return question, counts, frozenset(meant.values())


def _widened(read: Reader, terms: Collection[str], counts: WordCounts) -> dict[str, str]:
    """Terms that start with those nothing has."""
    unknown = [term for term in terms if term not in counts.having]
    return {each: ladder.PREFIX for term in unknown for each in _prefixed(read, term)}


def _prefixed(read: Reader, term: str) -> list[str]:
    return read.vocabulary(term, term + _LAST_CHARACTER, _MOST_PREFIXED) if len(term) > 1 else []


def _by_words(read: Reader, search: _Search, within: Within | None) -> list[Passage]:
    """What words, names and dates propose."""
    passages = read.passages(search.find_by, CANDIDATES, within) or _containing(read, search.folded)
    passages = _called(read, search) + passages
    if len(search.find_by) < len(search.terms) and len(passages) >= CANDIDATES:
        passages += read.passages(search.terms[:_MOST_TERMS], CANDIDATES, within, every=True)
    about = search.about
    if about is not None:
        passages += read.passages(search.find_by, CANDIDATES, about)
    period = search.question.period
    if period is not None and period.bounds is not None:
        passages += read.between(*period.bounds, CANDIDATES)
    return passages


def _gather(
    read: Reader, search: _Search, by_words: list[Passage], asked: "Asked | str", within: Within | None
) -> list[_Candidate]:
    """Every passage worth a closer look: by words, by meaning, and what was said next."""
    found = {passage.key: passage for passage in by_words}
    cosines: dict[int, float] = {}
    if not isinstance(asked, str):
        cosines = asked.nearest(NEAREST, within)
        if search.about is not None:
            cosines |= asked.nearest(NEAREST, search.about)
        found |= {passage.key: passage for passage in read.passages_at(cosines)}
    said = [key for key, passage in found.items() if passage.valid_at]
    after = read.following(said) if said else {}
    found |= {passage.key: passage for passage in after.values()}
    if not isinstance(asked, str):
        cosines |= asked.cosines([passage.id for passage in found.values() if passage.id not in cosines])
    return _weighed(search, found, after, cosines, _linked(read, search))


def _within(within: Within, found: list[_Candidate], more: list[_Candidate]) -> list[_Candidate]:
    """What a filter allows of what is found without and with it.

    What was found without keeps its signals: some are of what was said before, which the filter may not allow.
    """
    merged = {each.passage.key: each for each in [*more, *found]}
    return [each for each in merged.values() if within.has(each.passage)]


def _called(read: Reader, search: _Search) -> list[Passage]:
    """The entity that has the question for its name, however many passages have its words."""
    names = [name for name, share in search.named.items() if share == 1 and fold(name.strip()) == search.folded]
    found = read.find(names) if names else []
    return [Passage(each.name, each.type, 0, "", each.created_at) for each in found]


def _containing(read: Reader, folded: str) -> list[Passage]:
    """The last rung: passages that have the question's very characters."""
    found: list[Passage] = []
    for entity in read.containing(folded) if folded else ():
        if folded in fold(entity.name) or folded in fold(entity.type):
            found.append(Passage(entity.name, entity.type, 0, "", entity.created_at))
        found += [
            Passage(entity.name, entity.type, each.ordinal, each.text, each.created_at, each.valid_at)
            for each in entity.observations
            if folded in fold(each.text)
        ]
        if len(found) >= CANDIDATES:
            break
    return found + _notes_containing(read, folded)


def _notes_containing(read: Reader, folded: str) -> list[Passage]:
    notes = read.notes
    if notes is None or not folded:
        return []
    found = notes.containing(folded)[:CANDIDATES]
    return [Passage(each.key, NOTE_TYPE, NOTE, each.content, each.updated_at) for each in found]


def _linked(read: Reader, search: _Search) -> set[str]:
    """The entities one relation away from those that the question names."""
    whole = [name for name, share in search.named.items() if share == 1]
    if not whole:
        return set()
    return {name for each in read.touching(whole) for name in (each.source, each.target)} - set(whole)


def _weighed(
    search: _Search,
    found: Mapping[PassageKey, Passage],
    after: Mapping[PassageKey, Passage],
    cosines: Mapping[int, float],
    linked: set[str],
) -> list[_Candidate]:
    terms = {key: terms_of(passage.words) for key, passage in found.items()}
    score = search.matcher.score
    words = {key: score(terms[key], passage.entity) for key, passage in found.items()}
    if not search.find_by:
        words = {key: float(_has_characters(search, passage)) for key, passage in found.items()}
    before = {passage.key: words[key] for key, passage in after.items()}
    question, entity = search.question, search.named
    period, asks_when = question.period, question.asks_when
    return [
        _Candidate(
            passage,
            terms[key],
            Signals(
                words[key],
                before.get(key, 0.0),
                cosines.get(passage.id),
                entity.get(passage.entity, 0.0) if passage.ordinal else 0.0,
                1.0 if passage.entity in linked else 0.0,
                agreement(period, passage.valid_at or passage.created_at) if period else 0.0,
                1.0 if asks_when and tells_time(terms[key]) else 0.0,
                length_of(passage.text) if passage.valid_at else 0.0,
                1.0 if passage.valid_at and passage.text.rstrip().endswith("?") else 0.0,
            ),
        )
        for key, passage in found.items()
    ]


def _ranked(search: _Search, found: list[_Candidate], scale: list[Signals], limit: int, weights: Weights) -> list[Hit]:
    sums = scores([each.signals for each in found], scale, weights)
    exact = [ladder.exact(each.passage, search.folded) for each in found]
    keys = [(ladder.before_scores(exact[place]), -sums[place], each.passage.key) for place, each in enumerate(found)]
    order = sorted(range(len(found)), key=keys.__getitem__)
    shown = distinct([(_about(found[place].passage), found[place].terms) for place in order], limit)
    return [
        Hit(found[place].passage, sums[place], exact[place] or _rung(search, found[place]), found[place].signals, alike)
        for place, alike in ((order[at], alike) for at, alike in shown)
    ]


def _rung(search: _Search, candidate: _Candidate) -> str:
    found = ladder.rung(search.question.spoken, search.terms, search.other, candidate.terms)
    if found != ladder.CONTEXT:
        return ladder.TYPO if search.meant.intersection(candidate.terms) else found
    if _has_characters(search, candidate.passage):
        return ladder.SUBSTRING
    return found if candidate.signals.meaning is None else ladder.MEANING


def _has_characters(search: _Search, passage: Passage) -> bool:
    return bool(search.folded) and search.folded in fold(passage.words)


def _about(passage: Passage) -> tuple[str, bool]:
    """A note and an observation may say the same: one may change without the other, so both are shown."""
    return passage.entity, passage.ordinal == NOTE
