"""The trash: deleted things are hidden, listed, restored completely, and purged without a trace."""

from collections.abc import Iterator
from pathlib import Path

import apsw
import pytest
from msgspec.structs import replace

from polymnia.engine import notes
from polymnia.engine.facts.merge import merge, move_facts
from polymnia.engine.facts.revise import Revision, revise
from polymnia.engine.graph import entities, facts, relations
from polymnia.engine.history import trash, undo
from polymnia.engine.memory import Memory
from polymnia.engine.recall import search
from polymnia.engine.workspaces import one_workspace
from polymnia.errors import BadInput
from polymnia.model import (
    VAULT,
    Change,
    ChangeQuery,
    Counts,
    EntityDraft,
    FactAddition,
    Note,
    NoteQuery,
    NoteScope,
    Relation,
)
from polymnia.stores import open_store
from polymnia.stores.sqlite.store import SqliteStore
from tests.behaviour.graphs import ME, create, keys, link, names, ordinals, texts

SECRET = "xyzzyplugh"


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "memory.db"


@pytest.fixture
def memory(path: Path) -> Iterator[Memory]:
    store = SqliteStore(str(path))
    memory = Memory(store)
    create(
        memory,
        EntityDraft("Alice", "person", ("drinks tea", "writes Go")),
        EntityDraft("Bob", "person"),
        EntityDraft("Go", "language"),
    )
    link(memory, ("Alice", "Bob", "knows"), ("Alice", "Go", "uses"), ("Bob", "Go", "uses"))
    yield memory
    store.close()


def forget(memory: Memory, *names: str) -> None:
    entities.delete(memory, names, by=ME)


def unsay(memory: Memory, name: str, *texts: str) -> None:
    facts.remove(memory, [(name, texts)], by=ME)


def changes(memory: Memory) -> list[Change]:
    with memory.reading() as read:
        return read.history.changes(ChangeQuery(limit=None))[::-1]


def ids(memory: Memory) -> list[str]:
    return [item.id for item in trash.items(memory)]


def one(memory: Memory) -> str:
    (found,) = ids(memory)
    return found


def test_a_new_memory_has_an_empty_trash(memory: Memory) -> None:
    assert trash.items(memory) == []


def test_a_deleted_entity_is_listed_with_what_was_deleted_with_it(memory: Memory) -> None:
    (alice,) = entities.open_named(memory, ["Alice"]).entities
    forget(memory, "Alice")
    (found,) = trash.items(memory)
    assert (found.id, found.rows.entities) == (alice.id, (alice,))
    assert [relation.key for relation in found.rows.relations] == [
        ("Alice", "Bob", "knows"),
        ("Alice", "Go", "uses"),
    ]
    assert found.deleted_at > alice.created_at


def test_an_entity_is_restored_as_it_was(memory: Memory) -> None:
    before = entities.read_all(memory)
    forget(memory, "Alice")
    back = trash.restore(memory, "Alice", by=ME)
    after = entities.read_all(memory)
    assert after.entities[0] == before.entities[0]
    # The relations of an entity come back with it, which updates their other ends.
    assert [replace(entity, updated_at=0) for entity in after.entities] == [
        replace(entity, updated_at=0) for entity in before.entities
    ]
    assert sorted(keys(after)) == sorted(keys(before))
    assert [entity.name for entity in back.entities] == ["Alice"]
    assert trash.items(memory) == []


def test_a_restored_entity_is_found_by_every_search(memory: Memory) -> None:
    forget(memory, "Alice")
    trash.restore(memory, "Alice", by=ME)
    assert names(search.containing(memory, "rinks te")) == ["Alice"]
    assert names(search.full_text(memory, "tea")) == ["Alice"]
    assert memory.store.check() == []


def test_restoring_is_a_change_like_any_other(memory: Memory, path: Path) -> None:
    forget(memory, "Bob")
    heard: list[str] = []
    memory.on_change(lambda change: heard.append(change.operation))
    trash.restore(memory, "Bob", by="ann")
    assert heard == ["restore"]
    assert (changes(memory)[-1].actor, changes(memory)[-1].operation) == ("ann", "restore")


def test_relations_are_restored_with_their_second_end(memory: Memory) -> None:
    forget(memory, "Alice", "Bob")
    trash.restore(memory, "Alice", by=ME)
    assert keys(entities.read_all(memory)) == [("Alice", "Go", "uses")]
    trash.restore(memory, "Bob", by=ME)
    assert sorted(keys(entities.read_all(memory))) == [
        ("Alice", "Bob", "knows"),
        ("Alice", "Go", "uses"),
        ("Bob", "Go", "uses"),
    ]


def test_a_relation_that_exists_again_is_not_restored(memory: Memory) -> None:
    forget(memory, "Alice")
    link(memory, ("Alice", "Bob", "knows"))
    trash.restore(memory, "Alice", by=ME)
    assert sorted(keys(entities.read_all(memory))).count(("Alice", "Bob", "knows")) == 1


def test_an_entity_whose_name_is_in_use_again_is_not_restored(memory: Memory) -> None:
    forget(memory, "Alice")
    create(memory, EntityDraft("Alice", "cat"))
    with pytest.raises(BadInput, match="there is an entity Alice again"):
        trash.restore(memory, "Alice", by=ME)
    forget(memory, "Alice")
    cat, person = trash.items(memory)
    trash.restore(memory, person.id, by=ME)
    assert texts(memory, "Alice") == ("drinks tea", "writes Go")
    assert ids(memory) == [cat.id]


def test_the_latest_deleted_entity_with_a_name_is_restored(memory: Memory) -> None:
    forget(memory, "Bob")
    create(memory, EntityDraft("Bob", "robot"))
    forget(memory, "Bob")
    trash.restore(memory, "Bob", by=ME)
    (bob,) = entities.open_named(memory, ["Bob"]).entities
    assert bob.type == "robot"


def test_a_deleted_fact_is_restored_to_its_place(memory: Memory) -> None:
    unsay(memory, "Alice", "drinks tea")
    (alice,) = entities.open_named(memory, ["Alice"]).entities
    assert one(memory) == f"{alice.id}/1"
    trash.restore(memory, f"{alice.id}/1", by=ME)
    assert (texts(memory, "Alice"), ordinals(memory, "Alice")) == (
        ("drinks tea", "writes Go"),
        [1, 2],
    )
    assert names(search.full_text(memory, "tea")) == ["Alice"]


def test_an_fact_that_was_deleted_before_its_entity_stays_deleted(memory: Memory) -> None:
    unsay(memory, "Alice", "drinks tea")
    forget(memory, "Alice")
    entity, fact = ids(memory)
    with pytest.raises(BadInput, match=f"restore that first: {entity}"):
        trash.restore(memory, fact, by=ME)
    trash.restore(memory, entity, by=ME)
    assert texts(memory, "Alice") == ("writes Go",)
    trash.restore(memory, fact, by=ME)
    assert texts(memory, "Alice") == ("drinks tea", "writes Go")


def test_a_deleted_relation_is_restored_by_its_number(memory: Memory) -> None:
    relations.delete(memory, [Relation("Alice", "Bob", "knows")], by=ME)
    assert one(memory).startswith("relation/")
    trash.restore(memory, one(memory), by=ME)
    assert ("Alice", "Bob", "knows") in keys(entities.read_all(memory))
    assert ids(memory) == []


def test_only_deleted_things_can_be_restored(memory: Memory) -> None:
    with pytest.raises(BadInput, match="polymnia trash list"):
        trash.restore(memory, "Alice", by=ME)


def test_purging_keeps_living_and_recently_deleted_rows(memory: Memory) -> None:
    before = entities.read_all(memory)
    forget(memory, "Bob")
    assert trash.purge(memory, days=1) == Counts()
    assert len(trash.items(memory)) == 1
    assert trash.purge(memory, days=0) == Counts(1, 0, 2)
    assert trash.items(memory) == []
    assert names(entities.read_all(memory)) == [
        entity.name for entity in before.entities if entity.name != "Bob"
    ]
    assert memory.store.check() == []


def everything(path: Path) -> bytes:
    return b"".join(file.read_bytes() for file in sorted(path.parent.glob(f"{path.name}*")))


def delete_secrets(memory: Memory) -> None:
    """Write a secret wherever a text can be, and delete all of it."""
    create(memory, EntityDraft(f"name {SECRET}", f"type {SECRET}", (f"first {SECRET}",)))
    facts.add(
        memory,
        [FactAddition(f"name {SECRET}", (f"second {SECRET}",))],
        by=ME,
        skip_repeats=False,
    )
    facts.add(
        memory,
        [FactAddition("Bob", (f"third {SECRET}", "harmless"))],
        by=ME,
        skip_repeats=False,
    )
    link(memory, (f"name {SECRET}", "Bob", f"kind {SECRET}"), ("Bob", "Go", f"kind {SECRET}"))
    unsay(memory, "Bob", f"third {SECRET}")
    relations.delete(memory, [Relation("Bob", "Go", f"kind {SECRET}")], by=ME)
    forget(memory, f"name {SECRET}")


def test_purged_text_is_nowhere_in_the_files(memory: Memory, path: Path) -> None:
    delete_secrets(memory)
    assert SECRET.encode() in everything(path)
    assert trash.purge(memory, days=0) == Counts(entities=1, facts=3, relations=2)
    assert SECRET.encode() not in everything(path)
    assert SECRET[:6].encode() not in everything(path)
    assert texts(memory, "Bob") == ("harmless",)
    assert memory.store.check() == []


def test_the_text_of_a_purged_note_is_nowhere_in_the_files(memory: Memory, path: Path) -> None:
    notes.commit(memory, Note(f"key {SECRET}", f"first {SECRET}", tags=(SECRET,)), by=ME)
    notes.commit(memory, Note(f"key {SECRET}", f"second {SECRET}"), by=ME)
    notes.prune(memory, [VAULT], key=f"key {SECRET}", by=ME)
    assert SECRET.encode() in everything(path)
    assert trash.purge(memory, days=1) == Counts()
    assert trash.purge(memory, days=0) == Counts(notes=2)
    assert SECRET.encode() not in everything(path)
    assert SECRET[:6].encode() not in everything(path)
    assert trash.purge(memory, days=0) == Counts()
    assert memory.store.check() == []


def test_purging_an_old_note_keeps_the_history_of_its_successor(memory: Memory) -> None:
    notes.commit(memory, Note("plan", "old"), by=ME)
    notes.prune(memory, [VAULT], key="plan", by=ME)
    notes.commit(memory, Note("plan", "new"), by=ME)
    assert trash.purge(memory, days=0) == Counts(notes=1)
    assert [note.content for change in changes(memory) for note in change.after.notes] == ["new"]
    assert [item.content for item in notes.page(memory, VAULT)] == ["new"]


def test_each_deletion_of_a_key_is_purged_in_its_time(memory: Memory, path: Path) -> None:
    notes.commit(memory, Note("todo", "plugh"), by=ME)
    notes.prune(memory, [VAULT], key="todo", by=ME)
    age(path, days=99)
    notes.commit(memory, Note("todo", "milk"), by=ME)
    notes.prune(memory, [VAULT], key="todo", by=ME)
    assert trash.purge(memory, days=30) == Counts(notes=1)
    assert b"plugh" not in everything(path)
    assert [note.content for change in changes(memory) for note in change.before.notes] == ["milk"]


def test_a_purge_keeps_the_author_and_time_of_changes(memory: Memory) -> None:
    delete_secrets(memory)
    before = [(change.id, change.at, change.actor, change.operation) for change in changes(memory)]
    trash.purge(memory, days=0)
    after = changes(memory)
    assert [(item.id, item.at, item.actor, item.operation) for item in after] == before
    assert [note.facts[0].text for item in after for note in item.after.facts] == ["harmless"]


def test_purging_keeps_the_history_of_a_living_namesake(memory: Memory) -> None:
    forget(memory, "Bob")
    create(memory, EntityDraft("Bob", "robot"))
    facts.add(memory, [FactAddition("Bob", ("new",))], by=ME, skip_repeats=False)
    trash.purge(memory, days=0)
    assert changes(memory)[-1].after.facts[0].facts[0].text == "new"
    assert texts(memory, "Bob") == ("new",)


def test_a_purged_entity_cannot_be_restored_and_its_name_is_free(memory: Memory) -> None:
    forget(memory, "Bob")
    trash.purge(memory, days=0)
    with pytest.raises(BadInput):
        trash.restore(memory, "Bob", by=ME)
    assert len(create(memory, EntityDraft("Bob", "person"))) == 1


def test_the_retention_setting_purges_in_housekeeping(memory: Memory, path: Path) -> None:
    forget(memory, "Bob")
    age(path, days=10)
    for days, left in ((0, 1), (20, 1), (5, 0)):
        one_workspace(memory, trash_days=days).apply_retention()
        assert len(trash.items(memory)) == left


def age(path: Path, *, days: int) -> None:
    """Move every change that many days into the past."""
    connection = apsw.Connection(str(path))
    connection.execute(f"UPDATE changes SET at = at - {days * 86_400 * 1_000_000}")
    connection.close()


@pytest.mark.parametrize("name", ["file.jsonl", "file.mcpmem"])
def test_a_store_without_a_trash_says_so(tmp_path: Path, name: str) -> None:
    store = open_store(str(tmp_path / name))
    memory = Memory(store)
    for verb in (lambda: trash.items(memory), lambda: trash.purge(memory, days=0)):
        with pytest.raises(BadInput, match="keeps nothing that is deleted"):
            verb()
    one_workspace(memory, trash_days=1).apply_retention()
    store.close()


def test_a_pruned_note_is_listed_and_restored_completely(memory: Memory) -> None:
    kept = notes.commit(memory, Note("plan", "walk the dog", tags=("home",)), by=ME)
    notes.prune(memory, [VAULT], key="plan", by=ME)
    (item,) = trash.items(memory)
    assert item.rows.notes == (kept,)
    trash.restore(memory, item.id, by=ME)
    assert notes.read(memory, VAULT, "plan") == kept
    assert (
        notes.search(memory, NoteQuery(text="dogs", tags=("home",)), [VAULT]).hits[0].note.key
        == "plan"
    )
    assert trash.items(memory) == []


def test_a_note_is_restored_by_its_key_unless_the_key_is_in_use(memory: Memory) -> None:
    notes.commit(memory, Note("plan", "old"), by=ME)
    notes.prune(memory, [VAULT], key="plan", by=ME)
    notes.commit(memory, Note("plan", "new"), by=ME)
    assert trash.items(memory) == []
    notes.prune(memory, [VAULT], key="plan", by=ME)
    trash.restore(memory, "plan", by=ME)
    assert [item.content for item in notes.page(memory, VAULT)] == ["new"]


def test_superseded_versions_are_purged_too(memory: Memory, path: Path) -> None:
    notes.commit(memory, Note("plan", f"old {SECRET}"), by=ME)
    notes.commit(memory, Note("plan", "new"), by=ME)
    assert trash.items(memory) == []
    assert SECRET.encode() in everything(path)
    assert trash.purge(memory, days=0) == Counts(notes=1)
    assert SECRET.encode() not in everything(path)
    assert [item.content for item in notes.page(memory, VAULT)] == ["new"]


def test_notes_of_a_session_leave_nothing_to_restore_and_no_text_in_the_history(
    memory: Memory,
) -> None:
    session = NoteScope("one", "ann")
    notes.commit(memory, Note("plan", SECRET, scope=session), by=ME)
    notes.commit(memory, Note("plan", "other", scope=session), by=ME)
    notes.prune(memory, [session], by=ME)
    assert trash.items(memory) == []
    assert [change.after.notes for change in changes(memory)[-3:]] == [(), (), ()]


def test_a_relation_is_not_restored_between_entities_that_are_gone(memory: Memory) -> None:
    entities.create(memory, [EntityDraft("Ann", "person"), EntityDraft("Ben", "person")], by=ME)
    relations.create(
        memory, [Relation("Ann", "Ben", "knows"), Relation("Ann", "later", "knows")], by=ME
    )
    relations.delete(
        memory, [Relation("Ann", "Ben", "knows"), Relation("Ann", "later", "knows")], by=ME
    )
    entities.delete(memory, ["Ben"], by=ME)
    lone = {
        item.rows.relations[0].target: item.id
        for item in trash.items(memory)
        if not item.rows.entities
    }
    with pytest.raises(
        BadInput, match="the entity Ben at its end is deleted too; restore that first"
    ):
        trash.restore(memory, lone["Ben"], by=ME)
    assert trash.restore(memory, lone["later"], by=ME).relations[0].target == "later"


def test_an_undone_merge_leaves_nothing_in_the_trash(memory: Memory) -> None:
    create(memory, EntityDraft("Alicia", "person", ("plays chess",)))
    link(memory, ("Alicia", "Bob", "likes"), ("Alicia", "Alicia", "trusts"))
    receipt = merge(memory, ["Alicia"], "Alice", by=ME)
    undo.undo(memory, [receipt.change], by=ME)
    assert trash.items(memory) == []


def test_a_fact_that_was_deleted_before_its_merge_was_undone_stays_in_the_trash(
    memory: Memory,
) -> None:
    create(memory, EntityDraft("Alicia", "person", ("plays chess",)))
    unsay(memory, "Alicia", "plays chess")
    receipt = merge(memory, ["Alicia"], "Alice", by=ME)
    undo.undo(memory, [receipt.change], by=ME)
    trash.restore(memory, one(memory), by=ME)
    assert texts(memory, "Alicia") == ("plays chess",)


def test_a_moved_fact_is_in_the_trash_only_after_it_is_deleted(memory: Memory) -> None:
    move_facts(memory, [("Alice", 1)], "Bob", by=ME)
    assert trash.items(memory) == []
    unsay(memory, "Bob", "drinks tea")
    trash.restore(memory, one(memory), by=ME)
    assert (texts(memory, "Alice"), texts(memory, "Bob")) == (("writes Go",), ("drinks tea",))


def test_a_rename_leaves_no_relation_in_the_trash(memory: Memory) -> None:
    revise(memory, "Alice", Revision(name="Alicia"), by=ME)
    assert trash.items(memory) == []


def test_facts_that_an_undo_took_back_are_in_the_trash(memory: Memory) -> None:
    facts.add(memory, [FactAddition("Bob", ("sails",))], by=ME, skip_repeats=False)
    undo.undo(memory, [changes(memory)[-1].id], by=ME)
    trash.restore(memory, one(memory), by=ME)
    assert texts(memory, "Bob") == ("sails",)
