"""Substring search in SQLite: trigrams find the candidates, the rows themselves decide."""

from collections.abc import Iterable

import apsw

from polymnia.search.text import fold, rarest, trigrams
from polymnia.stores.sqlite.indexing import waiting
from polymnia.stores.sqlite.layout import ORDINAL_BITS, ORDINALS, Row, as_json, run

# Looking a trigram up costs about as much as checking a few dozen rows, so three are tried before all are.
_PROBES = 3
_FEW = 200
_ALL = -1
# A text of one or two characters is looked for in this many trigrams that start with it, or in every row.
_MOST_STARTS = 400
_LAST_CHARACTER = "\U0010ffff"

# From which row id to which entities with their observations are indexed, and notes.
Stretch = tuple[int, int]
_GRAPH: Stretch = (1, (1 << 63) - 1)
_NOTES: Stretch = (-1 << 63, -1)


def rows_containing(connection: apsw.Connection, folded: str) -> set[int]:
    """Row ids of the entities whose name, type or an observation contains the folded text."""
    found = _having(connection, folded, _GRAPH)
    if found is None:
        return _owners(run(connection, "texts_of_all"), folded)
    entities = as_json(row_id >> ORDINAL_BITS for row_id in found if not row_id & ORDINALS)
    observations = as_json(row_id for row_id in found if row_id & ORDINALS)
    return _owners(run(connection, "texts_of", entities, observations), folded)


def notes_containing(connection: apsw.Connection, folded: str) -> set[int]:
    """Ids of the vault's notes whose key or content contains the folded text."""
    found = _having(connection, folded, _NOTES)
    notes = None if found is None else as_json(-each for each in found)
    return _owners(run(connection, "texts_of_notes", notes), folded)


def _having(connection: apsw.Connection, folded: str, stretch: Stretch) -> list[int] | None:
    """Rows that may contain the text; None when looking at every one is as quick."""
    # The tokenizer passes over NUL, so a text that contains the query has the query's grams without it.
    grams = folded.replace("\x00", "")
    if len(grams) > 2:
        found: list[int] | None = _having_all(connection, trigrams(grams), stretch)
    else:
        found = _having_start(connection, grams, stretch)
    return None if found is None else found + waiting(connection, *stretch)


def _having_all(connection: apsw.Connection, grams: list[str], stretch: Stretch) -> list[int]:
    found = _matching(connection, " AND ", rarest(grams, _PROBES), stretch, _FEW)
    if len(found) < _FEW:
        return found
    return _matching(connection, " AND ", grams, stretch, _ALL)


def _having_start(connection: apsw.Connection, start: str, stretch: Stretch) -> list[int] | None:
    if not start:
        return None
    terms = run(connection, "trigrams_starting", start, start + _LAST_CHARACTER, _MOST_STARTS + 1)
    if len(terms) > _MOST_STARTS:
        return None
    return _matching(connection, " OR ", [term for (term,) in terms], stretch, _ALL) if terms else []


def _matching(
    connection: apsw.Connection, operator: str, grams: Iterable[str], stretch: Stretch, limit: int
) -> list[int]:
    expression = operator.join(['"' + gram.replace('"', '""') + '"' for gram in grams])
    return [row_id for (row_id,) in run(connection, "match_trigrams", expression, *stretch, limit)]


def _owners(texts: list[Row], folded: str) -> set[int]:
    return {entity for entity, text in texts if folded in fold(text)}
