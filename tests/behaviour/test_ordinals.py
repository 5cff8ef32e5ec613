"""Observations by ordinal on every store: appended, replaced and deleted, never renumbered."""

import pytest

from polymnia.engine.facts.revise import Edit, Replacement, Revision, revise
from polymnia.engine.graph import observations
from polymnia.engine.memory import Memory
from polymnia.errors import BadInput, EntityNotFound
from polymnia.model import EntityDraft, ObservationDraft
from tests.behaviour.graphs import ME, create, ordinals, texts


@pytest.fixture
def people(memory: Memory) -> Memory:
    create(
        memory, EntityDraft("Ann", "person", ("one", "two", "three")), EntityDraft("Ben", "person")
    )
    return memory


def remove(memory: Memory, *removals: tuple[str, tuple[int, ...]]) -> list[tuple[object, ...]]:
    removed = observations.remove(memory, removals, by=ME)
    return [
        (item.entity, [one.ordinal for one in item.observations], item.missing) for item in removed
    ]


def replace(memory: Memory, name: str, edit: Edit) -> tuple[Replacement, ...]:
    return revise(memory, name, Revision(replace=(edit,)), by=ME).replaced


def test_appended_observations_get_the_next_ordinals_in_the_order_given(people: Memory) -> None:
    drafts = [
        ObservationDraft("Ann", ("four", "one")),
        ObservationDraft("Ben", ("a",)),
        ObservationDraft("Ann", ("six",)),
    ]
    added = observations.add(people, drafts, by=ME)
    assert [[observation.ordinal for observation in new.observations] for new in added] == [
        [4, 5],
        [1],
        [6],
    ]
    assert texts(people, "Ann") == ("one", "two", "three", "four", "one", "six")


def test_an_unknown_entity_does_not_keep_the_others_from_being_appended_to(people: Memory) -> None:
    drafts = [ObservationDraft("nobody", ("x",)), ObservationDraft("Ben", ("y",))]
    added = observations.add(people, drafts, by=ME, skip_unknown=True)
    assert [item.before is None for item in added] == [True, False]
    assert texts(people, "Ben") == ("y",)


def test_a_deleted_ordinal_is_not_used_again(people: Memory) -> None:
    assert remove(people, ("Ann", (3, 2, 2, 9)), ("nobody", (1,))) == [
        ("Ann", [3, 2], (9,)),
        ("nobody", [], (1,)),
    ]
    observations.add(people, [ObservationDraft("Ann", ("new",))], by=ME)
    assert ordinals(people, "Ann") == [1, 4]


def test_an_ordinal_that_two_deletions_name_is_deleted_once(people: Memory) -> None:
    assert remove(people, ("Ann", (1,)), ("Ann", (1, 2))) == [
        ("Ann", [1], ()),
        ("Ann", [2], (1,)),
    ]


def test_a_replaced_observation_keeps_its_ordinal_and_its_place(people: Memory) -> None:
    (replaced,) = replace(people, "Ann", Edit(2, "deux", renew=True))
    assert replaced.new.created_at > replaced.old.created_at
    assert (replaced.old.text, texts(people, "Ann"), ordinals(people, "Ann")) == (
        "two",
        ("one", "deux", "three"),
        [1, 2, 3],
    )
    observations.add(people, [ObservationDraft("Ann", ("four",))], by=ME)
    assert ordinals(people, "Ann") == [1, 2, 3, 4]


def test_replacing_what_does_not_exist_is_an_error(people: Memory) -> None:
    with pytest.raises(BadInput, match=r"no fact #7; it has 1: one \| 2: two \| 3: three"):
        replace(people, "Ann", Edit(7, "x"))
    with pytest.raises(EntityNotFound):
        replace(people, "nobody", Edit(1, "x"))
