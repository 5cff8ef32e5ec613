"""Remember, revise and forget: one change each, with a receipt for every item, on every store."""

from contextlib import closing
from pathlib import Path

import apsw
import psycopg
import pytest

import polymnia.stores
from polymnia.engine.facts.forget import Unwanted, forget
from polymnia.engine.facts.merge import merge
from polymnia.engine.facts.remember import EntityFacts, FactDraft, remember
from polymnia.engine.facts.revise import Edit, Revision, revise
from polymnia.engine.graph import entities
from polymnia.engine.history import changes as history
from polymnia.engine.history.undo import undo
from polymnia.engine.memory import Memory
from polymnia.errors import BadInput, EntityNotFound
from polymnia.model import Entity, EntityDraft, Relation
from polymnia.stores import open_store
from polymnia.stores.sql import load_migrations
from tests.behaviour.graphs import ME, create, keys, link, names, texts


def facts(name: str, *given: str, kind: str = "person") -> EntityFacts:
    return EntityFacts(name=name, type=kind, facts=tuple([FactDraft(text) for text in given]))


def find(memory: Memory, name: str) -> Entity:
    (entity,) = entities.open_named(memory, [name]).entities
    return entity


def test_entities_and_relations_are_remembered_together(memory: Memory) -> None:
    receipt = remember(
        memory, [facts("Ann", "tea"), facts("Ben")], [Relation("Ann", "Ben", "knows")], by=ME
    )
    assert [(entity.name, entity.type, entity.outcome) for entity in receipt.entities] == [
        ("Ann", "person", "created"),
        ("Ben", "person", "created"),
    ]
    assert [(fact.text, fact.outcome, fact.ordinal) for fact in receipt.entities[0].facts] == [
        ("tea", "added", 1)
    ]
    assert [(relation.outcome, relation.reason) for relation in receipt.relations] == [
        ("created", "")
    ]
    assert receipt.change == (1 if memory.store.capabilities.history else 0)
    assert keys(entities.read_all(memory)) == [("Ann", "Ben", "knows")]


def test_a_known_entity_gains_what_is_new(memory: Memory) -> None:
    remember(memory, [facts("Ann", "tea")], by=ME)
    receipt = remember(
        memory,
        [facts("Ann", "Tea.", "milk", kind="robot")],
        [Relation("Ann", "Zoe", "knows")],
        by=ME,
    )
    (ann,) = receipt.entities
    assert (ann.outcome, ann.type, ann.reason) == (
        "added",
        "person",
        "it stays a person; revise changes a type",
    )
    assert [(fact.outcome, fact.reason) for fact in ann.facts] == [
        ("unchanged", "already known"),
        ("added", ""),
    ]
    assert receipt.relations[0].reason == "there is no entity Zoe yet"
    assert texts(memory, "Ann") == ("tea", "milk")
    again = remember(memory, [facts("Ann", "milk")], [Relation("Ann", "Zoe", "knows")], by=ME)
    assert (again.change, again.entities[0].outcome, again.relations[0].outcome) == (
        0,
        "unchanged",
        "unchanged",
    )


def test_contrary_facts_and_similar_names_are_pointed_out(memory: Memory) -> None:
    remember(memory, [facts("Ada Lovelace", "lives in Berlin", "likes tea")], by=ME)
    receipt = remember(memory, [facts("Ada Lovelace", "lives in Munich")], by=ME)
    older = receipt.entities[0].facts[0].older
    assert older is not None and older.text == "lives in Berlin"
    receipt = remember(memory, [facts("ada lovelace")], by=ME)
    assert receipt.entities[0].similar_names == ("Ada Lovelace",)


def test_a_name_that_comes_twice_is_one_entity(memory: Memory) -> None:
    receipt = remember(memory, [facts("Ann", "tea"), facts("Ann", "tea", "milk")], by=ME)
    assert [entity.name for entity in receipt.entities] == ["Ann"]
    assert texts(memory, "Ann") == ("tea", "milk")


def test_blank_items_are_refused_and_nothing_is_stored(memory: Memory) -> None:
    for wrong in (facts(" "), facts("Ann", " ")):
        with pytest.raises(BadInput):
            remember(memory, [facts("Ben"), wrong], by=ME)
    with pytest.raises(BadInput, match="a relation needs two names and a type"):
        remember(memory, [facts("Ben")], [Relation("Ben", "", "knows")], by=ME)
    assert names(entities.read_all(memory)) == []


def test_a_fact_has_a_greatest_size(memory: Memory) -> None:
    with pytest.raises(BadInput, match="at most 1,000,000 can be stored; split it"):
        remember(memory, [facts("Ada", "x" * 1_000_001)], by=ME)


def test_a_secret_is_flagged_refused_or_ignored(memory: Memory) -> None:
    key = "sk_live_" + "51Habcdefghijklmnopqr"
    with pytest.raises(BadInput, match="looks like a Stripe key, so nothing was stored"):
        remember(Memory(memory.store, secrets="refuse"), [facts("billing", key)], by=ME)
    flagged = remember(memory, [facts("billing", key)], by=ME)
    assert flagged.entities[0].facts[0].secret == "a Stripe key"
    ignored = remember(Memory(memory.store, secrets="off"), [facts("payments", key)], by=ME)
    assert ignored.entities[0].facts[0].secret == ""


def test_tags_and_a_summary_are_merged(versioned_url: str) -> None:
    memory = Memory(open_store(versioned_url))
    remember(memory, [EntityFacts(name="Ann", tags=("a",), summary="first")], by=ME)
    receipt = remember(memory, [EntityFacts(name="Ann", tags=("b", "a"), summary="second")], by=ME)
    ann = find(memory, "Ann")
    assert (ann.type, ann.tags, ann.summary) == ("thing", ("a", "b"), "second")
    assert (ann.updated_at, receipt.entities[0].outcome) == (ann.summary_at, "added")
    memory.store.close()


def test_a_valid_time_is_kept(versioned_url: str) -> None:
    memory = Memory(open_store(versioned_url))
    remember(memory, [EntityFacts(name="Ann", facts=(FactDraft("tea", 42),))], by=ME)
    assert find(memory, "Ann").facts[0].valid_at == 42
    memory.store.close()


def test_a_renamed_entity_keeps_its_relations_and_facts(memory: Memory) -> None:
    create(memory, EntityDraft("Ann", "person", ("tea",)), EntityDraft("Ben", "person"))
    link(memory, ("Ann", "Ben", "knows"), ("Ben", "Ann", "likes"), ("Ann", "Ann", "is"))
    before = find(memory, "Ann")
    receipt = revise(
        memory,
        "Ann",
        Revision(name="Anna", type="scientist", replace=(Edit("tea", "milk"),)),
        by=ME,
    )
    anna = find(memory, "Anna")
    assert (anna.id, anna.type, anna.texts, receipt.relations) == (
        before.id,
        "scientist",
        ("milk",),
        3,
    )
    assert sorted(keys(entities.read_all(memory))) == [
        ("Anna", "Anna", "is"),
        ("Anna", "Ben", "knows"),
        ("Ben", "Anna", "likes"),
    ]


def test_a_taken_name_is_refused(memory: Memory) -> None:
    create(memory, EntityDraft("Ann", "person"), EntityDraft("Ben", "person"))
    with pytest.raises(BadInput, match="there is an entity Ben already; merge the two instead"):
        revise(memory, "Ann", Revision(name="Ben"), by=ME)
    with pytest.raises(EntityNotFound):
        revise(memory, "Zoe", Revision(name="Ben"), by=ME)


def test_a_replaced_fact_keeps_its_ordinal_and_a_superseded_one_does_not(memory: Memory) -> None:
    create(memory, EntityDraft("Ann", "person", ("tea", "lives in Berlin")))
    revise(
        memory,
        "Ann",
        Revision(replace=(Edit(1, "green tea"),), supersede=(Edit(2, "lives in Munich"),)),
        by=ME,
    )
    assert [(fact.ordinal, fact.text) for fact in find(memory, "Ann").facts] == [
        (1, "green tea"),
        (3, "lives in Munich"),
    ]


def test_an_unknown_fact_is_refused_with_those_that_may_be_meant(memory: Memory) -> None:
    create(memory, EntityDraft("Ann", "person", ("tea", "lives in Berlin")))
    with pytest.raises(
        BadInput, match=r"Ann has no fact 'she lives in Munich'; it has 2: lives in Berlin$"
    ):
        revise(memory, "Ann", Revision(replace=(Edit("she lives in Munich", "x"),)), by=ME)
    with pytest.raises(BadInput, match="revised twice in one call"):
        revise(
            memory, "Ann", Revision(replace=(Edit(1, "x"),), supersede=(Edit("tea", "y"),)), by=ME
        )


def test_superseded_facts_are_hidden_and_can_be_listed(versioned_url: str) -> None:
    memory = Memory(open_store(versioned_url))
    create(memory, EntityDraft("Ann", "person", ("lives in Berlin",)))
    revise(memory, "Ann", Revision(supersede=(Edit(1, "lives in Munich"),)), by="second")
    revise(memory, "Ann", Revision(name="Anna"), by=ME)
    assert texts(memory, "Anna") == ("lives in Munich",)
    (fact,) = history.superseded_facts(memory, "Anna")
    assert (fact.old.text, fact.successor, fact.actor, fact.change) == (
        "lives in Berlin",
        2,
        "second",
        2,
    )
    memory.store.close()


def successors(memory: Memory, name: str) -> dict[int, int]:
    return {past.old.ordinal: past.successor for past in history.superseded_facts(memory, name)}


@pytest.mark.parametrize("through", ["revise", "remember"])
def test_each_fact_follows_the_one_that_it_replaced(versioned_url: str, through: str) -> None:
    memory = Memory(open_store(versioned_url))
    known = ("sings bass", "takes 5 mg", "lives in Berlin", "moved to Munich")
    create(memory, EntityDraft("Ann", "person", known))
    new = [(3, "moved to Munich"), (2, "nimmt jetzt 10"), (1, "sings tenor")]
    if through == "revise":
        revise(memory, "Ann", Revision(supersede=tuple(Edit(*edit) for edit in new)), by=ME)
    else:
        drafts = [FactDraft(text, replaces=old) for old, text in new]
        remember(memory, [EntityFacts(name="Ann", facts=tuple(drafts))], by=ME)
    assert successors(memory, "Ann") == {3: 4, 2: 5, 1: 6}
    memory.store.close()


def test_what_an_undo_restores_is_not_superseded(versioned_url: str) -> None:
    memory = Memory(open_store(versioned_url))
    create(memory, EntityDraft("Ann", "person", ("lives in Berlin",)))
    receipt = revise(memory, "Ann", Revision(supersede=(Edit(1, "lives in Munich"),)), by=ME)
    undone = undo(memory, [receipt.change], by=ME)
    assert successors(memory, "Ann") == {}
    undo(memory, [undone.change], by=ME)
    assert successors(memory, "Ann") == {1: 2}
    memory.store.close()


def test_earlier_files_tell_successors_only_where_they_are_certain(tmp_path: Path) -> None:
    path = str(tmp_path / "memory.db")
    _fill_before_successors(path)
    with closing(apsw.Connection(path)) as connection:
        connection.execute(_repeat_migration("sqlite"))
    memory = Memory(open_store(path))
    assert successors(memory, "Ann") == {1: 4, 2: 0, 3: 0}
    memory.store.close()


def test_earlier_databases_tell_successors_only_where_they_are_certain(
    postgres_database: str,
) -> None:
    _fill_before_successors(postgres_database)
    with psycopg.connect(postgres_database, autocommit=True) as connection:
        connection.execute("SET search_path = polymnia")
        connection.execute(_repeat_migration("postgres").encode())
    memory = Memory(open_store(postgres_database))
    assert successors(memory, "Ann") == {1: 4, 2: 0, 3: 0}
    memory.store.close()


def _repeat_migration(kind: str) -> str:
    """Return what forgets which fact replaced which, and migrates the store from there."""
    for _, statements in load_migrations(Path(polymnia.stores.__file__).parent / kind):
        if "ADD COLUMN successor" in statements:
            return f"ALTER TABLE observations DROP COLUMN successor;\n{statements}"
    raise AssertionError("no migration adds the column")


def _fill_before_successors(url: str) -> None:
    """Replace one fact in a change of its own, and two in one change."""
    memory = Memory(open_store(url))
    create(memory, EntityDraft("Ann", "person", ("sings bass", "takes 5 mg", "lives in Berlin")))
    revise(memory, "Ann", Revision(supersede=(Edit(1, "sings tenor"),)), by=ME)
    edits = (Edit(3, "lives in Munich"), Edit(2, "takes 10 mg"))
    revise(memory, "Ann", Revision(supersede=edits), by=ME)
    memory.store.close()


def test_a_fact_stored_beside_a_replacement_replaces_nothing() -> None:
    memory = Memory(open_store(":memory:"))
    create(memory, EntityDraft("Ann", "person", ("lives in Berlin", "tea")))
    drafts = (FactDraft("plays chess"), FactDraft("lives in Munich", replaces=1))
    receipt = remember(memory, [EntityFacts(name="Ann", facts=drafts)], by=ME)
    told = [(fact.text, fact.replaced) for fact in receipt.entities[0].facts]
    (past,) = history.superseded_facts(memory, "Ann")
    assert (past.old.text, past.successor) == ("lives in Berlin", 4)
    assert sorted(told) == [("lives in Munich", 1), ("plays chess", 0)]


def test_merged_entities_keep_the_times_of_their_facts(versioned_url: str) -> None:
    memory = Memory(open_store(versioned_url))
    given = [
        EntityFacts(name="Anna", facts=(FactDraft("milk", 42),), tags=("x",)),
        EntityFacts(name="A"),
    ]
    remember(memory, [facts("Ann", "tea"), *given], [Relation("Anna", "A", "is")], by=ME)
    milk = find(memory, "Anna").facts[0]
    receipt = merge(memory, ["Anna", "A"], "Ann", by=ME)
    ann = find(memory, "Ann")
    assert (receipt.facts, receipt.relations, ann.tags) == (1, 0, ("x",))
    assert [(fact.text, fact.created_at, fact.valid_at) for fact in ann.facts[1:]] == [
        ("milk", milk.created_at, 42)
    ]
    memory.store.close()


def test_only_what_is_named_is_forgotten(memory: Memory) -> None:
    create(memory, EntityDraft("Ann", "person", ("tea", "milk")), EntityDraft("Ben", "person"))
    link(memory, ("Ann", "Ben", "knows"))
    unwanted = Unwanted(
        facts=(("Ann", "tea"), ("Zoe", 1)), relations=(Relation("Ann", "Ben", "likes"),)
    )
    dry = forget(memory, unwanted, by=ME, dry_run=True)
    assert (dry.change, dry.unknown) == (0, ("Zoe", "Ann likes Ben"))
    assert texts(memory, "Ann") == ("tea", "milk")
    receipt = forget(memory, unwanted, by=ME)
    assert [fact.text for fact in receipt.facts[0].facts] == ["tea"]
    assert texts(memory, "Ann") == ("milk",)
    assert keys(entities.read_all(memory)) == [("Ann", "Ben", "knows")]


def test_a_whole_entity_takes_its_relations_along(memory: Memory) -> None:
    create(memory, EntityDraft("Ann", "person", ("tea",)), EntityDraft("Ben", "person"))
    link(memory, ("Ann", "Ben", "knows"))
    receipt = forget(memory, Unwanted(entities=("Ann",), facts=(("Ann", 1),)), by=ME)
    assert ([entity.name for entity in receipt.entities], len(receipt.relations)) == (["Ann"], 1)
    graph = entities.read_all(memory)
    assert (names(graph), keys(graph)) == (["Ben"], [])


def test_differences_say_what_a_change_altered(versioned_url: str) -> None:
    memory = Memory(open_store(versioned_url))
    create(memory, EntityDraft("Ann", "person", ("tea",)), EntityDraft("Ben", "person"))
    link(memory, ("Ann", "Ben", "knows"))
    revise(memory, "Ann", Revision(name="Anna", replace=(Edit(1, "milk"),)), by=ME)
    page = history.latest(memory, names=["Anna"], limit=2)
    assert ([change.id for change in page.changes], page.next) == ([3, 2], 2)
    found = history.differences(page.changes[0], history.names_of(memory, "Anna"))
    assert [(item.what, item.name, item.before, item.after) for item in found] == [
        ("name", "Anna", "Ann", "Anna"),
        ("fact", "Ann", "tea", "milk"),
        ("relation", "Ann", "knows Ben", None),
        ("relation", "Anna", None, "knows Ben"),
    ]
    (first,) = history.latest(memory, names=["Anna"], before=2).changes
    assert [
        (difference.what, difference.after) for difference in history.differences(first, {"Ann"})
    ] == [
        ("entity", "person"),
        ("fact", "tea"),
    ]
    memory.store.close()


def test_a_fact_of_more_than_a_million_bytes_is_refused(memory: Memory) -> None:
    large = EntityFacts(name="Ann", facts=(FactDraft("\u00e9" * 500_001),))
    with pytest.raises(BadInput, match="a fact has 1,000,002 bytes: at most 1,000,000"):
        remember(memory, [large], by="test")
