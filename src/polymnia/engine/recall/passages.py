"""Find the passages that answer a question: by words, meaning, names and dates, in one ranking."""

from collections import Counter, deque
from collections.abc import Collection, Sequence
from time import time_ns
from typing import TYPE_CHECKING

from msgspec import Struct
from msgspec.structs import replace

from polymnia.embedders.wordpiece import english_rarity
from polymnia.engine.memory import Memory
from polymnia.engine.recall.names import former_names, with_current_names
from polymnia.engine.recall.spelling import repair_spelling, terms_starting
from polymnia.model import (
    CosineScale,
    Entity,
    Hit,
    Neighbours,
    Passage,
    PassageKey,
    Within,
    WordCounts,
)
from polymnia.search import hits
from polymnia.search.hits import MatchQuality
from polymnia.search.languages import beginnings, language_of, stem_in
from polymnia.search.question import (
    Question,
    content_without,
    content_words,
    match_names,
    parse_question,
    speaker_of,
    text_without,
    words_with,
)
from polymnia.search.scoring import (
    LOCAL_SCALE,
    MIN_COVERAGE,
    Matcher,
    Query,
    ScoredPassage,
    brevity,
    entity_bonus,
    fuse,
    on_local_scale,
    score_passages,
)
from polymnia.search.spelling import variants
from polymnia.search.stored import (
    BACKGROUND_HITS,
    Support,
    match_quality,
    support_of,
    unknown_words,
)
from polymnia.search.terms import choose_rare, fold, terms_of, words_of
from polymnia.stores.contract import Reader

if TYPE_CHECKING:
    from polymnia.engine.semantic.meaning import PendingQuestion, QuestionVector

# The most candidates that are found by words, and by meaning. Named entities and a date in the
# question add as many.
MAX_WORD_CANDIDATES = 100
MAX_NEAREST = 60
# A question may be a whole page. What follows is not read; of the rest, the rarest terms are enough
# to find candidates.
MAX_QUESTION_CHARACTERS = 10_000
MAX_SEARCH_TERMS = 40
MAX_NAMES = 8
# Capitalised words of a question that may be speakers, and how many passages with each are looked
# at. A speaker begins at least so many and this share of them; a title begins few: "MEDLARS: …".
MAX_SPEAKERS, SPEAKER_SAMPLE = 3, 12
MIN_SPOKEN, MIN_SPOKEN_SHARE = 2, 1 / 3
# How many other phrasings of a question count, and how many neighbours a hit may have on each side.
MAX_ALSO = 5
MAX_CONTEXT = 10
# A term in more passages than this is no help in finding a name.
MAX_NAME_TERM_PASSAGES = 5_000
MAX_PREFIXED_TERMS = 20
# How many terms with the same beginning are compared by their stems in another language, and the
# shortest term that has other forms.
MAX_INFLECTED_TERMS, MIN_INFLECTED_LETTERS = 100, 3
# The weight of a longer word that starts with an unknown word of the question.
PREFIX_WEIGHT = 0.5


class RecallResult(Struct, frozen=True):
    """What was found, best first.

    `note` says why meaning was left out, wholly or in part, if it was. `coverage` is the share of
    passages that have a vector. `corrections` has the words of the question that were taken for
    typing mistakes. `match` says whether anything about the question seems to be stored,
    `unknown` which of its words no passage has. `names` are the entities that the question names,
    and `support` is what `match` comes from, for whoever searches several memories.
    """

    hits: list[Hit]
    note: str = ""
    coverage: float = 0.0
    corrections: dict[str, str] = {}
    match: MatchQuality = "clear"
    unknown: tuple[str, ...] = ()
    names: tuple[str, ...] = ()
    support: Support = Support()


def recall(
    memory: Memory,
    question: str,
    *,
    also: Sequence[str] = (),
    limit: int = 10,
    within: Within | None = None,
    context: int = 0,
    timeout: float | None = None,
) -> RecallResult:
    """Return the passages that answer the question, best first, each with the evidence for it.

    `also` are other ways to ask it, or guesses at the answer. The first MAX_ALSO count, if they
    have a word that the question has not. `context` is how many facts before and after each
    hit are returned with it, at most MAX_CONTEXT. Without a `timeout` in seconds, the embedder gets
    half a second to embed the question.
    """
    with memory.reading(may_lag=True) as read:
        searches = start_searches(memory, read, [question, *also[:MAX_ALSO]], within, timeout)
        scored = score_candidates(read, searches, within)
        # What says whether the topic is stored must not depend on how many hits are asked for.
        ranked = hits.best_hits(searches[0].query.folded, scored, max(limit, BACKGROUND_HITS))
        shown = ranked[:limit]
        if context > 0:
            shown = _with_context(read, shown, min(context, MAX_CONTEXT))
    if searches[0].is_unindexed and memory.meaning is not None:
        # The vectors are of a former model. Only now is the present one known.
        memory.meaning.request_indexing_again(memory)
    corrections: dict[str, str] = {}
    for search in searches:
        corrections |= search.corrections
    asked = searches[0].query
    support = support_of(ranked, asked)
    return RecallResult(
        shown,
        searches[0].note,
        searches[0].coverage,
        corrections,
        match_quality([support]),
        unknown_words(asked),
        tuple(asked.whole_names),
        support,
    )


def start_searches(
    memory: Memory, read: Reader, texts: Sequence[str], within: Within | None, timeout: float | None
) -> list["Search"]:
    """Start to search for the first text, and for other texts that have words it lacks."""
    aliased = read.aliased()
    first, *rest = [_prepare(read, text[:MAX_QUESTION_CHARACTERS], aliased) for text in texts]
    asked = first[0]
    others = [
        (query.about_the_same(asked), corrections)
        for query, corrections in rest
        if not asked.known_terms.issuperset(query.question.content)
    ]
    searches = [Search(*other, _ask(memory, read, other[0], timeout)) for other in (first, *others)]
    for search in searches:
        search.propose(read, within)  # while the embedder works
    return searches


class Search:
    """The search for one text: its query, the passages proposed for it, and its vector."""

    def __init__(
        self, query: Query, corrections: dict[str, str], asking: "PendingQuestion | str"
    ) -> None:
        self.query = query
        self.corrections = corrections
        self.scale: list[Passage] = []
        self.proposed: list[Passage] = []
        self.vectors: _Vectors | None = None
        self.is_unindexed = False
        self.coverage = 0.0
        self.note = ""
        self._asking = asking

    def propose(self, read: Reader, within: Within | None) -> None:
        """Find passages by words; those without the filter are the scale of the scores."""
        self.scale = _by_words(read, self.query, None)
        self.proposed = (
            self.scale if within is None else self.scale + _by_words(read, self.query, within)
        )

    def embed(self, read: Reader) -> None:
        """Wait for the vector of the text."""
        asked = self._asking if isinstance(self._asking, str) else self._asking.answer()
        self.vectors = None if isinstance(asked, str) else _Vectors.of(read, asked)
        self.is_unindexed = self.vectors is None and not isinstance(asked, str)
        self.coverage = self.vectors.coverage if self.vectors else 0.0
        self.note = asked if isinstance(asked, str) else _coverage_note(self.coverage)

    def score(
        self, read: Reader, passages: Collection[Passage], neighbours: dict[PassageKey, Neighbours]
    ) -> list[ScoredPassage]:
        """Score passages, proposed or not."""
        cosines = _cosines(
            read,
            self.vectors,
            {passage.key: passage for passage in [*passages, *self.scale]}.values(),
            neighbours,
        )
        return score_passages(
            self.query, passages, neighbours, cosines, scale=self.scale, coverage=self.coverage
        )


def _coverage_note(coverage: float) -> str:
    """Return a note on a memory that is partly embedded; empty if everything is."""
    if coverage >= 1:
        return ""
    rest = "the rest" if coverage > MIN_COVERAGE else "until a tenth is, everything"
    percent = int(coverage * 100)  # rounded down: 100 % would say that nothing is missing
    return f"{percent}% of the memory is embedded so far; {rest} is found by words alone"


class _Vectors(Struct, frozen=True):
    """The question's vector and the stored vectors it can be compared with."""

    question: bytes
    model: int
    coverage: float
    scale: CosineScale

    @classmethod
    def of(cls, read: Reader, asked: "QuestionVector") -> "_Vectors | None":
        """Return None if the store has no vectors of the question's model."""
        models = {model.identity: model for model in read.vectors.models()}
        model = models.get(asked.identity)
        if model is None:
            return None
        embedded, total = read.vectors.coverage(model.number)
        if not embedded:
            return None
        return cls(asked.vector, model.number, embedded / total, model.scale or LOCAL_SCALE)


def _prepare(read: Reader, asked: str, aliased: Sequence[Entity]) -> tuple[Query, dict[str, str]]:
    """Return the question as the store understands it, and the words of it that were replaced.

    Those are misspelled ones, and names that entities had before.
    """
    renamed = former_names(read, aliased, asked)
    asked = with_current_names(asked, renamed)
    text, corrections = repair_spelling(read, asked)
    question = parse_question(text, now=time_ns() // 1000)
    counts = read.word_counts(question.name_terms)
    names = _find_names(read, question, counts)
    speakers = _find_speakers(read, question, counts, names)
    names |= dict.fromkeys(speakers, 1.0)
    whole_names = [name for name, share in names.items() if share == 1]
    terms = content_without(question, whole_names)
    other_forms = _other_forms(text, terms) | _inflected(read, terms, language_of(text))
    widened = dict.fromkeys(_prefixed(read, terms, counts), hits.PREFIX)
    widened |= dict.fromkeys(other_forms, hits.VARIANT)
    weights = _term_weights(text, terms, widened)
    if widened:
        counts = read.word_counts(weights)
    own_counts = speakers | read.fact_counts(names)
    linked, relation_terms = _follow_relations(read, whole_names)
    search_terms = _search_terms(weights, counts)
    query = Query(
        question,
        names,
        {name: entity_bonus(counts.passages, own_counts.get(name, 1)) for name in names},
        linked,
        terms,
        widened,
        frozenset(terms_of(" ".join(corrections.values()))),
        search_terms,
        Matcher(weights, counts, terms, other_forms),
        fold(asked.strip()),  # as it was typed: a part of a word is no mistake
        brevity(counts),
        relation_terms,
        tuple(choose_rare(search_terms, counts.having)),
        _rarities(text),
    )
    return query, corrections | renamed


def _rarities(text: str) -> dict[str, float]:
    """Return how rare the terms of a question are in English."""
    rarities: dict[str, float] = {}
    for word in words_of(text):
        for term in terms_of(word):
            rarities.setdefault(term, english_rarity(word))
    return rarities


def _find_names(read: Reader, question: Question, counts: WordCounts) -> dict[str, float]:
    """Return the entities that the question names, wholly or in part."""
    rare_terms = []
    for term in question.name_terms:
        if 0 < counts.having.get(term, 0) <= MAX_NAME_TERM_PASSAGES:
            rare_terms.append(term)
    names = read.existing_names([question.text.strip()])
    names.update(read.names_with(rare_terms, 5 * MAX_NAMES))
    return match_names(question, names)


def _find_speakers(
    read: Reader, question: Question, counts: WordCounts, names: Collection[str]
) -> dict[str, int]:
    """Return whom the question names that is no entity but says texts: "Caroline: I adopted …".

    With each comes in how many passages the name occurs.
    """
    named_terms = set(terms_of(" ".join(names)))
    speakers = {}
    for term in sorted(question.capitalised - named_terms)[:MAX_SPEAKERS]:
        count = counts.having.get(term, 0)
        if not MIN_SPOKEN <= count <= MAX_NAME_TERM_PASSAGES:
            continue
        texts = [passage.text for passage in read.candidates([term], SPEAKER_SAMPLE)]
        spoken = Counter(speaker_of(text) for text in texts)
        least = max(MIN_SPOKEN, MIN_SPOKEN_SHARE * len(texts))
        for speaker in match_names(question, [name for name in spoken if name]):
            if spoken[speaker] >= least and term in terms_of(speaker):
                speakers[speaker] = count
    return speakers


def _term_weights(text: str, terms: Collection[str], widened: dict[str, str]) -> dict[str, float]:
    """Return how much each term counts: as often as the question has it."""
    repeats = Counter(terms_of(" ".join(content_words(text))))
    weights = {term: float(max(1, repeats[term])) for term in terms}
    for term, kind in widened.items():
        weights[term] = PREFIX_WEIGHT if kind == hits.PREFIX else 1.0
    return weights


def _other_forms(text: str, terms: Collection[str]) -> dict[str, str]:
    """Return terms of other spellings and short forms, with the term they stand for."""
    forms = [
        (other, word)
        for word in content_words(text)
        for other in terms_of(" ".join(variants(word)))
    ]
    return {
        other: term
        for other, word in forms
        for term in terms_of(word)
        if term in terms and other not in terms
    }


def _inflected(read: Reader, terms: Collection[str], language: str) -> dict[str, str]:
    """Return terms of the store with the same stem in the question's language, with the term.

    The index has English stems, which do not join the forms of other languages' words.
    """
    forms: dict[str, str] = {}
    for term in terms:
        if not language or len(term) < MIN_INFLECTED_LETTERS or not term.isalpha():
            continue
        stem = stem_in(language, term)
        for start in beginnings(language, term):
            for other in terms_starting(read, start, MAX_INFLECTED_TERMS):
                if other not in terms and stem_in(language, other) == stem:
                    forms.setdefault(other, term)
    return forms


def _prefixed(read: Reader, terms: Collection[str], counts: WordCounts) -> list[str]:
    """Return terms that start with an unknown term of the question."""
    unknown = [term for term in terms if term not in counts.having and len(term) > 1]
    found = [term for item in unknown for term in terms_starting(read, item, MAX_PREFIXED_TERMS)]
    return [term for term in found if term not in terms]


def _search_terms(terms: Collection[str], counts: WordCounts) -> tuple[str, ...]:
    """Return the terms to find candidates by, rarest first."""
    known_terms = [term for term in terms if counts.having.get(term)]
    known_terms.sort(key=counts.having.__getitem__)
    return tuple(known_terms[:MAX_SEARCH_TERMS])


def _follow_relations(
    read: Reader, names: Collection[str]
) -> tuple[frozenset[str], frozenset[str]]:
    """Return the entities one relation away from the named ones, and the words of the relations."""
    linked: set[str] = set()
    words: set[str] = set()
    if names:
        for relation in read.relations(names):
            linked.update((relation.source, relation.target))
            words.update(terms_of(relation.type.replace("_", " ")))
    return frozenset(linked.difference(names)), frozenset(words)


def _ask(
    memory: Memory, read: Reader, query: Query, timeout: float | None
) -> "PendingQuestion | str":
    """Start to embed the question without its names, which are scored separately.

    A part of a name with a capital letter is one, too: "Saga" of "Saga Holm".
    """
    if memory.meaning is None:
        return "no embedder is configured, or this kind of store has no vectors"
    if not read.vectors.models():
        return (
            memory.meaning.missing_package or "nothing is embedded yet, so only words were searched"
        )
    text = text_without(query.question.text, [*query.whole_names, *_name_parts(query)])
    return (
        memory.meaning.ask(text) if timeout is None else memory.meaning.ask(text, timeout=timeout)
    )


def _name_parts(query: Query) -> list[str]:
    """Return the capitalised words of the question that are parts of the names of entities."""
    part_terms: set[str] = set()
    for name, share in query.names.items():
        if share < 1:
            part_terms.update(terms_of(name))
    return words_with(query.question.text, part_terms & query.question.capitalised)


def _by_words(read: Reader, query: Query, within: Within | None) -> list[Passage]:
    """Return the candidates by words, names and dates."""
    terms = query.search_terms if within is None else query.rare_terms
    found = read.candidates(terms, MAX_WORD_CANDIDATES, within)
    if not found and query.folded:
        found = read.passages_containing(query.folded, MAX_WORD_CANDIDATES)
    found = _named_card(read, query) + found
    if len(query.rare_terms) < len(query.terms) and len(found) >= MAX_WORD_CANDIDATES:
        found += read.candidates(
            query.terms[:MAX_SEARCH_TERMS], MAX_WORD_CANDIDATES, within, every=True
        )
    if query.names:
        found += read.candidates(query.rare_terms, MAX_WORD_CANDIDATES, _about(query))
    return found + _by_date(read, query.question, within)


def _by_date(read: Reader, question: Question, within: Within | None) -> list[Passage]:
    """Return the candidates by date: what was said then, and what names the date."""
    if question.period is None or question.period.bounds is None:
        return []
    found = read.facts_between(*question.period.bounds, MAX_WORD_CANDIDATES)
    if question.date_terms:
        found += read.candidates(question.date_terms, MAX_WORD_CANDIDATES, within, every=True)
    return found


def _about(query: Query) -> Within:
    """Return a filter for the entities whose names the question contains most of."""
    return Within(names=tuple(sorted(query.names, key=lambda name: -query.names[name])[:MAX_NAMES]))


def _named_card(read: Reader, query: Query) -> list[Passage]:
    """Return the card of the entity that the question names, however common its words are."""
    names = [name for name in query.whole_names if fold(name.strip()) == query.folded]
    return read.passages(cards_of=names) if names else []


def score_candidates(
    read: Reader, searches: Sequence[Search], within: Within | None
) -> list[ScoredPassage]:
    """Score the candidates of all searches, and what follows them, as far as the filter allows."""
    found = {passage.key: passage for search in searches for passage in search.proposed}
    for search in searches:
        search.embed(read)
        found |= {passage.key: passage for passage in _by_meaning(read, search, within)}
    neighbours = read.neighbours(found.values())
    after = {
        near.after.key: near.after
        for key, near in neighbours.items()
        if near.after and near.after.key not in found and _leads_on(found[key])
    }
    neighbours |= read.neighbours(after.values())
    passages = [item for item in (found | after).values() if within is None or within.has(item)]
    if not passages:
        passages = _named_facts(read, searches[0].query, within)
    return fuse([search.score(read, passages, neighbours) for search in searches])


def _named_facts(read: Reader, query: Query, within: Within | None) -> list[Passage]:
    """Return the newest facts of the entities that the question names.

    They are the answer when nothing matches the other words of the question: somebody who is known
    must not seem unknown.
    """
    passages = []
    for entity in read.entities(query.whole_names[:MAX_NAMES]):
        for fact in entity.facts[-MAX_WORD_CANDIDATES:]:
            passage = Passage(
                entity.name,
                entity.type,
                fact.ordinal,
                fact.text,
                fact.created_at,
                fact.valid_at,
                tags=entity.tags,
                source=fact.source,
            )
            if within is None or within.has(passage):
                passages.append(passage)
    return passages


def _by_meaning(read: Reader, search: Search, within: Within | None) -> list[Passage]:
    """Return the candidates by meaning: the nearest of all, and those of the named entities."""
    if search.vectors is None or search.coverage <= MIN_COVERAGE:
        return []
    model, question = search.vectors.model, search.vectors.question
    nearest = set(read.vectors.nearest(model, question, MAX_NEAREST, within))
    if search.query.names:
        nearest.update(read.vectors.nearest(model, question, MAX_NEAREST, _about(search.query)))
    return read.passages(nearest)


def _leads_on(passage: Passage) -> bool:
    """Return True if the next passage may answer: in a conversation, or after a question."""
    return bool(passage.valid_at or passage.source) or "?" in passage.text


def _cosines(
    read: Reader,
    vectors: _Vectors | None,
    passages: Collection[Passage],
    neighbours: dict[PassageKey, Neighbours],
) -> dict[int, float]:
    if vectors is None:
        return {}
    from polymnia.search.context import context_cosines  # numpy is loaded with the first model

    around = [
        item
        for near in neighbours.values()
        for item in (near.before, near.earlier, near.after)
        if item
    ]
    found = read.vectors.vectors(vectors.model, {passage.id for passage in [*passages, *around]})
    cosines = context_cosines(vectors.question, found, passages, neighbours)
    if vectors.scale == LOCAL_SCALE:
        return cosines
    return {passage: on_local_scale(cosine, vectors.scale) for passage, cosine in cosines.items()}


def _with_context(read: Reader, found: list[Hit], count: int) -> list[Hit]:
    """Return the hits with up to `count` facts before and after each."""
    around = [deque([hit.passage]) for hit in found]
    for _ in range(count):
        near = read.neighbours([end for item in around for end in (item[0], item[-1])])
        for item in around:
            first, last = near.get(item[0].key), near.get(item[-1].key)
            if first and first.before:
                item.appendleft(first.before)
            if last and last.after:
                item.append(last.after)
    return [_with_neighbours(hit, list(each)) for hit, each in zip(found, around, strict=True)]


def _with_neighbours(hit: Hit, around: list[Passage]) -> Hit:
    at = around.index(hit.passage)
    return replace(hit, before=tuple(around[:at]), after=tuple(around[at + 1 :]))
