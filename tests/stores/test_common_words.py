"""Common words: their number is estimated, and of the passages that have them the newest count."""

import pytest

from polymnia.engine.graph import entities
from polymnia.engine.memory import Memory
from polymnia.engine.recall.passages import recall
from polymnia.model import EntityDraft
from polymnia.search import terms
from polymnia.stores import open_store
from polymnia.stores.sqlite import search


@pytest.fixture
def memory(monkeypatch: pytest.MonkeyPatch) -> Memory:
    monkeypatch.setattr(terms, "MAX_RARE_PASSAGES", 20)
    monkeypatch.setattr(search, "MAX_COUNTED", 21)
    memory = Memory(open_store(":memory:"))
    facts = [f"a common word and {'rare' if number < 5 else 'usual'}" for number in range(200)]
    entities.create(memory, [EntityDraft("Ann", "person", tuple(facts))], by="test")
    return memory


def test_the_number_of_a_common_word_is_estimated(memory: Memory) -> None:
    with memory.reading() as read:
        having = read.word_counts(["common", "rare", "missing"]).having
    assert having["rare"] == 5
    assert 150 <= having["common"] <= 210
    assert "missing" not in having


def test_a_question_of_common_words_looks_at_the_newest_passages(memory: Memory) -> None:
    found = {hit.passage.ordinal for hit in recall(memory, "common word", limit=1).hits}
    assert found
    with memory.reading() as read:
        newest = read.candidates(["common", "word"], 10, every=True, newest=True)
    assert {passage.ordinal for passage in newest} == set(range(191, 201))


def test_rare_words_propose_and_common_words_weigh(memory: Memory) -> None:
    best = recall(memory, "rare common word", limit=1).hits[0]
    assert best.passage.ordinal <= 5
