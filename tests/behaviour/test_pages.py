"""Counts, types, pages and ranked search on every store."""

import pytest

from polymnia.engine.graph import entities, facts, relations
from polymnia.engine.health import statistics
from polymnia.engine.memory import Memory
from polymnia.engine.recall import search
from polymnia.model import EntityDraft, FactAddition, Relation, Rows
from tests.behaviour.graphs import ME, create, keys, link, names


@pytest.fixture
def town(memory: Memory) -> Memory:
    create(
        memory,
        EntityDraft("Ann", "person", ("likes coffee",)),
        EntityDraft("Café Ann", "shop", ("sells tea", "likes coffee")),
        EntityDraft("Ben", "person"),
        EntityDraft("gone", "ghost", ("boo",)),
        EntityDraft("Annex", "building", ("behind the shop",)),
        EntityDraft("coffee", "drink"),
    )
    link(
        memory,
        ("Ann", "Ben", "knows"),
        ("Ben", "Ann", "knows"),
        ("Ann", "Annex", "visits"),
        ("Ben", "gone", "sees"),
    )
    entities.delete(memory, ["gone"], by=ME)
    return memory


def test_deleted_entities_and_relations_do_not_count_for_types(town: Memory) -> None:
    found = [(kind.type, kind.count) for kind in entities.types(town)]
    assert found == [("person", 2), ("building", 1), ("drink", 1), ("shop", 1)]
    assert [(kind.type, kind.count) for kind in relations.types(town)] == [
        ("knows", 2),
        ("visits", 1),
    ]


def test_statistics_count_each_distinct_text_once(town: Memory) -> None:
    found = statistics(town)
    texts = {
        "Ann",
        "person",
        "likes coffee",
        "Café Ann",
        "shop",
        "sells tea",
        "Ben",
        "Annex",
        "building",
    }
    texts |= {"behind the shop", "coffee", "drink", "knows", "visits"}
    assert (found.counts.entities, found.counts.facts, found.counts.relations) == (5, 4, 3)
    assert (found.texts, found.text_bytes) == (
        len(texts),
        sum(len(text.encode()) for text in texts),
    )


def page(
    memory: Memory, kind: str | None = None, offset: int = 0, limit: int | None = None
) -> list[str]:
    return names(entities.page(memory, kind=kind, offset=offset, limit=limit))


def test_pages_are_in_order_of_creation(town: Memory) -> None:
    assert page(town, None, 1, 2) == ["Café Ann", "Ben"]
    assert page(town, None, 3) == ["Annex", "coffee"]
    assert page(town, "person") == ["Ann", "Ben"]
    assert page(town, "person", 1, 5) == ["Ben"]
    assert page(town, "nothing") == page(town, None, 99) == page(town, None, 0, 0) == []


def test_a_page_has_the_relations_among_its_entities(town: Memory) -> None:
    graph = entities.page(town, kind="person", offset=0, limit=None)
    assert keys(graph) == [("Ann", "Ben", "knows"), ("Ben", "Ann", "knows")]


@pytest.mark.parametrize(
    ("source", "target", "kind", "found"),
    [
        ("Ann", None, None, [("Ann", "Ben", "knows"), ("Ann", "Annex", "visits")]),
        (None, "Ann", None, [("Ben", "Ann", "knows")]),
        (None, None, "visits", [("Ann", "Annex", "visits")]),
        ("Ann", "Ben", "knows", [("Ann", "Ben", "knows")]),
        ("Ann", "Ben", "visits", []),
        (
            None,
            None,
            None,
            [("Ann", "Ben", "knows"), ("Ben", "Ann", "knows"), ("Ann", "Annex", "visits")],
        ),
    ],
)
def test_relations_are_found_by_source_target_and_type(
    town: Memory,
    source: str | None,
    target: str | None,
    kind: str | None,
    found: list[tuple[str, str, str]],
) -> None:
    matching = relations.find(town, source=source, target=target, kind=kind)
    assert [item.key for item in matching] == found


def ranked(
    memory: Memory, query: str, kind: str | None = None, offset: int = 0, limit: int | None = None
) -> list[str]:
    return names(search.best_matches(memory, query, kind=kind, offset=offset, limit=limit))


@pytest.mark.parametrize(
    ("query", "found"),
    [
        ("ann", ["Ann", "Annex", "Café Ann"]),
        ("ANN", ["Ann", "Annex", "Café Ann"]),
        ("coffee", ["coffee", "Ann", "Café Ann"]),
        ("shop", ["Café Ann", "Annex"]),
        ("nne", ["Annex"]),
        ("likes coffee", ["Ann", "Café Ann", "coffee"]),
        ("coffee tea", ["Café Ann", "Ann", "coffee"]),
        ("tea ben", ["Café Ann", "Ben"]),
        ("  ann ", ["Ann", "Annex", "Café Ann"]),
        ("boo", []),
        ("", ["Ann", "Café Ann", "Ben", "Annex", "coffee"]),
    ],
)
def test_a_ranked_search_returns_the_best_match_first(
    town: Memory, query: str, found: list[str]
) -> None:
    assert ranked(town, query) == found


def test_a_ranked_search_can_be_filtered_and_paged(town: Memory) -> None:
    assert ranked(town, "coffee", kind="person") == ["Ann"]
    assert ranked(town, "coffee", offset=1, limit=1) == ["Ann"]


def test_a_ranked_search_returns_the_relations_of_its_page(town: Memory) -> None:
    graph = search.best_matches(town, "annex", kind=None, offset=0, limit=1)
    assert keys(graph) == [("Ann", "Annex", "visits")]


def test_outlines_are_entities_without_their_facts(town: Memory) -> None:
    with town.reading() as read:
        everything = read.outlines()
        assert [item.name for item in everything] == ["Ann", "Café Ann", "Ben", "Annex", "coffee"]
        assert {item.facts for item in everything} == {()}
        assert [outline.name for outline in read.outlines(kind="person")] == ["Ann", "Ben"]
        assert [outline.name for outline in read.outlines(["Ben", "Annex", "gone"])] == [
            "Ben",
            "Annex",
        ]
        assert [outline.name for outline in read.outlines(["Ben", "Annex"], kind="person")] == [
            "Ben"
        ]


def test_recent_entities_are_the_last_updated_ones_first(town: Memory) -> None:
    facts.add(town, [FactAddition("Annex", ("has a door",))], by=ME, skip_repeats=False)
    facts.add(town, [FactAddition("Ann", ("likes tea",))], by=ME, skip_repeats=False)
    with town.reading() as read:
        found = read.outlines(latest=3)
        assert [item.name for item in found] == ["Ann", "Annex", "Ben"]
        assert {item.facts for item in found} == {()}
        assert [
            outline.name for outline in read.outlines(latest=10, updated_since=found[1].updated_at)
        ] == ["Ann", "Annex"]


def test_a_touched_entity_counts_as_updated(town: Memory) -> None:
    with town.writing("create_relations", ME) as transaction:
        at = transaction.time()
        transaction.apply(
            after=Rows(relations=(Relation("Ben", "coffee", "drinks"),)), touched=["Ben", "nobody"]
        )
    with town.reading() as read:
        assert [
            (outline.name, outline.updated_at)
            for outline in read.outlines(latest=10, updated_since=at)
        ] == [("Ben", at)]
