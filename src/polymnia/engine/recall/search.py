"""Verbs that find entities and facts: by a part of their text, by words, or by meaning."""

import re
from collections import Counter
from collections.abc import Sequence
from functools import partial

from msgspec import Struct
from msgspec.structs import replace

from polymnia.engine.memory import Memory, find_by_name
from polymnia.engine.reads import note_entities, note_facts
from polymnia.engine.semantic.perspectives import own_perspectives
from polymnia.errors import USE_A_DATABASE, BadInput, EmbedderError, EntityNotFound
from polymnia.model import Entity, Graph, Match, Passage, PassageKind, Perspective, Within
from polymnia.search.fulltext import TextQuery, first_matches, match_entities
from polymnia.search.templates import render_query
from polymnia.search.terms import fold
from polymnia.stores.contract import Reader

# What full-text queries call the columns of a passage.
QUERY_COLUMNS = {"name": "name", "entity_type": "labels", "content": "content"}

_OBSERVATIONS: tuple[PassageKind, ...] = ("fact",)
_BETWEEN_WORDS = re.compile(r"[\W_]+")
# Where an entity contains a query, best first.
_EXACT_NAME, _NAME_START, _NAME_WORD, _IN_NAME, _IN_TYPE, _IN_OBSERVATION, _ALL_WORDS, _ANY_WORD = (
    range(8)
)


# How long a search by meaning waits for the embedder: it has nothing else to answer from.
EMBED_TIMEOUT_S = 10.0
# Passages to ask for per entity at first: some entities have several good ones.
_PASSAGES_PER_ENTITY = 4
_MIN_PASSAGES = 40
_BY_WORDS = 'search by words instead, with the mode "text"'
_NOT_EMBEDDED = f"nothing is embedded yet; {_BY_WORDS}, or ask again later"


class FoundFact(Struct, frozen=True):
    """A fact, how well it matches, and in which perspective; None for a match by words.

    `summary` is that of its entity, if entities were searched for.
    """

    passage: Passage
    score: float
    perspective: str | None = None
    summary: str | None = None


def containing(memory: Memory, query: str) -> Graph:
    """Return the entities that contain the query in any case, and their relations."""
    with memory.reading(may_lag=True) as read:
        entities = read.containing(fold(query))
        note_entities(memory, entities)
        return Graph(entities, read.relations([entity.name for entity in entities]))


def best_matches(
    memory: Memory, query: str, *, kind: str | None, offset: int, limit: int | None
) -> Graph:
    """Return a page of the entities that contain the query or its words, and their relations.

    A match in the name comes before one in the type or in a fact; then come entities with
    all of the words, then those with any. Equals are in order of creation.
    """
    folded = fold(query.strip())
    with memory.reading(may_lag=True) as read:
        outlines = _rank_outlines(read, folded)
        names = [outline.name for outline in outlines if kind in (None, outline.type)]
        shown = names[offset:]
        if limit is not None:
            shown = shown[:limit]
        if not shown:
            return Graph([], [])
        entities = find_by_name(read, shown)
        note_entities(memory, entities.values())
        return Graph([entities[name] for name in shown], read.relations(entities))


def full_text(memory: Memory, query: str) -> Graph:
    """Return the entities that match an FTS5 query, best first, and their relations.

    A text that is not FTS5 syntax is searched for by its words. Raise BadInput if the store has no
    full-text index.
    """
    _require_index(memory)
    with memory.reading(may_lag=True) as read:
        names = match_entities(query, QUERY_COLUMNS, partial(_best_scores, read))
        known = find_by_name(read, names)
        entities = [known[name] for name in names if name in known]
        note_entities(memory, entities)
        return Graph(entities, read.relations([entity.name for entity in entities]))


def entities_by_meaning(
    memory: Memory, query: str, *, limit: int, defaults: Sequence[Perspective]
) -> list[FoundFact]:
    """Return the nearest fact of each of the `limit` nearest entities.

    Raise EmbedderError if the question cannot be embedded, or nothing is embedded by its model.
    """
    question = _Question.embed(memory, query, defaults)
    with memory.reading(may_lag=True) as read:
        count = max(_MIN_PASSAGES, _PASSAGES_PER_ENTITY * limit)
        while True:
            hits, is_complete = question.nearest(read, count)
            best: dict[str, FoundFact] = {}
            for hit in hits:
                best.setdefault(hit.passage.entity, hit)
            if is_complete or len(best) >= limit:
                break
            count *= 4
        if not best and read.counts().facts:
            raise EmbedderError(_NOT_EMBEDDED)
        hits = _with_summaries(read, list(best.values())[:limit])
        return _noted(memory, hits)


def facts_by_meaning(
    memory: Memory, entity: str, query: str, *, defaults: Sequence[Perspective]
) -> list[FoundFact]:
    """Return the embedded facts of one entity, nearest first.

    Raise EntityNotFound, EmbedderError.
    """
    _require(memory, entity)
    question = _Question.embed(memory, query, defaults)
    with memory.reading() as read:
        count = read.fact_counts([entity]).get(entity, 0)
        hits, _ = question.nearest(read, max(count, 1), Within(names=(entity,)))
    if count and not hits:
        raise EmbedderError(_NOT_EMBEDDED)
    return _noted(memory, hits)


def entities_by_words(memory: Memory, query: str, *, limit: int) -> list[FoundFact]:
    """Return the best matching fact of each of the `limit` best entities.

    Scores are keyword weights.
    """
    with memory.reading(may_lag=True) as read:
        best: dict[str, Match] = {}
        for match in _matches(memory, read, query):
            best.setdefault(match.entity, match)
        hits = _with_summaries(read, _load_facts(read, list(best.values())[:limit]))
        return _noted(memory, hits)


def facts_by_words(memory: Memory, entity: str, query: str) -> list[FoundFact]:
    """Return the facts of one entity that match the words, best first.

    Raise EntityNotFound.
    """
    _require(memory, entity)
    with memory.reading() as read:
        return _noted(memory, _load_facts(read, _matches(memory, read, query, entity)))


def _rank_outlines(read: Reader, folded: str) -> list[Entity]:
    """Return the entities that contain the folded query or some of its words, best first.

    Only names and types are read: the facts of all matches may be many times what is shown.
    """
    outlines = read.containing(folded, outlines=True)
    ranks = {outline.name: (_find_query(outline, folded), 0) for outline in outlines}
    words = Counter(folded.split())
    if words.total() > 1:
        counts: Counter[str] = Counter()
        for word, times in words.items():
            for outline in read.containing(word, outlines=True):
                counts[outline.name] += times
        for name, count in counts.items():
            has_all = count == words.total()
            ranks.setdefault(name, (_ALL_WORDS, 0) if has_all else (_ANY_WORD, -count))
        outlines = read.outlines(ranks)  # again, in order of creation
    return sorted(outlines, key=lambda outline: ranks[outline.name])


def _find_query(outline: Entity, folded: str) -> int:
    """Return the best place where an entity contains the whole query, which it does somewhere."""
    name = fold(outline.name)
    if name == folded:
        return _EXACT_NAME
    if name.startswith(folded):
        return _NAME_START
    if folded in name:
        return _NAME_WORD if folded in _BETWEEN_WORDS.split(name) else _IN_NAME
    return _IN_TYPE if folded in fold(outline.type) else _IN_OBSERVATION


def _best_scores(read: Reader, query: TextQuery) -> dict[str, float]:
    """Return the entities with a matching passage, and their best score; less is better."""
    scores: dict[str, float] = {}
    for match in read.match(query, ("entity", "fact")):
        scores.setdefault(match.entity, -match.score)
    return scores


class _Question(Struct, frozen=True):
    """A question as one vector per perspective, all of one model."""

    identity: str
    vectors: list[tuple[Perspective, bytes]]

    @classmethod
    def embed(cls, memory: Memory, query: str, defaults: Sequence[Perspective]) -> "_Question":
        if memory.meaning is None:
            raise EmbedderError(f"no embedder is configured; {_BY_WORDS}")
        with memory.reading() as read:
            own = own_perspectives(memory, read.vectors, defaults)
        # Perspectives with the same templates have the same results: the first one stands for all.
        perspectives: dict[tuple[str, str], Perspective] = {}
        for perspective in own:
            perspectives.setdefault((perspective.document, perspective.query), perspective)
        texts = {key: render_query(key[1], query) for key in perspectives}
        distinct = list(dict.fromkeys(texts.values()))
        try:
            embedded = memory.meaning.embed_questions(distinct, timeout=EMBED_TIMEOUT_S)
        except EmbedderError as exc:
            # The reason may name servers that remote clients should not see: it is only a hint.
            raise EmbedderError(
                f"the question could not be embedded; {_BY_WORDS}", hint=str(exc)
            ) from exc
        by_text = dict(zip(distinct, embedded, strict=True))
        vectors = []
        for key, perspective in perspectives.items():
            vectors.append((perspective, by_text[texts[key]].vector))
        return cls(embedded[0].identity, vectors)

    def model(self, read: Reader) -> int | None:
        for model in read.vectors.models():
            if model.identity == self.identity:
                return model.number
        return None

    def nearest(
        self, read: Reader, count: int, within: Within | None = None
    ) -> tuple[list[FoundFact], bool]:
        """Return facts, nearest first, each once, and whether there are no others.

        A perspective that was removed since the question was embedded is left out.
        """
        model = self.model(read)
        if model is None:
            return [], True
        best: dict[int, tuple[float, str]] = {}
        is_complete = True
        names = {known.document: known.name for known in read.vectors.perspectives()}
        for perspective, vector in self.vectors:
            name = names.get(perspective.document)
            if name is None:
                continue
            scores = read.vectors.nearest(model, vector, count, within, perspective=name)
            is_complete = is_complete and len(scores) < count
            for passage_id, score in scores.items():
                if passage_id not in best or score > best[passage_id][0]:
                    best[passage_id] = (score, perspective.name)
        hits = []
        for passage in read.passages(best):
            if passage.kind == "fact":
                hits.append(FoundFact(passage, *best[passage.id]))
        hits.sort(key=lambda hit: (-hit.score, hit.passage.id))
        return hits, is_complete


def _matches(memory: Memory, read: Reader, query: str, entity: str | None = None) -> list[Match]:
    """Return the facts that match, best first, or only those of one entity.

    A query without operators must match with all its words; if nothing does, with any of them.
    """
    _require_index(memory)

    def match(query: TextQuery) -> list[Match]:
        matches = read.match(query, _OBSERVATIONS)
        return [match for match in matches if entity in (None, match.entity)]

    return first_matches(query, {}, match)


def _noted(memory: Memory, hits: list[FoundFact]) -> list[FoundFact]:
    """Return the facts, noted for an audit of reads."""
    note_facts(memory, [hit.passage.key for hit in hits])
    return hits


def _load_facts(read: Reader, matches: Sequence[Match]) -> list[FoundFact]:
    passages = {passage.id: passage for passage in read.passages([match.id for match in matches])}
    hits = []
    for match in matches:
        if match.id in passages:
            hits.append(FoundFact(passages[match.id], match.score))
    return hits


def _with_summaries(read: Reader, hits: Sequence[FoundFact]) -> list[FoundFact]:
    names = {hit.passage.entity for hit in hits}
    summaries = {outline.name: outline.summary for outline in read.outlines(names)}
    return [replace(hit, summary=summaries.get(hit.passage.entity)) for hit in hits]


def _require_index(memory: Memory) -> None:
    if not memory.store.capabilities.match:
        raise BadInput("this store has no full-text index", hint=USE_A_DATABASE)


def _require(memory: Memory, entity: str) -> None:
    with memory.reading() as read:
        if not read.existing_names([entity]):
            raise EntityNotFound(entity)
