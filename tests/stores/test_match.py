"""Query expressions on the words index.

The index finds, and a check afterwards leaves, exactly what matches.
"""

import re
from collections.abc import Collection, Mapping, Sequence
from pathlib import Path

import apsw
import pytest
from hypothesis import given, settings

from polymnia.search.expression import MAX_NESTING, MAX_WORDS, Expression, parse
from polymnia.search.matching import is_exact, matches
from polymnia.search.terms import parts_of, words_of
from polymnia.stores.sqlite.match import render
from tests.search.expressions import COLUMNS, NAMES, documents, expressions, prefix_expressions

ENGLISH = """
abilities accommodating activities adjustable administration analogously appendicitis argumentatively authentication
authenticated bodies capability carrying communicatively conditionally controlled decisiveness dependency digitizer
discontented dying employees feudalism filing formalities generalizations gratefulness happily happy hoping hopping
importantly initiative international irresistible libraries malleable motoring multiplications operators organizational
organizations organizing personalities plastered possibly predication preferences probability rationally rating
relational replacement representatives revival running sensibilities simplicity skies stabilize tanned theories theory
trouble utterance valency vietnamization visibly
"""


class Index:
    """The words table of a store, filled with passages."""

    def __init__(self, rows: Sequence[Mapping[str, str]]) -> None:
        self.connection = apsw.Connection(":memory:")
        self.rows = rows
        self.connection.execute(
            "CREATE VIRTUAL TABLE words USING fts5 (name, labels, content, parts, content = '', contentless_delete = 1,"
            " tokenize = 'porter unicode61 remove_diacritics 2')"
        )
        for number, row in enumerate(rows):
            texts = [row.get(name, "") for name in NAMES]
            values = (number, *texts, parts_of("\n".join(texts)))
            self.connection.execute(
                "INSERT INTO words (rowid, name, labels, content, parts) VALUES (?,?,?,?,?)", values
            )

    def candidates(self, expression: Expression) -> list[int]:
        found = self.connection.execute(
            "SELECT rowid FROM words WHERE words MATCH ? ORDER BY rowid", (render(expression),)
        )
        return [number for (number,) in found]

    def matching(self, expression: Expression) -> list[int]:
        found = self.candidates(expression)
        return (
            found
            if is_exact(expression)
            else [row for row in found if matches(expression, self.rows[row])]
        )


def parsed(query: str) -> Expression:
    expression = parse(query, COLUMNS)
    assert expression is not None
    return expression


@settings(max_examples=150, deadline=None)
@given(rows=documents, query=expressions() | prefix_expressions())
def test_the_index_finds_what_matches(rows: list[dict[str, str]], query: str) -> None:
    expression = parsed(query)
    expected = [number for number, row in enumerate(rows) if matches(expression, row)]
    assert Index(rows).matching(expression) == expected


def real_words() -> list[str]:
    text = (Path(__file__).parents[2] / "ARCHITECTURE.md").read_text("utf-8")
    return sorted(
        {*ENGLISH.split(), *[word for word in words_of(text) if re.fullmatch("[a-z]{3,}", word)]}
    )


def test_every_prefix_of_a_word_finds_the_words_that_begin_with_it() -> None:
    words = real_words()
    index = Index([{"content": word} for word in words])
    prefixes = sorted({word[:length] for word in words for length in range(3, len(word) + 1)})
    wrong = {
        prefix: found
        for prefix in prefixes
        if (found := prefix_hits(index, prefix)) != begin_with(words, prefix)
    }
    assert len(prefixes) > 1000
    assert wrong == {}


def prefix_hits(index: Index, prefix: str) -> set[str]:
    return {index.rows[number]["content"] for number in index.matching(parsed(f"{prefix}*"))}


def begin_with(words: Collection[str], prefix: str) -> set[str]:
    return {word for word in words if word.startswith(prefix)}


@pytest.mark.parametrize(
    ("query", "expected"),
    [
        ("server", [0]),
        ("serv*", [0]),
        ('"http server"', [0]),
        ("content : server", []),
        ("^http", []),
        ("日本語", [1, 2]),
        ("content : 日本語", [1]),
        ("name : 日本語", [2]),
        ("日本", [1, 2]),
        ("日本語 NOT 話す", [2]),
        ("話す NOT 日本人", [1]),
        ("ตั้งค่า", [3]),
        ("tea NOT serv*", [4]),
        ("NEAR(tea, 0) AND NEAR(tea biscui*, 1)", [4]),
        ("labels : (name : tea)", []),
    ],
)
def test_parts_unspaced_text_and_prefixes_on_the_index(query: str, expected: list[int]) -> None:
    rows = [
        {"content": "the HTTPServer2 serves tea"},
        {"content": "私は日本語を話す"},
        {"name": "日本語の本", "content": "日本人"},
        {"content": "การตั้งค่าระบบ"},
        {"content": "tea with biscuits"},
    ]
    assert Index(rows).matching(parsed(query)) == expected


@pytest.mark.parametrize(
    "query",
    [
        " AND (a".join(["a"] * MAX_NESTING) + ")" * (MAX_NESTING - 1),
        " ".join(f"organiza{number}*" for number in range(MAX_WORDS)),
        " OR ".join(["organizat*"] * MAX_WORDS),
        " NOT ".join(["name : a"] * MAX_WORDS),
    ],
)
def test_the_largest_expressions_are_within_the_limits_of_fts5(query: str) -> None:
    assert Index([{"content": "b"}]).matching(parsed(query)) == []
