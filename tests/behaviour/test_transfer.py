"""Take items in: into every store, in a dry run, and back out again."""

from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from polymnia.engine import notes
from polymnia.engine.graph import entities
from polymnia.engine.history.undo import changes_since, undo
from polymnia.engine.memory import Memory
from polymnia.engine.notes import count_notes, vault_notes
from polymnia.engine.transfer.intake import MAX_CONFLICTS, IntakeConflict, Item, take_in
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


HOUR = 3_600_000_000
ITEMS: list[Item] = [
    Entity(
        "Alice",
        "person",
        (Fact(1, "a", 5, 7, "chat"),),
        next_ordinal=2,
        tags=("x",),
        summary="S",
    ),
    Relation("Alice", "Bob", "knows"),
    Entity("Alice", "person", (Fact(1, "b"),), next_ordinal=2, tags=("y",)),
]


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


def test_new_entities_and_relations_are_absorbed_once(memory: Memory) -> None:
    told: list[int] = []
    assert absorb(memory, GRAPH, progress=told.append) == (2, 1)
    graph = entities.read_all(memory)
    assert (names(graph), keys(graph)) == (["Alice", "Bob"], [("Alice", "Bob", "knows")])
    assert told[-1] == 3
    assert absorb(memory, GRAPH) == (0, 0)
    assert entities.read_all(memory) == graph


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


def test_notes_are_absorbed_unchanged_and_once(vault: Memory) -> None:
    assert absorb_notes(vault, NOTES) == (2, 0)
    assert vault_notes(vault) == NOTES
    assert count_notes(vault) == 2
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


def test_a_new_entity_has_everything_that_was_given(vault: Memory) -> None:
    receipt = take_in(vault, ITEMS, by=ME)
    (alice,) = entities.open_named(vault, ["Alice"]).entities
    assert (alice.tags, alice.summary, alice.texts) == (("x", "y"), "S", ("a", "b"))
    first = alice.facts[0]
    assert (first.created_at, first.valid_at, first.source) == (5, 7, "chat")
    assert (receipt.entities.read, receipt.entities.new, receipt.facts) == (2, 1, 2)


def test_a_known_entity_gains_tags_summary_and_facts_at_once(vault: Memory) -> None:
    create(vault, EntityDraft("Alice", "robot", ("b",), tags=("z",)))
    receipt = take_in(vault, ITEMS, by=ME)
    (alice,) = entities.open_named(vault, ["Alice"]).entities
    assert (alice.type, alice.tags, alice.summary, alice.texts) == (
        "robot",
        ("z", "x", "y"),
        "S",
        ("b", "a"),
    )
    assert (alice.next_ordinal, receipt.entities.merged, receipt.entities.new) == (3, 1, 0)
    create(vault, EntityDraft("Carol", "person"))
    assert take_in(vault, ITEMS, by=ME).changes == []


def test_an_own_summary_is_kept(vault: Memory) -> None:
    create(vault, EntityDraft("Alice", "robot", summary="mine"))
    take_in(vault, ITEMS, by=ME)
    (alice,) = entities.open_named(vault, ["Alice"]).entities
    assert alice.summary == "mine"


def test_what_the_memory_knows_otherwise_is_a_conflict_and_stays(vault: Memory) -> None:
    create(vault, EntityDraft("Alice", "robot", summary="mine"))
    take_in(vault, [Note("key", "ours", updated_at=9)], by=ME)
    receipt = take_in(vault, [*ITEMS, Note("key", "theirs", updated_at=8)], by=ME)
    assert receipt.conflicts == [
        IntakeConflict("type", "Alice", "robot", "person"),
        IntakeConflict("summary", "Alice", "mine", "S"),
        IntakeConflict("note", "key", "ours", "theirs"),
    ]
    assert receipt.conflict_count == 3
    (alice,) = entities.open_named(vault, ["Alice"]).entities
    assert (alice.type, alice.summary, _note(vault)) == ("robot", "mine", "ours")


def test_a_receipt_describes_the_first_conflicts_and_counts_all(vault: Memory) -> None:
    take_in(vault, [Entity(f"E{number}", "x") for number in range(MAX_CONFLICTS + 5)], by=ME)
    receipt = take_in(
        vault,
        [Entity(f"E{number}", "y") for number in range(MAX_CONFLICTS + 5)],
        by=ME,
        dry_run=True,
    )
    assert (receipt.conflict_count, len(receipt.conflicts)) == (MAX_CONFLICTS + 5, MAX_CONFLICTS)


def test_the_same_words_at_another_time_are_another_turn(memory: Memory) -> None:
    def chat(*times: int) -> Entity:
        turns = [Fact(number, "user: yes", at, at, "chat") for number, at in enumerate(times, 1)]
        return Entity("Chat", "conversation", tuple(turns), next_ordinal=len(times) + 1)

    take_in(memory, [chat(HOUR)], by=ME)
    receipt = take_in(memory, [chat(HOUR, 2 * HOUR)], by=ME)
    if memory.store.capabilities.history:
        assert (receipt.facts, texts(memory, "Chat")) == (1, ("user: yes", "user: yes"))


def test_a_dry_run_tells_what_would_happen_and_changes_nothing(vault: Memory) -> None:
    create(vault, EntityDraft("Alice", "robot", ("b",)))
    items = [*ITEMS, Entity("Carol", "person"), Note("key", "text"), *ITEMS]
    planned = take_in(vault, items, by=ME, dry_run=True)
    assert names(entities.read_all(vault)) == ["Alice"]
    done = take_in(vault, items, by=ME)
    assert (planned.entities, planned.relations, planned.notes) == (
        done.entities,
        done.relations,
        done.notes,
    )
    assert (planned.facts, planned.changes, len(done.changes)) == (done.facts, [], 1)


def test_a_dry_run_sees_what_its_earlier_batches_would_have_added(vault: Memory) -> None:
    many: list[Item] = [Entity(f"E{number % 1500}", "x", (Fact(1, "t"),)) for number in range(3000)]
    planned = take_in(vault, many, by=ME, dry_run=True)
    done = take_in(vault, many, by=ME)
    assert planned.entities == done.entities
    assert (planned.entities.read, planned.entities.new, planned.entities.merged) == (3000, 1500, 0)


def test_an_import_can_be_taken_back(vault: Memory) -> None:
    create(vault, EntityDraft("Alice", "robot", ("b",)))
    before = entities.read_all(vault)
    receipt = take_in(vault, [*ITEMS, Entity("Carol", "person")], by=ME)
    assert undo(vault, receipt.changes, by=ME).conflicts == ()
    after = entities.read_all(vault)
    assert [(entity.name, entity.texts, entity.tags) for entity in after.entities] == [
        (entity.name, entity.texts, entity.tags) for entity in before.entities
    ]
    assert after.relations == []


def test_a_batch_counts_facts_as_rows(vault: Memory, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(vault.store, "best_batch", 8)
    facts = tuple([Fact(number, f"fact {number}") for number in range(1, 4)])
    described: list[Item] = [
        Entity(f"E{number}", "x", facts, next_ordinal=4) for number in range(4)
    ]
    relations: list[Item] = [Relation("E0", f"E{number}", "knows") for number in range(8)]
    assert len(take_in(vault, described, by=ME).changes) == 2
    assert len(take_in(vault, relations, by=ME).changes) == 1


def test_a_large_import_is_taken_back_by_its_time_and_actor(
    vault: Memory, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(vault.store, "best_batch", 1000)
    create(vault, EntityDraft("Alice", "robot"))
    many: list[Item] = [Entity(f"E{number}", "x") for number in range(2001)]
    receipt = take_in(vault, many, by="polymnia import")
    assert len(receipt.changes) == 3
    undo(vault, changes_since(vault, receipt.at, actor="polymnia import"), by=ME)
    assert names(entities.read_all(vault)) == ["Alice"]


def _note(memory: Memory) -> str:
    (note,) = vault_notes(memory)
    return note.content
