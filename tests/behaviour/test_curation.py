"""Curation: what needs attention in a memory, on every kind of store that supports it."""

from collections.abc import Iterator
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st
from msgspec.structs import replace

from polymnia.engine.curation.findings import Gap, orphans, pending, relation_gaps, take_sample
from polymnia.engine.graph import entities, facts
from polymnia.engine.memory import Memory
from polymnia.errors import Cancelled
from polymnia.model import EntityDraft, FactAddition, Rows
from polymnia.search.mentions import MentionFinder
from polymnia.stores import open_store
from tests.behaviour.graphs import ME, create, link
from tests.conftest import STORES


@pytest.fixture(params=["sqlite", "postgres"])
def summaries(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Memory]:
    """Yield a memory on the kinds of store that keep summaries."""
    store = open_store(STORES[request.param](tmp_path))
    yield Memory(store)
    store.close()


def person(name: str, *texts: str) -> EntityDraft:
    return EntityDraft(name, "person", texts)


def summarize(memory: Memory, name: str, summary: str | None) -> None:
    with memory.writing("summarize", ME) as transaction:
        (old,) = transaction.read.entities([name])
        new = replace(
            old, summary=summary, summary_at=transaction.time(), updated_at=transaction.time()
        )
        transaction.apply(before=Rows(entities=(old,)), after=Rows(entities=(new,)))


def mentions(names: list[str], text: str) -> list[str]:
    return list(MentionFinder(names).find(text))


def test_a_mention_without_a_relation_is_a_gap(memory: Memory) -> None:
    create(
        memory,
        person("Ann", "works with Ben and Cai", "Ben plays chess"),
        person("Ben", "Ben likes tea"),
        person("Cai"),
    )
    assert relation_gaps(memory) == [Gap("Ann", "Ben", 2), Gap("Ann", "Cai", 1)]
    assert relation_gaps(memory, limit=1) == [Gap("Ann", "Ben", 2)]


@pytest.mark.parametrize("relation", [("Ann", "Ben", "knows"), ("Ben", "Ann", "knows")])
def test_a_relation_in_either_direction_closes_a_gap(
    memory: Memory, relation: tuple[str, str, str]
) -> None:
    create(memory, person("Ann", "works with Ben"), person("Ben"))
    link(memory, relation)
    assert relation_gaps(memory) == []


def test_deleted_entities_and_facts_make_no_gaps(memory: Memory) -> None:
    create(memory, person("Ann", "works with Ben", "works with Cai"), person("Ben"), person("Cai"))
    entities.delete(memory, ["Ben"], by=ME)
    facts.remove(memory, [("Ann", ("works with Cai",))], by=ME)
    assert relation_gaps(memory) == []


def test_of_names_inside_names_the_longest_is_mentioned() -> None:
    names = ["New York", "York", "New York Times", "Times"]
    assert mentions(names, "She left the New York Times for New York.") == [
        "New York Times",
        "New York",
    ]
    assert mentions(["New York", "New York Timescale"], "the New York Times") == ["New York"]


@pytest.mark.parametrize(
    ("name", "text", "found"),
    [
        ("Ann", "Annabel and Joann", 0),
        ("Ann", "Ann's; (Ann), Ann-Marie", 3),
        ("user", "user_name users User", 1),
        ("C++", "C++, not C", 1),
        ("auth-service", "The Auth-Service, not the auth service", 1),
        ("東京", "私は東京に行く", 1),
        ("हिन्दी", "हिन्दी भाषा, हिन्दीका", 1),
        ("Zoë", "Zoe\N{COMBINING DIAERESIS} and Zoe", 1),
        ("großer Saal", "GROSSER SAAL", 1),
        ("deploy pipeline", "Deploy\n pipeline", 1),
        (" ".join(["long"] * 21), " ".join(["long"] * 21), 0),
        ("", "nothing", 0),
    ],
)
def test_names_are_found_on_word_boundaries(name: str, text: str, found: int) -> None:
    assert mentions([name], text) == [name] * found


@pytest.mark.parametrize(
    ("name", "text", "found"),
    [
        ("PostgreSQL", "postgresql, Postgresql and POSTGRESQL", 3),
        ("Project Atlas", "project atlas and PROJECT ATLAS", 2),
        ("Will", "Will will not; WILL", 2),
        ("IT", "it is It, not IT", 1),
        ("will", "will Will", 0),
    ],
)
def test_case_matters_where_a_name_may_be_a_common_word(name: str, text: str, found: int) -> None:
    assert mentions([name], text) == [name] * found


def test_of_names_that_differ_in_case_the_one_that_is_written_is_mentioned() -> None:
    assert mentions(["apiKey", "APIkey"], "the APIkey") == ["APIkey"]
    assert mentions(["apiKey", "APIkey"], "the apikey") == ["apiKey", "APIkey"]


WORDS = st.lists(st.sampled_from(["a1", "b2", "c3", "d4"]), min_size=1, max_size=4).map(" ".join)


@given(st.sets(WORDS, max_size=8), WORDS)
def test_mentions_are_the_leftmost_longest_names(names: set[str], text: str) -> None:
    words, expected, at = text.split(), [], 0
    while at < len(words):
        longest = max(
            [n for n in range(len(words) - at + 1) if " ".join(words[at : at + n]) in names],
            default=0,
        )
        expected += [" ".join(words[at : at + longest])] if longest else []
        at += max(1, longest)
    assert mentions(sorted(names), text) == expected


def test_gaps_report_progress_and_stop_when_told(memory: Memory) -> None:
    create(memory, person("Ann", "works with Ben"), person("Ben"))
    reports: list[tuple[float, float | None]] = []
    relation_gaps(memory, progress=lambda done, total, message: reports.append((done, total)))
    assert reports == [(2, 2)]

    def stop() -> None:
        raise Cancelled("the client cancelled this call")

    with pytest.raises(Cancelled):
        relation_gaps(memory, check=stop)


def test_an_orphan_has_no_relation(memory: Memory) -> None:
    create(memory, person("Ann"), person("Ben"), person("Cai"))
    assert [orphan.name for orphan in orphans(memory)] == ["Ann", "Ben", "Cai"]
    link(memory, ("Ann", "Ben", "knows"), ("Ann", "Nobody", "knows"))
    assert [(orphan.name, orphan.type) for orphan in orphans(memory)] == [("Cai", "person")]
    link(memory, ("Cai", "Cai", "is"))
    assert orphans(memory) == []


def test_the_last_updated_orphan_comes_first(summaries: Memory) -> None:
    create(summaries, person("Ann"), person("Ben"))
    facts.add(summaries, [FactAddition("Ben", ("tea",))], by=ME, skip_repeats=False)
    assert [orphan.name for orphan in orphans(summaries, limit=1)] == ["Ben"]


def test_an_entity_is_pending_until_it_is_summarized_and_again_after_an_fact(
    summaries: Memory,
) -> None:
    create(summaries, person("Ann", "tea", "coffee"), person("Empty"))
    (found,) = pending(summaries)
    assert (found.name, found.type, found.facts, found.summary_at) == ("Ann", "person", 2, 0)
    summarize(summaries, "Ann", "drinks")
    assert pending(summaries) == []
    facts.add(summaries, [FactAddition("Ann", ("cocoa",))], by=ME, skip_repeats=False)
    (found,) = pending(summaries)
    assert found.last_fact_at > found.summary_at > 0
    assert found.updated_at == found.last_fact_at


def test_an_entity_with_neither_facts_nor_summary_is_pending_on_request(
    summaries: Memory,
) -> None:
    create(summaries, person("Empty"), person("Ann", "tea"))
    assert [item.name for item in pending(summaries)] == ["Ann"]
    waiting = pending(summaries, with_empty=True)
    assert [(item.name, item.last_fact_at > 0) for item in waiting] == [
        ("Ann", True),
        ("Empty", False),
    ]
    summarize(summaries, "Empty", "nothing yet")
    assert [item.name for item in pending(summaries, with_empty=True)] == ["Ann"]


def test_the_latest_fact_is_pending_first(summaries: Memory) -> None:
    create(summaries, person("Ann", "tea"), person("Ben", "tea"))
    facts.add(summaries, [FactAddition("Ben", ("cocoa",))], by=ME, skip_repeats=False)
    assert [item.name for item in pending(summaries)] == ["Ben", "Ann"]
    assert [item.name for item in pending(summaries, limit=1)] == ["Ben"]


def test_a_summary_that_was_taken_back_is_pending(summaries: Memory) -> None:
    create(summaries, person("Ann", "tea"))
    summarize(summaries, "Ann", "drinks")
    summarize(summaries, "Ann", None)
    assert [(item.name, item.summary_at) for item in pending(summaries)] == [("Ann", 0)]


def test_every_entity_of_a_store_without_summaries_is_pending(memory: Memory) -> None:
    create(memory, person("Ann", "tea"))
    assert [item.name for item in pending(memory)] == ["Ann"]


def test_a_large_memory_is_looked_at_in_part(summaries: Memory) -> None:
    create(summaries, *(person(f"e{number}", f"saw e{number + 1}") for number in range(60)))
    create(summaries, person("late", "saw e59"))
    everything = take_sample(summaries, latest=50, others=11)
    assert (everything.names, everything.total) == (None, 61)
    sample = take_sample(summaries, latest=5, others=10)
    assert sample.names is not None
    assert sample.names[0] == "late"
    assert sample.total == 61
    assert 10 <= len(set(sample.names)) <= 15
    found = relation_gaps(summaries, among=("late", "e59", "e3"))
    assert found == [Gap("late", "e59", 1)]
    assert [entity.name for entity in orphans(summaries, among=("late",))] == ["late"]
    assert [entity.name for entity in pending(summaries, among=("e3",))] == ["e3"]
