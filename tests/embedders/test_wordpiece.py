"""WordPiece: text cut as the models were trained on it."""

import pytest

from polymnia.embedders.wordpiece import WordPiece, split

VOCABULARY = ["[PAD]", "[UNK]", "[CLS]", "[SEP]", "un", "##aff", "##able", "run", "##ning", ",", "cafe", "北", "!"]


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("Hello, World!", ["hello", ",", "world", "!"]),
        ("Café\tnoir", ["cafe", "noir"]),
        ("北京 test", ["北", "京", "test"]),
        ("it's $5.00", ["it", "'", "s", "$", "5", ".", "00"]),
        ("a\x00b\u200bc", ["abc"]),
        ("«quoted»", ["«", "quoted", "»"]),
        ("", []),
    ],
)
def test_words_and_marks_are_apart(text: str, words: list[str]) -> None:
    assert split(text) == words


def test_the_longest_pieces_are_taken_from_the_left() -> None:
    cut = WordPiece(VOCABULARY, longest=16).ids
    assert cut("Unaffable, running") == [2, 4, 5, 6, 9, 7, 8, 3]
    assert cut("unknown") == [2, 1, 3]
    assert cut("x" * 101) == [2, 1, 3]


def test_a_long_text_is_cut_to_what_the_model_takes() -> None:
    assert WordPiece(VOCABULARY, longest=5).ids("run run run run run") == [2, 7, 7, 7, 3]


def test_case_is_kept_for_models_that_know_it() -> None:
    assert split("Café", lower=False) == ["Café"]
