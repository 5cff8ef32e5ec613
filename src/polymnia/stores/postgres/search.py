"""Search in PostgreSQL: substrings by trigrams, and words by tsvector with FTS5's BM25."""

import re
from collections.abc import Collection, Iterable, Iterator

from polymnia.model import Match, Note, Passage, PassageKind, Within, WordCounts
from polymnia.search.expression import Expression
from polymnia.search.matching import PARTS, is_exact, matches
from polymnia.search.relevance import Scores
from polymnia.search.terms import MAX_RARE_PASSAGES, fold
from polymnia.stores.postgres.match import (
    AnyOf,
    Every,
    PassageWords,
    Query,
    Stems,
    mere_stems,
    phrases_of,
    rarity,
    render,
    score,
    translate,
)
from polymnia.stores.postgres.port import PostgresPort
from polymnia.stores.postgres.words import LABELS, lexeme, word_vector
from polymnia.stores.versioned.notes import columns_of_note
from polymnia.stores.versioned.port import Row
from polymnia.stores.versioned.rows import columns_of, unpack_passages

# A match in a name weighs most, then one in a label, one in content, and one in derived parts.
MATCH_WEIGHTS = {"name": 8.0, "labels": 4.0, "content": 1.0, PARTS: 0.5}
EQUAL_WEIGHTS = dict.fromkeys(MATCH_WEIGHTS, 1.0)
# The newest passages with common terms are looked for among so many.
_MAX_LOOKED_AT = 20_000
# How many passages are read at once to look into their words.
_READ_BATCH = 1_000
# What the trigram indexes need to find a text.
_TRIGRAM = re.compile(r"[^\W_]{3}")
_EVERYWHERE = frozenset(LABELS)
_IN_NAMES = frozenset({"name", PARTS})


class PostgresWords:
    """The indexes of words and trigrams, as a transaction sees them."""

    def __init__(self, port: PostgresPort) -> None:
        self._port = port

    def entities_containing(self, folded: str) -> set[int]:
        rows = self._find_texts(folded, "texts_containing", "texts_with_few_letters")
        return set(_verify(rows, folded))

    def notes_containing(self, folded: str) -> set[int]:
        rows = self._find_texts(folded, "notes_containing", "notes_with_few_letters")
        return set(_verify(rows, folded))

    def passages_containing(self, folded: str, limit: int) -> list[int]:
        if not folded:
            return [number for (number,) in self._port.run("newest_passages", limit)]
        rows = self._find_texts(folded, "passages_containing", "passages_with_few_letters")
        return _verify(rows, folded)[:limit]

    def match(
        self, expression: Expression, kinds: Collection[PassageKind], limit: int | None
    ) -> list[Match]:
        query = translate(expression)
        if query is None:
            return []
        stems = mere_stems(query)
        if stems is not None and is_exact(expression):
            bound = _bind(query, stems, MATCH_WEIGHTS)
            return [Match(*row) for row in self._port.run("match_words", *bound, kinds, limit)]
        scores = self._score_in_python(expression, query, MATCH_WEIGHTS)
        heads = self._port.run("passage_heads", list(scores), kinds)
        found = [Match(passage, name, kind, scores[passage]) for passage, name, kind in heads]
        found.sort(key=lambda match: (-match.score, match.id))
        return found[:limit]

    def match_notes(self, expression: Expression) -> Scores:
        query = translate(expression)
        if query is None:
            return {}
        stems = mere_stems(query)
        if stems is not None and is_exact(expression):
            bound = _bind(query, stems, EQUAL_WEIGHTS)
            rows = self._port.run("match_words", *bound, ["note"], None)
            return {passage: -value for passage, _, _, value in rows}
        scores = self._score_in_python(expression, query, EQUAL_WEIGHTS)
        notes = self._port.run("passage_heads", list(scores), ["note"])
        return {passage: -scores[passage] for passage, *_ in notes}

    def match_session(self, notes: dict[int, Note], expression: Expression) -> Scores:
        query = translate(expression)
        if query is None:
            return {}
        texts = {number: columns_of_note(note) for number, note in notes.items()}
        words = {number: PassageWords(columns) for number, columns in texts.items()}
        lengths = {
            number: word_vector(note.key, note.tags, note.content).length
            for number, note in notes.items()
        }
        rarities = {}
        for phrase in phrases_of(query):
            having = [word for word in words.values() if word.count(phrase, EQUAL_WEIGHTS)]
            rarities[phrase] = rarity(len(notes), len(having))
        average = sum(lengths.values()) / max(len(notes), 1)
        scores = {}
        for number, passage_words in words.items():
            counts = passage_words.count(query, EQUAL_WEIGHTS)
            if counts and (is_exact(expression) or matches(expression, texts[number])):
                scores[number] = -score(counts, rarities, lengths[number], average)
        return scores

    def word_counts(self, terms: Collection[str]) -> WordCounts:
        if not terms:
            return WordCounts(0, 0, {})
        by_lexeme = {lexeme(term): term for term in terms}
        queries = [render(_word(term)) for term in by_lexeme.values()]
        rows = self._port.run("word_counts", list(by_lexeme), queries, MAX_RARE_PASSAGES)
        having = {by_lexeme[word]: count for _, _, word, count in rows if count}
        if not having:
            return WordCounts(0, 0, {})
        passages, words, *_ = rows[0]
        return WordCounts(passages, words, having)

    def best_passages(
        self,
        terms: Collection[str],
        limit: int,
        within: Within | None,
        *,
        every: bool,
        newest: bool,
    ) -> list[int]:
        counts = self.word_counts(terms)
        if not counts.passages:
            return []
        stems = tuple([_word(term) for term in terms])
        bound = _weigh(Every(stems) if every else AnyOf(stems), terms, counts)
        if within is not None:
            filters = (within.names, within.types, within.since, within.until, within.tags)
            rows = self._port.run("best_words_within", *bound, limit, *filters)
        elif newest:
            rows = self._port.run("best_newest_words", *bound, _MAX_LOOKED_AT, limit, limit)
        else:
            rows = self._port.run("best_words", *bound, None, limit)
        return [passage for passage, _ in rows]

    def best_names(self, terms: Collection[str], limit: int) -> list[str]:
        stems = [Stems((term,), _IN_NAMES) for term in terms]
        bound = _bind(AnyOf(tuple(stems)), stems, EQUAL_WEIGHTS)
        rows = self._port.run("match_words", *bound, ["entity"], limit)
        return [name for _, name, _, _ in rows]

    def _find_texts(self, folded: str, by_trigrams: str, by_rows: str) -> list[Row]:
        """Return the rows that may contain the folded text."""
        if _TRIGRAM.search(folded):
            return self._port.run(by_trigrams, like(folded))
        return self._port.run(by_rows, folded)

    def _score_in_python(
        self, expression: Expression, query: Query, weights: dict[str, float]
    ) -> dict[int, float]:
        """Return the passages that match with their scores.

        The words of all passages that a tsquery finds decide.
        """
        phrases = list(dict.fromkeys(phrases_of(query)))
        rows = self._port.run("phrase_counts", [render(phrase) for phrase in phrases])
        if not rows:
            return {}
        rarities = {}
        for phrase, (passages, _, having, *_) in zip(phrases, rows, strict=True):
            rarities[phrase] = rarity(
                passages, self._count_initial(phrase) if phrase.initial else having
            )
        passages, words, *_ = rows[0]
        average = words / max(passages, 1)
        verify = not is_exact(expression)
        scores: dict[int, float] = {}
        for passage, length in self._find(query):
            texts = columns_of(passage)
            counts = PassageWords(texts).count(query, weights)
            if counts and (not verify or matches(expression, texts)):
                scores[passage.id] = score(counts, rarities, length, average)
        return scores

    def _count_initial(self, phrase: Stems) -> int:
        """Return how many passages have a column that begins with the phrase.

        A tsquery cannot ask for that.
        """
        count = 0
        for passage, _ in self._find(phrase):
            if PassageWords(columns_of(passage)).count(phrase, EQUAL_WEIGHTS):
                count += 1
        return count

    def _find(self, query: Query) -> Iterator[tuple[Passage, int]]:
        """Yield the passages that the tsquery finds, and how many words each has."""
        lengths: dict[int, int] = dict(self._port.run("find_words", render(query)))
        ids = list(lengths)
        for start in range(0, len(ids), _READ_BATCH):
            rows = self._port.run("passages_by_id", ids[start : start + _READ_BATCH])
            for passage in unpack_passages(self._port, rows):
                yield passage, lengths[passage.id]


def like(folded: str) -> str:
    """Return the pattern for LIKE of texts that contain the folded text."""
    escaped = folded.replace("\\", "\\\\").replace("%", "\\%").replace("_", "\\_")
    return f"%{escaped}%"


def _word(term: str) -> Stems:
    return Stems((term,), _EVERYWHERE)


def _weigh(query: Query, terms: Collection[str], counts: WordCounts) -> tuple[object, ...]:
    """Return what the function `score_words` takes: a query, and the terms that have weight."""
    return (
        render(query),
        [lexeme(term) for term in terms],
        [render(_word(term)) for term in terms],
        [rarity(counts.passages, counts.having.get(term, 0)) for term in terms],
        counts.words / max(counts.passages, 1),
    )


def _bind(query: Query, stems: list[Stems], weights: dict[str, float]) -> tuple[object, ...]:
    """Return what the function `word_scores` takes."""
    return (
        render(query),
        [lexeme(stem.stems[0]) for stem in stems],
        [render(stem) for stem in stems],
        ["".join([LABELS[column] for column in stem.columns]) for stem in stems],
        list(weights.values()),
    )


def _verify(rows: Iterable[Row], folded: str) -> list[int]:
    return [owner for owner, *texts in rows if any(folded in fold(text) for text in texts)]
