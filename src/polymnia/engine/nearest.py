"""Find observations by meaning in every perspective, or by words, and the entities that have them."""

from collections.abc import Sequence

from msgspec import Struct
from msgspec.structs import replace

from polymnia.engine.memory import Memory
from polymnia.engine.perspectives import own_perspectives
from polymnia.errors import USE_A_DATABASE, BadInput, EmbedderError, EntityNotFound
from polymnia.model import Passage, PassageKind, Perspective, Within
from polymnia.search.expression import alternatives
from polymnia.search.templates import render_query
from polymnia.stores.contract import Reader

# How long a search by meaning waits for its question to be embedded: it has nothing else to answer from.
EMBED_TIMEOUT_S = 10.0
# The first search of a perspective asks for this many passages per wanted entity: some entities have several good ones.
_PASSAGES_PER_ENTITY = 4
_MIN_PASSAGES = 40
_BY_WORDS = 'search by words instead, with the mode "text"'


class FoundObservation(Struct, frozen=True):
    """An observation, how well it matches, and in which perspective; None for a match by words.

    `summary` is that of its entity, if entities were searched for.
    """

    passage: Passage
    score: float
    perspective: str | None = None
    summary: str | None = None


def entities_by_meaning(
    memory: Memory, query: str, *, limit: int, defaults: Sequence[Perspective]
) -> list[FoundObservation]:
    """Return the nearest observation of each of the `limit` nearest entities, in the perspective that is nearest.

    Raise EmbedderError if the question cannot be embedded or nothing is embedded.
    """
    question = _Question.embed(memory, query, defaults)
    with memory.reading() as read:
        question.require_vectors(read)
        count = max(_MIN_PASSAGES, _PASSAGES_PER_ENTITY * limit)
        while True:
            found, is_complete = question.nearest(read, count)
            best = _best_of_each_entity(found)
            if is_complete or len(best) >= limit:
                return _with_summaries(read, best[:limit])
            count *= 4


def observations_by_meaning(
    memory: Memory, entity: str, query: str, *, defaults: Sequence[Perspective]
) -> list[FoundObservation]:
    """Return the embedded observations of one entity, nearest first. Raise EntityNotFound, EmbedderError."""
    _require(memory, entity)
    question = _Question.embed(memory, query, defaults)
    with memory.reading() as read:
        question.require_vectors(read)
        count = read.observation_counts([entity]).get(entity, 0)
        found, _ = question.nearest(read, max(count, 1), Within(names=(entity,)))
    return found


def entities_by_words(memory: Memory, query: str, *, limit: int) -> list[FoundObservation]:
    """Return the best matching observation of each of the `limit` best entities. Scores are keyword weights."""
    with memory.reading() as read:
        best: dict[str, tuple[int, float]] = {}
        for passage, entity, score in _matches(memory, read, query):
            best.setdefault(entity, (passage, score))
        return _with_summaries(read, _load_observations(read, dict(list(best.values())[:limit])))


def observations_by_words(memory: Memory, entity: str, query: str) -> list[FoundObservation]:
    """Return the observations of one entity that match the words, best first. Raise EntityNotFound."""
    _require(memory, entity)
    with memory.reading() as read:
        matches = _matches(memory, read, query, entity)
        return _load_observations(read, {passage: score for passage, _, score in matches})


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
        # Perspectives with the same templates have the same results.
        perspectives = list({(each.document, each.query): each for each in reversed(own)}.values())[
            ::-1
        ]
        texts = [render_query(each.query, query) for each in perspectives]
        distinct = list(dict.fromkeys(texts))
        try:
            embedded = memory.meaning.embed_questions(distinct, timeout=EMBED_TIMEOUT_S)
        except EmbedderError as exc:
            # The reason is a hint for the operator: it may name servers that remote clients should not see.
            raise EmbedderError(
                f"the question could not be embedded; {_BY_WORDS}", hint=str(exc)
            ) from exc
        by_text = dict(zip(distinct, embedded, strict=True))
        vectors = [
            (each, by_text[text].vector) for each, text in zip(perspectives, texts, strict=True)
        ]
        return cls(embedded[0].identity, vectors)

    def model(self, read: Reader) -> int | None:
        return next(
            (each.number for each in read.vectors.models() if each.identity == self.identity), None
        )

    def require_vectors(self, read: Reader) -> None:
        """Raise EmbedderError if there are observations and none is embedded by the question's model."""
        if self.model(read) is None and read.counts().observations:
            raise EmbedderError(f"nothing is embedded yet; {_BY_WORDS}, or ask again later")

    def nearest(
        self, read: Reader, count: int, within: Within | None = None
    ) -> tuple[list[FoundObservation], bool]:
        """Return observations, nearest first, each once, and whether there are no others.

        A perspective that was removed since the question was embedded is left out.
        """
        model = self.model(read)
        if model is None:
            return [], True
        best: dict[int, tuple[float, str]] = {}
        is_complete = True
        present = {each.document: each.name for each in read.vectors.perspectives()}
        for perspective, vector in self.vectors:
            if perspective.document not in present:
                continue
            name = present[perspective.document]
            found = read.vectors.nearest(model, vector, count, within, perspective=name)
            is_complete = is_complete and len(found) < count
            for passage, score in found.items():
                if passage not in best or score > best[passage][0]:
                    best[passage] = (score, perspective.name)
        passages = {
            each.id: each for each in read.passages_by_id(best) if each.kind == "observation"
        }
        ranked = sorted(passages, key=lambda passage: (-best[passage][0], passage))
        return [FoundObservation(passages[each], *best[each]) for each in ranked], is_complete


def _best_of_each_entity(found: Sequence[FoundObservation]) -> list[FoundObservation]:
    first: dict[str, FoundObservation] = {}
    for each in found:
        first.setdefault(each.passage.entity, each)
    return list(first.values())


def _matches(
    memory: Memory, read: Reader, query: str, entity: str | None = None
) -> list[tuple[int, str, float]]:
    """Return passage, entity and score of the observations that match, best first.

    A query without operators must match with all its words; if nothing does, with any of them.
    """
    if not memory.store.capabilities.match:
        raise BadInput("this store has no full-text index", hint=USE_A_DATABASE)
    kinds: tuple[PassageKind] = ("observation",)
    for expression in alternatives(query, {}):
        found = [
            (each.id, each.entity, each.score)
            for each in read.match(expression, kinds)
            if entity in (None, each.entity)
        ]
        if found:
            return found
    return []


def _load_observations(read: Reader, scores: dict[int, float]) -> list[FoundObservation]:
    passages = {each.id: each for each in read.passages_by_id(scores)}
    return [
        FoundObservation(passages[each], score)
        for each, score in scores.items()
        if each in passages
    ]


def _with_summaries(read: Reader, found: Sequence[FoundObservation]) -> list[FoundObservation]:
    summaries = {
        each.name: each.summary for each in read.outlines({each.passage.entity for each in found})
    }
    return [replace(each, summary=summaries.get(each.passage.entity)) for each in found]


def _require(memory: Memory, entity: str) -> None:
    with memory.reading() as read:
        if not read.known([entity]):
            raise EntityNotFound(entity)
