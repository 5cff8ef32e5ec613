"""Take items in: into every store, in a dry run, and back out again."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from polymnia.engine.graph import entities
from polymnia.engine.history.undo import changes_since, undo
from polymnia.engine.memory import Memory
from polymnia.engine.notes import vault_notes
from polymnia.engine.transfer.intake import MAX_CONFLICTS, IntakeConflict, Item, take_in
from polymnia.model import Entity, EntityDraft, Fact, Note, Relation
from polymnia.stores.sqlite.store import SqliteStore
from tests.behaviour.graphs import ME, create, names, texts

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


@pytest.fixture
def full(tmp_path: Path) -> Iterator[Memory]:
    store = SqliteStore(str(tmp_path / "memory.db"))
    yield Memory(store)
    store.close()


def test_a_new_entity_has_everything_that_was_given(full: Memory) -> None:
    receipt = take_in(full, ITEMS, by=ME)
    (alice,) = entities.open_named(full, ["Alice"]).entities
    assert (alice.tags, alice.summary, alice.texts) == (("x", "y"), "S", ("a", "b"))
    first = alice.facts[0]
    assert (first.created_at, first.valid_at, first.source) == (5, 7, "chat")
    assert (receipt.entities.read, receipt.entities.new, receipt.facts) == (2, 1, 2)


def test_a_known_entity_gains_tags_summary_and_facts_at_once(full: Memory) -> None:
    create(full, EntityDraft("Alice", "robot", ("b",), tags=("z",)))
    receipt = take_in(full, ITEMS, by=ME)
    (alice,) = entities.open_named(full, ["Alice"]).entities
    assert (alice.type, alice.tags, alice.summary, alice.texts) == (
        "robot",
        ("z", "x", "y"),
        "S",
        ("b", "a"),
    )
    assert (alice.next_ordinal, receipt.entities.merged, receipt.entities.new) == (3, 1, 0)
    create(full, EntityDraft("Carol", "person"))
    assert take_in(full, ITEMS, by=ME).changes == []


def test_an_own_summary_is_kept(full: Memory) -> None:
    create(full, EntityDraft("Alice", "robot", summary="mine"))
    take_in(full, ITEMS, by=ME)
    (alice,) = entities.open_named(full, ["Alice"]).entities
    assert alice.summary == "mine"


def test_what_the_memory_knows_otherwise_is_a_conflict_and_stays(full: Memory) -> None:
    create(full, EntityDraft("Alice", "robot", summary="mine"))
    take_in(full, [Note("key", "ours", updated_at=9)], by=ME)
    receipt = take_in(full, [*ITEMS, Note("key", "theirs", updated_at=8)], by=ME)
    assert receipt.conflicts == [
        IntakeConflict("type", "Alice", "robot", "person"),
        IntakeConflict("summary", "Alice", "mine", "S"),
        IntakeConflict("note", "key", "ours", "theirs"),
    ]
    assert receipt.conflict_count == 3
    (alice,) = entities.open_named(full, ["Alice"]).entities
    assert (alice.type, alice.summary, _note(full)) == ("robot", "mine", "ours")


def test_a_receipt_describes_the_first_conflicts_and_counts_all(full: Memory) -> None:
    take_in(full, [Entity(f"E{number}", "x") for number in range(MAX_CONFLICTS + 5)], by=ME)
    receipt = take_in(
        full,
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


def test_a_dry_run_tells_what_would_happen_and_changes_nothing(full: Memory) -> None:
    create(full, EntityDraft("Alice", "robot", ("b",)))
    items = [*ITEMS, Entity("Carol", "person"), Note("key", "text"), *ITEMS]
    planned = take_in(full, items, by=ME, dry_run=True)
    assert names(entities.read_all(full)) == ["Alice"]
    done = take_in(full, items, by=ME)
    assert (planned.entities, planned.relations, planned.notes) == (
        done.entities,
        done.relations,
        done.notes,
    )
    assert (planned.facts, planned.changes, len(done.changes)) == (done.facts, [], 1)


def test_a_dry_run_sees_what_its_earlier_batches_would_have_added(full: Memory) -> None:
    many: list[Item] = [Entity(f"E{number % 1500}", "x", (Fact(1, "t"),)) for number in range(3000)]
    planned = take_in(full, many, by=ME, dry_run=True)
    done = take_in(full, many, by=ME)
    assert planned.entities == done.entities
    assert (planned.entities.read, planned.entities.new, planned.entities.merged) == (3000, 1500, 0)


def test_an_import_can_be_taken_back(full: Memory) -> None:
    create(full, EntityDraft("Alice", "robot", ("b",)))
    before = entities.read_all(full)
    receipt = take_in(full, [*ITEMS, Entity("Carol", "person")], by=ME)
    assert undo(full, receipt.changes, by=ME).conflicts == ()
    after = entities.read_all(full)
    assert [(entity.name, entity.texts, entity.tags) for entity in after.entities] == [
        (entity.name, entity.texts, entity.tags) for entity in before.entities
    ]
    assert after.relations == []


def test_a_batch_counts_facts_as_rows(full: Memory, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(full.store, "best_batch", 8)
    facts = tuple([Fact(number, f"fact {number}") for number in range(1, 4)])
    described: list[Item] = [
        Entity(f"E{number}", "x", facts, next_ordinal=4) for number in range(4)
    ]
    relations: list[Item] = [Relation("E0", f"E{number}", "knows") for number in range(8)]
    assert len(take_in(full, described, by=ME).changes) == 2
    assert len(take_in(full, relations, by=ME).changes) == 1


def test_a_large_import_is_taken_back_by_its_time_and_actor(
    full: Memory, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(full.store, "best_batch", 1000)
    create(full, EntityDraft("Alice", "robot"))
    many: list[Item] = [Entity(f"E{number}", "x") for number in range(2001)]
    receipt = take_in(full, many, by="polymnia import")
    assert len(receipt.changes) == 3
    undo(full, changes_since(full, receipt.at, actor="polymnia import"), by=ME)
    assert names(entities.read_all(full)) == ["Alice"]


def _note(memory: Memory) -> str:
    (note,) = vault_notes(memory)
    return note.content
