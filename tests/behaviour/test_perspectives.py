"""Perspectives: embedded in the background, searched all together, changed while a server runs."""

from collections.abc import Callable, Iterator, Sequence

import numpy as np
import pytest
from numpy.typing import NDArray

from polymnia.engine import notes
from polymnia.engine.facts.revise import Revision, revise
from polymnia.engine.graph import entities, facts
from polymnia.engine.memory import Memory
from polymnia.engine.recall import search as searches
from polymnia.engine.recall.search import FoundFact
from polymnia.engine.semantic import indexer, meaning, perspectives
from polymnia.engine.semantic.meaning import Meaning, SharedEmbedder
from polymnia.errors import BadInput, EmbedderError, EntityNotFound
from polymnia.model import EntityDraft, FactAddition, Note, Perspective
from polymnia.stores import open_store
from tests.embedders.bag import BagEmbedder
from tests.processes import TIMEOUT_S

ME = "test"
PAIR = (
    Perspective("general", "{text}", "{query}"),
    Perspective("named", "{type} {name}: {text}", "{query}"),
)
TOWN = (
    EntityDraft(
        "Caroline",
        "person",
        ("Adopted a puppy from the shelter", "Is a nurse at the clinic"),
        "A nurse",
    ),
    EntityDraft("Melanie", "person", ("Runs marathons", "Paints portraits", "Runs marathons")),
)


class CountingEmbedder(BagEmbedder):
    """Remembers the texts that it embedded, and fails while it is stopped."""

    def __init__(self) -> None:
        super().__init__()
        self.texts: list[str] = []
        self.is_stopped = False

    def embed(self, texts: Sequence[str], *, asking: bool = False) -> NDArray[np.float32]:
        if self.is_stopped:
            raise EmbedderError("it is stopped")
        self.texts += texts
        return super().embed(texts, asking=asking)


@pytest.fixture(autouse=True)
def no_delays(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(indexer, "INDEX_DELAY_S", 0.0)
    monkeypatch.setattr(meaning, "RETRY_AFTER_S", 0.0)


@pytest.fixture
def embedder() -> CountingEmbedder:
    return CountingEmbedder()


@pytest.fixture
def town(versioned_url: str, embedder: CountingEmbedder) -> Iterator[Memory]:
    store = open_store(versioned_url)
    memory = Memory(store, Meaning(SharedEmbedder("local", lambda url: embedder)))
    entities.create(memory, TOWN, by=ME)
    yield memory
    of(memory).close()
    store.close()


def of(memory: Memory) -> Meaning:
    assert memory.meaning is not None
    return memory.meaning


def settle(memory: Memory) -> None:
    assert of(memory).settle(TIMEOUT_S)


def search(memory: Memory, query: str, limit: int = 10) -> list[FoundFact]:
    return searches.entities_by_meaning(memory, query, limit=limit, defaults=PAIR)


def shown(found: list[FoundFact]) -> list[tuple[str, int, str | None]]:
    return [(item.passage.entity, item.passage.ordinal, item.perspective) for item in found]


def test_a_memory_that_nobody_asked_for_perspectives_has_one_vector_per_passage(
    town: Memory, embedder: CountingEmbedder
) -> None:
    settle(town)
    facts_with_names = {f"{draft.name}: {text}" for draft in TOWN for text in draft.facts}
    assert sorted(embedder.texts) == sorted(facts_with_names)
    assert [item.perspective.name for item in perspectives.find_all(town)] == ["text"]


def test_a_text_that_comes_twice_is_embedded_once(town: Memory, embedder: CountingEmbedder) -> None:
    perspectives.ensure(town, PAIR)
    settle(town)
    assert len(embedder.texts) == len(set(embedder.texts)) == 8
    assert [(item.embedded, item.total) for item in perspectives.find_all(town)] == [
        (5, 5),
        (5, 5),
        (5, 5),
    ]
    assert perspectives.coverage(town) == 1.0


def test_the_best_score_of_all_perspectives_counts(town: Memory) -> None:
    perspectives.ensure(town, PAIR)
    settle(town)
    assert shown(search(town, f"Caroline: {TOWN[0].facts[0]}"))[0] == ("Caroline", 1, "general")
    assert shown(search(town, "person Caroline puppy"))[0] == ("Caroline", 1, "named")
    found = search(town, "marathons")
    assert shown(found)[0] == ("Melanie", 1, "general")
    assert len(found) == 2
    assert found[0].score > found[1].score
    assert [item.summary for item in found] == [None, "A nurse"]
    assert len(search(town, "marathons", limit=1)) == 1


def test_entities_with_many_good_passages_do_not_crowd_out_the_others(town: Memory) -> None:
    crowd = [EntityDraft("Crowd", "x", tuple(f"marathons {number}" for number in range(300)))]
    entities.create(town, crowd, by=ME)
    perspectives.ensure(town, PAIR)
    settle(town)
    assert {item.passage.entity for item in search(town, "marathons", limit=3)} == {
        "Crowd",
        "Melanie",
        "Caroline",
    }


def test_the_facts_of_one_entity_are_ranked(town: Memory) -> None:
    perspectives.ensure(town, PAIR)
    settle(town)
    found = searches.facts_by_meaning(town, "Caroline", "job", defaults=PAIR)
    assert [item.passage.key for item in found] == [("Caroline", 2), ("Caroline", 1)]
    assert found[0].score > found[1].score
    with pytest.raises(EntityNotFound):
        searches.facts_by_meaning(town, "nobody", "job", defaults=PAIR)


def test_notes_are_no_facts(town: Memory) -> None:
    notes.commit(town, Note("k", "marathons"), by=ME)
    settle(town)
    assert "k" not in {item.passage.entity for item in search(town, "marathons")}
    assert searches.entities_by_words(town, "marathons", limit=5)[0].passage.entity == "Melanie"


def test_words_find_facts_that_have_all_of_them_before_those_that_have_one(
    town: Memory,
) -> None:
    found = searches.entities_by_words(town, "puppy shelter", limit=5)
    assert [(item.passage.entity, item.passage.ordinal, item.perspective) for item in found] == [
        ("Caroline", 1, None)
    ]
    assert found[0].score > 0
    found = searches.entities_by_words(town, "puppy marathons", limit=5)
    assert {item.passage.entity for item in found} == {"Caroline", "Melanie"}
    assert [
        word.passage.ordinal for word in searches.facts_by_words(town, "Melanie", "marathons")
    ] == [1, 3]
    assert searches.entities_by_words(town, "zebra", limit=5) == []
    assert searches.entities_by_words(town, "?!", limit=5) == []


def test_a_changed_template_is_embedded_again_by_a_server_that_searches(
    town: Memory, embedder: CountingEmbedder, versioned_url: str
) -> None:
    perspectives.ensure(town, PAIR)
    settle(town)
    search(town, "dog")
    settle(town)
    other = open_store(versioned_url)
    perspectives.store(Memory(other), "named", document="{type}, {name}: {text}")
    other.close()
    assert perspectives.coverage(town) == 0.5
    settle(town)
    assert perspectives.coverage(town) == 1.0
    assert "person, Caroline: Is a nurse at the clinic" in embedder.texts


def test_a_renamed_entity_is_embedded_again_where_its_name_is_part_of_the_text(
    town: Memory, embedder: CountingEmbedder
) -> None:
    perspectives.ensure(town, PAIR)
    settle(town)
    assert shown(search(town, "person Caroline"))[0] == ("Caroline", 2, "named")
    embedder.texts.clear()
    embedder.is_stopped = True
    revise(town, "Caroline", Revision(name="Zelda"), by=ME)
    settle(town)
    assert perspectives.coverage(town) == 6 / 10
    embedder.is_stopped = False
    of(town).request_indexing(town)
    settle(town)
    assert perspectives.coverage(town) == 1.0
    assert sorted(embedder.texts) == [
        "Zelda: Adopted a puppy from the shelter",
        "Zelda: Is a nurse at the clinic",
        "person Zelda: Adopted a puppy from the shelter",
        "person Zelda: Is a nurse at the clinic",
    ]
    assert shown(search(town, "person Zelda"))[0] == ("Zelda", 2, "named")
    assert search(town, "Caroline")[0].score < search(town, "Zelda")[0].score


def test_a_new_summary_leaves_the_vectors_as_they_are(
    town: Memory, embedder: CountingEmbedder
) -> None:
    perspectives.ensure(town, PAIR)
    settle(town)
    embedder.texts.clear()
    revise(town, "Caroline", Revision(summary="A vet"), by=ME)
    settle(town)
    assert embedder.texts == []
    assert perspectives.coverage(town) == 1.0


def test_a_stopped_embedder_keeps_nobody_from_writing_and_is_caught_up_with(
    town: Memory, embedder: CountingEmbedder
) -> None:
    perspectives.ensure(town, PAIR)
    settle(town)
    embedder.is_stopped = True
    facts.add(town, [FactAddition("Melanie", ("Sings", "Swims"))], by=ME, skip_repeats=False)
    settle(town)
    assert perspectives.coverage(town) == 5 / 7
    with pytest.raises(EmbedderError, match="it is stopped") as failed:
        search(town, "dog")
    told = 'the question could not be embedded; search by words instead, with the mode "text"'
    assert failed.value.public == told
    assert shown(searches.entities_by_words(town, "sings", limit=5)) == [("Melanie", 4, None)]
    embedder.is_stopped = False
    of(town).request_indexing(town)
    settle(town)
    assert perspectives.coverage(town) == 1.0
    assert shown(search(town, "swims"))[0][:2] == ("Melanie", 5)


def test_a_memory_without_an_embedder_is_searched_by_words(town: Memory) -> None:
    settle(town)
    with pytest.raises(EmbedderError, match="no embedder is configured"):
        search(Memory(town.store), "dog")
    assert perspectives.coverage(Memory(town.store)) == 1.0


def test_nothing_to_embed_is_complete_and_finds_nothing(
    versioned_url: str, embedder: CountingEmbedder
) -> None:
    store = open_store(versioned_url)
    memory = Memory(store, Meaning(SharedEmbedder("local", lambda url: embedder)))
    assert (perspectives.coverage(memory), search(memory, "dog")) == (1.0, [])
    settle(memory)  # the indexer has seen the empty store, and does not hear of the next change
    entities.create(Memory(store), TOWN, by=ME)
    assert perspectives.coverage(memory) == 0.0
    with pytest.raises(EmbedderError, match="nothing is embedded yet"):
        search(memory, "dog")
    of(memory).close()
    store.close()


def test_a_model_that_has_no_vectors_yet_is_an_error_and_not_an_empty_answer(
    town: Memory, embedder: CountingEmbedder
) -> None:
    settle(town)
    assert search(town, "dog")
    settle(town)  # the first search asks the indexer to look again
    # A server under the same name now has vectors of another length. Its model is known and its
    # vectors are not made yet, as while the indexer works.
    embedder.identity += "/longer"
    town.store.vectors.add_model(embedder.identity, of(town).url, embedder.dimension)
    with pytest.raises(EmbedderError, match="nothing is embedded yet"):
        search(town, "dog")
    with pytest.raises(EmbedderError, match="nothing is embedded yet"):
        searches.facts_by_meaning(town, "Melanie", "dog", defaults=PAIR)


def test_own_perspectives_are_kept_when_a_server_starts(town: Memory) -> None:
    perspectives.store(town, "mine", document="{date} {text}", query="when {query}")
    perspectives.ensure(town, PAIR)
    assert [item.perspective.name for item in perspectives.find_all(town)] == ["text", "mine"]


def test_the_last_perspective_cannot_be_removed(town: Memory) -> None:
    perspectives.ensure(town, PAIR)
    perspectives.remove(town, "named")
    settle(town)
    with pytest.raises(BadInput, match="general is the last perspective"):
        perspectives.remove(town, "general")
    assert shown(search(town, "dog"))[0][2] == "general"


def test_a_bad_name_or_template_is_refused(town: Memory) -> None:
    with pytest.raises(BadInput, match="invalid name 'a b'"):
        perspectives.store(town, "a b")
    with pytest.raises(BadInput, match=r"document template: unknown field \{x\}"):
        perspectives.store(town, "a", document="{text} {x}")
    with pytest.raises(BadInput, match=r"query template: 'who' must contain \{query\}"):
        perspectives.store(town, "a", query="who")
    for number in range(perspectives.MAX_PERSPECTIVES - 1):
        perspectives.store(town, f"p{number}")
    with pytest.raises(BadInput, match="remove one first"):
        perspectives.store(town, "one-more")


class MeddlingEmbedder(CountingEmbedder):
    """Changes or removes the perspective `named` while its first texts are embedded."""

    def __init__(self) -> None:
        super().__init__()
        self.meddle: Callable[[], object] | None = None

    def embed(self, texts: Sequence[str], *, asking: bool = False) -> NDArray[np.float32]:
        if self.meddle is not None and any(text.startswith("Melanie: ") for text in texts):
            meddle, self.meddle = self.meddle, None
            meddle()
        return super().embed(texts, asking=asking)


@pytest.fixture
def meddled(versioned_url: str) -> Iterator[tuple[Memory, MeddlingEmbedder]]:
    embedder = MeddlingEmbedder()
    store = open_store(versioned_url)
    memory = Memory(store, Meaning(SharedEmbedder("local", lambda url: embedder)))
    yield memory, embedder
    of(memory).close()
    store.close()


def test_a_template_that_changes_while_it_is_embedded_gets_no_vectors_of_the_old_one(
    meddled: tuple[Memory, MeddlingEmbedder],
) -> None:
    memory, embedder = meddled
    embedder.meddle = lambda: perspectives.store(memory, "named", document="{type}: {text}")
    perspectives.ensure(memory, PAIR)
    entities.create(memory, TOWN, by=ME)
    settle(memory)
    assert perspectives.coverage(memory) == 1.0
    assert "person: Paints portraits" in embedder.texts
    expected = BagEmbedder().embed(["person: Paints portraits"])[0]
    with memory.reading() as read:
        (model,) = read.vectors.models()
        best = max(
            read.vectors.nearest(model.number, expected.tobytes(), 1, perspective="named").values()
        )
    assert best > 0.99


def test_a_perspective_that_is_removed_while_it_is_embedded_does_no_harm(
    meddled: tuple[Memory, MeddlingEmbedder],
) -> None:
    memory, embedder = meddled
    embedder.meddle = lambda: perspectives.remove(memory, "named")
    perspectives.ensure(memory, PAIR)
    entities.create(memory, TOWN, by=ME)
    settle(memory)
    assert perspectives.coverage(memory) == 1.0
    entities.create(memory, [EntityDraft("Later", "person", ("Sings",))], by=ME)
    settle(memory)
    assert perspectives.coverage(memory) == 1.0
