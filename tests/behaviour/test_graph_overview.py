"""The overview of the graph on every store."""

from concurrent.futures import ThreadPoolExecutor
from math import hypot
from threading import Event

import pytest

from polymnia.engine.graph.overview import (
    MAX_GROUPS,
    MAX_LINKS,
    GraphOverview,
    GraphOverviews,
    graph_overview,
    group_radius,
)
from polymnia.engine.memory import Memory
from polymnia.errors import BadInput
from polymnia.model import EntityDraft
from tests.behaviour.graphs import create, link
from tests.processes import TIMEOUT_S


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


def test_a_cluster_has_the_name_of_its_best_connected_entity(memory: Memory) -> None:
    team(memory, "k", 4)
    link(memory, ("k2", "k0", "leads"))
    first = graph_overview(memory).groups[0]
    assert (first.label, first.types) == (first.names[0], ("person",))
    assert first.label in ("k0", "k2")


def test_groups_do_not_overlap_and_keep_their_strongest_links(memory: Memory) -> None:
    letters = "abcdefgh"
    for letter in letters:
        team(memory, letter, 4)
    pairs = [(a, b) for a in letters for b in letters if a < b]
    link(memory, *[(f"{a}0", f"{b}1", "knows") for a, b in pairs])
    overview = graph_overview(memory)
    groups = overview.groups
    for place, one in enumerate(groups):
        for other in groups[place + 1 :]:
            distance = hypot(one.x - other.x, one.y - other.y)
            assert distance > group_radius(one) + group_radius(other)
    assert len(overview.links) <= MAX_LINKS * len(groups)


def test_a_group_has_an_overview_of_its_own(memory: Memory) -> None:
    team(memory, "k", 5)
    team(memory, "b", 4)
    with ThreadPoolExecutor(1) as pool:
        overviews = GraphOverviews(pool)
        place = overviews.find(memory).group_of("b2")
        assert place == 1
        inner = overviews.find(memory, (place,))
        assert sorted(inner.groups[0].names) == ["b0", "b1", "b2", "b3"]
        with pytest.raises(BadInput, match="no such cluster"):
            overviews.find(memory, (7,))


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
    drafts = [EntityDraft(name, f"t{name[-1]}") for pair in pairs for name in pair]
    create(memory, *drafts, EntityDraft("x", "place"))
    link(memory, *[(a, b, "knows") for a, b in pairs])
    overview = graph_overview(memory)
    assert sizes(overview)[MAX_GROUPS - 1 :] == [("cluster", 2), ("small", 20), ("loose", 1)]
    assert sum(size for _, size in sizes(overview)) == overview.entities == 2 * len(pairs) + 1


def test_an_empty_memory_has_an_empty_overview(memory: Memory) -> None:
    assert graph_overview(memory).groups == []


def test_an_overview_is_computed_once_for_each_state(memory: Memory) -> None:
    now = [0.0]
    with ThreadPoolExecutor(1) as pool:
        overviews = GraphOverviews(pool, lambda: now[0])
        create(memory, EntityDraft("a", "place"))
        first = overviews.find(memory)
        now[0] += 1_000
        if memory.store.capabilities.history:
            assert overviews.find(memory) is first
        create(memory, EntityDraft("b", "place"))
        assert overviews.find(memory).entities in (1, 2)  # the last one, while a new one is made
        pool.submit(int).result()
        assert overviews.find(memory).entities == 2


def test_a_first_overview_is_not_waited_for(memory: Memory) -> None:
    gate = Event()
    create(memory, EntityDraft("a", "place"))
    with ThreadPoolExecutor(1) as pool:
        pool.submit(gate.wait, TIMEOUT_S)
        overviews = GraphOverviews(pool)
        assert overviews.find_soon(memory) is None
        gate.set()
        assert overviews.find(memory).entities == 1
        assert overviews.find_soon(memory) is not None


def test_an_overview_that_took_long_is_kept_for_a_while_unless_asked_anew(memory: Memory) -> None:
    with ThreadPoolExecutor(1) as pool:
        overviews = GraphOverviews(pool, lambda: 0.0)  # no time passes
        create(memory, EntityDraft("a", "place"))
        overviews.find(memory)
        create(memory, EntityDraft("b", "place"))
        assert overviews.find(memory).entities == 1
        assert overviews.find(memory, refresh=True).entities == 2
