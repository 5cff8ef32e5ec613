"""Clusters by relations and meaning with labels, and duplicate names."""

from collections.abc import Iterator

import pytest

from polymnia.engine.curation import similar
from polymnia.engine.curation.clusters import clusters
from polymnia.engine.curation.communities import label_groups
from polymnia.engine.curation.similar import duplicate_names
from polymnia.engine.memory import Memory
from polymnia.errors import Cancelled
from polymnia.model import EntityDraft
from polymnia.stores import open_store
from tests.behaviour.graphs import create, link
from tests.behaviour.vectors import put_vectors

TEA = ("Assam", "Darjeeling", "Sencha", "Oolong")
SHIP = ("Frigate", "Schooner", "Sloop")


@pytest.fixture
def embedded(versioned_url: str) -> Iterator[Memory]:
    store = open_store(versioned_url)
    yield Memory(store)
    store.close()


def put_groups(memory: Memory) -> None:
    create(
        memory,
        *[EntityDraft(name, "tea", ("is brewed leaves", f"{name} is brewed")) for name in TEA],
    )
    create(
        memory, *[EntityDraft(name, "ship", ("sails the sea", f"{name} sails")) for name in SHIP]
    )


def link_all(memory: Memory, names: tuple[str, ...]) -> None:
    link(memory, *[(a, b, "like") for a in names for b in names if a < b])


def test_relations_hold_clusters_together(memory: Memory) -> None:
    put_groups(memory)
    link_all(memory, TEA)
    link_all(memory, SHIP)
    link(
        memory,
        ("Assam", "Frigate", "shipped by"),
        ("Assam", "Nobody", "knows"),
        ("Sloop", "Sloop", "is"),
    )
    found = clusters(memory)
    assert [(item.number, set(item.names)) for item in found] == [(1, set(TEA)), (2, set(SHIP))]
    assert [item.names[0] for item in found] == ["Assam", "Frigate"]  # the most connected
    labels = [item.label for item in found]
    assert "brewed" in str(labels[0])
    assert "sails" in str(labels[1])


def test_similar_meaning_holds_clusters_together(embedded: Memory) -> None:
    put_groups(embedded)
    tea, sea = (1.0, 0.1), (0.0, 1.0)
    texts = {f"{name} is brewed": tea for name in TEA} | {f"{name} sails": sea for name in SHIP}
    put_vectors(embedded, texts)
    assert [set(cluster.names) for cluster in clusters(embedded)] == [set(TEA), set(SHIP)]


def test_small_clusters_are_left_out(memory: Memory) -> None:
    put_groups(memory)
    link_all(memory, TEA)
    link_all(memory, SHIP)
    assert [set(cluster.names) for cluster in clusters(memory, min_size=4)] == [set(TEA)]
    assert [set(cluster.names) for cluster in clusters(memory, limit=1)] == [set(TEA)]
    assert clusters(memory, min_size=5) == []


def test_a_memory_without_relations_has_no_clusters(memory: Memory) -> None:
    assert clusters(memory) == []
    put_groups(memory)
    assert clusters(memory) == []


def test_the_same_memory_always_has_the_same_clusters(memory: Memory) -> None:
    create(memory, *[EntityDraft(f"E{number}", "x") for number in range(60)])
    link(
        memory,
        *[(f"E{one}", f"E{(one * step) % 60}", "to") for one in range(60) for step in (7, 13)],
    )
    assert clusters(memory) == clusters(memory)


def test_clustering_stops_when_told(memory: Memory) -> None:
    put_groups(memory)
    link_all(memory, TEA)

    def stop() -> None:
        raise Cancelled("the client cancelled this call")

    with pytest.raises(Cancelled):
        clusters(memory, check=stop)


def test_a_label_has_the_words_that_tell_a_group_from_the_others() -> None:
    groups = [
        ["The team deploys the service", "deploys of the service on Friday", "deploying 2024"],
        ["The team bakes bread", "bread and the oven"],
        ["the of 12"],
        [],
    ]
    deploys, bread, *rest = label_groups(groups, words=2)
    assert deploys == "deploys, service"
    assert str(bread).startswith("bread, ")
    assert rest == [None, None]


def pairs(memory: Memory) -> list[tuple[str, str]]:
    return [(name.a, name.b) for name in duplicate_names(memory)]


@pytest.mark.parametrize(
    ("one", "other", "similarity"),
    [
        ("Auth Service", "auth-service", 1.0),
        ("Zoë", "zoe", 1.0),
        ("AuthService", "Auth service", 1.0),
        ("Ada Lovelace", "Lovelace, Ada", 0.95),
        ("Postgres", "Postgress", 0.94),
        ("Project Atlas", "Project Atlsa", 0.92),
        ("deployment", "deploiment", 0.9),
    ],
)
def test_names_that_are_alike_are_duplicates(
    memory: Memory, one: str, other: str, similarity: float
) -> None:
    create(
        memory, EntityDraft(one, "x"), EntityDraft(other, "y"), EntityDraft("Something else", "z")
    )
    (found,) = duplicate_names(memory)
    assert {found.a: found.a_type, found.b: found.b_type} == {one: "x", other: "y"}
    assert found.similarity == pytest.approx(similarity, abs=0.01)


@pytest.mark.parametrize(
    ("one", "other"),
    [
        ("Team A", "Team B"),
        ("Sprint 12", "Sprint 13"),
        ("node", "code"),
        ("planet", "plants"),
        ("release2024", "release2025"),
        ("!!", "??"),
        ("x" * 70, "x" * 69 + "y"),
    ],
)
def test_names_that_mean_different_things_are_no_duplicates(
    memory: Memory, one: str, other: str
) -> None:
    create(memory, EntityDraft(one, "x"), EntityDraft(other, "x"))
    assert duplicate_names(memory) == []


def test_the_most_similar_names_come_first(memory: Memory) -> None:
    create(
        memory,
        *[EntityDraft(name, "x") for name in ("Postgres", "Postgress", "Redis", "REDIS", "redis")],
    )
    assert pairs(memory) == [
        ("REDIS", "Redis"),
        ("REDIS", "redis"),
        ("Redis", "redis"),
        ("Postgres", "Postgress"),
    ]
    assert [name.similarity for name in duplicate_names(memory, limit=2)] == [1.0, 1.0]


def test_many_names_that_are_all_alike_do_not_fill_the_memory(
    memory: Memory, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(similar, "MAX_ALIKE", 3)
    create(memory, *[EntityDraft("redis" + "!" * number, "x") for number in range(10)])
    assert len(duplicate_names(memory)) == 3
