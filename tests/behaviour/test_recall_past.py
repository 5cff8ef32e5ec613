"""Searching a memory as it was."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from polymnia.engine.facts.forget import Unwanted, forget
from polymnia.engine.facts.revise import Edit, Revision, revise
from polymnia.engine.memory import Memory
from polymnia.engine.recall.past import PastResult, recall_at
from polymnia.model import ChangeQuery, EntityDraft, Within
from polymnia.stores import open_store
from tests.behaviour.graphs import ME, create
from tests.conftest import STORES


@pytest.fixture(params=("memory", "sqlite", "postgres"))
def memory(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Memory]:
    store = open_store(STORES[request.param](tmp_path))
    memory = Memory(store)
    create(
        memory,
        EntityDraft("queue", "service", ("runs on Redis", "has three workers", "belongs to Ann")),
        EntityDraft("cache", "service", ("lives in Redis too",)),
    )
    yield memory
    store.close()


def last_time(memory: Memory) -> int:
    with memory.reading() as read:
        return read.history.change_heads(ChangeQuery(limit=1))[0].at


def texts(result: PastResult) -> set[tuple[str, str]]:
    return {(hit.fact.text, hit.how) for hit in result.hits if hit.fact}


def test_a_past_search_finds_what_was_changed_or_removed_since(memory: Memory) -> None:
    then = last_time(memory)
    revise(memory, "queue", Revision(replace=(Edit(1, "runs on Postgres"),)), by="codex")
    forget(memory, Unwanted(entities=("cache",)), by="cursor")
    create(memory, EntityDraft("Redis", "tool", ("is switched off",)))
    result = recall_at(memory, "Redis", then)
    assert texts(result) == {("runs on Redis", "changed"), ("lives in Redis too", "gone")}
    causes = {hit.fact.text: hit.cause.actor for hit in result.hits if hit.fact and hit.cause}
    assert causes == {"runs on Redis": "codex", "lives in Redis too": "cursor"}
    assert {hit.entity.name: hit.name_now for hit in result.hits} == {"queue": "queue", "cache": ""}
    assert {hit.passage.entity for hit in result.later} == {"Redis"}
    assert result.is_complete


def test_a_past_search_ranks_what_is_still_there_as_today(memory: Memory) -> None:
    then = last_time(memory)
    revise(memory, "queue", Revision(name="jobs"), by=ME)
    result = recall_at(memory, "How many workers are there?", then)
    assert texts(result) == {("has three workers", "same")}
    assert result.hits[0].entity.name == "queue"
    assert result.hits[0].name_now == "jobs"


def test_a_past_search_keeps_its_filters(memory: Memory) -> None:
    then = last_time(memory)
    forget(memory, Unwanted(entities=("cache",)), by=ME)
    assert texts(recall_at(memory, "Redis", then, within=Within(types=("tool",)))) == set()
