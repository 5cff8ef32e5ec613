"""Filling the text indexes: the rows of small writes wait for them and go in together, which takes far less."""

from collections.abc import Collection, Iterable
from typing import NamedTuple

import apsw

from polymnia.search.terms import derived
from polymnia.search.text import fold
from polymnia.stores.sqlite.layout import Row, run, run_many

_FIRST, _LAST = -1 << 63, (1 << 63) - 1
# A write of so many rows is indexed at once: it pays for itself.
_MANY = 64
# So many may wait: looking at them all takes a search about as long as looking into an index.
_MOST = 128


class IndexedTexts(NamedTuple):
    """What a row is found by: an entity by name and type, an observation by its content, a note by key and content."""

    row_id: int
    name: str | None
    type: str | None
    content: str | None


def padded(texts: Iterable[str]) -> str:
    """Folded text as the trigram index has it: two characters longer, so that every character starts a trigram."""
    return "\n".join([fold(text) for text in texts]) + "\n\n"


def index_soon(connection: apsw.Connection, rows: list[IndexedTexts]) -> None:
    """Have living rows found by their texts, which are in the order of row ids."""
    if len(rows) >= _MANY:
        _index(connection, rows)
        return
    run_many(connection, "postpone_index", [(row.row_id,) for row in rows])
    if rows and run(connection, "count_unindexed")[0][0] >= _MOST:
        index_waiting(connection)


def forget(connection: apsw.Connection, rows: Collection[int]) -> None:
    """Have rows found no more."""
    bindings = [(row_id,) for row_id in rows]
    for query in ("delete_unindexed", "delete_trigrams", "delete_words"):
        run_many(connection, query, bindings)


def waiting(connection: apsw.Connection, first: int = _FIRST, last: int = _LAST) -> list[int]:
    """The rows that are not indexed yet, from one row id to another."""
    return [row_id for (row_id,) in run(connection, "unindexed", first, last)]


def index_waiting(connection: apsw.Connection) -> None:
    """Index the rows that wait; none waits after it, not even one whose text is gone."""
    if waiting(connection):
        _index(connection, [IndexedTexts(*row) for row in run(connection, "unindexed_texts")])
        run(connection, "clear_unindexed")


def index_now(connection: apsw.Connection) -> None:
    """Index them in a transaction that goes on to read the index."""
    index_waiting(connection)
    connection.execute("SAVEPOINT indexed; RELEASE indexed")  # has the index write down what it counts


def _index(connection: apsw.Connection, rows: list[IndexedTexts]) -> None:
    # In the order of row ids: the indexes would write a segment of their own for every step back.
    run_many(connection, "insert_trigrams", [(row.row_id, padded(_parts(row))) for row in rows])
    run_many(connection, "insert_words", [_words(row) for row in rows])


def _words(row: IndexedTexts) -> Row:
    return (*row, derived(" ".join(_parts(row))) or None)


def _parts(row: IndexedTexts) -> list[str]:
    return [text for text in row[1:] if text is not None]
