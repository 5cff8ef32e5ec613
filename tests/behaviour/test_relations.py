"""Relations on every store: creating and deleting."""

from polymnia.engine.graph import entities, relations
from polymnia.engine.memory import Memory
from polymnia.model import Relation
from tests.behaviour.graphs import ME, keys, link


def test_new_relations_are_returned_in_the_given_order(memory: Memory) -> None:
    created = link(memory, ("B", "C", "r"), ("A", "B", "r"))
    assert [relation.key for relation in created] == [("B", "C", "r"), ("A", "B", "r")]


def test_a_known_relation_is_not_created_twice(memory: Memory) -> None:
    link(memory, ("A", "B", "knows"))
    assert link(memory, ("A", "B", "knows")) == []
    assert keys(entities.read_all(memory)) == [("A", "B", "knows")]


def test_a_relation_repeated_in_one_call_is_created_once(memory: Memory) -> None:
    created = link(memory, ("A", "B", "r"), ("A", "C", "r"), ("A", "B", "r"))
    assert [relation.key for relation in created] == [("A", "B", "r"), ("A", "C", "r")]


def test_relations_differ_by_type_and_direction(memory: Memory) -> None:
    link(memory, ("A", "B", "knows"))
    assert len(link(memory, ("A", "B", "likes"), ("B", "A", "knows"))) == 2


def test_either_end_may_be_a_name_without_an_entity(memory: Memory) -> None:
    link(memory, ("Nobody", "Nothing", "r"))
    assert keys(entities.read_all(memory)) == [("Nobody", "Nothing", "r")]


def test_deleting_removes_only_the_given_relation(memory: Memory) -> None:
    link(memory, ("A", "B", "knows"), ("A", "B", "likes"), ("B", "A", "knows"))
    deleted = relations.delete(
        memory, [Relation("A", "B", "knows"), Relation("X", "Y", "z")], by=ME
    )
    assert [relation.key for relation in deleted] == [("A", "B", "knows")]
    assert keys(entities.read_all(memory)) == [("A", "B", "likes"), ("B", "A", "knows")]


def test_a_deleted_relation_can_be_created_again(memory: Memory) -> None:
    link(memory, ("A", "B", "r"), ("A", "C", "r"))
    relations.delete(memory, [Relation("A", "B", "r")], by=ME)
    link(memory, ("A", "B", "r"))
    assert keys(entities.read_all(memory)) == [("A", "C", "r"), ("A", "B", "r")]


def test_a_relation_from_a_name_to_itself_can_be_deleted(memory: Memory) -> None:
    link(memory, ("A", "A", "r"))
    assert relations.delete(memory, [Relation("A", "A", "r")], by=ME)[0].key == ("A", "A", "r")
    assert keys(entities.read_all(memory)) == []
