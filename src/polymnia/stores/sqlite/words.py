"""The words index in SQLite: how common terms are, the passages that have them, and what was written next."""

from collections.abc import Collection, Iterable

import apsw

from polymnia.model import NOTE, Neighbours, Passage, PassageKey, Within, WordCounts
from polymnia.search.stem import spelled
from polymnia.search.words import derived, terms_of
from polymnia.stores.sqlite.indexing import padded
from polymnia.stores.sqlite.layout import ORDINAL_BITS, ORDINALS, Row, as_json, run


def define_functions(connection: apsw.Connection) -> None:
    """Give the connection the functions that migrations call."""
    connection.create_scalar_function("derived_words", _derived, 1, deterministic=True)
    connection.create_scalar_function("padded_text", _padded, 2, deterministic=True)


def _derived(*values: object) -> str | None:
    return derived(str(values[0])) or None


def _padded(*values: object) -> str:
    return padded(map(str, values))


def word_counts(connection: apsw.Connection, terms: Collection[str]) -> WordCounts:
    passages, words = _sizes(run(connection, "word_sizes")[0][0])
    return WordCounts(passages, words, dict(run(connection, "word_frequencies", as_json(terms))))


def vocabulary(connection: apsw.Connection, first: str, last: str, limit: int) -> list[str]:
    return [term for (term,) in run(connection, "words_between", first, last, limit)]


def candidates(
    connection: apsw.Connection, terms: Collection[str], limit: int, within: Within | None, *, every: bool
) -> list[Passage]:
    if not terms:
        return []
    match = _expression(terms, " AND " if every else " OR ")
    if within is None:
        return _passages(run(connection, "match_words", match, limit))
    if within == Within(names=within.names):
        return _passages_of(connection, match, limit, within.names or ())
    names, types = (None if each is None else as_json(each) for each in (within.names, within.types))
    return _passages(run(connection, "match_words_within", match, limit, names, types, within.since, within.until))


def _passages_of(connection: apsw.Connection, match: str, limit: int, names: Collection[str]) -> list[Passage]:
    """A stretch of row ids for each entity and each note: quicker than to look at every match."""
    found: list[Row] = []
    for (group,) in run(connection, "groups_named", as_json(set(names))):
        first, last = (group << ORDINAL_BITS, group << ORDINAL_BITS | ORDINALS) if group > 0 else (group, group)
        found += run(connection, "match_words_of", match, first, last, limit)
    return _passages(found)


def names_with(connection: apsw.Connection, terms: Collection[str], limit: int) -> list[str]:
    if not terms:
        return []
    found = run(connection, "match_names", f"{{name parts}} : ({_expression(terms, ' OR ')})", limit)
    # The parts are those of the type too.
    return [name for (name,) in found if not set(terms).isdisjoint(terms_of(name))]


def observation_counts(connection: apsw.Connection, names: Collection[str]) -> dict[str, int]:
    return dict(run(connection, "observation_counts", as_json(names)))


def neighbours(connection: apsw.Connection, passages: Collection[Passage]) -> dict[PassageKey, Neighbours]:
    keys = {(each.entity, each.ordinal) for each in passages if each.ordinal > 0}
    rows = run(connection, "neighbour_ids", as_json(sorted(keys)))
    ids = {each for row in rows for each in row[2:] if each is not None}
    near = {each.id: each for each in passages_by_id(connection, ids)}
    return {(row[0], row[1]): Neighbours(*[near.get(each) for each in row[2:]]) for row in rows}


def passages_by_id(connection: apsw.Connection, ids: Collection[int]) -> list[Passage]:
    return _passages(run(connection, "passages_at", as_json(ids)))


def between(connection: apsw.Connection, start: int, end: int, limit: int) -> list[Passage]:
    return _passages(run(connection, "observations_between", start, end, limit))


def _expression(terms: Iterable[str], operator: str) -> str:
    return operator.join(['"' + spelled(term).replace('"', '""') + '"' for term in terms])


def _passages(rows: list[Row]) -> list[Passage]:
    return [_passage(*row) for row in rows]


def _passage(row_id: int, name: str, kind: str, text: str, created_at: int, valid_at: int) -> Passage:
    return Passage(name, kind, row_id & ORDINALS if row_id > 0 else NOTE, text, created_at, valid_at, row_id)


def _sizes(averages: bytes) -> tuple[int, int]:
    """Rows and words from the index's own record of them: how many rows, then how many words in each column."""
    numbers: list[int] = []
    number = 0
    for byte in averages:
        number = number << 7 | byte & 0x7F
        if not byte & 0x80:
            numbers.append(number)
            number = 0
    return (numbers[0], sum(numbers[1:])) if numbers else (0, 0)
