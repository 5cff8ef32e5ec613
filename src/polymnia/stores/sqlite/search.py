"""Search in SQLite: substrings by trigrams, words by FTS5 with BM25, and what was written around a passage."""

from collections.abc import Collection, Iterable

import apsw
from msgspec import json

from polymnia.model import Match, Neighbours, Passage, PassageKey, PassageKind, Within, WordCounts
from polymnia.search.expression import Expression
from polymnia.search.matching import is_exact, matches
from polymnia.search.terms import terms_of, word_with_stem
from polymnia.search.text import fold, rarest, trigrams
from polymnia.stores.contract import MAX_CONVERSATION_GAP, MAX_CONVERSATION_STEPS
from polymnia.stores.sqlite.match import render
from polymnia.stores.sqlite.rows import Row, as_json, run, unpack_tags

# How many of a query's trigrams are looked up first; that is usually enough to leave few candidates.
_PROBED_TRIGRAMS = 3
_MAX_PROBED = 200
# A query of one or two characters goes through the trigrams that start with it, unless there are more than this.
_MAX_PREFIX_TRIGRAMS = 500
_NO_LIMIT = -1
_LAST_CHARACTER = "\U0010ffff"


def define_functions(connection: apsw.Connection) -> None:
    """Register the functions that queries call."""
    connection.register_fts5_function("index_totals", _index_totals)


def entities_containing(connection: apsw.Connection, folded: str) -> set[int]:
    """Return the row ids of the entities whose name, type or an observation contains the folded text."""
    found = _candidates_by_characters(connection, folded)
    rows = (
        run(connection, "texts_of_all")
        if found is None
        else run(connection, "texts_of", as_json(found))
    )
    return _verify(rows, folded)


def notes_containing(connection: apsw.Connection, folded: str) -> set[int]:
    """Return the ids of the vault notes whose key or text contains the folded text."""
    found = _candidates_by_characters(connection, folded)
    return _verify(run(connection, "note_texts", None if found is None else as_json(found)), folded)


def match(
    connection: apsw.Connection,
    expression: Expression,
    kinds: Collection[PassageKind],
    limit: int | None,
) -> list[Match]:
    """Return the passages of these kinds that match the expression, best first."""
    exact = is_exact(expression)
    bound = _NO_LIMIT if limit is None or not exact else limit
    found = [
        Match(*row)
        for row in run(connection, "match_words", render(expression), as_json(kinds), bound)
    ]
    if exact:
        return found
    matching = _verify_expression(connection, expression, [each.id for each in found])
    return [each for each in found if each.id in matching][:limit]


def match_notes(connection: apsw.Connection, expression: Expression) -> dict[int, float]:
    """Return the vault notes that match the expression, with BM25 scores; the smaller the better."""
    found: dict[int, float] = dict(run(connection, "match_notes", render(expression)))
    if is_exact(expression):
        return found
    matching = _verify_expression(connection, expression, found)
    return {note: score for note, score in found.items() if note in matching}


def word_counts(connection: apsw.Connection, terms: Collection[str]) -> WordCounts:
    """Return how many passages contain each term; the totals are 0 if none does."""
    having: dict[str, int] = dict(run(connection, "word_frequencies", as_json(terms)))
    for term in having:
        if rows := run(connection, "word_totals", _join([term], "")):
            passages, words = rows[0][0].split()
            return WordCounts(int(passages), int(words), having)
    return WordCounts(0, 0, {})


def vocabulary(connection: apsw.Connection, first: str, last: str, limit: int) -> list[str]:
    """Return the indexed terms from `first` to before `last`."""
    return [term for (term,) in run(connection, "words_between", first, last, limit)]


def candidates(
    connection: apsw.Connection,
    terms: Collection[str],
    limit: int,
    within: Within | None,
    *,
    every: bool,
) -> list[Passage]:
    """Return the best passages by BM25 that contain one of the terms, or every one."""
    if not terms:
        return []
    match = _join(terms, " AND " if every else " OR ")
    if within is None:
        rows = run(connection, "best_words", match, limit)
    else:
        rows = run(connection, "best_words_within", match, limit, *bind_within(within))
    return passages_by_id(connection, [row[0] for row in rows])


def bind_within(
    within: Within,
) -> tuple[str | None, str | None, int | None, int | None, str | None]:
    """Return a filter as the bindings that queries take: names, types, since, until and tags."""
    names, types, tags = (
        None if each is None else as_json(each)
        for each in (within.names, within.types, within.tags)
    )
    return names, types, within.since, within.until, tags


def names_with(connection: apsw.Connection, terms: Collection[str], limit: int) -> list[str]:
    """Return names of entities that contain one of the terms, best first."""
    if not terms:
        return []
    found = run(connection, "best_names", f"{{name parts}} : ({_join(terms, ' OR ')})", limit)
    # The parts are those of the labels too.
    return [name for (name,) in found if not set(terms).isdisjoint(terms_of(name))]


def neighbours(
    connection: apsw.Connection, passages: Collection[Passage]
) -> dict[PassageKey, Neighbours]:
    """Return what was written around each of the observations."""
    keys = {each.id: each.key for each in passages if each.ordinal > 0}
    bounds = (MAX_CONVERSATION_STEPS, MAX_CONVERSATION_GAP)
    rows = run(connection, "neighbour_ids", as_json(keys), *bounds) if keys else []
    near = {row[0]: (json.decode(row[1]), json.decode(row[2])) for row in rows}
    wanted = {one for before, after in near.values() for one in (*before, *after)}
    found = {each.id: each for each in passages_by_id(connection, wanted)}
    return {keys[number]: _neighbours(found, *both) for number, both in near.items()}


def passages_containing(connection: apsw.Connection, folded: str, limit: int) -> list[Passage]:
    """Return passages that contain the folded text."""
    found = _candidates_by_characters(connection, folded)
    if found is None:
        found = [row[0] for row in run(connection, "newest_passages", limit)]
    passages = passages_by_id(connection, found)
    return [each for each in passages if _contains(each, folded)][:limit]


def cards(connection: apsw.Connection, names: Collection[str]) -> list[Passage]:
    """Return the cards of the entities with these names."""
    return passages_by_id(
        connection, [card for _, _, card in run(connection, "entity_ids", as_json(names))]
    )


def observation_counts(connection: apsw.Connection, names: Collection[str]) -> dict[str, int]:
    """Return how many observations the entities with these names have."""
    return dict(run(connection, "observation_counts", as_json(names)))


def passages_by_id(connection: apsw.Connection, ids: Collection[int]) -> list[Passage]:
    """Return the living passages with these ids, in no particular order."""
    return (
        [_passage(*row) for row in run(connection, "passages_by_id", as_json(ids))] if ids else []
    )


def between(connection: apsw.Connection, start: int, end: int, limit: int) -> list[Passage]:
    """Return the newest observations of a period."""
    return passages_by_id(
        connection, [row[0] for row in run(connection, "observations_between", start, end, limit)]
    )


def _verify_expression(
    connection: apsw.Connection, expression: Expression, ids: Collection[int]
) -> set[int]:
    """Return those of the passages that really match: the index cannot tell how a stemmed word began."""
    return {
        each.id for each in passages_by_id(connection, ids) if matches(expression, columns_of(each))
    }


def columns_of(passage: Passage) -> dict[str, str]:
    """Return the texts of a passage by the columns of the words index."""
    if passage.kind == "observation":
        return {"content": passage.text}
    labels = passage.tags if passage.kind == "note" else (passage.type, *passage.tags)
    return {"name": passage.entity, "labels": " ".join(labels), "content": passage.text}


def _candidates_by_characters(connection: apsw.Connection, folded: str) -> list[int] | None:
    """Return passages that may contain the text; None if looking at every one is as fast."""
    # The tokenizer skips NUL, so a text that contains the query has the query's trigrams without it.
    characters = folded.replace("\x00", "")
    if len(characters) > 2:
        return _with_all_trigrams(connection, trigrams(characters))
    return _with_prefix(connection, characters)


def _with_all_trigrams(connection: apsw.Connection, grams: list[str]) -> list[int]:
    found = _match_trigrams(connection, " AND ", rarest(grams, _PROBED_TRIGRAMS), _MAX_PROBED)
    if len(found) < _MAX_PROBED:
        return found
    return _match_trigrams(connection, " AND ", grams, _NO_LIMIT)


def _with_prefix(connection: apsw.Connection, prefix: str) -> list[int] | None:
    if not prefix:
        return None
    grams = run(
        connection,
        "trigrams_starting",
        prefix,
        prefix + 3 * _LAST_CHARACTER,
        _MAX_PREFIX_TRIGRAMS + 1,
    )
    if len(grams) > _MAX_PREFIX_TRIGRAMS:
        return None
    return (
        _match_trigrams(connection, " OR ", [gram for (gram,) in grams], _NO_LIMIT) if grams else []
    )


def _match_trigrams(
    connection: apsw.Connection, operator: str, grams: Iterable[str], limit: int
) -> list[int]:
    expression = operator.join([_quote(gram) for gram in grams])
    return [row_id for (row_id,) in run(connection, "match_trigrams", expression, limit)]


def _verify(rows: Iterable[Row], folded: str) -> set[int]:
    return {owner for owner, *texts in rows if any(folded in fold(text) for text in texts)}


def _contains(passage: Passage, folded: str) -> bool:
    if passage.kind == "observation":
        return folded in fold(passage.text)
    texts = (passage.entity, passage.text if passage.kind == "note" else passage.type)
    return any(folded in fold(text) for text in texts)


def _neighbours(found: dict[int, Passage], before: list[int], after: list[int]) -> Neighbours:
    near = [*before, 0, 0][:2] + [*after, 0][:1]
    return Neighbours(*[found.get(each) for each in near])


def _passage(
    number: int,
    name: str,
    kind: str,
    ordinal: int,
    text: str,
    created_at: int,
    valid_at: int,
    tags: str | None,
    source: str | None,
) -> Passage:
    return Passage(
        name, kind, ordinal, text, created_at, valid_at, number, unpack_tags(tags), source or ""
    )


def _index_totals(api: apsw.FTS5ExtensionApi, /, *_: object) -> str:
    return f"{api.row_count} {api.column_total_size()}"


def _join(terms: Iterable[str], operator: str) -> str:
    """Return a query for terms. The index stems the query, so each term is replaced by a word with that stem."""
    return operator.join([_quote(word_with_stem(term)) for term in terms])


def _quote(term: str) -> str:
    return '"' + term.replace('"', '""') + '"'
