"""Common terms: counts and lists that keep up with writes and deletions."""

from collections.abc import Iterator
from contextlib import closing, contextmanager
from pathlib import Path
from random import Random

import pytest

from polymnia.engine.graph import entities, facts
from polymnia.engine.history import changes, undo
from polymnia.engine.memory import Memory
from polymnia.model import EntityDraft, FactAddition
from polymnia.search import terms
from polymnia.stores import open_store
from polymnia.stores.postgres import search
from polymnia.stores.sqlite.port import SqlitePort
from polymnia.stores.versioned import common_terms
from polymnia.stores.versioned.reader import VersionReader
from tests.conftest import STORES
from tests.postgres import new_workspace

ME = "test"
WORDS = [f"w{letter}rd" for letter in "abcdefgh"]
SHARES = [1 / place for place in range(1, 9)]


@pytest.fixture
def small_lists(monkeypatch: pytest.MonkeyPatch) -> None:
    """Let terms be common in 20 passages, with lists of 10."""
    monkeypatch.setattr(terms, "MAX_RARE_PASSAGES", 20)
    for name, value in {
        "COMMON_PASSAGES": 20,
        "LISTED": 10,
        "MAX_LISTED": 15,
        "RECENT_ROWS": 8,
        "MAX_RANKED_ROWS": 50,
    }.items():
        monkeypatch.setattr(common_terms, name, value)


def write_and_delete(memory: Memory) -> None:
    random = Random(5)
    for number in range(30):
        texts = [" ".join(random.choices(WORDS, SHARES, k=random.randint(1, 9))) for _ in range(6)]
        entities.create(memory, [EntityDraft(f"entity {number}", "thing", tuple(texts))], by=ME)
        if number % 3 == 2:
            facts.remove(memory, [(f"entity {number}", tuple(texts[:2]))], by=ME)
        if number % 10 == 9:
            entities.delete(memory, [f"entity {number - 4}", f"entity {number - 5}"], by=ME)
            undo.undo(memory, [changes.latest(memory).changes[0].id], by=ME)


def best(memory: Memory) -> dict[str, list[tuple[str, int]]]:
    """Return the best passages of each word."""
    with memory.reading() as read:
        return {
            word: sorted(passage.key for passage in read.candidates([word], 5)) for word in WORDS
        }


@contextmanager
def stored_terms(memory: Memory) -> Iterator[dict[str, int]]:
    """Yield the terms that have a list, and how many ranked passages have them."""
    with memory.reading() as read:
        assert isinstance(read, VersionReader)
        known = read._port.words.common_terms(WORDS)
        yield {term: stored.passages for term, stored in known.items()}


@pytest.mark.usefixtures("small_lists")
def test_counts_are_exact_after_writes_deletions_and_undo(versioned_url: str) -> None:
    with closing(open_store(versioned_url)) as store:
        memory = Memory(store)
        write_and_delete(memory)
        texts = []
        for entity in entities.read_all(memory).entities:
            texts += [fact.text.split() for fact in entity.facts]
        with store.reading() as read:
            counts = read.word_counts(WORDS)
        with stored_terms(memory) as stored:
            assert "ward" in stored
    assert counts.having == {word: sum(word in text for text in texts) for word in WORDS}


@pytest.mark.usefixtures("small_lists")
def test_a_list_finds_what_reading_all_passages_finds(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with closing(open_store(str(tmp_path / "lists.db"))) as store:
        memory = Memory(store)
        write_and_delete(memory)
        from_lists = best(memory)
    monkeypatch.setattr(common_terms, "RECENT_ROWS", 1_000_000)
    with closing(open_store(str(tmp_path / "all.db"))) as store:
        memory = Memory(store)
        write_and_delete(memory)
        with stored_terms(memory) as stored:
            assert not stored
        assert from_lists == best(memory)


@pytest.mark.usefixtures("small_lists")
def test_both_databases_list_the_same_passages(tmp_path: Path) -> None:
    found = []
    for kind in ("sqlite", "postgres"):
        with closing(open_store(STORES[kind](tmp_path))) as store:
            memory = Memory(store)
            for number in range(30):
                texts = tuple([f"ward number{number}"] * (number % 3) + ["ward wbrd filler " * 3])
                entities.create(memory, [EntityDraft(f"entity {number}", "thing", texts)], by=ME)
            with store.reading() as read:
                assert isinstance(read, VersionReader)
                found.append(sorted(read._port.words.stored_postings("ward")))
    assert found[0] == found[1] != []


@pytest.mark.usefixtures("small_lists")
def test_a_common_term_is_searched_for_in_its_list_alone(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with closing(open_store(str(tmp_path / "memory.db"))) as store:
        memory = Memory(store)
        write_and_delete(memory)
        queries = []
        run = SqlitePort.run

        def record(port: SqlitePort, query: str, *values: object) -> object:
            queries.append(query)
            return run(port, query, *values)

        monkeypatch.setattr(SqlitePort, "run", record)
        with memory.reading() as read:
            assert read.candidates(["ward"], 5)
    assert "stored_postings" in queries
    assert "best_words" not in queries


@pytest.mark.usefixtures("small_lists")
def test_passages_with_two_very_common_terms_are_found_among_the_newest(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(search, "_MAX_INTERSECTED", 20)
    monkeypatch.setattr(search, "_MAX_LOOKED_AT", 12)
    with closing(open_store(new_workspace())) as store:
        memory = Memory(store)
        texts = tuple([f"ward wbrd {number}" for number in range(40)])
        entities.create(memory, [EntityDraft("one", "thing", texts)], by=ME)
        facts.add(memory, [FactAddition("one", ("ward", "ward only"))], by=ME)
        with memory.reading() as read:
            found = read.candidates(["ward", "wbrd"], 100, every=True)
    assert sorted(passage.text for passage in found) == [f"ward wbrd {at}" for at in range(30, 40)]


@pytest.mark.usefixtures("small_lists")
def test_a_term_whose_passages_are_deleted_loses_its_list(versioned_url: str) -> None:
    with closing(open_store(versioned_url)) as store:
        memory = Memory(store)
        write_and_delete(memory)
        names = [entity.name for entity in entities.read_all(memory).entities]
        entities.delete(memory, names[3:], by=ME)
        with stored_terms(memory) as stored:
            assert not stored
        assert all(best(memory).values())


def test_postgresql_counts_what_is_deleted_in_large_lists(tmp_path: Path) -> None:
    with closing(open_store(STORES["postgres"](tmp_path))) as store:
        memory = Memory(store)
        texts = tuple(f"ward {number}" for number in range(2_300))
        entities.create(memory, [EntityDraft("one", "thing", texts)], by=ME)
        facts.remove(memory, [("one", texts[:100])], by=ME)
        with stored_terms(memory) as stored:
            assert stored == {"ward": 2_200}
        with store.reading() as read:
            found = {passage.text for passage in read.candidates(["ward"], 50)}
            assert found == set(texts[100:150])


@pytest.mark.usefixtures("small_lists")
def test_common_terms_weigh_what_rare_terms_find(versioned_url: str) -> None:
    with closing(open_store(versioned_url)) as store:
        memory = Memory(store)
        texts = [f"ward {number}" for number in range(30)]
        texts += [f"other {number}" for number in range(60)]
        texts += ["seldom", "seldom", "seldom ward", "seldom"]
        for number in range(0, len(texts), 10):
            draft = EntityDraft(f"entity {number}", "thing", tuple(texts[number : number + 10]))
            entities.create(memory, [draft], by=ME)
        with stored_terms(memory) as stored:
            assert "ward" in stored
        with store.reading() as read:
            (best_passage,) = read.candidates(["seldom", "ward"], 1)
    assert best_passage.text == "seldom ward"
