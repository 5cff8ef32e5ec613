"""Find the passages that answer a question, in one pipeline and one snapshot.

Understand the question: its words, the names and the date in it (`_understand`). Propose passages:
by words, by name, by date and by meaning (`_propose_by_words`, `_propose_by_meaning`). Score all of
them with one formula (`search/scoring.py`). Decide which are hits: the best, each fact once
(`search/hits.py`).
"""

from collections import Counter, deque
from collections.abc import Callable, Collection, Sequence
from functools import partial
from itertools import chain
from time import time_ns
from typing import TYPE_CHECKING

from msgspec import Struct
from msgspec.structs import replace

from polymnia.engine.memory import Memory
from polymnia.engine.recall.names import former_names, with_current_names
from polymnia.engine.recall.spelling import correct_words
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
from polymnia.search.languages import beginnings, language_of, stem_in
from polymnia.search.question import (
    Question,
    content_without,
    content_words,
    match_names,
    parse_question,
    replace_words,
    request_terms,
    speaker_of,
    text_without,
    words_with,
)
from polymnia.search.scoring import (
    LOCAL_SCALE,
    Matcher,
    Query,
    ScoredPassage,
    brevity,
    fuse,
    score_passages,
)
from polymnia.search.terms import choose_rare, fold, plain, terms_of
from polymnia.stores.contract import Reader

if TYPE_CHECKING:
    from polymnia.engine.semantic.meaning import PendingQuestion, QuestionVector

# The most candidates that are found by words, and by meaning. Named entities and a date in the
# question add as many.
MAX_WORD_CANDIDATES = 80
MAX_NEAREST = 40
# A question may be a whole page. What follows is not read; of the rest, the rarest terms are enough
# to find candidates.
MAX_QUESTION_CHARACTERS = 10_000
MAX_SEARCH_TERMS = 40
MAX_NAMES = 8
# A term in more passages than this does not help to find a name.
MAX_NAME_TERM_PASSAGES = 5_000
# Meaning counts once more than this share of the passages has vectors: a few vectors say little
# about a question.
MIN_COVERAGE = 0.1
# How many other phrasings of a question count, and how many neighbours a hit may have on each side.
MAX_ALSO = 5
MAX_CONTEXT = 10


class RecallResult(Struct, frozen=True, kw_only=True):
    """What was found, best first.

    `note` says why meaning was left out, wholly or in part, if it was. `coverage` is the share of
    passages that have a vector. `unknown` are the words of the question that no passage has, and
    `corrections` the words of it that were replaced: former names and typing mistakes.
    """

    hits: list[Hit]
    note: str = ""
    coverage: float = 0.0
    corrections: dict[str, str] = {}
    unknown: tuple[str, ...] = ()


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
        first = searches[0]
        shown = hits.best_hits(first.query.folded, scored, limit)
        if context > 0:
            shown = _with_context(read, shown, min(context, MAX_CONTEXT))
    if first.is_unindexed and memory.meaning is not None:
        # The vectors are of a former model. Only now is the present one known.
        memory.meaning.request_indexing_again(memory)
    corrections: dict[str, str] = {}
    for search in searches:
        corrections |= search.corrections
    return RecallResult(
        hits=shown,
        note=first.note,
        coverage=first.coverage,
        corrections=corrections,
        unknown=_unknown_words(first.query),
    )


class Search:
    """The search for one text: its query, the passages proposed for it, and its vector."""

    def __init__(
        self, query: Query, corrections: dict[str, str], asking: "PendingQuestion | str"
    ) -> None:
        self.query = query
        self.corrections = corrections
        self.proposed: list[Passage] = []
        self.vectors: _Vectors | None = None
        self.is_unindexed = False
        self.coverage = 0.0
        self.note = ""
        self._asking = asking

    def embed(self, read: Reader) -> None:
        """Wait for the vector of the text, and find the stored vectors to compare it with."""
        asked = self._asking if isinstance(self._asking, str) else self._asking.answers()
        if isinstance(asked, str):
            self.note = asked
            return
        self.vectors = _Vectors.of(read, asked)
        self.is_unindexed = self.vectors is None
        self.coverage = self.vectors.coverage if self.vectors else 0.0
        # A few new facts are embedded within seconds, and words find them meanwhile.
        if self.coverage < 0.95:
            rest = "the rest" if self.coverage > MIN_COVERAGE else "until a tenth is, everything"
            percent = int(self.coverage * 100)  # rounded down: it is not 100 %
            self.note = (
                f"{percent}% of the memory is embedded so far; {rest} is found by words alone"
            )

    def score(
        self, read: Reader, passages: Collection[Passage], neighbours: dict[PassageKey, Neighbours]
    ) -> list[ScoredPassage]:
        """Score passages, proposed or not."""
        cosines: dict[int, float] = {}
        if self.vectors is not None and self.coverage > MIN_COVERAGE:
            cosines = _cosines(read, self.vectors, passages, neighbours)
        return score_passages(self.query, passages, neighbours, cosines)


class _Vectors(Struct, frozen=True):
    """The question's vectors and the stored vectors they can be compared with.

    `question` is that of the question without names, for turns. A fact is embedded with the name of
    its entity: `fact_question` is between it and that of the whole question.
    """

    question: bytes
    fact_question: bytes
    model: int
    coverage: float
    scale: CosineScale

    @classmethod
    def of(cls, read: Reader, asked: "Sequence[QuestionVector]") -> "_Vectors | None":
        """Return None if the store has no vectors of the question's model."""
        models = {model.identity: model for model in read.vectors.models()}
        model = models.get(asked[0].identity)
        if model is None:
            return None
        embedded, total = read.vectors.coverage(model.number)
        if not embedded:
            return None
        question = fact_question = asked[0].vector
        if len(asked) > 1:
            from polymnia.search.context import mean_direction  # numpy comes with the first model

            fact_question = mean_direction([form.vector for form in asked])
        scale = model.scale or LOCAL_SCALE
        return cls(question, fact_question, model.number, embedded / total, scale)


def start_searches(
    memory: Memory, read: Reader, texts: Sequence[str], within: Within | None, timeout: float | None
) -> list[Search]:
    """Start to search for the first text, and for other texts that have words it lacks."""
    aliased = read.aliased()
    first, *rest = read.together(
        *[partial(_understand, read, text[:MAX_QUESTION_CHARACTERS], aliased) for text in texts]
    )
    asked, _ = first
    chosen = [first]
    for query, renamed in rest:
        if not asked.known_terms.issuperset(query.question.content):
            chosen.append((query.about_the_same(asked), renamed))
    searches = []
    for query, renamed in chosen:
        searches.append(Search(query, renamed, _ask(memory, read, query, timeout)))
    # While the embedder works.
    proposed = read.together(
        *[partial(_propose_by_words, read, search.query, within) for search in searches]
    )
    for search, passages in zip(searches, proposed, strict=True):
        search.proposed = passages
    return searches


def score_candidates(
    read: Reader, searches: Sequence[Search], within: Within | None
) -> list[ScoredPassage]:
    """Score the candidates of all searches, and the turns that follow them, within the filter."""
    found = {passage.key: passage for search in searches for passage in search.proposed}
    for search in searches:
        search.embed(read)
        for passage in _propose_by_meaning(read, search, within):
            found[passage.key] = passage
    # Only among turns of a conversation does it matter what was said before and after.
    neighbours = read.neighbours([passage for passage in found.values() if passage.is_turn])
    after = {}
    for near in neighbours.values():
        if near.after is not None and near.after.key not in found:
            after[near.after.key] = near.after
    neighbours |= read.neighbours(after.values())
    passages = [item for item in (found | after).values() if within is None or within.has(item)]
    if not passages:
        # A person who is known must not seem unknown because no other word matches.
        for entity in read.entities(searches[0].query.whole_names[:MAX_NAMES]):
            for fact in entity.facts[-MAX_WORD_CANDIDATES:]:
                passage = Passage.of(entity, fact)
                if within is None or within.has(passage):
                    passages.append(passage)
    return fuse([search.score(read, passages, neighbours) for search in searches])


def _understand(
    read: Reader, asked: str, aliased: Sequence[Entity]
) -> tuple[Query, dict[str, str]]:
    """Return the question as the memory understands it, and the words of it that were replaced.

    These are former names and words with a typing mistake.
    """
    replaced = former_names(read, aliased, asked)
    text = with_current_names(asked, replaced)
    language = language_of(text)
    question = parse_question(text, now=time_ns() // 1000)
    counts: WordCounts
    counts, known_names = read.together(
        lambda: read.word_counts(question.name_terms),
        lambda: read.existing_names([question.text.strip()]),
    )
    missing = {term for term in question.content if term not in counts.having}
    if missing and not language:
        corrections = correct_words(read, words_with(question.text, missing))
        if corrections:
            replaced |= corrections
            text = replace_words(text, {plain(word): right for word, right in corrections.items()})
            question = parse_question(text, now=time_ns() // 1000)
            counts = read.word_counts(question.name_terms)
            known_names = read.existing_names([question.text.strip()])

    # The entities that it names, wholly or in part, and speakers that are not entities.
    rare_terms = []
    for term in question.name_terms:
        if 0 < counts.having.get(term, 0) <= MAX_NAME_TERM_PASSAGES:
            rare_terms.append(term)
    known_names.update(read.names_with(rare_terms, 5 * MAX_NAMES))
    names = match_names(question, known_names)
    names |= dict.fromkeys(_find_speakers(read, question, counts, names), 1.0)
    terms = content_without(question, [name for name, share in names.items() if share == 1])

    # Other forms of its words that the memory has.
    inflected = _inflected(read, terms, language)
    repeats = Counter(terms_of(" ".join(content_words(text))))
    weights = {term: float(max(1, repeats[term])) for term in terms}
    widened: dict[str, str] = {}
    unknown = [term for term in terms if term not in counts.having and len(term) > 1]
    longer_terms = read.together(*[partial(terms_starting, read, term, 20) for term in unknown])
    for longer in chain.from_iterable(longer_terms):
        if longer not in terms:
            widened[longer] = hits.PREFIX
            weights[longer] = 0.5  # it may be another word with the same beginning
    for term in inflected:
        widened[term] = hits.VARIANT
        weights[term] = 1.0
    if widened:
        counts = read.word_counts(weights)

    known_terms = [term for term in weights if counts.having.get(term)]
    known_terms.sort(key=counts.having.__getitem__)
    query = Query(
        question=question,
        names=names,
        terms=terms,
        widened=widened,
        search_terms=tuple(known_terms[:MAX_SEARCH_TERMS]),
        rare_terms=tuple(choose_rare(known_terms[:MAX_SEARCH_TERMS], counts.having)),
        matcher=Matcher(weights, counts, terms, inflected),
        folded=fold(asked.strip()),
        brevity=brevity(counts),
    )
    return query, replaced


def _unknown_words(query: Query) -> tuple[str, ...]:
    """Return the words of the question, as they are written, that no passage has.

    Words that only ask are left out.
    """
    unknown = set()
    for term in query.terms:
        if term not in request_terms() and not query.matcher.knows(term):
            unknown.add(term)
    return tuple(dict.fromkeys(words_with(query.question.text, unknown)))


def _find_speakers(
    read: Reader, question: Question, counts: WordCounts, names: Collection[str]
) -> list[str]:
    """Return speakers that the question names but that are not entities: "Caroline: I adopted …".

    A speaker begins at least two of the passages with the name and a third of a sample; a title
    begins few: "MEDLARS: …".
    """
    named_terms = set(terms_of(" ".join(names)))
    speakers = []
    for term in sorted(question.capitalised - named_terms)[:3]:
        if not 2 <= counts.having.get(term, 0) <= MAX_NAME_TERM_PASSAGES:
            continue
        texts = [passage.text for passage in read.candidates([term], 12)]
        spoken = Counter(speaker_of(text) for text in texts)
        for speaker in match_names(question, [name for name in spoken if name]):
            if spoken[speaker] >= max(2, len(texts) / 3) and term in terms_of(speaker):
                speakers.append(speaker)
    return speakers


def _inflected(read: Reader, terms: Collection[str], language: str) -> dict[str, str]:
    """Return terms of the store with the same stem in the question's language, with the term.

    The index has English stems, which do not join the forms of other languages' words.
    """
    forms: dict[str, str] = {}
    for term in terms:
        if not language or len(term) < 3 or not term.isalpha():
            continue
        stem = stem_in(language, term)
        for start in beginnings(language, term):
            for other in terms_starting(read, start, 100):
                if other not in terms and stem_in(language, other) == stem:
                    forms.setdefault(other, term)
    return forms


def terms_starting(read: Reader, start: str, limit: int) -> list[str]:
    """Return up to `limit` terms of the store that start with these characters."""
    return read.vocabulary(start, start + "\U0010ffff", limit)


def _ask(
    memory: Memory, read: Reader, query: Query, timeout: float | None
) -> "PendingQuestion | str":
    """Start to embed the question without its names, which are scored separately, and with them.

    A part of a name with a capital letter also counts as a name: "Saga" of "Saga Holm".
    """
    if memory.meaning is None:
        return "no embedder is configured, or this kind of store has no vectors"
    if not read.vectors.models():
        return (
            memory.meaning.missing_package or "nothing is embedded yet, so only words were searched"
        )
    part_terms: set[str] = set()
    for name, share in query.names.items():
        if share < 1:
            part_terms.update(terms_of(name))
    parts = words_with(query.question.text, part_terms & query.question.capitalised)
    text = " ".join(query.question.text.split())
    forms = dict.fromkeys([text_without(text, [*query.whole_names, *parts]), text])
    if timeout is None:
        return memory.meaning.ask([*forms])
    return memory.meaning.ask([*forms], timeout=timeout)


def _propose_by_words(read: Reader, query: Query, within: Within | None) -> list[Passage]:
    """Return the candidates by words, names and dates.

    Rare words propose, and common words only weigh what they find. If all words are common, the
    newest passages with all of them are looked at, then those with any.
    """
    rare, limit = query.rare_terms, MAX_WORD_CANDIDATES

    def by_words() -> list[Passage]:
        found = read.candidates(rare, limit, within)
        if not rare:
            found = read.candidates(query.search_terms, limit, within, every=True, newest=True)
            if len(found) < limit:
                found += read.candidates(query.search_terms, limit, within, newest=True)
        elif len(rare) < len(query.terms) and len(found) >= limit:
            found += read.candidates(query.search_terms, limit, within, every=True, newest=True)
        if not found and query.folded:
            found = read.passages_containing(query.folded, limit)
        return found

    questions: list[Callable[[], list[Passage]]] = []
    # The card of the entity whose name is the question, however common its words are.
    names = [name for name in query.whole_names if fold(name.strip()) == query.folded]
    if names:
        questions.append(partial(read.passages, cards_of=names))
    questions.append(by_words)
    if query.names:
        terms = rare or query.search_terms
        questions.append(partial(read.candidates, terms, limit, _about(query)))
    period = query.question.period
    if period is not None and period.bounds is not None:
        questions.append(partial(read.facts_between, *period.bounds, limit))
        dates = query.question.date_terms
        if dates:
            questions.append(partial(read.candidates, dates, limit, within, every=True))
    return list(chain.from_iterable(read.together(*questions)))


def _propose_by_meaning(read: Reader, search: Search, within: Within | None) -> list[Passage]:
    """Return the candidates by meaning: the nearest of all, and those of the named entities."""
    if search.vectors is None or search.coverage <= MIN_COVERAGE:
        return []
    model, vectors = search.vectors.model, search.vectors
    nearest = set(read.vectors.nearest(model, vectors.question, MAX_NEAREST, within))
    if search.query.names:
        about = _about(search.query)
        nearest.update(read.vectors.nearest(model, vectors.fact_question, MAX_NEAREST, about))
    return read.passages(nearest)


def _about(query: Query) -> Within:
    """Return a filter for the entities whose names the question contains most of."""
    return Within(names=tuple(sorted(query.names, key=lambda name: -query.names[name])[:MAX_NAMES]))


def _cosines(
    read: Reader,
    vectors: _Vectors,
    passages: Collection[Passage],
    neighbours: dict[PassageKey, Neighbours],
) -> dict[int, float]:
    from polymnia.search.context import context_cosines  # numpy is loaded with the first model

    compared = {passage.id for passage in passages}
    for near in neighbours.values():
        for passage in (near.before, near.earlier):
            if passage is not None:
                compared.add(passage.id)
    found = read.vectors.vectors(vectors.model, compared)
    cosines = context_cosines(vectors.question, vectors.fact_question, found, passages, neighbours)
    if vectors.scale == LOCAL_SCALE:
        return cosines
    # What the cosines would be with the local model, whose scale the weights have.
    factor = LOCAL_SCALE.unit / vectors.scale.unit
    shift = LOCAL_SCALE.zero - vectors.scale.zero * factor
    return {passage: shift + factor * cosine for passage, cosine in cosines.items()}


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
    with_context = []
    for hit, passages in zip(found, map(list, around), strict=True):
        at = passages.index(hit.passage)
        before, after = tuple(passages[:at]), tuple(passages[at + 1 :])
        with_context.append(replace(hit, before=before, after=after))
    return with_context
