"""The estimate of tokens, and texts cut to a budget."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from polymnia.search.tokens import ELLIPSIS, estimate_tokens, shorten_to

TEXTS = [
    "Ada drinks dark coffee without sugar, and she prefers the window seat.",
    "def find(name: str) -> Entity | None:\n    return entities.get(name)\n",
    '{"name": "Ada", "facts": [1, 2, 3], "at": "2026-11-16T09:30Z"}',
    "Die Straße nach München ist 584 Kilometer lang.",
    "北京大学是中国的一所大学。",
    "commit 210548b9f0e1d2c3b4a5968778695a4b3c2d1e0f",
]


@pytest.mark.parametrize("text", TEXTS)
def test_the_estimate_is_not_lower_than_one_token_for_four_characters(text: str) -> None:
    assert estimate_tokens(text) >= len(text) / 4


@pytest.mark.parametrize(
    ("text", "tokens"), [("", 0), ("tea", 1), ("drink", 2), ("2026", 2), ("a b", 2), ("北京", 3)]
)
def test_the_rule(text: str, tokens: int) -> None:
    assert estimate_tokens(text) == tokens


@given(st.text(max_size=300), st.integers(3, 60))
def test_a_shortened_text_fits(text: str, max_tokens: int) -> None:
    short = shorten_to(text, max_tokens)
    assert estimate_tokens(short) <= max_tokens
    assert short == text or short.endswith(ELLIPSIS)
