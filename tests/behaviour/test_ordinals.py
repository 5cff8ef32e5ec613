"""Observations by ordinal on every store: appended, replaced and deleted, never renumbered."""

import pytest

from polymnia.engine import ordinals
from polymnia.engine.memory import Memory
from polymnia.engine.ordinals import Deletion, OrdinalDraft
from polymnia.errors import BadInput, EntityNotFound
from polymnia.model import EntityDraft, ObservationDraft
from tests.behaviour.graphs import ME, create, texts
from tests.behaviour.graphs import ordinals as ordinals_of


@pytest.fixture
def people(memory: Memory) -> Memory:
    create(
        memory, EntityDraft("Ann", "person", ("one", "two", "three")), EntityDraft("Ben", "person")
    )
    return memory


def test_appended_observations_get_the_next_ordinals_in_the_order_given(people: Memory) -> None:
    drafts = [
        ObservationDraft("Ann", ("four", "one")),
        ObservationDraft("Ben", ("a",)),
        ObservationDraft("Ann", ("six",)),
    ]
    added = ordinals.append(people, drafts, by=ME)
    assert [[each.ordinal for each in new.observations] for new in added if new] == [
        [4, 5],
        [1],
        [6],
    ]
    assert texts(people, "Ann") == ("one", "two", "three", "four", "one", "six")


def test_an_unknown_entity_does_not_keep_the_others_from_being_appended_to(people: Memory) -> None:
    added = ordinals.append(
        people, [ObservationDraft("nobody", ("x",)), ObservationDraft("Ben", ("y",))], by=ME
    )
    assert [each is None for each in added] == [True, False]
    assert texts(people, "Ben") == ("y",)


def test_a_deleted_ordinal_is_not_used_again(people: Memory) -> None:
    deleted = ordinals.delete(
        people, [OrdinalDraft("Ann", (3, 2, 2, 9)), OrdinalDraft("nobody", (1,))], by=ME
    )
    assert deleted == [Deletion("Ann", (3, 2), (9,)), Deletion("nobody", (), (1,))]
    ordinals.append(people, [ObservationDraft("Ann", ("new",))], by=ME)
    assert ordinals_of(people, "Ann") == [1, 4]


def test_an_ordinal_that_two_deletions_name_is_deleted_once(people: Memory) -> None:
    deleted = ordinals.delete(
        people, [OrdinalDraft("Ann", (1,)), OrdinalDraft("Ann", (1, 2))], by=ME
    )
    assert deleted == [Deletion("Ann", (1,), ()), Deletion("Ann", (2,), (1,))]


def test_a_replaced_observation_keeps_its_ordinal_and_its_place(people: Memory) -> None:
    old = ordinals.replace(people, "Ann", 2, "deux", by=ME)
    assert (old.text, texts(people, "Ann"), ordinals_of(people, "Ann")) == (
        "two",
        ("one", "deux", "three"),
        [1, 2, 3],
    )
    ordinals.append(people, [ObservationDraft("Ann", ("four",))], by=ME)
    assert ordinals_of(people, "Ann") == [1, 2, 3, 4]


def test_replacing_what_does_not_exist_is_an_error(people: Memory) -> None:
    with pytest.raises(BadInput, match="no observation with ordinal 7; it has 1, 2, 3"):
        ordinals.replace(people, "Ann", 7, "x", by=ME)
    with pytest.raises(EntityNotFound):
        ordinals.replace(people, "nobody", 1, "x", by=ME)
