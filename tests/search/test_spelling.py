"""Words with a typing mistake are read as words of the memory, in every database alike."""

from collections.abc import Iterator

import pytest

from polymnia.engine.graph import entities
from polymnia.engine.memory import Memory
from polymnia.engine.recall.passages import recall
from polymnia.model import EntityDraft
from polymnia.stores import open_store

FACTS = (
    "adopted a puppy from the shelter",
    "moved to Heidelberg for her career",
    "plays the violin in an orchestra",
    "is a member of the Kestrelwright guild",
)


@pytest.fixture
def memory(versioned_url: str) -> Iterator[Memory]:
    store = open_store(versioned_url)
    memory = Memory(store)
    entities.create(memory, [EntityDraft("Caroline", "person", FACTS)], by="test")
    yield memory
    store.close()


@pytest.mark.parametrize(
    ("typed", "meant", "fact"),
    [
        ("Who adoptd a pet?", {"adoptd": "adopted"}, FACTS[0]),
        ("Who has a pupppy?", {"pupppy": "puppy"}, FACTS[0]),
        ("Her careeer?", {"careeer": "career"}, FACTS[1]),
        ("Who plays the voilin?", {"voilin": "violin"}, FACTS[2]),
        ("Which iolin?", {"iolin": "violin"}, FACTS[2]),
        ("Which orchstras?", {"orchstras": "orchestras"}, FACTS[2]),
        ("Who is a Kestrelwrigt?", {"Kestrelwrigt": "Kestrelwright"}, FACTS[3]),
    ],
)
def test_one_typing_mistake_is_corrected_and_told(
    memory: Memory, typed: str, meant: dict[str, str], fact: str
) -> None:
    found = recall(memory, typed)
    assert found.corrections == meant
    assert found.hits[0].passage.text == fact


@pytest.mark.parametrize(
    "question",
    [
        "Who is a carrier?",  # an English word, though one letter from `career`
        "What about Heydelbrg?",  # two mistakes
        "Who plays the violin?",
        "Wo wohnt Caroline und was macht die Karriere?",  # German
    ],
)
def test_what_is_not_clearly_a_mistake_is_left_alone(memory: Memory, question: str) -> None:
    assert recall(memory, question).corrections == {}
