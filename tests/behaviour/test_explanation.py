"""Explanations of a recall on every store."""

from collections.abc import Iterator

import pytest

from polymnia.engine.memory import Memory
from polymnia.engine.recall.explanation import Explanation, explain
from polymnia.engine.recall.passages import recall
from polymnia.engine.semantic.meaning import Meaning, SharedEmbedder
from polymnia.model import EntityDraft, PassageKey, Within
from polymnia.stores import open_store
from tests.behaviour.graphs import create
from tests.embedders.bag import BagEmbedder

QUESTION = "who keeps goats"


@pytest.fixture
def farm(memory: Memory) -> Memory:
    create(
        memory,
        EntityDraft(
            "Ann", "person", ("keeps goats on a farm", "Keeps goats, on a farm!", "likes tea")
        ),
        EntityDraft("Ben", "person", ("sold his goats", "plays chess")),
        EntityDraft("Hay", "thing", ("goats eat it",)),
    )
    return memory


def why(
    memory: Memory, wanted: str | PassageKey, *, limit: int = 1, within: Within | None = None
) -> Explanation:
    return explain(memory, QUESTION, wanted, limit=limit, within=within)


def test_the_signals_of_a_hit_add_up_to_its_score(farm: Memory) -> None:
    for place, hit in enumerate(recall(farm, QUESTION).hits, 1):
        found = why(farm, hit.passage.key)
        assert (found.passage, found.place) == (hit.passage, place)
        assert found.score == pytest.approx(hit.score)
        assert sum(value * weight for _, value, weight in found.signals) == pytest.approx(hit.score)


def test_a_low_place_is_told_with_the_words_that_are_missing(farm: Memory) -> None:
    found = why(farm, "sold his goats")
    assert (found.outcome, found.missing) == ("ranked", ("keeps",))
    assert 1 < found.place <= found.total
    assert sum(value * weight for _, value, weight in found.signals) == pytest.approx(found.score)


def test_an_entity_is_found_by_its_name_in_any_case(farm: Memory) -> None:
    found = why(farm, " ben ")
    assert found.passage is not None
    assert (found.passage.entity, found.passage.text, found.outcome) == (
        "Ben",
        "sold his goats",
        "ranked",
    )


def test_what_is_shown_is_said_to_be_shown(farm: Memory) -> None:
    assert (why(farm, "Ann").outcome, why(farm, "Ann").place) == ("shown", 1)


def test_a_hit_stands_for_texts_that_say_the_same(farm: Memory) -> None:
    first = recall(farm, QUESTION).hits[0].passage
    (other,) = {"keeps goats on a farm", "Keeps goats, on a farm!"} - {first.text}
    found = why(farm, other)
    assert (found.outcome, found.twin) == ("alike", first)


def test_a_filter_that_keeps_something_out_is_named(farm: Memory) -> None:
    found = why(farm, "Ann", within=Within(types=("thing",), tags=("x",), since=0))
    assert (found.outcome, found.kept_out_by) == ("filtered", ("types", "tags"))


def test_what_no_search_proposes_has_the_place_of_its_score(farm: Memory) -> None:
    found = why(farm, "plays chess")
    assert found.outcome == "not found"
    assert found.place == found.total + 1
    assert set(found.missing) == {"keeps", "goats"}


def test_what_does_not_exist_is_unknown(farm: Memory) -> None:
    found = why(farm, "Annx")
    assert (found.outcome, found.similar_names) == ("unknown", ("Ann",))
    assert why(farm, "").outcome == why(farm, ("Ann", 9)).outcome == "unknown"


def test_nothing_is_found_in_an_empty_memory(memory: Memory) -> None:
    assert why(memory, "Ann").outcome == "unknown"


@pytest.fixture
def embedded(versioned_url: str) -> Iterator[Memory]:
    store = open_store(versioned_url)
    meaning = Meaning(SharedEmbedder("bag", lambda url: BagEmbedder()))
    memory = Memory(store, meaning)
    create(
        memory,
        EntityDraft("Ann", "person", ("moved to Lisbon", "keeps goats")),
        EntityDraft("Ben", "person", ("sold his goats", "plays chess")),
    )
    meaning.index(store)
    yield memory
    meaning.close()
    store.close()


def test_meaning_is_a_signal_of_a_hit(embedded: Memory) -> None:
    found = why(embedded, ("Ann", 2))
    points = {name: value * weight for name, value, weight in found.signals}
    assert points["meaning"] > 0
    assert sum(points.values()) == pytest.approx(found.score)


def test_an_absent_passage_has_its_meaning_measured(embedded: Memory) -> None:
    found = why(embedded, "plays chess")
    assert found.has_vector
    assert found.outcome == "ranked"
    assert found.place > 1
