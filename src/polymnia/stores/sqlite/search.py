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


def rows_containing(connection: apsw.Connection, folded: str) -> set[int]:
    """Row ids of the entities whose name, type or an observation contains the folded text."""
    # The tokenizer passes over NUL, so a text that contains the query has the query's grams without it.
    grams = folded.replace("\x00", "")
    found = _having_all(connection, trigrams(grams)) if len(grams) > 2 else _having_start(connection, grams)
    if found is None:
        return _owners(run(connection, "texts_of_all"), folded)
    found += waiting(connection)
    entities = as_json(row_id >> ORDINAL_BITS for row_id in found if not row_id & ORDINALS)
    observations = as_json(row_id for row_id in found if row_id & ORDINALS)
    return _owners(run(connection, "texts_of", entities, observations), folded)


def _having_all(connection: apsw.Connection, grams: list[str]) -> list[int]:
    found = _matching(connection, " AND ", rarest(grams, _PROBES), _FEW)
    if len(found) < _FEW:
        return found
    return _matching(connection, " AND ", grams, _ALL)


def _having_start(connection: apsw.Connection, start: str) -> list[int] | None:
    """None when looking at every row is as quick."""
    if not start:
        return None
    terms = run(connection, "trigrams_starting", start, start + _LAST_CHARACTER, _MOST_STARTS + 1)
    if len(terms) > _MOST_STARTS:
        return None
    return _matching(connection, " OR ", [term for (term,) in terms], _ALL) if terms else []


def _matching(connection: apsw.Connection, operator: str, grams: Iterable[str], limit: int) -> list[int]:
    expression = operator.join(['"' + gram.replace('"', '""') + '"' for gram in grams])
    return [row_id for (row_id,) in run(connection, "match_trigrams", expression, limit)]


def _owners(texts: list[Row], folded: str) -> set[int]:
    return {entity for entity, text in texts if folded in fold(text)}
