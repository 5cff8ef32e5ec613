"""Matching: passages as FTS5 matches them, and entities by all of their passages."""

import pytest
from hypothesis import given, settings

from polymnia.search.expression import Expression, parse, plain_words
from polymnia.search.matching import match_entities, matches
from tests.search.expressions import (
    COLUMNS,
    documents,
    expressions,
    matching_rows,
    prefix_expressions,
    table,
)


def parsed(query: str) -> Expression:
    expression = parse(query, COLUMNS)
    assert expression is not None
    return expression


@settings(max_examples=200, deadline=None)
@given(rows=documents, query=expressions())
def test_an_index_of_stems_finds_the_same(rows: list[dict[str, str]], query: str) -> None:
    expression = parsed(query)
    found = [number for number, row in enumerate(rows) if matches(expression, row)]
    assert found == matching_rows(table(rows, "porter unicode61"), query)


@settings(max_examples=150, deadline=None)
@given(rows=documents, query=prefix_expressions())
def test_for_prefixes_an_index_without_stems_finds_the_same(
    rows: list[dict[str, str]], query: str
) -> None:
    expression = parsed(query)
    found = [number for number, row in enumerate(rows) if matches(expression, row)]
    assert found == matching_rows(table(rows, "unicode61"), query)


@pytest.mark.parametrize(
    ("query", "text", "expected"),
    [
        ("organiz*", "an organization", True),
        ("running*", "runs", False),
        ('"an organ" *', "an organization", True),
        ("user", "getUserName", True),
        ("content : user", "getUserName", False),
        ("^get", "a getUserName", False),
        ("日本語", "私は日本語を話す", True),
        ("content : 日本語", "私は日本語を話す", True),
        ("name : 日本語", "私は日本語を話す", False),
        ("日本人", "私は日本語を話す", False),
        ("ตั้งค่า", "การตั้งค่าระบบ", True),
    ],
)
def test_prefixes_parts_and_unspaced_text(query: str, text: str, expected: bool) -> None:
    assert matches(parsed(query), {"name": "", "content": text}) is expected


PASSAGES = {
    "Alice": ["alice", "drinks coffee", "writes compilers"],
    "Bob": ["bob", "drinks tea", "has met alice"],
    "Go": ["go", "compiles quickly", "is what the team writes"],
}


def scores(expression: Expression) -> dict[str, float]:
    """Score an entity by its shortest passage that matches."""
    found = {
        name: [float(len(text)) for text in texts if matches(expression, {"content": text})]
        for name, texts in PASSAGES.items()
    }
    return {name: min(lengths) for name, lengths in found.items() if lengths}


@pytest.mark.parametrize(
    ("query", "names"),
    [
        ("alice", ["Alice", "Bob"]),
        ("alice coffee", ["Alice"]),
        ("alice AND coffee", ["Alice"]),
        ("coffee AND tea", []),
        ("coffee tea", ["Bob", "Alice"]),
        ("writes compiling coffee", ["Alice"]),
        ("alice drinks submarine", ["Alice", "Bob"]),
        ("what writes the", ["Alice", "Go"]),
        ("coffee coffee", ["Alice"]),
        ("alice NOT met", ["Alice"]),
        ("(alice coffee) OR tea", ["Bob"]),
        ('"drinks tea" alice', ["Bob"]),
    ],
)
def test_words_may_be_in_different_passages_of_an_entity(query: str, names: list[str]) -> None:
    assert match_entities(parsed(query), scores) == names


def test_any_text_is_matched_by_its_words() -> None:
    assert match_entities(plain_words("who drinks, and writes?"), scores) == ["Alice"]
    assert match_entities(plain_words("?"), scores) == []


def test_a_limit_keeps_the_best() -> None:
    assert match_entities(parsed("alice drinks submarine"), scores, limit=1) == ["Alice"]
    assert match_entities(parsed("alice"), scores, limit=1) == ["Alice"]
