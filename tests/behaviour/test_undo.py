"""Undo takes changes back as one new change, exactly, and never what others wrote since."""

from collections.abc import Iterator
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from polymnia.engine import notes
from polymnia.engine.facts.merge import merge
from polymnia.engine.facts.remember import EntityFacts, FactDraft, remember
from polymnia.engine.facts.revise import Edit, Revision, revise
from polymnia.engine.graph import entities, facts, relations
from polymnia.engine.history import trash, undo
from polymnia.engine.memory import Memory
from polymnia.errors import BadInput, NotSupported
from polymnia.model import VAULT, EntityDraft, FactAddition, Note, Relation
from polymnia.stores import open_store
from tests.behaviour.graphs import ME, create, keys, link, names, texts
from tests.behaviour.steps import ACTORS, STEPS, Step, last_change, rows_state, state_of, take
from tests.conftest import STORES

ANY = settings(max_examples=60, suppress_health_check=list(HealthCheck), deadline=None)


@pytest.fixture(params=("sqlite in memory", "postgres"))
def memory(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Memory]:
    store = open_store(STORES[request.param](tmp_path))
    yield Memory(store)
    store.close()


def run(memory: Memory, steps: list[Step]) -> dict[int, object]:
    """Take the steps; return the state after each change, by its id."""
    states = {0: state_of(memory)}
    for step in steps:
        take(memory, step)
        states[last_change(memory)[0]] = state_of(memory)
    return states


@ANY
@given(STEPS, st.integers(0, 20))
def test_undoing_the_latest_changes_restores_the_earlier_state(
    steps: list[Step], left: int
) -> None:
    memory = Memory(open_store(":memory:"))
    states = run(memory, steps)
    last, _ = last_change(memory)
    kept = min(left, last)
    receipt = undo.undo(memory, range(kept + 1, last + 1), by=ME)
    assert receipt.conflicts == ()
    assert state_of(memory) == states[kept]
    if receipt.change:
        undo.undo(memory, [receipt.change], by=ME)
    assert state_of(memory) == states[last]
    assert memory.store.check() == []


@ANY
@given(STEPS)
def test_a_past_state_is_the_one_recorded_then(steps: list[Step]) -> None:
    memory = Memory(open_store(":memory:"))
    states: dict[int, object] = {}
    for step in steps:
        take(memory, step)
        states[last_change(memory)[1]] = state_of(memory)
    with memory.reading() as read:
        for time, state in states.items():
            if time:
                assert rows_state(read.history.state_at(time)) == state


@ANY
@given(STEPS, st.sampled_from(ACTORS), st.booleans())
def test_undoing_an_actor_touches_nothing_of_others(
    steps: list[Step], actor: str, skip: bool
) -> None:
    memory = Memory(open_store(":memory:"))
    run(memory, steps)
    state = state_of(memory)
    theirs = _texts_by(memory, set(ACTORS) - {actor})
    try:
        changes = undo.changes_since(memory, 0, actor=actor)
    except BadInput:
        return  # the actor did nothing
    receipt = undo.undo(memory, changes, by=ME, skip_conflicts=skip)
    if receipt.conflicts and not skip:
        assert state_of(memory) == state
    assert theirs <= _texts_by(memory, set(ACTORS) - {actor})
    assert memory.store.check() == []


def _texts_by(memory: Memory, actors: set[str]) -> set[tuple[int, str]]:
    """Return the facts that only these actors wrote, as (ordinal, text)."""
    with memory.reading() as read:
        found = [(entity, one) for entity in read.entities() for one in entity.facts]
        authors = read.history.authors([(each.name, one.ordinal) for each, one in found])
    by = {(one.ordinal, one.text): authors[each.name, one.ordinal].actor for each, one in found}
    return {key for key, actor in by.items() if actor in actors}


def test_a_dry_run_changes_nothing_and_says_what_would_change(memory: Memory) -> None:
    create(memory, EntityDraft("Ann", "person", ("tea",)))
    receipt = undo.undo(memory, [1], by=ME, dry_run=True)
    assert (receipt.change, [entity.name for entity in receipt.before.entities]) == (0, ["Ann"])
    assert names(entities.read_all(memory)) == ["Ann"]


def test_a_fact_that_was_changed_since_is_a_conflict(memory: Memory) -> None:
    create(memory, EntityDraft("Ann", "person", ("tea",)))
    revise(memory, "Ann", Revision(replace=(Edit(1, "coffee"),)), by="first")
    revise(memory, "Ann", Revision(replace=(Edit(1, "water"),), type="scientist"), by="second")
    receipt = undo.undo(memory, [2], by=ME)
    assert receipt.change == 0
    assert [
        (conflict.what, conflict.reason, conflict.change) for conflict in receipt.conflicts
    ] == [("fact 1 of Ann", "it was changed since", 2)]
    assert texts(memory, "Ann") == ("water",)


def test_conflicts_can_be_skipped_and_the_rest_is_undone(memory: Memory) -> None:
    first = EntityFacts(name="Ann", facts=(FactDraft("tea"), FactDraft("milk")))
    remember(
        memory, [first, EntityFacts(name="Ben")], [Relation("Ann", "Ben", "knows")], by="first"
    )
    facts.add(memory, [FactAddition("Ann", ("water",))], by="second", skip_repeats=False)
    assert undo.undo(memory, [1], by=ME).change == 0
    receipt = undo.undo(memory, [1], by=ME, skip_conflicts=True)
    assert [conflict.what for conflict in receipt.conflicts] == ["the entity Ann"]
    assert receipt.conflicts[0].reason == "1 fact was added since"
    graph = entities.read_all(memory)
    assert (names(graph), keys(graph), texts(memory, "Ann")) == (["Ann"], [], ("water",))


def test_a_name_that_is_taken_again_is_a_conflict(memory: Memory) -> None:
    create(memory, EntityDraft("Ann", "person", ("tea",)))
    entities.delete(memory, ["Ann"], by=ME)
    create(memory, EntityDraft("Ann", "robot"))
    receipt = undo.undo(memory, [2], by=ME)
    assert [(conflict.what, conflict.reason) for conflict in receipt.conflicts] == [
        ("the entity Ann", "there is another entity Ann now")
    ]


def test_a_fact_of_an_entity_that_is_gone_is_a_conflict(memory: Memory) -> None:
    create(memory, EntityDraft("Ann", "person", ("tea",)))
    facts.remove(memory, [("Ann", ("tea",))], by="first")
    entities.delete(memory, ["Ann"], by="second")
    receipt = undo.undo(memory, [2], by=ME)
    assert [conflict.reason for conflict in receipt.conflicts] == ["its entity was deleted since"]


def test_a_relation_to_an_entity_that_is_gone_is_a_conflict(memory: Memory) -> None:
    create(memory, EntityDraft("Ann", "person"), EntityDraft("Ben", "person"))
    link(memory, ("Ann", "Ben", "knows"))
    relations.delete(memory, [Relation("Ann", "Ben", "knows")], by="first")
    entities.delete(memory, ["Ben"], by="second")
    receipt = undo.undo(memory, [3], by=ME)
    assert [conflict.reason for conflict in receipt.conflicts] == [
        "the entity Ben was deleted since"
    ]


def test_undoing_a_rename_takes_newer_relations_and_facts_along(memory: Memory) -> None:
    create(memory, EntityDraft("Ann", "person", ("tea",)), EntityDraft("Ben", "person"))
    link(memory, ("Ann", "Ben", "knows"))
    revise(memory, "Ann", Revision(name="Anna"), by="first")
    link(memory, ("Ben", "Anna", "likes"))
    facts.add(memory, [FactAddition("Anna", ("milk",))], by="second", skip_repeats=False)
    assert undo.undo(memory, [3], by=ME).conflicts == ()
    graph = entities.open_named(memory, ["Ann"])
    assert sorted(keys(graph)) == [("Ann", "Ben", "knows"), ("Ben", "Ann", "likes")]
    assert texts(memory, "Ann") == ("tea", "milk")


def test_a_fact_is_undone_though_its_entity_was_renamed_since(memory: Memory) -> None:
    create(memory, EntityDraft("Ann", "person", ("tea",)))
    facts.add(memory, [FactAddition("Ann", ("milk",))], by="first", skip_repeats=False)
    revise(memory, "Ann", Revision(name="Anna"), by="second")
    assert undo.undo(memory, [2], by=ME).conflicts == ()
    assert texts(memory, "Anna") == ("tea",)


def test_a_merge_can_be_undone(memory: Memory) -> None:
    create(memory, EntityDraft("Ann", "person", ("tea",)), EntityDraft("Anna", "person", ("milk",)))
    link(memory, ("Anna", "Ben", "knows"))
    before = state_of(memory)
    merge(memory, ["Anna"], "Ann", by=ME)
    assert texts(memory, "Ann") == ("tea", "milk")
    undo.undo(memory, [3], by=ME)
    assert state_of(memory) == before


def test_a_merge_stays_whole_if_the_merged_entity_cannot_come_back(memory: Memory) -> None:
    create(memory, EntityDraft("Ann", "person", ("tea",)), EntityDraft("Anna", "person", ("milk",)))
    link(memory, ("Anna", "Ben", "knows"))
    merge(memory, ["Anna"], "Ann", by=ME)
    create(memory, EntityDraft("Anna", "ship"))
    before = state_of(memory)
    receipt = undo.undo(memory, [3], by=ME, skip_conflicts=True)
    assert state_of(memory) == before
    assert texts(memory, "Ann") == ("tea", "milk")
    assert receipt.conflicts[0].reason == "there is another entity Anna now"


def test_an_unknown_change_is_refused(memory: Memory) -> None:
    create(memory, EntityDraft("Ann", "person"))
    for unknown in (0, 2, -1):
        with pytest.raises(BadInput, match=f"there is no change {unknown};"):
            undo.undo(memory, [unknown], by=ME)
    with pytest.raises(
        BadInput, match="nobody called 'Zoe' has made a change; those who have: test"
    ):
        undo.changes_since(memory, 0, actor="Zoe")


def test_a_purged_change_is_refused() -> None:
    memory = Memory(open_store(":memory:"))
    create(memory, EntityDraft("Ann", "person", ("tea",)))
    entities.delete(memory, ["Ann"], by=ME)
    trash.purge(memory, days=-1)
    with pytest.raises(BadInput, match="has been purged"):
        undo.undo(memory, [2], by=ME)


def test_a_deleted_note_comes_back_with_its_vector() -> None:
    memory = Memory(open_store(":memory:"))
    vector = bytes(range(16))
    notes.commit(memory, Note("plan", "text", ("tag",), embedding=vector), by=ME)
    notes.prune(memory, [VAULT], key="plan", by=ME)
    undo.undo(memory, [2], by=ME)
    found = notes.read(memory, VAULT, "plan")
    assert found is not None
    assert (found.content, found.tags, found.embedding) == ("text", ("tag",), vector)


def test_a_store_without_history_refuses(tmp_path: Path) -> None:
    memory = Memory(open_store(str(tmp_path / "memory.jsonl")))
    with pytest.raises(NotSupported, match="has no history"):
        undo.undo(memory, [1], by=ME)
    memory.store.close()


def test_a_conflict_shows_both_texts_and_may_be_overwritten(memory: Memory) -> None:
    create(memory, EntityDraft("Ada", "person", ("writes", "sings")))
    revise(
        memory,
        "Ada",
        Revision(type="human", replace=(Edit(1, "reads"), Edit(2, "hums"))),
        by="codex",
    )
    revise(memory, "Ada", Revision(type="poet", replace=(Edit(1, "rows"),)), by="cursor")
    receipt = undo.undo(memory, [2], by=ME, dry_run=True)
    found = {
        conflict.what: (conflict.now, conflict.then, bool(conflict.key))
        for conflict in receipt.conflicts
    }
    assert found == {
        "fact 1 of Ada": ("rows", "writes", True),
        "the type of Ada": ("poet", "person", True),
    }
    key = next(conflict.key for conflict in receipt.conflicts if conflict.what.startswith("fact"))
    done = undo.undo(memory, [2], by=ME, skip_conflicts=True, overwrite=[key])
    assert [conflict.what for conflict in done.conflicts] == ["the type of Ada"]
    assert texts(memory, "Ada") == ("writes", "sings")
    assert entities.open_named(memory, ["Ada"]).entities[0].type == "poet"
    undo.undo(memory, [done.change], by=ME)
    assert texts(memory, "Ada") == ("rows", "hums")


def test_a_relation_that_others_deleted_may_come_back(memory: Memory) -> None:
    create(memory, EntityDraft("Ada", "person"), EntityDraft("Bob", "person"))
    link(memory, ("Ada", "Bob", "knows"))
    relations.rename(memory, Relation("Ada", "Bob", "knows"), "likes", by="codex")
    relations.delete(memory, [Relation("Ada", "Bob", "likes")], by="cursor")
    receipt = undo.undo(memory, [3], by=ME, dry_run=True)
    assert [conflict.reason for conflict in receipt.conflicts] == []
    undo.undo(memory, [3], by=ME)
    assert keys(entities.open_named(memory, ["Ada"])) == [("Ada", "Bob", "knows")]


def test_an_entity_that_others_use_cannot_be_overwritten(memory: Memory) -> None:
    create(memory, EntityDraft("Ada", "person"), by="codex")
    facts.add(memory, [FactAddition("Ada", ("sings",))], by="cursor", skip_repeats=True)
    (conflict,) = undo.undo(memory, [1], by=ME, dry_run=True).conflicts
    assert conflict.key == ""
    undo.undo(memory, [1], by=ME, skip_conflicts=True, overwrite=["entity", conflict.what])
    assert texts(memory, "Ada") == ("sings",)


def test_whole_names_of_actors_are_not_parts_of_names(memory: Memory) -> None:
    create(memory, EntityDraft("Ada", "person"), by="codex")
    create(memory, EntityDraft("Bob", "person"), by="codex-cli")
    assert undo.changes_since(memory, 0, actors=["codex"]) == [1]
    assert undo.changes_since(memory, 0, actor="codex") == [2, 1]
