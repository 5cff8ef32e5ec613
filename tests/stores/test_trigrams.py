"""The substring index finds the same as a scan of all texts."""

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from polymnia.stores.memory import trigrams
from polymnia.stores.memory.trigrams import TrigramIndex

ALPHABET = "ab \x00\n三é"
TEXTS = st.text(ALPHABET, max_size=12)
STEPS = st.lists(
    st.tuples(st.sampled_from(["put", "append", "remove"]), st.integers(0, 5), TEXTS), max_size=30
)


@settings(deadline=None)
@given(STEPS, st.lists(st.text(ALPHABET, min_size=1, max_size=6)))
def test_the_index_finds_what_a_scan_finds(
    steps: list[tuple[str, int, str]], queries: list[str]
) -> None:
    index, texts = TrigramIndex(), dict[int, str]()
    for step, number, text in steps:
        if step == "remove":
            if texts.pop(number, None) is not None:
                index.remove(number)
            continue
        texts[number] = texts.get(number, "") + text if step == "append" else text
        index.put(number, f"name {number}", texts[number])
    for query in queries:
        expected = [f"name {number}" for number in sorted(texts) if query in texts[number]]
        assert index.containing(query) == expected


def test_an_index_with_many_removed_texts_is_rebuilt(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(trigrams, "_MIN_REMOVALS_TO_REBUILD", 10)
    index = TrigramIndex()
    for number in range(200):
        index.put(number, f"name {number}", f"word{number} common")
        if number:
            index.remove(number)
    assert index.containing("common") == index.containing("word0") == ["name 0"]
    assert len(index._having) < 20
