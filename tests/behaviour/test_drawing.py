"""Parts of the graph to draw, on every store."""

import pytest

from polymnia.engine.graph import drawing
from polymnia.engine.graph.drawing import Drawing, draw
from polymnia.engine.memory import Memory
from polymnia.model import EntityDraft
from tests.behaviour.graphs import create, link


@pytest.fixture
def river(memory: Memory) -> Memory:
    """Create a hub with four neighbours. b leads on to c, and c to d.

    One relation has a name without an entity.
    """
    create(
        memory,
        *[EntityDraft(name, "place", ("text",)) for name in ("hub", "a", "b", "c", "d", "e", "f")],
    )
    link(
        memory,
        ("hub", "a", "r"),
        ("b", "hub", "s"),
        ("hub", "e", "r"),
        ("hub", "f", "r"),
        ("b", "c", "r"),
    )
    link(memory, ("c", "d", "r"), ("hub", "ghost", "r"))
    return memory


def shown(found: Drawing) -> dict[str, int]:
    """Return the hidden neighbours of each entity that is drawn."""
    return {node.entity.name: node.hidden for node in found.nodes}


def test_a_drawing_tells_how_many_neighbours_are_not_drawn(river: Memory) -> None:
    found = draw(river, ["hub", "b", "nobody"])
    assert shown(found) == {"hub": 3, "b": 1}
    assert [relation.key for relation in found.relations] == [("b", "hub", "s")]
    assert found.entities == 7
    assert all(not node.entity.facts for node in found.nodes)


def test_an_expanded_entity_shows_its_neighbours(river: Memory) -> None:
    assert shown(draw(river, ["d"], expand=["b"])) == {"d": 0, "b": 0, "hub": 3, "c": 0}


def test_steps_lead_further(river: Memory) -> None:
    assert set(shown(draw(river, [], expand=["hub"]))) == {"hub", "a", "b", "e", "f"}
    assert set(shown(draw(river, [], expand=["hub"], steps=2))) == {"hub", "a", "b", "e", "f", "c"}


def test_of_many_neighbours_those_with_the_latest_relations_are_drawn(river: Memory) -> None:
    assert shown(draw(river, [], expand=["hub"], added=2)) == {"hub": 2, "f": 0, "e": 0}


def test_only_relations_of_the_chosen_types_count(river: Memory) -> None:
    found = draw(river, [], expand=["hub"], kinds=["s"])
    assert shown(found) == {"hub": 0, "b": 0}
    assert [(kind.type, kind.count) for kind in found.types] == [("r", 5), ("s", 1)]
    assert shown(draw(river, ["hub", "a"], kinds=[])) == {"hub": 0, "a": 0}


def test_a_drawing_has_a_limit(river: Memory, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(drawing, "MAX_NODES", 3)
    assert draw(river, ["a", "b", "c", "d"]).is_cut
    found = draw(river, ["a"], expand=["hub"])
    assert (list(shown(found)), found.is_cut) == (["a", "hub", "f"], False)
