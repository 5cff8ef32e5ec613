"""Check that WordPiece splits text as the models expect."""

import pytest

from polymnia.embedders.wordpiece import WordPiece, split

VOCABULARY = [
    "[PAD]",
    "[UNK]",
    "[CLS]",
    "[SEP]",
    "un",
    "##aff",
    "##able",
    "run",
    "##ning",
    ",",
    "cafe",
    "北",
    "!",
]


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
def test_words_and_punctuation_are_split(text: str, words: list[str]) -> None:
    assert split(text) == words


def test_a_word_is_split_into_the_longest_known_pieces_from_the_left() -> None:
    cut = WordPiece(VOCABULARY, max_tokens=16).parts
    assert cut("Unaffable, running") == [[2, 4, 5, 6, 9, 7, 8, 3]]
    assert cut("unknown") == [[2, 1, 3]]
    assert cut("x" * 101) == [[2, 1, 3]]
    assert cut("") == [[2, 3]]


def test_a_long_text_is_divided_equally_by_the_limit_of_the_model() -> None:
    cut = WordPiece(VOCABULARY, max_tokens=5).parts
    assert cut("run run run") == [[2, 7, 7, 7, 3]]
    assert cut("run run run unknown") == [[2, 7, 7, 3], [2, 7, 1, 3]]


def test_cased_models_keep_the_case() -> None:
    assert split("Café", lower=False) == ["Café"]
