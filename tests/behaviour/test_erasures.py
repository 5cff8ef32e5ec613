"""Erasing leaves no byte of a text, and takes nothing from others.

`python -m tests.behaviour.erasures` does the same with many more seeds.
"""

from pathlib import Path
from secrets import token_hex

import pytest

from polymnia.engine.facts.erase import erase
from polymnia.engine.facts.forget import Unwanted, forget
from polymnia.engine.facts.person import PersonQuery, erase_person, find_person
from polymnia.engine.facts.remember import EntityFacts, FactDraft, remember
from polymnia.engine.facts.revise import Edit, Revision, revise
from polymnia.engine.history.changes import latest
from polymnia.engine.history.undo import undo
from polymnia.engine.memory import Memory
from polymnia.errors import FactNotFound
from polymnia.model import ERASED, EntityDraft, Relation
from polymnia.stores import open_store
from tests.behaviour.erasures import ME, check_erasure, places_of
from tests.behaviour.graphs import create, texts
from tests.conftest import STORES

SEEDS = {"jsonl": 4, "binlog": 4, "sqlite": 16, "postgres": 8}


@pytest.mark.parametrize("kind", SEEDS)
def test_no_byte_of_an_erased_text_is_left(kind: str, tmp_path: Path) -> None:
    for seed in range(SEEDS[kind]):
        directory = tmp_path / str(seed)
        directory.mkdir()
        assert check_erasure(kind, seed, directory) == [], seed


@pytest.fixture
def secret() -> str:
    """Return a text that no other test stores in the server that they share."""
    return f"xk{token_hex(6)}"


@pytest.fixture(params=("sqlite", "postgres"))
def memory(request: pytest.FixtureRequest, tmp_path: Path) -> Memory:
    store = open_store(STORES[request.param](tmp_path))
    request.addfinalizer(store.close)
    return Memory(store)


def test_others_with_the_same_text_keep_it_in_the_present_and_the_past(memory: Memory) -> None:
    for name in ("Ann", "Ben", "Cid"):
        create(memory, EntityDraft(name, "person", ("likes tea", "sings")))
    gone = forget(memory, Unwanted(facts=(("Ben", 1),)), by=ME)
    revise(memory, "Cid", Revision(summary="Cid likes tea"), by=ME)
    revise(memory, "Cid", Revision(summary="Cid sings"), by=ME)
    receipt = erase(memory, Unwanted(facts=(("Ann", "likes tea"),)), by=ME)
    assert (receipt.erased, receipt.others) == (("Ann #1",), ("Ben", "Cid"))
    undo(memory, [gone.change], by=ME)
    assert [texts(memory, name) for name in ("Ann", "Ben", "Cid")] == [
        ("sings",),
        ("likes tea", "sings"),
        ("likes tea", "sings"),
    ]
    pages = latest(memory, names=["Cid"]).changes
    summaries = {entity.summary for change in pages for entity in change.before.entities}
    assert "Cid likes tea" in summaries


def test_a_fact_that_ended_is_erased_by_its_text(
    memory: Memory, secret: str, tmp_path: Path
) -> None:
    create(memory, EntityDraft("Ann", "person", (f"pin {secret}", "sings")))
    revise(memory, "Ann", Revision(replace=(Edit(1, "pin unknown"),)), by=ME)
    forget(memory, Unwanted(facts=(("Ann", 1),)), by=ME)
    with pytest.raises(FactNotFound):
        erase(memory, Unwanted(facts=(("Ann", "pin 7"),)), by=ME)
    receipt = erase(memory, Unwanted(facts=(("Ann", f"Pin {secret.upper()}"),)), by=ME)
    assert receipt.erased == ("Ann #1",)
    assert list(places_of(memory, secret, tmp_path)) == []


def test_a_dry_run_names_what_would_go_and_changes_nothing(memory: Memory, secret: str) -> None:
    create(memory, EntityDraft("Ann", "person", (f"pin {secret}", f"pin {secret}")))
    receipt = erase(memory, Unwanted(facts=(("Ann", 1),)), by=ME, dry_run=True)
    assert receipt.erased == ("Ann #1", "Ann #2")
    assert texts(memory, "Ann") == (f"pin {secret}", f"pin {secret}")


def test_a_fact_that_may_have_been_replaced_is_named(memory: Memory, secret: str) -> None:
    create(memory, EntityDraft("Ann", "person", ("pin xk80",)))
    facts = (FactDraft(f"pin {secret}", replaces=1), FactDraft("sings"))
    remember(memory, [EntityFacts(name="Ann", facts=facts)], by=ME)
    receipt = erase(memory, Unwanted(facts=(("Ann", 2),)), by=ME)
    assert receipt.perhaps_replaced == ("Ann #1",)


def test_a_relation_is_erased_with_its_history(memory: Memory, secret: str, tmp_path: Path) -> None:
    create(memory, EntityDraft("Ann", "person"), EntityDraft("Ben", "person"))
    relation = Relation("Ann", "Ben", f"owes {secret} to")
    remember(memory, [], [relation], by=ME)
    revise(memory, "Ann", Revision(name="Anna"), by=ME)
    renamed = Relation("Anna", "Ben", f"owes {secret} to")
    assert erase(memory, Unwanted(relations=(renamed,)), by=ME).erased == (
        f"Anna owes {secret} to Ben",
    )
    assert list(places_of(memory, secret, tmp_path)) == []


def test_an_erased_entity_leaves_no_type_tag_or_former_name(
    memory: Memory, secret: str, tmp_path: Path
) -> None:
    facts = EntityFacts(
        name=f"{secret} one",
        type=f"{secret} type",
        tags=(f"{secret} tag",),
        summary=f"{secret} sum",
    )
    remember(memory, [facts], [Relation("Ben", f"{secret} one", "knows")], by=ME)
    revise(memory, f"{secret} one", Revision(name=f"{secret} two", type="thing"), by=ME)
    erase(memory, Unwanted(entities=(f"{secret} two",)), by=ME)
    assert list(places_of(memory, secret, tmp_path)) == []
    assert ERASED in {
        entity.name for change in latest(memory).changes for entity in change.before.entities
    }


@pytest.mark.parametrize("selects", ("about", "by", "matching"))
def test_a_person_is_found_in_the_past_and_gone_after_erasure(
    memory: Memory, tmp_path: Path, secret: str, selects: str
) -> None:
    author = "alice" if selects == "by" else ME
    facts = (FactDraft(f"{secret} sang"),)
    remember(memory, [EntityFacts(name=secret, facts=facts)], by=author)
    revise(memory, secret, Revision(supersede=(Edit(1, f"{secret} dances"),)), by=author)
    create(memory, EntityDraft("Ben", "person", ("likes tea",)))
    query = PersonQuery(**{selects: author if selects == "by" else secret})
    data = find_person(memory, query)
    assert [fact.is_living for fact in data.facts] == [False, True]
    erase_person(memory, data, by=ME)
    assert not find_person(memory, query)
    assert texts(memory, "Ben") == ("likes tea",)
    assert not list(places_of(memory, secret, tmp_path))
