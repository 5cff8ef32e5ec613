"""Candidate facts are offered, listed, accepted and dismissed."""

import pytest
from pytest import MonkeyPatch

from polymnia.engine.facts import candidates
from polymnia.engine.facts.candidates import (
    NAME,
    CandidateDraft,
    accept_candidates,
    dismiss_candidates,
    list_candidates,
    offer_candidates,
)
from polymnia.engine.facts.remember import EntityFacts, FactDraft, remember
from polymnia.engine.facts.revise import Revision, revise
from polymnia.engine.graph import entities
from polymnia.engine.history.undo import undo
from polymnia.engine.memory import Memory
from polymnia.errors import BadInput
from polymnia.stores import open_store

TABS = CandidateDraft("preference", "I prefer tabs", 7, "claude-code:5e55")
KAMAL = CandidateDraft("decision", "We deploy with Kamal")


@pytest.fixture
def sqlite() -> Memory:
    return Memory(open_store(":memory:"))


def texts(memory: Memory, name: str) -> tuple[str, ...]:
    found = {entity.name: entity.texts for entity in entities.read_all(memory).entities}
    return found.get(name, ())


def offer(memory: Memory, *drafts: CandidateDraft) -> int:
    return offer_candidates(memory, drafts, by="hook").change


def test_a_candidate_is_a_fact_that_says_it_is_unconfirmed(memory: Memory) -> None:
    offer(memory, TABS, KAMAL)
    assert texts(memory, NAME) == ("preference: I prefer tabs", "decision: We deploy with Kamal")
    listed = [(fact.kind, fact.text, fact.into) for fact in list_candidates(memory)]
    assert listed == [
        ("decision", "We deploy with Kamal", "decisions"),
        ("preference", "I prefer tabs", "user"),
    ]


def test_accepting_moves_a_candidate_to_its_entity(memory: Memory) -> None:
    offer(memory, TABS, KAMAL)
    accept_candidates(memory, [1], by="ada")
    assert texts(memory, "user") == ("I prefer tabs",)
    assert [fact.text for fact in list_candidates(memory)] == ["We deploy with Kamal"]


def test_an_accepted_fact_keeps_its_source_and_time(sqlite: Memory) -> None:
    offer(sqlite, TABS)
    accept_candidates(sqlite, [1], by="ada")
    (user,) = entities.open_named(sqlite, ["user"]).entities
    (fact,) = user.facts
    assert (fact.source, fact.valid_at, fact.expires) == ("claude-code:5e55", 7, 0)


def test_a_candidate_may_go_to_another_entity(sqlite: Memory) -> None:
    remember(sqlite, [EntityFacts(name="editor", facts=(FactDraft("is Helix"),))], by="ada")
    offer(sqlite, TABS)
    accept_candidates(sqlite, [1], by="ada", into="editor")
    assert texts(sqlite, "editor") == ("is Helix", "I prefer tabs")


def test_several_candidates_are_accepted_in_one_change(sqlite: Memory) -> None:
    offer(sqlite, TABS, KAMAL)
    receipt = accept_candidates(sqlite, [1, 2], by="ada")
    undo(sqlite, [receipt.change], by="ada")
    assert len(list_candidates(sqlite)) == 2
    assert texts(sqlite, "user") == ()


def test_a_dismissed_candidate_is_gone_until_that_is_undone(sqlite: Memory) -> None:
    offer(sqlite, TABS)
    receipt = dismiss_candidates(sqlite, [1], by="ada")
    assert list_candidates(sqlite) == []
    undo(sqlite, [receipt.change], by="ada")
    assert [fact.text for fact in list_candidates(sqlite)] == ["I prefer tabs"]


def test_what_is_known_is_not_offered_again(sqlite: Memory) -> None:
    offer(sqlite, TABS, TABS)
    assert offer(sqlite, CandidateDraft("preference", "i prefer  tabs.")) == 0
    accept_candidates(sqlite, [1], by="ada")
    assert offer(sqlite, TABS) == 0


def test_ordinals_of_candidates_are_not_used_again(sqlite: Memory) -> None:
    offer(sqlite, TABS)
    dismiss_candidates(sqlite, [1], by="ada")
    offer(sqlite, KAMAL)
    assert [fact.ordinal for fact in list_candidates(sqlite)] == [2]


def test_an_unknown_candidate_is_named(sqlite: Memory) -> None:
    with pytest.raises(BadInput, match="there is no candidate #3"):
        accept_candidates(sqlite, [3], by="ada")


def test_candidates_that_nobody_looked_at_expire(sqlite: Memory, monkeypatch: MonkeyPatch) -> None:
    monkeypatch.setattr(candidates, "EXPIRES_AFTER", -1)
    offer(sqlite, TABS)
    assert list_candidates(sqlite) == []


def test_only_so_many_candidates_wait(sqlite: Memory, monkeypatch: MonkeyPatch) -> None:
    monkeypatch.setattr(candidates, "MAX_WAITING", 1)
    offer(sqlite, TABS, KAMAL)
    assert [fact.text for fact in list_candidates(sqlite)] == ["I prefer tabs"]


def test_the_entity_of_candidates_may_be_renamed(sqlite: Memory) -> None:
    offer(sqlite, TABS)
    revise(sqlite, NAME, Revision(name="to check"), by="ada")
    offer(sqlite, KAMAL)
    assert len(list_candidates(sqlite)) == 2
