"""Summaries and tags on every store, and the times that move with them and with relations."""

import pytest

from polymnia.engine.facts.revise import Revision, revise
from polymnia.engine.graph import entities, relations
from polymnia.engine.memory import Memory
from polymnia.errors import BadInput, EntityNotFound
from polymnia.model import Entity, EntityDraft, Relation
from tests.behaviour.graphs import ME, create, link


@pytest.fixture
def people(memory: Memory) -> Memory:
    create(
        memory,
        EntityDraft("Ann", "person", ("one",)),
        EntityDraft("Ben", "person"),
        EntityDraft("Cem", "person"),
    )
    return memory


def find(memory: Memory, name: str) -> Entity:
    (found,) = entities.open_named(memory, [name]).entities
    return found


def test_a_summary_is_set_with_its_time(people: Memory) -> None:
    before = find(people, "Ann")
    changed = revise(people, "Ann", Revision(summary="A person"), by=ME).after
    assert find(people, "Ann") == changed
    assert (changed.summary, changed.summary_at, changed.texts) == (
        "A person",
        changed.updated_at,
        ("one",),
    )
    assert changed.updated_at > before.updated_at


def test_tags_are_replaced_and_the_time_of_the_summary_stays(people: Memory) -> None:
    summarized = revise(people, "Ann", Revision(summary="A person"), by=ME).after
    revise(people, "Ann", Revision(tags=("x", "y", "x")), by=ME)
    found = find(people, "Ann")
    assert (found.tags, found.summary_at) == (("x", "y"), summarized.summary_at)
    assert found.updated_at > summarized.updated_at
    assert revise(people, "Ann", Revision(tags=()), by=ME).after.tags == ()


def test_a_summary_that_is_given_again_is_up_to_date(people: Memory) -> None:
    first = revise(people, "Ann", Revision(summary="A person"), by=ME).after
    again = revise(people, "Ann", Revision(summary="A person"), by=ME).after
    assert again.summary == first.summary
    assert again.summary_at > first.summary_at


def test_an_unknown_entity_has_no_summary_and_no_tags(people: Memory) -> None:
    with pytest.raises(EntityNotFound):
        revise(people, "nobody", Revision(summary="x"), by=ME)
    with pytest.raises(EntityNotFound):
        revise(people, "nobody", Revision(tags=("x",)), by=ME)


def test_a_relation_updates_the_entities_at_its_ends(people: Memory) -> None:
    times = {name: find(people, name).updated_at for name in ("Ann", "Ben", "Cem")}
    link(people, ("Ann", "Ben", "knows"))
    linked = {name: find(people, name).updated_at for name in times}
    assert [linked[name] > times[name] for name in times] == [True, True, False]
    relations.rename(people, Relation("Ann", "Ben", "knows"), "likes", by=ME)
    renamed = find(people, "Ben").updated_at
    assert renamed > linked["Ben"]
    relations.delete(people, [Relation("Ann", "Ben", "likes")], by=ME)
    assert find(people, "Ben").updated_at > renamed


def test_a_deleted_entity_updates_those_it_was_related_to(people: Memory) -> None:
    link(people, ("Ann", "Ben", "knows"))
    before = find(people, "Ben").updated_at
    entities.delete(people, ["Ann"], by=ME)
    assert find(people, "Ben").updated_at > before


def test_creating_relations_tells_which_existed_and_which_ends_are_unknown(people: Memory) -> None:
    link(people, ("Ann", "Ben", "knows"))
    keys = [
        ("Ann", "Ben", "knows"),
        ("Ben", "Cem", "knows"),
        ("Ben", "nobody", "knows"),
        ("Ben", "Cem", "knows"),
    ]
    result = relations.create(people, [Relation(*key) for key in keys], by=ME, unknown_ends="skip")
    assert [item.key for item in result.new] == [("Ben", "Cem", "knows")]
    assert [item.key for item in result.existing] == [("Ann", "Ben", "knows")]
    assert result.unknown_ends == ["nobody"]


def test_a_relation_is_renamed_unless_there_is_such_a_one(people: Memory) -> None:
    link(people, ("Ann", "Ben", "knows"), ("Ann", "Ben", "likes"))
    with pytest.raises(BadInput, match="exists already"):
        relations.rename(people, Relation("Ann", "Ben", "knows"), "likes", by=ME)
    with pytest.raises(BadInput, match="there is no relation Ben -knows-> Ann"):
        relations.rename(people, Relation("Ben", "Ann", "knows"), "likes", by=ME)
    relations.rename(people, Relation("Ann", "Ben", "knows"), "knows", by=ME)
    relations.rename(people, Relation("Ann", "Ben", "knows"), "met", by=ME)
    assert {item.key for item in relations.between(people, "Ann", "Ben")} == {
        ("Ann", "Ben", "met"),
        ("Ann", "Ben", "likes"),
    }


def test_relations_between_two_entities_are_found_in_both_directions(people: Memory) -> None:
    link(
        people,
        ("Ann", "Ben", "knows"),
        ("Ben", "Ann", "likes"),
        ("Ann", "Cem", "knows"),
        ("Cem", "Cem", "is"),
    )
    assert [item.key for item in relations.between(people, "Ann", "Ben")] == [
        ("Ann", "Ben", "knows"),
        ("Ben", "Ann", "likes"),
    ]
    assert len(relations.between(people, "Cem", "Cem")) == 1
    with pytest.raises(EntityNotFound):
        relations.between(people, "Ann", "nobody")
