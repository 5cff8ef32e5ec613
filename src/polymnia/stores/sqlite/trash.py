"""Removing deleted text from SQLite's indexes, so that nothing of it remains in the file."""

import apsw

from polymnia.stores.sqlite.rows import run

# Pages per step of a full merge, so that other writers get their turn.
_MERGE_PAGES = 200


def merge_indexes(connection: apsw.Connection, *, start: bool) -> bool:
    """Do one step of a full merge of the text indexes; return True while there is more to do.

    Until then the words of deleted rows remain in old segments.
    """
    words = _merge(connection, "merge_words", start=start)
    trigrams = _merge(connection, "merge_trigrams", start=start)
    return words or trigrams


def _merge(connection: apsw.Connection, query: str, *, start: bool) -> bool:
    before = connection.total_changes()
    run(connection, query, -_MERGE_PAGES if start else _MERGE_PAGES)
    return start or connection.total_changes() - before > 1  # one change is the command itself
