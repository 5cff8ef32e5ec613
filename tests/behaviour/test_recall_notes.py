"""Recall finds the notes of the vault beside entities and observations, and never those of a
session.
"""

from collections.abc import Iterator
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from polymnia.engine import notes
from polymnia.engine.graph import facts
from polymnia.engine.memory import Memory
from polymnia.engine.recall import search
from polymnia.engine.recall.passages import recall
from polymnia.engine.semantic.meaning import Meaning, SharedEmbedder
from polymnia.model import (
    NOTE,
    VAULT,
    EntityDraft,
    FactAddition,
    Hit,
    Note,
    NoteScope,
    PassageKey,
    Within,
)
from polymnia.stores import open_store
from tests.behaviour.graphs import ME, create
from tests.conftest import STORES, VERSIONED
from tests.embedders.bag import BagEmbedder
from tests.processes import TIMEOUT_S

SESSION = NoteScope("one", "ann")


@pytest.fixture(params=VERSIONED)
def memory(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Memory]:
    """A memory that holds notes."""
    store = open_store(STORES[request.param](tmp_path))
    yield Memory(store)
    store.close()


@pytest.fixture
def library(memory: Memory) -> Memory:
    create(memory, EntityDraft("Caroline", "person", ("Paints sunsets", "Runs marathons")))
    keep(memory, "deploy steps", "Restart the getUserName service, then warm the cache")
    keep(memory, "Caroline", "Prefers to be called in the evening")
    keep(memory, "地址", "位于北京市海淀区")
    return memory


def keep(memory: Memory, key: str, content: str, scope: NoteScope = VAULT) -> None:
    notes.commit(memory, Note(key, content, scope=scope), by=ME)


def hits(memory: Memory, question: str, within: Within | None = None) -> list[Hit]:
    return recall(memory, question, limit=100, within=within).hits


def keys(memory: Memory, question: str, within: Within | None = None) -> list[PassageKey]:
    return [hit.passage.key for hit in hits(memory, question, within)]


@pytest.mark.parametrize(
    ("question", "key", "kind"),
    [
        ("deploy steps", "deploy steps", "key"),
        ("prefers to be called in the evening", "Caroline", "text"),
        ("warm the cache", "deploy steps", "phrase"),
        ("restarting services", "deploy steps", "all words"),
        ("deploying in a garden", "deploy steps", "any word"),
        ("servic", "deploy steps", "all words"),
        ("resta", "deploy steps", "prefix"),
        ("user name", "deploy steps", "phrase"),
        ("海淀", "地址", "all words"),
        ("海", "地址", "substring"),
        ("erserv", "", ""),
        ("tus", "deploy steps", "substring"),
    ],
)
def test_a_note_is_found_by_every_kind_of_match(
    library: Memory, question: str, key: str, kind: str
) -> None:
    found = [
        (hit.passage.entity, hit.match_kind)
        for hit in hits(library, question)
        if hit.passage.kind == "note"
    ]
    assert found[:1] == ([(key, kind)] if key else [])


def test_an_entity_comes_before_a_note_with_the_same_name(library: Memory) -> None:
    assert keys(library, "caroline")[:2] == [("Caroline", 0), ("Caroline", NOTE)]


def test_a_note_and_an_fact_with_the_same_text_are_both_shown(library: Memory) -> None:
    facts.add(library, [FactAddition("Caroline", ("warm the kettle",))], by=ME, skip_repeats=True)
    keep(library, "Caroline", "warm the kettle")
    assert set(keys(library, "who warms a kettle")[:2]) == {("Caroline", 3), ("Caroline", NOTE)}


def test_a_note_is_found_only_by_its_latest_text(library: Memory) -> None:
    keep(library, "deploy steps", "Ask Melanie")
    assert keys(library, "restart cache") == []
    assert keys(library, "ask melanie") == [("deploy steps", NOTE)]


def test_a_deleted_note_is_not_found(library: Memory) -> None:
    notes.prune(library, [VAULT], key="deploy steps", by=ME)
    assert keys(library, "restart cache deploy steps") == []
    assert keys(library, "tus") == []


@pytest.mark.parametrize(
    "question", ["secret plan", "plan", "secr", "secert", "cret", "hush", "hush secret"]
)
def test_recall_never_finds_a_session_note(library: Memory, question: str) -> None:
    keep(library, "hush", "secret plan", SESSION)
    assert keys(library, question) == []


def test_session_notes_do_not_change_counts_or_scores(library: Memory) -> None:
    terms = ("cach", "secret", "even")
    with library.reading() as read:
        counts, vocabulary = read.word_counts(terms), read.vocabulary("", "z", 1000)
    before = hits(library, "which cache in the evening")
    keep(library, "hush", "secret cache secret evening", SESSION)
    with library.reading() as read:
        assert (read.word_counts(terms), read.vocabulary("", "z", 1000)) == (counts, vocabulary)
    assert hits(library, "which cache in the evening") == before


def test_notes_are_filtered_by_type_key_and_time(library: Memory) -> None:
    question = "runs the cache in the evening"
    assert {key[1] for key in keys(library, question, Within(types=("note",)))} == {NOTE}
    assert NOTE not in {key[1] for key in keys(library, question, Within(types=("person",)))}
    assert keys(library, question, Within(names=("deploy steps",))) == [("deploy steps", NOTE)]
    assert {key[0] for key in keys(library, question, Within(names=("Caroline",)))} == {"Caroline"}
    assert keys(library, question, Within(names=("deploy steps",), since=5)) == [
        ("deploy steps", NOTE)
    ]
    assert keys(library, question, Within(until=5)) == []


def test_other_searches_find_only_entities(library: Memory) -> None:
    for text in ("cache", "cache OR evening", "cach*", "Restart the getUserName"):
        assert search.full_text(library, text).entities == []
    assert search.containing(library, "cache").entities == []
    assert search.containing(library, "海").entities == []
    assert [
        entity.name for entity in search.full_text(library, "paints AND caroline").entities
    ] == ["Caroline"]


def test_notes_are_found_by_meaning(tmp_path: Path) -> None:
    store = open_store(str(tmp_path / "memory.db"))
    meaning = Meaning(SharedEmbedder("local", lambda url: BagEmbedder()))
    memory = Memory(store, meaning)
    create(memory, EntityDraft("Caroline", "person", ("Is a nurse at the clinic",)))
    keep(memory, "pets", "Adopted a puppy from the shelter")
    keep(memory, "hush", "The dog of a session", SESSION)
    assert meaning.settle(TIMEOUT_S)
    found = recall(memory, "dog", timeout=TIMEOUT_S)
    assert (found.note, found.hits[0].passage.key, found.hits[0].match_kind) == (
        "",
        ("pets", NOTE),
        "meaning",
    )
    assert {hit.passage.entity for hit in found.hits} == {"pets", "Caroline"}
    keep(memory, "pets", "Has a job")
    keep(memory, "more", "Feeds a dog")
    assert meaning.settle(TIMEOUT_S)
    assert recall(memory, "puppy", timeout=TIMEOUT_S).hits[0].passage.key == ("more", NOTE)
    within = Within(types=("note",), names=("pets",))
    assert [
        hit.passage.key for hit in recall(memory, "puppy", within=within, timeout=TIMEOUT_S).hits
    ] == [("pets", NOTE)]
    notes.prune(memory, [VAULT], by=ME)
    assert {hit.passage.entity for hit in recall(memory, "puppy", timeout=TIMEOUT_S).hits} == {
        "Caroline"
    }
    with memory.reading() as read:
        (model,) = read.vectors.models()
        assert read.vectors.coverage(model.number) == (1, 1)
    meaning.close()
    store.close()


WORDS = st.sampled_from(
    ["red", "green", "tea", "Ann", "getUserName", "北京", "likes", "the", "May", "2023"]
)
TEXTS = st.lists(WORDS, min_size=1, max_size=5).map(" ".join)
KEYS = st.sampled_from(["Ann", "red tea", "北京", "the"])
STEPS = st.lists(st.tuples(KEYS, st.none() | TEXTS), max_size=12)


@settings(max_examples=40, deadline=None, suppress_health_check=[HealthCheck.too_slow])
@given(STEPS, TEXTS)
def test_after_any_writes_recall_equals_that_of_a_new_memory(
    steps: list[tuple[str, str | None]], question: str
) -> None:
    stepwise, at_once = Memory(open_store(":memory:")), Memory(open_store(":memory:"))
    for key, content in steps:
        if content is None:
            notes.prune(stepwise, [VAULT], key=key, by=ME)
        else:
            keep(stepwise, key, content)
            keep(stepwise, f"{key} aside", content, SESSION)
    for note in notes.page(stepwise, VAULT):
        keep(at_once, note.key, note.content)
    found, expected = (
        {hit.passage.key: round(hit.score, 6) for hit in hits(item, question)}
        for item in (stepwise, at_once)
    )
    assert found == expected
    assert stepwise.store.check() == []
    for item in (stepwise, at_once):
        item.store.close()
