"""Explanations of a recall on every store."""

from collections.abc import Iterator

import pytest

from polymnia.engine.memory import Memory
from polymnia.engine.recall.explanation import Absence, explain, explain_absence
from polymnia.engine.recall.passages import recall
from polymnia.engine.semantic.meaning import Meaning, SharedEmbedder
from polymnia.model import EntityDraft, Within
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


def why(memory: Memory, wanted: str, *, limit: int = 1, within: Within | None = None) -> Absence:
    return explain_absence(memory, QUESTION, wanted, limit=limit, within=within)


def test_the_signals_of_a_hit_add_up_to_its_score(farm: Memory) -> None:
    found = explain(farm, QUESTION)
    assert [hit.hit for hit in found.hits] == recall(farm, QUESTION).hits
    for hit in found.hits:
        assert sum(value * weight for _, value, weight in hit.signals) == pytest.approx(
            hit.hit.score
        )


def test_without_an_embedder_the_ranking_is_that_of_words(farm: Memory) -> None:
    found = explain(farm, QUESTION)
    assert [hit.by_words for hit in found.hits] == [*range(1, len(found.hits) + 1)]
    assert found.words.passages == [hit.hit.passage for hit in found.hits]
    assert (found.meaning.passages, found.embedded) == ([], 0)
    assert "no embedder" in found.note
    assert found.passages == 6


def test_a_low_place_is_told_with_the_words_that_are_missing(farm: Memory) -> None:
    found = why(farm, "sold his goats")
    assert (found.outcome, found.missing) == ("ranked", ("keeps",))
    assert 1 < found.place <= found.total
    assert found.last is not None
    assert found.last.hit.score > found.score
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
    first = explain(farm, QUESTION).hits[0].hit
    (other,) = {"keeps goats on a farm", "Keeps goats, on a farm!"} - {first.passage.text}
    found = why(farm, other)
    assert (found.outcome, found.twin) == ("alike", first.passage)


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
    assert why(farm, "").outcome == "unknown"


def test_nothing_is_found_in_an_empty_memory(memory: Memory) -> None:
    assert explain(memory, QUESTION).hits == []
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


def test_each_hit_has_its_place_by_words_and_by_meaning(embedded: Memory) -> None:
    found = explain(embedded, "who keeps goats")
    first = found.hits[0]
    assert (first.hit.passage.text, first.by_words, first.by_meaning) == ("keeps goats", 1, 1)
    assert found.meaning.passages[0].text == "keeps goats"
    assert (found.embedded, found.passages, found.note) == (4, 4, "")
    weights = {name: value * weight for name, value, weight in first.signals}
    assert weights["meaning"] > 0
    assert sum(weights.values()) == pytest.approx(first.hit.score)


def test_an_absent_passage_has_its_meaning_measured(embedded: Memory) -> None:
    found = explain_absence(embedded, "who keeps goats", "plays chess", limit=1)
    assert found.has_vector
    assert found.outcome == "ranked"
    assert found.place > 1
