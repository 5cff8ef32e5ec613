"""Moving observations, tagging several entities, previews of a merge, and edits that expect a text,
on every store.
"""

import pytest

from polymnia.engine.facts.merge import merge, move_facts
from polymnia.engine.facts.revise import Edit, Revision, TagReceipt, revise, tag_entities
from polymnia.engine.graph import entities
from polymnia.engine.history.undo import undo
from polymnia.engine.memory import Memory
from polymnia.errors import BadInput, EntityNotFound, TextChanged
from polymnia.model import EntityDraft
from tests.behaviour.graphs import ME, create, link, names, texts
from tests.conftest import VERSIONED


@pytest.fixture(autouse=True)
def harbour(memory: Memory) -> None:
    create(
        memory,
        EntityDraft("Ada", "person", ("writes", "sings")),
        EntityDraft("Bob", "person", ("sings", "rows")),
    )


def test_facts_move_with_their_times(memory: Memory) -> None:
    before = entities.open_named(memory, ["Ada"]).entities[0].facts[0]
    receipt = move_facts(memory, [("Ada", 1)], "Bob", by=ME)
    assert (receipt.moved, receipt.known, receipt.is_new) == (1, 0, False)
    moved = entities.open_named(memory, ["Bob"]).entities[0].facts[-1]
    assert (moved.ordinal, moved.text, moved.created_at) == (3, "writes", before.created_at)
    assert texts(memory, "Ada") == ("sings",)


def test_a_text_that_the_target_has_is_only_removed(memory: Memory) -> None:
    receipt = move_facts(memory, [("Ada", 1), ("Ada", 2)], "Bob", by=ME)
    assert (receipt.moved, receipt.known) == (1, 1)
    assert (texts(memory, "Ada"), texts(memory, "Bob")) == ((), ("sings", "rows", "writes"))


def test_facts_may_move_to_a_new_entity(memory: Memory) -> None:
    receipt = move_facts(memory, [("Ada", 2), ("Bob", 2)], "Choir", by=ME, new_type="group")
    assert receipt.is_new
    assert texts(memory, "Choir") == ("sings", "rows")
    create(memory, EntityDraft("Dora", "person"))
    move_facts(memory, [("Ada", 1)], "Choir", by=ME)
    assert texts(memory, "Choir") == ("sings", "rows", "writes")


def test_a_preview_of_a_move_changes_nothing(memory: Memory) -> None:
    receipt = move_facts(memory, [("Ada", 1), ("Ada", 2)], "Bob", by=ME, dry_run=True)
    assert (receipt.change, receipt.moved, receipt.known) == (0, 1, 1)
    assert texts(memory, "Ada") == ("writes", "sings")


def test_a_move_is_refused_whole(memory: Memory) -> None:
    for chosen, target, error in (
        ([("Ada", 1), ("Ada", 9)], "Bob", BadInput),
        ([("Ada", 1), ("Eve", 1)], "Bob", EntityNotFound),
        ([("Ada", 1)], "Ada", BadInput),
        ([("Ada", 1)], "Eve", EntityNotFound),
    ):
        with pytest.raises(error):
            move_facts(memory, chosen, target, by=ME)
    assert texts(memory, "Ada") == ("writes", "sings")


@pytest.mark.parametrize("memory", VERSIONED, indirect=True)
def test_a_move_is_one_change_that_can_be_undone(memory: Memory) -> None:
    receipt = move_facts(memory, [("Ada", 1), ("Ada", 2)], "Bob", by=ME)
    undo(memory, [receipt.change], by=ME)
    assert (texts(memory, "Ada"), texts(memory, "Bob")) == (("writes", "sings"), ("sings", "rows"))


@pytest.mark.parametrize("memory", VERSIONED, indirect=True)
def test_several_entities_get_tags(memory: Memory) -> None:
    assert tag_entities(memory, ["Ada", "Bob"], add=["crew", "old"], by=ME).names == ("Ada", "Bob")
    assert tag_entities(memory, ["Ada", "Bob"], add=["crew"], remove=["old"], by=ME).names == (
        "Ada",
        "Bob",
    )
    assert tag_entities(memory, ["Ada", "Bob"], add=["crew"], by=ME) == TagReceipt(0, ())
    assert [entity.tags for entity in entities.open_named(memory, ["Ada", "Bob"]).entities] == [
        ("crew",),
        ("crew",),
    ]


def test_tags_are_refused_whole(memory: Memory) -> None:
    with pytest.raises(EntityNotFound):
        tag_entities(memory, ["Ada", "Eve"], add=["crew"], by=ME)
    with pytest.raises(BadInput):
        tag_entities(memory, ["Ada"], add=[" "], by=ME)


def test_a_preview_of_a_merge_counts_and_changes_nothing(memory: Memory) -> None:
    link(memory, ("Ada", "Bob", "knows"), ("Ada", "Carl", "knows"))
    preview = merge(memory, ["Ada"], "Bob", by=ME, dry_run=True)
    assert (preview.change, preview.facts, preview.known, preview.relations) == (0, 1, 1, 1)
    assert names(entities.read_all(memory)) == ["Ada", "Bob"]
    done = merge(memory, ["Ada"], "Bob", by=ME)
    assert (done.facts, done.known, done.relations) == (1, 1, 1)
    assert names(entities.read_all(memory)) == ["Bob"]


def test_an_edit_may_expect_a_text(memory: Memory) -> None:
    revise(memory, "Ada", Revision(replace=(Edit(1, "writes programs", expected="writes"),)), by=ME)
    assert texts(memory, "Ada") == ("writes programs", "sings")


def test_an_edit_of_another_text_is_refused_with_that_text(memory: Memory) -> None:
    with pytest.raises(TextChanged) as caught:
        revise(
            memory, "Ada", Revision(replace=(Edit(1, "writes programs", expected="reads"),)), by=ME
        )
    assert caught.value.text == "writes"
    with pytest.raises(TextChanged) as caught:
        revise(
            memory, "Ada", Revision(replace=(Edit(9, "writes programs", expected="reads"),)), by=ME
        )
    assert caught.value.text is None
    assert texts(memory, "Ada") == ("writes", "sings")
