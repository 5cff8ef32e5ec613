"""Query expressions: FTS5's syntax, compared with FTS5 itself, and the words of any other text."""

import re

import apsw
import pytest
from hypothesis import assume, given, settings

from polymnia.search.expression import (
    MAX_NEAR_PHRASES,
    MAX_NESTING,
    MAX_WORDS,
    And,
    Column,
    Expression,
    Near,
    Not,
    Or,
    Phrase,
    alternatives,
    parse,
    plain_words,
)
from tests.search.expressions import COLUMNS, expressions, matching_rows, table
from tests.stores.random_queries import queries

A, B, C = (Phrase((word,)) for word in "abc")


def words(*each: str) -> And:
    return And(tuple([Phrase((word,)) for word in each]), implicit=True)


@pytest.mark.parametrize(
    ("query", "expression"),
    [
        ("a", A),
        ('"a b" + c', Phrase(("a", "b", "c"))),
        ("a b", words("a", "b")),
        ("a OR b AND c", Or((A, And((B, C))))),
        ("(a OR b) AND c", And((Or((A, B)), C))),
        ("a NOT b NOT c", Not(Not(A, B), C)),
        ("a NOT b c", Not(A, words("b", "c"))),
        ("a AND b NOT c", And((A, Not(B, C)))),
        ('"a ""b"" c"', Phrase(("a", "b", "c"))),
        ("ab*", Phrase(("ab",), prefix=True)),
        ('^ "a b" *', Phrase(("a", "b"), prefix=True, initial=True)),
        ("NEAR(a b)", Near((A, B), 10)),
        ("NEAR (a b, 3)", Near((A, B), 3)),
        ("NEAR a", words("near", "a")),
        ("and or not", words("and", "or", "not")),
        ("name : a b", And((Column(frozenset({"name"}), A), B), implicit=True)),
        ("{name labels} : a", Column(frozenset({"name", "labels"}), A)),
        ("- name : (a OR b)", Column(frozenset({"labels", "content"}), Or((A, B)))),
        ('a "-" b', words("a", "b")),
        ("a AND ()", None),
        ("a (b)", None),
        ("colour : a", None),
        ('"a', None),
        ("a!", None),
        ("", None),
        ("a\x00b", None),
    ],
)
def test_fts5_syntax_becomes_a_tree(query: str, expression: Expression | None) -> None:
    assert parse(query, COLUMNS) == expression


def test_columns_have_the_names_of_the_passages() -> None:
    assert parse("KEY : a", {"key": "name"}) == Column(frozenset({"name"}), A)


@settings(max_examples=400, deadline=None)
@given(query=queries() | expressions())
def test_a_query_is_an_expression_when_fts5_says_so(query: str) -> None:
    query = re.sub(
        "[\x00\ud800-\udfff]", "", query
    )  # FTS5 stops at a NUL and never gets surrogates
    assume(
        parse(query.replace("+", " "), COLUMNS) is None or "*" not in query
    )  # `a* + b` is the one difference
    try:
        matching_rows(table([], "porter unicode61"), query)
        valid = True
    except apsw.SQLError:
        valid = False
    assert (parse(query, COLUMNS) is not None) == valid


@pytest.mark.parametrize(
    ("largest", "too_large"),
    [
        (" ".join(["a"] * MAX_WORDS), " ".join(["a"] * (MAX_WORDS + 1))),
        (" ".join(['""'] * MAX_WORDS), " ".join(['""'] * (MAX_WORDS + 1))),
        (" + ".join(["a"] * MAX_WORDS), " + ".join(["a"] * (MAX_WORDS + 1))),
        (f"NEAR({'a ' * MAX_NEAR_PHRASES})", f"NEAR({'a ' * (MAX_NEAR_PHRASES + 1)})"),
        ("(" * MAX_NESTING + "a" + ")" * MAX_NESTING, "(" * 5000 + "a" + ")" * 5000),
    ],
)
def test_expressions_are_bounded(largest: str, too_large: str) -> None:
    assert parse(largest, COLUMNS) is not None
    assert parse(too_large, COLUMNS) is None


def test_a_huge_distance_is_accepted() -> None:
    assert parse(f"NEAR(a b, {'9' * 40})", COLUMNS) == Near((A, B), 1_000_000_000)


def test_unspaced_text_is_also_looked_for_inside_longer_text() -> None:
    assert parse("日本語", COLUMNS) == Phrase(("日本語",), runs=("日本語",))
    assert parse('"日本語 東京"', COLUMNS) == Phrase(("日本語", "東京"))
    assert parse("日", COLUMNS) == Phrase(("日",))


@pytest.mark.parametrize(
    ("query", "expected"),
    [
        ("What's Bob's tea?", words("what", "s", "bob", "tea")),
        (
            "東京 is 日本?",
            And(
                (
                    Phrase(("is",)),
                    Phrase(("東京",), runs=("東京",)),
                    Phrase(("日本",), runs=("日本",)),
                ),
                True,
            ),
        ),
        ("日 日本?", And((Phrase(("日",)), Phrase(("日本",), runs=("日本",))), True)),
        ("?!", And((), implicit=True)),
    ],
)
def test_any_text_is_a_list_of_words(query: str, expected: And) -> None:
    assert plain_words(query) == expected


def test_a_page_of_text_is_cut_to_its_first_words() -> None:
    assert len(plain_words(" ".join(f"word{number}" for number in range(5000))).parts) == MAX_WORDS


@pytest.mark.parametrize(
    ("query", "expected"),
    [
        (
            "what language does the user prefer",
            [
                words("what", "language", "does", "the", "user", "prefer"),
                words("language", "user", "prefer"),
                Or(words("language", "user", "prefer").parts),
            ],
        ),
        (
            "language of the user?",
            [
                words("language", "of", "the", "user"),
                words("language", "user"),
                Or(words("language", "user").parts),
            ],
        ),
        ("tea", [Phrase(("tea",))]),
        ("who is", [words("who", "is"), Or(words("who", "is").parts)]),
        ("a AND b", [And((A, B))]),
        ("b NOT c", [Not(B, C)]),
        ("name : b c", [And((Column(frozenset({"name"}), B), C), implicit=True)]),
        ("", []),
        ("?", []),
    ],
)
def test_plain_words_have_looser_and_looser_alternatives(
    query: str, expected: list[Expression]
) -> None:
    assert alternatives(query, COLUMNS) == expected
