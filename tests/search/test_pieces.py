"""Pieces of long texts."""

from hypothesis import given
from hypothesis import strategies as st

from polymnia.search.pieces import (
    MAX_WHOLE_CHARACTERS,
    OVERLAP_CHARACTERS,
    PIECE_CHARACTERS,
    split_text,
)


def test_a_short_text_is_its_only_piece() -> None:
    assert split_text("Deploy on Tuesday. Never on Friday.") == [
        "Deploy on Tuesday. Never on Friday."
    ]


def test_each_sentence_of_a_long_text_is_whole_in_a_piece() -> None:
    sentences = [f"Sentence number {number} says something else." for number in range(200)]
    pieces = split_text(" ".join(sentences))
    assert len(pieces) > 10
    for sentence in sentences:
        assert any(sentence in piece for piece in pieces)


@given(st.text(min_size=1, max_size=40).map(lambda part: part * (MAX_WHOLE_CHARACTERS // 10)))
def test_no_piece_is_too_long(text: str) -> None:
    limit = max(PIECE_CHARACTERS + OVERLAP_CHARACTERS, MAX_WHOLE_CHARACTERS)
    assert all(len(piece) <= limit for piece in split_text(text))
