"""Search in PostgreSQL: substrings by trigrams, words by tsvector with FTS5's BM25, and what is around a passage."""

import re
from collections.abc import Collection, Iterable, Iterator
from math import log

from polymnia.model import Match, Neighbours, Passage, PassageKey, PassageKind, Within, WordCounts
from polymnia.search.expression import Expression
from polymnia.search.matching import PARTS, is_exact, matches
from polymnia.search.terms import terms_of
from polymnia.search.text import fold
from polymnia.stores.contract import MAX_CONVERSATION_GAP, MAX_CONVERSATION_STEPS
from polymnia.stores.postgres.connection import Row
from polymnia.stores.postgres.database import WorkspaceConnection
from polymnia.stores.postgres.match import (
    AnyOf,
    Every,
    PassageWords,
    Query,
    Stems,
    mere_stems,
    phrases_of,
    render,
    score,
    translate,
)
from polymnia.stores.postgres.rows import run
from polymnia.stores.postgres.words import LABELS, lexeme

# A match in a name weighs more than one in a label, that more than one in content, and derived parts weigh least.
MATCH_WEIGHTS = {"name": 8.0, "labels": 4.0, "content": 1.0, PARTS: 0.5}
EQUAL_WEIGHTS = dict.fromkeys(MATCH_WEIGHTS, 1.0)
# FTS5's rarity of a term that at least half of all passages have.
_COMMON = 1e-6
# How many passages are read at once to look into their words.
_READ_BATCH = 1_000
# What the trigram indexes need to find a text.
_TRIGRAM = re.compile(r"[^\W_]{3}")
_EVERYWHERE = frozenset(LABELS)
_IN_NAMES = frozenset({"name", PARTS})


def entities_containing(connection: WorkspaceConnection, folded: str) -> set[int]:
    """Return the row ids of the entities whose name, type or an observation contains the folded text."""
    rows = _find_texts(connection, folded, "texts_containing", "texts_with_few_letters")
    return {owner for owner, *texts in rows if _any_contains(texts, folded)}


def notes_containing(connection: WorkspaceConnection, folded: str) -> set[int]:
    """Return the ids of the vault notes whose key or text contains the folded text."""
    rows = _find_texts(connection, folded, "notes_containing", "notes_with_few_letters")
    return {note for note, *texts in rows if _any_contains(texts, folded)}


def passages_containing(connection: WorkspaceConnection, folded: str, limit: int) -> list[Passage]:
    """Return passages that contain the folded text."""
    if not folded:
        return passages_by_id(
            connection, [row[0] for row in run(connection, "newest_passages", limit)]
        )
    rows = _find_texts(connection, folded, "passages_containing", "passages_with_few_letters")
    found = [passage for passage, *texts in rows if _any_contains(texts, folded)]
    return passages_by_id(connection, found[:limit])


def match(
    connection: WorkspaceConnection,
    expression: Expression,
    kinds: Collection[PassageKind],
    limit: int | None,
) -> list[Match]:
    """Return the passages of these kinds that match the expression, best first."""
    query = translate(expression)
    if query is None:
        return []
    stems = mere_stems(query)
    if stems is not None and is_exact(expression):
        rows = run(
            connection, "match_words", *_bind(query, stems, MATCH_WEIGHTS), list(kinds), limit
        )
        return [Match(*row) for row in rows]
    scores = _score_in_python(connection, expression, query, MATCH_WEIGHTS)
    heads = run(connection, "passage_heads", list(scores), list(kinds))
    found = [Match(passage, name, kind, scores[passage]) for passage, name, kind in heads]
    return sorted(found, key=lambda each: (-each.score, each.id))[:limit]


def match_notes(connection: WorkspaceConnection, expression: Expression) -> dict[int, float]:
    """Return the vault notes that match the expression, with BM25 scores; the smaller the better."""
    query = translate(expression)
    if query is None:
        return {}
    stems = mere_stems(query)
    if stems is not None and is_exact(expression):
        rows = run(connection, "match_words", *_bind(query, stems, EQUAL_WEIGHTS), ["note"], None)
        return {passage: -value for passage, _, _, value in rows}
    scores = _score_in_python(connection, expression, query, EQUAL_WEIGHTS)
    notes = run(connection, "passage_heads", list(scores), ["note"])
    return {passage: -scores[passage] for passage, *_ in notes}


def word_counts(connection: WorkspaceConnection, terms: Collection[str]) -> WordCounts:
    """Return how many passages contain each term; the totals are 0 if none does."""
    if not terms:
        return WordCounts(0, 0, {})
    by_lexeme = {lexeme(term): term for term in terms}
    queries = [render(_word(term)) for term in by_lexeme.values()]
    rows = run(connection, "word_counts", list(by_lexeme), queries)
    having = {by_lexeme[row[2]]: row[3] for row in rows if row[3]}
    return WordCounts(rows[0][0], rows[0][1], having) if having else WordCounts(0, 0, {})


def vocabulary(connection: WorkspaceConnection, first: str, last: str, limit: int) -> list[str]:
    """Return the indexed terms from `first` to before `last`."""
    return [term for (term,) in run(connection, "terms_between", first, last, limit)]


def candidates(
    connection: WorkspaceConnection,
    terms: Collection[str],
    limit: int,
    within: Within | None,
    *,
    every: bool,
) -> list[Passage]:
    """Return the best passages by BM25 that contain one of the terms, or every one."""
    if not terms:
        return []
    stems = [_word(term) for term in terms]
    query = _join(stems, every=every)
    if within is None:
        rows = run(connection, "best_words", *_bind(query, stems, EQUAL_WEIGHTS), limit)
    else:
        rows = run(
            connection,
            "best_words_within",
            *_bind(query, stems, EQUAL_WEIGHTS),
            limit,
            *bind_within(within),
        )
    return passages_by_id(connection, [row[0] for row in rows])


def bind_within(within: Within) -> tuple[object, ...]:
    """Return a filter as the values that queries take: names, types, since, until and tags."""
    names, types, tags = (
        None if each is None else list(each) for each in (within.names, within.types, within.tags)
    )
    return names, types, within.since, within.until, tags


def names_with(connection: WorkspaceConnection, terms: Collection[str], limit: int) -> list[str]:
    """Return names of entities that contain one of the terms, best first."""
    if not terms:
        return []
    stems = [Stems((term,), _IN_NAMES) for term in terms]
    rows = run(
        connection,
        "match_words",
        *_bind(_join(stems, every=False), stems, EQUAL_WEIGHTS),
        ["entity"],
        limit,
    )
    # The parts are those of the labels too.
    return [name for _, name, _, _ in rows if not set(terms).isdisjoint(terms_of(name))]


def neighbours(
    connection: WorkspaceConnection, passages: Collection[Passage]
) -> dict[PassageKey, Neighbours]:
    """Return what was written around each of the observations."""
    keys = {each.id: each.key for each in passages if each.ordinal > 0}
    bounds = (MAX_CONVERSATION_STEPS, MAX_CONVERSATION_GAP)
    rows = run(connection, "neighbour_ids", list(keys), *bounds) if keys else []
    wanted = {one for _, before, after in rows for one in (*before, *after)}
    found = {each.id: each for each in passages_by_id(connection, wanted)}
    near = {number: [*before, 0, 0][:2] + [*after, 0][:1] for number, before, after in rows}
    return {
        keys[number]: Neighbours(*[found.get(each) for each in three])
        for number, three in near.items()
    }


def cards(connection: WorkspaceConnection, names: Collection[str]) -> list[Passage]:
    """Return the cards of the entities with these names."""
    return [_passage(*row) for row in run(connection, "cards_named", list(names))] if names else []


def observation_counts(connection: WorkspaceConnection, names: Collection[str]) -> dict[str, int]:
    """Return how many observations the entities with these names have."""
    return dict(run(connection, "observation_counts", list(names))) if names else {}


def passages_by_id(connection: WorkspaceConnection, ids: Collection[int]) -> list[Passage]:
    """Return the living passages with these ids, in no particular order."""
    return [_passage(*row) for row in run(connection, "passages_by_id", list(ids))] if ids else []


def between(connection: WorkspaceConnection, start: int, end: int, limit: int) -> list[Passage]:
    """Return the newest observations of a period."""
    return [_passage(*row) for row in run(connection, "observations_between", start, end, limit)]


def columns_of(passage: Passage) -> dict[str, str]:
    """Return the texts of a passage by the columns of the words index."""
    if passage.kind == "observation":
        return {"content": passage.text}
    labels = passage.tags if passage.kind == "note" else (passage.type, *passage.tags)
    return {"name": passage.entity, "labels": " ".join(labels), "content": passage.text}


def _find_texts(
    connection: WorkspaceConnection, folded: str, by_trigrams: str, by_rows: str
) -> list[Row]:
    """Return the rows that may contain the folded text."""
    if _TRIGRAM.search(folded):
        return run(connection, by_trigrams, like(folded))
    return run(connection, by_rows, folded)


def like(folded: str) -> str:
    """Return the pattern for LIKE of texts that contain the folded text."""
    escaped = folded.replace("\\", "\\\\").replace("%", "\\%").replace("_", "\\_")
    return f"%{escaped}%"


def _score_in_python(
    connection: WorkspaceConnection, expression: Expression, query: Query, weights: dict[str, float]
) -> dict[int, float]:
    """Return the passages that match, with their scores, from the words of all that the tsquery finds."""
    phrases = list(dict.fromkeys(phrases_of(query)))
    rows = run(connection, "phrase_counts", [render(phrase) for phrase in phrases])
    if not rows:
        return {}
    rarity = {
        phrase: idf(row[0], _count_initial(connection, phrase) if phrase.initial else row[2])
        for phrase, row in zip(phrases, rows, strict=True)
    }
    average = rows[0][1] / max(rows[0][0], 1)
    verify = not is_exact(expression)
    scores: dict[int, float] = {}
    for passage, length in _find(connection, query):
        texts = columns_of(passage)
        counts = PassageWords(texts).count(query, weights)
        if counts and (not verify or matches(expression, texts)):
            scores[passage.id] = score(counts, rarity, length, average)
    return scores


def _count_initial(connection: WorkspaceConnection, phrase: Stems) -> int:
    """Return how many passages have a column that begins with the phrase, which a tsquery cannot say."""
    found = [
        PassageWords(columns_of(each)).count(phrase, EQUAL_WEIGHTS)
        for each, _ in _find(connection, phrase)
    ]
    return len([each for each in found if each])


def _find(connection: WorkspaceConnection, query: Query) -> Iterator[tuple[Passage, int]]:
    """Yield the passages that the tsquery finds, and how many words each has."""
    lengths: dict[int, int] = dict(run(connection, "find_words", render(query)))
    ids = list(lengths)
    for start in range(0, len(ids), _READ_BATCH):
        for passage in passages_by_id(connection, ids[start : start + _READ_BATCH]):
            yield passage, lengths[passage.id]


def idf(passages: int, having: int) -> float:
    """Return the idf of FTS5."""
    return log((passages - having + 0.5) / (having + 0.5)) if passages > 2 * having else _COMMON


def _word(term: str) -> Stems:
    return Stems((term,), _EVERYWHERE)


def _join(stems: list[Stems], *, every: bool) -> Query:
    return Every(tuple(stems)) if every else AnyOf(tuple(stems))


def _bind(query: Query, stems: list[Stems], weights: dict[str, float]) -> tuple[object, ...]:
    """Return what the function `word_scores` takes."""
    return (
        render(query),
        [lexeme(each.stems[0]) for each in stems],
        [render(each) for each in stems],
        ["".join([LABELS[column] for column in each.columns]) for each in stems],
        list(weights.values()),
    )


def _any_contains(texts: Iterable[str], folded: str) -> bool:
    return any(folded in fold(text) for text in texts)


def _passage(
    number: int,
    name: str,
    kind: str,
    ordinal: int,
    text: str,
    created_at: int,
    valid_at: int,
    tags: list[str] | None,
    source: str | None,
) -> Passage:
    return Passage(
        name, kind, ordinal, text, created_at, valid_at, number, tuple(tags or ()), source or ""
    )
