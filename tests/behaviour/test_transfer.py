"""Absorb a graph into every store, and notes into those that can hold them."""

from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from polymnia.engine import notes
from polymnia.engine.graph import entities
from polymnia.engine.memory import Memory
from polymnia.engine.notes import count_notes, vault_notes
from polymnia.engine.transfer.intake import Item, take_in
from polymnia.errors import NotSupported
from polymnia.model import Entity, EntityDraft, Fact, Graph, Note, NoteScope, Relation
from polymnia.search.embedding import pack_vector
from polymnia.stores.sqlite.store import SqliteStore
from tests.behaviour.graphs import ME, create, keys, names, texts
from tests.oracle import MemoryStore

GRAPH = Graph(
    [
        Entity("Alice", "person", (Fact(1, "a"), Fact(4, "b")), next_ordinal=5),
        Entity("Bob", "person", created_at=1, updated_at=2, id="kept"),
    ],
    [Relation("Alice", "Bob", "knows", 7)],
)


def absorb(
    memory: Memory, graph: Graph, progress: Callable[[int], None] | None = None
) -> tuple[int, int]:
    items: list[Item] = [*graph.entities, *graph.relations]
    receipt = take_in(memory, items, by=ME, progress=progress)
    return receipt.entities.new, receipt.relations.new


def absorb_notes(
    memory: Memory, given: list[Note], progress: Callable[[int], None] | None = None
) -> tuple[int, int]:
    receipt = take_in(memory, given, by=ME, progress=progress)
    return receipt.notes.new, receipt.notes.merged


def test_new_entities_and_relations_are_absorbed(memory: Memory) -> None:
    assert absorb(memory, GRAPH) == (2, 1)
    graph = entities.read_all(memory)
    assert (names(graph), keys(graph)) == (["Alice", "Bob"], [("Alice", "Bob", "knows")])


def test_absorbing_twice_changes_nothing(memory: Memory) -> None:
    absorb(memory, GRAPH)
    before = entities.read_all(memory)
    assert absorb(memory, GRAPH) == (0, 0)
    assert entities.read_all(memory) == before


def test_a_known_entity_keeps_its_facts_and_gains_missing_ones(memory: Memory) -> None:
    create(memory, EntityDraft("Alice", "robot", ("b", "c")))
    assert absorb(memory, GRAPH) == (1, 1)
    (alice,) = entities.open_named(memory, ["Alice"]).entities
    assert (alice.type, texts(memory, "Alice")) == ("robot", ("b", "c", "a"))


def test_a_name_that_comes_twice_is_one_entity_with_the_facts_of_both(
    memory: Memory,
) -> None:
    twice = [
        Entity("A", "x", (Fact(1, "a"),), next_ordinal=2),
        Entity("A", "y", (Fact(1, "b"),)),
    ]
    absorb(memory, Graph(twice, []))
    assert texts(memory, "A") == ("a", "b")


def test_progress_is_reported_to_the_end(memory: Memory) -> None:
    told: list[int] = []
    absorb(memory, GRAPH, progress=told.append)
    assert told[-1] == 3


NOTES = [
    Note(
        "plan",
        "ship it",
        ("work", "now"),
        embedding=pack_vector([1, 2, 3], 3, "v"),
        created_at=5,
        updated_at=9,
    ),
    Note("tea", "green", created_at=6, updated_at=6),
]


@pytest.fixture
def vault(tmp_path: Path) -> Iterator[Memory]:
    store = SqliteStore(str(tmp_path / "vault.db"))
    yield Memory(store)
    store.close()


def test_notes_are_absorbed_unchanged(vault: Memory) -> None:
    assert absorb_notes(vault, NOTES) == (2, 0)
    assert vault_notes(vault) == NOTES
    assert count_notes(vault) == 2


def test_absorbing_notes_twice_changes_nothing(vault: Memory) -> None:
    absorb_notes(vault, NOTES)
    assert absorb_notes(vault, NOTES) == (0, 0)
    assert vault_notes(vault) == NOTES


def test_of_two_notes_with_the_same_key_the_later_one_stays(vault: Memory) -> None:
    absorb_notes(vault, NOTES)
    newer, older = (
        Note("tea", "black", updated_at=7),
        Note("plan", "wait", created_at=1, updated_at=8),
    )
    assert absorb_notes(vault, [newer, older, Note("tea", "white", updated_at=2)]) == (0, 1)
    assert vault_notes(vault) == [NOTES[0], Note("tea", "black", created_at=6, updated_at=7)]


def test_a_note_without_times_gets_the_time_of_its_import(vault: Memory) -> None:
    absorb_notes(vault, [Note("key", "text")])
    (note,) = vault_notes(vault)
    assert note.created_at == note.updated_at > 0


def test_notes_of_sessions_are_not_copied(vault: Memory) -> None:
    notes.commit(vault, Note("key", "text", scope=NoteScope("one", "ann")), by=ME)
    assert (vault_notes(vault), count_notes(vault)) == ([], 0)


def test_many_notes_are_absorbed_in_batches(vault: Memory, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(vault.store, "best_batch", 1000)
    many = [Note(f"k{number}", "text", created_at=1, updated_at=1) for number in range(1001)]
    told: list[int] = []
    assert absorb_notes(vault, many, progress=told.append) == (
        len(many),
        0,
    )
    assert told == [len(many) - 1, len(many)]


def test_a_store_that_cannot_hold_notes_says_so() -> None:
    with pytest.raises(NotSupported, match="cannot hold notes"):
        absorb_notes(Memory(MemoryStore()), NOTES)
    assert vault_notes(Memory(MemoryStore())) == []
