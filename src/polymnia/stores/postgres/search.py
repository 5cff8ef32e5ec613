"""Search in PostgreSQL: substrings by trigrams, and words by tsvector with FTS5's BM25."""

import re
from collections.abc import Collection, Iterable
from math import log

from polymnia.model import Match, Note, PassageKind, Within, WordCounts
from polymnia.search.fulltext import PARTS, TextQuery
from polymnia.search.relevance import Scores
from polymnia.search.terms import MAX_RARE_PASSAGES, fold, parts_of, stems_of
from polymnia.stores.postgres.match import StemQuery, translate, word_query
from polymnia.stores.postgres.port import PostgresPort
from polymnia.stores.postgres.words import LABELS, lexeme, word_vector
from polymnia.stores.versioned.port import Row

# A match in a name weighs most, then one in a label, one in content, and one in derived parts.
MATCH_WEIGHTS = {"name": 8.0, "labels": 4.0, "content": 1.0, PARTS: 0.5}
EQUAL_WEIGHTS = dict.fromkeys(MATCH_WEIGHTS, 1.0)
# What the trigram indexes need to find a text.
_TRIGRAM = re.compile(r"[^\W_]{3}")
_EVERYWHERE = "".join(LABELS.values())
_IN_NAMES = LABELS["name"] + LABELS[PARTS]


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
        self, query: TextQuery, kinds: Collection[PassageKind], limit: int | None
    ) -> list[Match]:
        return self._match(query, kinds, MATCH_WEIGHTS)[:limit]

    def match_notes(self, query: TextQuery) -> Scores:
        matches = self._match(query, ["note"], EQUAL_WEIGHTS)
        return {match.id: -match.score for match in matches}

    def match_session(self, notes: dict[int, Note], query: TextQuery) -> Scores:
        """Score the notes as FTS5 would if its index had only these."""
        if not notes or not (query.words or query.expression):
            return {}
        translated = translate(query)
        vectors = [word_vector(note.key, note.tags, note.content) for note in notes.values()]
        numbers = list(notes)
        rows = self._port.run(
            "matching_vectors", [vector.vector for vector in vectors], translated.tsquery
        )
        texts = {}
        for number, note in notes.items():
            text = " ".join([note.key, *note.tags, note.content])
            parts = stems_of(parts_of(text))
            texts[number] = {LABELS[PARTS]: parts, _EVERYWHERE: stems_of(text) + parts}
        average = sum(vector.length for vector in vectors) / max(len(notes), 1)
        scores = {}
        for (place,) in rows:
            number, length = numbers[place - 1], vectors[place - 1].length
            total = 0.0
            for scored in translated.stems:
                having = sum(scored.stem in text[scored.labels] for text in texts.values())
                count = texts[number][scored.labels].count(scored.stem)
                total += rarity(len(notes), having) * term_score(count, length, average)
            scores[number] = -total
        return scores

    def word_counts(self, terms: Collection[str]) -> WordCounts:
        if not terms:
            return WordCounts(0, 0, {})
        by_lexeme = {lexeme(term): term for term in terms}
        queries = [word_query(term) for term in by_lexeme.values()]
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
    ) -> list[Row]:
        queries = [word_query(term) for term in terms]
        lexemes = [lexeme(term) for term in terms]
        query = (" & " if every else " | ").join(queries)
        bound = (lexemes, queries, MAX_RARE_PASSAGES, query, limit)
        if within is not None:
            filters = (within.names, within.types, within.since, within.until, within.tags)
            return self._port.run("best_words_within", *bound, *filters)
        if newest:
            # The newest passages with common terms are looked for among so many.
            return self._port.run("best_newest_words", *bound, 20_000)
        return self._port.run("best_words", *bound)

    def best_names(self, terms: Collection[str], limit: int) -> list[str]:
        queries = [word_query(term) for term in terms]
        labelled = [f"{query}:{_IN_NAMES}" for query in queries]
        lexemes = [lexeme(term) for term in terms]
        bound = (lexemes, queries, MAX_RARE_PASSAGES, labelled, _IN_NAMES, limit)
        return [name for (name,) in self._port.run("best_names", *bound)]

    def _match(
        self, query: TextQuery, kinds: Collection[PassageKind], weights: dict[str, float]
    ) -> list[Match]:
        """Return what matches, best first. Raise InvalidSyntax."""
        if not (query.words or query.expression):
            return []
        translated = translate(query)
        rows = self._port.run("match_words", *_bind(translated, weights), kinds, None)
        matches = [Match(*row) for row in rows]
        if query.expression:
            # A prefix or a phrase may find passages that none of the stems scores.
            scored = {match.id for match in matches}
            found = [number for number, _ in self._port.run("find_words", translated.tsquery)]
            others = [number for number in found if number not in scored]
            for number, name, kind in self._port.run("passage_heads", others, kinds):
                matches.append(Match(number, name, kind, 0.0))
            matches.sort(key=lambda match: (-match.score, match.id))
        return matches

    def _find_texts(self, folded: str, by_trigrams: str, by_rows: str) -> list[Row]:
        """Return the rows that may contain the folded text."""
        if _TRIGRAM.search(folded):
            return self._port.run(by_trigrams, like(folded))
        return self._port.run(by_rows, folded)


def like(folded: str) -> str:
    """Return the pattern for LIKE of texts that contain the folded text."""
    escaped = folded.replace("\\", "\\\\").replace("%", "\\%").replace("_", "\\_")
    return f"%{escaped}%"


def rarity(passages: int, having: int) -> float:
    """Return the idf of FTS5: hardly anything for a term that half of all passages have."""
    if passages <= 2 * having:
        return 1e-6
    return log((passages - having + 0.5) / (having + 0.5))


def term_score(count: float, length: int, average: float) -> float:
    """Return BM25 of one term as FTS5 computes it, without its rarity."""
    k1, b = 1.2, 0.75
    return (count * (k1 + 1.0)) / (count + k1 * (1 - b + b * length / average))


def _bind(query: StemQuery, weights: dict[str, float]) -> tuple[object, ...]:
    """Return what the function `word_scores` takes."""
    return (
        query.tsquery,
        [lexeme(stem.stem) for stem in query.stems],
        [stem.tsquery for stem in query.stems],
        [stem.labels for stem in query.stems],
        list(weights.values()),
    )


def _verify(rows: Iterable[Row], folded: str) -> list[int]:
    return [owner for owner, *texts in rows if any(folded in fold(text) for text in texts)]
