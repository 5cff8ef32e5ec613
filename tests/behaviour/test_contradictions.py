"""Contradictions: facts of one entity that say the same with another value."""

import pytest

from polymnia.engine.curation.contradictions import contradictions
from polymnia.engine.graph import entities
from polymnia.engine.memory import Memory
from polymnia.model import EntityDraft


@pytest.mark.parametrize(
    ("older", "newer"),
    [
        ("runs three replicas", "runs five replicas"),
        ("goes to production on Tuesdays and Thursdays", "goes to production only on Tuesdays"),
        ("has 42 ports", "has 45 ports"),
        ("uses Redis", "no longer uses Redis"),
        ("its queue is in Redis", "its queue isn\u2019t in Redis"),
    ],
)
def test_the_same_with_another_value_contradicts(memory: Memory, older: str, newer: str) -> None:
    entities.create(memory, [EntityDraft("Harbour", "project", (older, newer))], by="test")
    (pair,) = contradictions(memory)
    assert (pair.entity, pair.older.text, pair.newer.text) == ("Harbour", older, newer)


@pytest.mark.parametrize(
    ("one", "other"),
    [
        ("runs three replicas", "has five owners"),
        ("prefers tea", "prefers small pull requests"),
        ("has 42 ports", "has 42 ports in Norway"),
        ("does not use Redis", "does not use Postgres"),
        ("met Mara on Monday", "sold two boats on Tuesday"),
    ],
)
def test_different_statements_do_not_contradict(memory: Memory, one: str, other: str) -> None:
    entities.create(memory, [EntityDraft("Harbour", "project", (one, other))], by="test")
    assert contradictions(memory) == []
