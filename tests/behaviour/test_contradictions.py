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
        ("is a nurse on night shifts at Uddevalla", "Works day shifts at Uddevalla from 1 May"),
        ("Raw readings are kept for 24 months", "Raw readings are deleted after 18 months"),
        ("Visits from 19 December to 3 January", "Comes on 12 December and leaves on 28 December"),
        ("the monthly bill is 2,340 euros", "the monthly bill fell to 1,910 euros in May"),
        ("has nine pupils and meets on Mondays", "has eleven pupils since May"),
        ("Meetings are on Tuesdays at 14:00", "Meetings moved to Thursdays at 15:30 by video"),
        ("on Thursday 12 November at 13:00 in Tallinn", "moved to Tuesday 17 November"),
        ("lives in Berlin", "lives in Munich"),
        ("Standup is at 9:15 every weekday", "Standup is at 9:45, only Tuesday and Thursday"),
        ("The contact is Sara Lupi", "The contact is now Paolo Neri, says the supplier"),
        ("Helmets come from Kask in Bergamo", "Helmets come from Abus in Wetter"),
        ("Chargers are checked every Monday", "Chargers are checked on the first of the month"),
        ("The backup runs every night", "The backup runs every Sunday"),
        ("The guest wifi is called nest-5", "The guest wifi is called owl"),
        ("wohnt in Hamburg", "wohnt in Bremen"),
        ("Die Probe ist mittwochs um 19:30 Uhr", "Die Probe ist dienstags um 20 Uhr"),
        ("its nightly backup runs on host alpha", "its nightly backup runs on host beta"),
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
        ("Deniz is on leave", "Deniz is allergic to nuts"),
        ("The contact is Sara", "The backup is Paolo"),
        ("The demo is on Friday", "The demo is Anna's"),
        ("Standup is at 9:15", "Standup is on Mondays"),
        ("Tests take 4 minutes", "Builds take 9 minutes"),
        ("The cat is called Mio", "The dog is called Rex"),
        ("prefers tea", "prefers small pull requests"),
        ("has 42 ports", "has 42 ports in Norway"),
        ("does not use Redis", "does not use Postgres"),
        ("met Mara on Monday", "sold two boats on Tuesday"),
        ("begins with 7 shops", "ends with 7 reviews"),
        ("a full run takes 14 minutes", "a fuzzing job runs for 20 minutes"),
        ("succeeds if 95 percent are on time", "91 percent were on time in the first week"),
    ],
)
def test_different_statements_do_not_contradict(memory: Memory, one: str, other: str) -> None:
    entities.create(memory, [EntityDraft("Harbour", "project", (one, other))], by="test")
    assert contradictions(memory) == []
