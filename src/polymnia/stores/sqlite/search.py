"""Search in SQLite: substrings by trigrams, and words by FTS5 with BM25."""

from collections import defaultdict
from collections.abc import Collection, Iterable
from math import log

import apsw

from polymnia.model import Match, Note, PassageKind, Within, WordCounts
from polymnia.search.fulltext import InvalidSyntax, TextQuery, to_fts5
from polymnia.search.relevance import Scores
from polymnia.search.terms import MAX_RARE_PASSAGES, fold, rarest, trigrams, word_with_stem
from polymnia.stores.sqlite.port import SqlitePort, word_row
from polymnia.stores.versioned.port import Row
from polymnia.stores.versioned.rows import unpack_passages
from polymnia.stores.versioned.write import note_text

# How many of a query's trigrams are looked up first. They usually leave few candidates.
_PROBED_TRIGRAMS = 3
_MAX_PROBED = 200
# A query of one or two characters goes through the trigrams that start with it, up to this many.
_MAX_PREFIX_TRIGRAMS = 500
# A term in at least so many passages is common: how many have it is estimated, and the newest are
# looked for among so many rows.
MAX_COUNTED, MAX_LOOKED_AT = MAX_RARE_PASSAGES + 1, 200_000
_NO_LIMIT = -1
_LAST_CHARACTER = "\U0010ffff"


def define_functions(connection: apsw.Connection) -> None:
    """Register the functions that queries call."""

    def index_totals(api: apsw.FTS5ExtensionApi, /, *_: object) -> str:
        return f"{api.row_count} {api.column_total_size()}"

    connection.register_fts5_function("index_totals", index_totals)


class SqliteWords:
    """The indexes of words and trigrams, as a transaction sees them."""

    def __init__(self, port: SqlitePort) -> None:
        self._port = port

    def entities_containing(self, folded: str) -> set[int]:
        ids = self._by_characters(folded)
        rows = self._port.run("texts_of_all") if ids is None else self._port.run("texts_of", ids)
        return _verify(rows, folded)

    def notes_containing(self, folded: str) -> set[int]:
        return _verify(self._port.run("note_texts", self._by_characters(folded)), folded)

    def passages_containing(self, folded: str, limit: int) -> list[int]:
        ids = self._by_characters(folded)
        if ids is None:
            ids = [number for (number,) in self._port.run("newest_passages", limit)]
        rows = self._port.run("passages_by_id", list(ids))
        matching = []
        for passage in unpack_passages(self._port, rows):
            second = passage.text if passage.kind == "note" else passage.type
            texts = (passage.text,) if passage.kind == "fact" else (passage.entity, second)
            if any(folded in fold(text) for text in texts):
                matching.append(passage.id)
        return matching[:limit]

    def match(
        self, query: TextQuery, kinds: Collection[PassageKind], limit: int | None
    ) -> list[Match]:
        bound = _NO_LIMIT if limit is None else limit
        return [Match(*row) for row in self._match("match_words", query, list(kinds), bound)]

    def match_notes(self, query: TextQuery) -> Scores:
        return dict(self._match("match_notes", query))

    def match_session(self, notes: dict[int, Note], query: TextQuery) -> Scores:
        self._port.run("create_session_words")
        texts = [
            note_text(number, note.key, note.content, note.tags) for number, note in notes.items()
        ]
        self._port.write_rows("fill_session_words", [word_row(text) for text in texts])
        try:
            return dict(self._match("match_session_words", query))
        finally:
            self._port.run("clear_session_words")

    def word_counts(self, terms: Collection[str]) -> WordCounts:
        having: dict[str, int] = {}
        last_ids: dict[str, tuple[int, int]] = {}
        for term in terms:
            ((count, first, last),) = self._port.run(
                "newest_with_word", _join([term], ""), MAX_COUNTED
            )
            if count:
                having[term] = count
                last_ids[term] = first, last
        if not having:
            return WordCounts(0, 0, {})
        ((totals,),) = self._port.run("word_totals", _join([next(iter(having))], ""))
        passages, words = map(int, totals.split())
        for term, (first, last) in last_ids.items():
            if having[term] == MAX_COUNTED:
                # As common among the older passages as among the newest.
                estimate = MAX_COUNTED * last // (last - first + 1)
                having[term] = max(MAX_COUNTED, min(passages, estimate))
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
        query = _join(terms, " AND " if every else " OR ")
        if within is not None:
            rows = self._port.run("best_words_within", query, limit, *bind_within(within))
        elif newest:
            rows = self._port.run("newest_words", query, MAX_LOOKED_AT, limit)
        else:
            rows = self._port.run("best_words", query, limit)
        ids = [number for number, *_ in rows]
        return self._port.run("passages_by_id", ids) if ids else []

    def best_names(self, terms: Collection[str], limit: int) -> list[str]:
        # A word that many names have says little, so only its newest names are considered.
        most = 4 * limit
        scores: defaultdict[int, float] = defaultdict(float)
        for term in terms:
            query = f"{{name parts}} : {_join([term], '')}"
            cards = self._port.run("newest_matches", query, most)
            for (card,) in cards:
                scores[card] += log(2 * most / len(cards))
        ranked = []
        for card, name in self._port.run("card_names", list(scores)):
            ranked.append((-scores[card], len(name), card, name))
        return [name for *_, name in sorted(ranked)[:limit]]

    def _match(self, name: str, query: TextQuery, *values: object) -> list[Row]:
        """Run a query with an expression. Raise InvalidSyntax if FTS5 does not understand it."""
        try:
            return self._port.run(name, to_fts5(query), *values)
        except apsw.SQLError as exc:
            raise InvalidSyntax from exc

    def _by_characters(self, folded: str) -> list[int] | None:
        """Return passages that may contain the text; None if looking at every one is as fast."""
        # The tokenizer skips NUL, so a text that contains the query has its trigrams without it.
        characters = folded.replace("\x00", "")
        if len(characters) > 2:
            grams = trigrams(characters)
            ids = self._match_trigrams(" AND ", rarest(grams, _PROBED_TRIGRAMS), _MAX_PROBED)
            if len(ids) < _MAX_PROBED:
                return ids
            return self._match_trigrams(" AND ", grams, _NO_LIMIT)
        if not characters:
            return None
        last = characters + 3 * _LAST_CHARACTER
        rows = self._port.run("trigrams_starting", characters, last, _MAX_PREFIX_TRIGRAMS + 1)
        if len(rows) > _MAX_PREFIX_TRIGRAMS:
            return None
        grams = [gram for (gram,) in rows]
        return self._match_trigrams(" OR ", grams, _NO_LIMIT) if grams else []

    def _match_trigrams(self, operator: str, grams: Iterable[str], limit: int) -> list[int]:
        query = operator.join(map(_quote, grams))
        return [number for (number,) in self._port.run("match_trigrams", query, limit)]


def bind_within(within: Within) -> Row:
    """Return a filter as the values that queries take."""
    return (within.names, within.types, within.since, within.until, within.tags)


def _verify(rows: Iterable[Row], folded: str) -> set[int]:
    return {owner for owner, *texts in rows if any(folded in fold(text) for text in texts)}


def _join(terms: Iterable[str], operator: str) -> str:
    """Return a query for terms. The index stems the query, so give it a word with that stem."""
    return operator.join([_quote(word_with_stem(term)) for term in terms])


def _quote(term: str) -> str:
    return '"' + term.replace('"', '""') + '"'
