"""The overview of the graph on every store."""

import pytest

from polymnia.engine.graph.drawing import (
    MAX_GROUPS,
    GraphOverview,
    GraphOverviews,
    graph_overview,
)
from polymnia.engine.memory import Memory
from polymnia.model import EntityDraft
from tests.behaviour.graphs import create, link


def team(memory: Memory, letter: str, size: int, kind: str = "person") -> None:
    """Create entities that all know one another."""
    names = [f"{letter}{number}" for number in range(size)]
    create(memory, *[EntityDraft(name, kind, (f"plays {letter * 4}ball",)) for name in names])
    link(memory, *[(a, b, "knows") for a in names for b in names if a < b])


def sizes(found: GraphOverview) -> list[tuple[str, int]]:
    return [(group.kind, len(group.names)) for group in found.groups]


def test_groups_are_the_clusters_with_their_relations(memory: Memory) -> None:
    team(memory, "k", 5)
    team(memory, "b", 4, "project")
    link(memory, ("k0", "b0", "leads"), ("k0", "b1", "leads"), ("b1", "a ghost", "leads"))
    found = graph_overview(memory)
    assert sizes(found) == [("cluster", 5), ("cluster", 4)]
    first, second = found.groups
    assert (first.type, first.inside, first.outside) == ("person", 10, 2)
    assert (second.type, second.inside, second.outside) == ("project", 6, 2)
    assert first.names[0] == "k0"
    assert [(item.one, item.other, item.count) for item in found.links] == [(0, 1, 2)]
    assert (found.entities, found.relations) == (9, 18)


def test_a_label_has_the_words_that_tell_a_cluster_from_the_others(memory: Memory) -> None:
    team(memory, "k", 4)
    team(memory, "b", 3)
    assert "kkkkball" in graph_overview(memory).groups[0].label


def test_entities_without_relations_are_grouped_by_type(memory: Memory) -> None:
    create(memory, *[EntityDraft(name, "place") for name in "abc"], EntityDraft("d", "person"))
    link(memory, ("d", "d", "knows"))
    found = graph_overview(memory)
    assert [(group.kind, group.label, len(group.names)) for group in found.groups] == [
        ("loose", "place without relations", 3),
        ("loose", "person without relations", 1),
    ]


def test_more_clusters_than_fit_are_one_group(memory: Memory) -> None:
    pairs = [(f"a{number}", f"b{number}") for number in range(MAX_GROUPS + 10)]
    create(
        memory,
        *[EntityDraft(name, f"t{name[-1]}") for pair in pairs for name in pair],
        EntityDraft("x", "place"),
    )
    link(memory, *[(a, b, "knows") for a, b in pairs])
    found = graph_overview(memory)
    assert len(found.groups) == MAX_GROUPS
    assert sizes(found)[-3:] == [("cluster", 2), ("small", 2 * 12), ("loose", 1)]
    assert sum(size for _, size in sizes(found)) == found.entities == 2 * len(pairs) + 1


def test_an_empty_memory_has_an_empty_overview(memory: Memory) -> None:
    assert graph_overview(memory).groups == []


def test_an_overview_is_computed_anew_when_something_has_changed(memory: Memory) -> None:
    now = [0.0]
    overviews = GraphOverviews(lambda: now[0])
    create(memory, EntityDraft("a", "place"))
    first = overviews.find(memory)
    now[0] += 1_000
    if memory.store.capabilities.history:
        assert overviews.find(memory) is first
    create(memory, EntityDraft("b", "place"))
    assert overviews.find(memory).entities == 2


def test_a_large_memory_is_not_looked_through_unless_asked(
    memory: Memory, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("polymnia.engine.graph.drawing.MAX_QUICK_ENTITIES", 1)
    overviews = GraphOverviews()
    create(memory, EntityDraft("a", "place"))
    create(memory, EntityDraft("b", "place"))
    assert overviews.find_soon(memory) is None
    found = overviews.find(memory)
    assert overviews.find_soon(memory) is not None
    assert found.entities == 2


def test_an_overview_that_took_long_is_kept_for_a_while_unless_asked_anew(memory: Memory) -> None:
    overviews = GraphOverviews(lambda: 0.0)  # no time passes
    create(memory, EntityDraft("a", "place"))
    overviews.find(memory)
    create(memory, EntityDraft("b", "place"))
    assert overviews.find(memory).entities == 1
    assert overviews.find(memory, refresh=True).entities == 2
