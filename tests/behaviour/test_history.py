"""History: changes in order, the state at any time, what other servers changed, and what a purge
leaves.
"""

from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from msgspec.structs import replace

from polymnia.engine import notes
from polymnia.engine.facts.revise import Revision, revise
from polymnia.engine.graph import entities, facts, relations
from polymnia.engine.history import trash
from polymnia.engine.history.changes import count_events, last_change
from polymnia.engine.memory import Memory
from polymnia.errors import BadInput
from polymnia.model import (
    VAULT,
    Author,
    Change,
    ChangeQuery,
    ChangeSize,
    Entity,
    EntityDraft,
    EventCounts,
    FactAddition,
    Mark,
    Note,
    Relation,
    RowCounts,
    Rows,
)
from polymnia.stores import open_store
from polymnia.stores.sqlite.store import SqliteStore
from tests.behaviour.graphs import ME, create, link
from tests.conftest import STORES, VERSIONED

ANY = settings(max_examples=30, suppress_health_check=list(HealthCheck), deadline=None)


@pytest.fixture(params=VERSIONED)
def memory(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Memory]:
    """An empty memory, once on every kind of store that has a history."""
    store = open_store(STORES[request.param](tmp_path))
    assert store.capabilities.history
    yield Memory(store)
    store.close()


@pytest.fixture
def path(versioned_url: str) -> str:
    return versioned_url


def changes(memory: Memory) -> list[Change]:
    with memory.reading() as read:
        return read.history.changes(ChangeQuery(limit=None))[::-1]


def at(memory: Memory, time: int, *names: str) -> Rows:
    with memory.reading() as read:
        return read.history.state_at(time, names or None)


def test_heads_are_the_changes_without_rows(memory: Memory) -> None:
    for number, actor in enumerate(("codex", "cursor", "codex")):
        entities.create(memory, [EntityDraft(f"thing {number}", "thing", ("a fact",))], by=actor)
    queries = (
        ChangeQuery(),
        ChangeQuery(limit=1),
        ChangeQuery(actors=("codex",)),
        ChangeQuery(names=("thing 1",)),
    )
    with memory.reading() as read:
        for query in queries:
            bare = [
                replace(item, before=Rows(), after=Rows()) for item in read.history.changes(query)
            ]
            assert read.history.change_heads(query) == bare
        assert last_change(memory, read) == 3


def test_changes_are_counted_without_reading_them(memory: Memory) -> None:
    create(memory, EntityDraft("Ann", "person", ("tea", "coffee")), EntityDraft("Ben", "person"))
    link(memory, ("Ann", "Ben", "knows"))
    facts.remove(memory, [("Ann", ("tea",))], by=ME)
    entities.delete(memory, ["Ann"], by=ME)
    with memory.reading() as read:
        sizes = read.history.change_sizes([1, 2, 3, 4, 99])
    assert sizes == {
        1: ChangeSize(RowCounts(), RowCounts(2, 2)),
        2: ChangeSize(RowCounts(), RowCounts(relations=1)),
        3: ChangeSize(RowCounts(facts=1), RowCounts()),
        4: ChangeSize(RowCounts(1, 1, 1), RowCounts()),
    }


def test_changes_are_read_by_their_ids(memory: Memory) -> None:
    for number in range(4):
        create(memory, EntityDraft(f"e{number}", "thing"))
    with memory.reading() as read:
        chosen = read.history.changes(ChangeQuery(limit=None, ids=(4, 2)))
        about = read.history.changes(ChangeQuery(limit=None, ids=(4, 2), names=("e1",)))
    assert [change.id for change in chosen] == [4, 2]
    assert [change.id for change in about] == [2]


def test_a_renamed_entity_is_found_by_all_its_names(memory: Memory) -> None:
    create(memory, EntityDraft("Ann", "person"), EntityDraft("Ben", "person"))
    revise(memory, "Ann", Revision(name="Anna"), by=ME)
    with memory.reading() as read:
        assert read.history.all_names(["Ann"]) == {"Ann", "Anna"}
        assert read.history.all_names(["Anna", "nobody"]) == {"Ann", "Anna", "nobody"}


def test_a_change_has_the_rows_it_created_and_ended(memory: Memory) -> None:
    create(memory, EntityDraft("Ann", "person", ("tea",)), EntityDraft("Ben", "person"))
    link(memory, ("Ann", "Ben", "knows"))
    facts.add(memory, [FactAddition("Ann", ("coffee",))], by=ME, skip_repeats=False)
    facts.remove(memory, [("Ann", ("tea",))], by=ME)
    entities.delete(memory, ["Ann"], by=ME)
    created, linked, added, removed, deleted = changes(memory)
    assert [(entity.name, entity.texts) for entity in created.after.entities] == [
        ("Ann", ("tea",)),
        ("Ben", ()),
    ]
    assert [relation.key for relation in linked.after.relations] == [("Ann", "Ben", "knows")]
    assert [(fact.entity, fact.facts[0].text) for fact in added.after.facts] == [("Ann", "coffee")]
    assert [(fact.entity, fact.facts[0].text) for fact in removed.before.facts] == [("Ann", "tea")]
    assert [(entity.name, entity.texts) for entity in deleted.before.entities] == [
        ("Ann", ("coffee",))
    ]
    assert [relation.key for relation in deleted.before.relations] == [("Ann", "Ben", "knows")]
    assert not (created.before or added.before or removed.after or deleted.after)


def test_changes_are_numbered_and_timed_in_order(memory: Memory) -> None:
    for number in range(20):
        create(memory, EntityDraft(f"e{number}", "thing"))
    found = changes(memory)
    assert [item.id for item in found] == list(range(1, 21))
    assert sorted({item.at for item in found}) == [item.at for item in found]
    assert {item.actor for item in found} == {ME}
    with memory.reading() as read:
        assert read.history.changes(ChangeQuery(after=5, before=8)) == found[6:4:-1]


def test_a_deleted_entity_is_read_as_it_was(memory: Memory) -> None:
    create(memory, EntityDraft("Ann", "person", ("tea",)))
    link(memory, ("Ann", "Ben", "knows"))
    then = changes(memory)[-1].at
    facts.add(memory, [FactAddition("Ann", ("coffee",))], by=ME, skip_repeats=False)
    entities.delete(memory, ["Ann"], by=ME)
    (ann,) = at(memory, then, "Ann").entities
    assert (ann.texts, ann.updated_at) == (("tea",), then)
    assert [relation.key for relation in at(memory, then, "Ann").relations] == [
        ("Ann", "Ben", "knows")
    ]
    assert at(memory, changes(memory)[-1].at, "Ann").entities == ()
    assert at(memory, ann.created_at - 1) == Rows()


def test_a_changed_card_is_in_both_sides_of_the_change(memory: Memory) -> None:
    create(memory, EntityDraft("Ann", "person", ("tea",)))
    first = changes(memory)[-1].at
    replace_card(memory, "Ann", lambda old: replace(old, type="scientist"))
    last = changes(memory)[-1]
    assert [entity.type for entity in last.before.entities] == ["person"]
    assert [entity.type for entity in last.after.entities] == ["scientist"]
    assert [entity.type for entity in at(memory, first).entities] == ["person"]
    (ann,) = entities.open_named(memory, ["Ann"]).entities
    assert (ann.type, ann.texts, ann.next_ordinal) == ("scientist", ("tea",), 2)


def replace_card(memory: Memory, name: str, change: Callable[[Entity], Entity]) -> None:
    with memory.writing("update", ME) as transaction:
        (old,) = transaction.read.entities([name])
        transaction.apply(before=Rows(entities=(old,)), after=Rows(entities=(change(old),)))


def test_events_are_counted_from_a_change_on(memory: Memory) -> None:
    create(memory, EntityDraft("Ann", "person", ("tea",)), EntityDraft("Ben", "person"))
    link(memory, ("Ann", "Ben", "knows"))
    with memory.reading() as read:
        assert count_events(read.history) == EventCounts(
            creates=3, updates=0, deletes=0, last_change=2
        )
    replace_card(memory, "Ann", lambda old: replace(old, name="Anna"))
    facts.add(memory, [FactAddition("Anna", ("coffee", "milk"))], by=ME, skip_repeats=False)
    facts.remove(memory, [("Anna", ("tea",))], by=ME)
    create(memory, EntityDraft("Cai", "person", ("cocoa",)))
    entities.delete(memory, ["Ben"], by=ME)
    with memory.reading() as read:
        assert count_events(read.history, 2) == EventCounts(
            creates=1, updates=3, deletes=2, last_change=7
        )
        assert count_events(read.history, 7) == EventCounts(last_change=7)


def test_an_empty_store_has_no_events(memory: Memory) -> None:
    with memory.reading() as read:
        assert count_events(read.history) == EventCounts()


def test_a_mark_is_kept_until_it_is_set_again(memory: Memory) -> None:
    for change in (1, 2):
        with memory.store.writing() as writer:
            writer.history.set_mark("report", Mark(change, 10 * change))
        with memory.reading() as read:
            assert read.history.mark("report") == Mark(change, 10 * change)
            assert read.history.mark("other") is None
    assert changes(memory) == []


def test_an_entity_may_be_renamed_and_keeps_its_facts(path: str) -> None:
    memory = Memory(open_store(path))
    create(memory, EntityDraft("Ann", "person", ("tea",)))
    first = changes(memory)[-1].at
    replace_card(memory, "Ann", lambda old: replace(old, name="Anna"))
    facts.add(memory, [FactAddition("Anna", ("coffee",))], by=ME, skip_repeats=False)
    (anna,) = entities.open_named(memory, ["Anna"]).entities
    assert anna.texts == ("tea", "coffee")
    assert [entity.name for entity in at(memory, first).entities] == ["Ann"]
    assert changes(memory)[-1].after.facts[0].entity == "Anna"
    assert memory.store.check() == []
    memory.store.close()


def test_an_id_cannot_be_used_twice(path: str) -> None:
    memory = Memory(open_store(path))
    (ann,) = create(memory, EntityDraft("Ann", "person"))
    with (
        pytest.raises(BadInput, match=f"the id {ann.id} belongs to the entity Ann"),
        memory.writing("import", ME) as transaction,
    ):
        transaction.apply(after=Rows(entities=(Entity("Ben", "person", id=ann.id),)))
    assert [entity.name for entity in entities.read_all(memory).entities] == ["Ann"]
    memory.store.close()


def latest(memory: Memory, **wanted: object) -> list[int]:
    with memory.reading() as read:
        found = read.history.changes(ChangeQuery(**wanted))  # type: ignore[arg-type]  # what a test asks for
        assert [
            change
            for change in read.history.changes(ChangeQuery(limit=None))[::-1]
            if change in found
        ][::-1] == found
    return [item.id for item in found]


def test_the_latest_changes_are_selected(memory: Memory) -> None:
    create(memory, EntityDraft("Ann", "person", ("tea",)))
    create(memory, EntityDraft("Ben", "person"), by="other")
    link(memory, ("Ann", "Ben", "knows"))
    facts.add(memory, [FactAddition("Ann", ("coffee",))], by=ME, skip_repeats=False)
    replace_card(memory, "Ann", lambda old: replace(old, name="Anna"))
    entities.delete(memory, ["Ben"], by="other")
    times = [change.at for change in changes(memory)]
    assert latest(memory) == [6, 5, 4, 3, 2, 1]
    assert latest(memory, limit=2) == [6, 5]
    assert latest(memory, limit=2, before=5) == [4, 3]
    assert latest(memory, actors=("other",)) == [6, 2]
    assert latest(memory, operations=("update", "create_relations")) == [5, 3]
    assert latest(memory, since=times[2], until=times[4]) == [4, 3]
    assert latest(memory, names=("Anna",)) == [6, 5, 4, 3, 1]
    assert latest(memory, names=("Ann",), before=5, limit=2) == [4, 3]
    assert latest(memory, names=("Ben",)) == [6, 3, 2]
    assert latest(memory, names=("Zoe",)) == []
    with memory.reading() as read:
        assert read.history.actors() == sorted([ME, "other"])


def test_a_passage_has_the_author_who_wrote_it_first(memory: Memory) -> None:
    create(memory, EntityDraft("Ann", "person", ("tea",)), by="first")
    facts.add(memory, [FactAddition("Ann", ("coffee",))], by="second", skip_repeats=False)
    replace_card(memory, "Ann", lambda old: replace(old, name="Anna"))
    first, second, _ = changes(memory)
    with memory.reading() as read:
        found = read.history.authors(
            [("Anna", 0), ("Anna", 1), ("Anna", 2), ("Anna", 3), ("Ann", 1)]
        )
    assert found == {
        ("Anna", 0): Author("first", first.at, 1),
        ("Anna", 1): Author("first", first.at, 1),
        ("Anna", 2): Author("second", second.at, 2),
    }


def test_a_restored_text_keeps_its_author(path: str) -> None:
    memory = Memory(open_store(path))
    create(memory, EntityDraft("Ann", "person", ("tea",)), by="first")
    notes.commit(memory, Note("plan", "tea"), by="writer")
    entities.delete(memory, ["Ann"], by="second")
    trash.restore(memory, "Ann", by="third")
    with memory.reading() as read:
        found = read.history.authors([("Ann", 1), ("plan", -1)])
    assert {key: author.actor for key, author in found.items()} == {
        ("Ann", 1): "first",
        ("plan", -1): "writer",
    }
    memory.store.close()


def test_a_past_state_has_the_time_of_update_that_was_read_then(path: str) -> None:
    memory = Memory(open_store(path))
    create(memory, EntityDraft("Ann", "person", ("tea", "milk")))
    seen: dict[int, int] = {}

    def remember_update() -> None:
        found = entities.open_named(memory, ["Ann"]).entities
        if found:
            seen[changes(memory)[-1].at] = found[0].updated_at

    for step in (
        lambda: entities.delete(memory, ["Ann"], by=ME),
        lambda: trash.restore(memory, "Ann", by=ME),
        lambda: facts.add(memory, [FactAddition("Ann", ("ale",))], by=ME, skip_repeats=False),
        lambda: facts.remove(memory, [("Ann", ("milk",))], by=ME),
        lambda: trash.purge(memory, days=-1),
        lambda: facts.add(memory, [FactAddition("Ann", ("gin",))], by=ME, skip_repeats=False),
    ):
        remember_update()
        step()
        for time in seen:
            try:
                (then,) = at(memory, time, "Ann").entities
            except BadInput:
                continue  # purged
            assert then.updated_at == seen[time]
    memory.store.close()


def test_notes_have_versions(path: str) -> None:
    memory = Memory(open_store(path))
    notes.commit(memory, Note("plan", "old", tags=("a",)), by=ME)
    notes.commit(memory, Note("plan", "new"), by=ME)
    notes.prune(memory, [VAULT], key="plan", by=ME)
    first, second, third = changes(memory)
    assert [note.content for note in at(memory, first.at).notes] == ["old"]
    assert [note.content for note in at(memory, second.at).notes] == ["new"]
    assert at(memory, third.at).notes == ()
    assert [(item.before.notes[0].content, item.after.notes) for item in (third,)] == [("new", ())]
    assert (second.before.notes[0].content, second.after.notes[0].content) == ("old", "new")
    memory.store.close()


def test_a_purged_time_cannot_be_read(path: str) -> None:
    memory = Memory(open_store(path))
    create(memory, EntityDraft("Ann", "person", ("tea",)))
    early = changes(memory)[-1].at
    entities.delete(memory, ["Ann"], by=ME)
    late = changes(memory)[-1].at
    trash.purge(memory, days=-1)
    with pytest.raises(BadInput, match="has been purged; ask for a later time"):
        at(memory, early)
    assert at(memory, late) == Rows()
    memory.store.close()


def test_a_feed_has_only_the_changes_of_other_servers(path: str) -> None:
    mine, theirs = Memory(open_store(path)), Memory(open_store(path))
    create(mine, EntityDraft("before", "thing"))
    feed = mine.store.follow()
    create(mine, EntityDraft("own", "thing"))
    create(theirs, EntityDraft("other", "thing"))
    create(mine, EntityDraft("own again", "thing"))
    assert [change.after.entities[0].name for change in feed()] == ["other"]
    assert feed() == []
    for memory in (mine, theirs):
        memory.store.close()


# Each text is unique, however it is split into words, stems and trigrams.
SECRETS = [f"zq{first}{second}xjv{first}kw" for first in "bdfghm" for second in "bdfghm"]
STEPS = st.lists(
    st.tuples(
        st.sampled_from(["create", "add", "remove", "delete", "note", "prune", "link", "restore"]),
        st.integers(0, 5),
    ),
    min_size=4,
    max_size=25,
)


@ANY
@given(STEPS)
def test_no_purged_text_is_left_in_any_file(
    tmp_path_factory: pytest.TempPathFactory, steps: list[tuple[str, int]]
) -> None:
    path = tmp_path_factory.mktemp("purge") / "memory.db"
    memory = Memory(SqliteStore(str(path)))
    secrets = iter(SECRETS)
    for step, number in steps:
        take_step(memory, step, number, secrets=lambda: next(secrets))
    trash.purge(memory, days=-1)
    living = repr((entities.read_all(memory), notes.page(memory, VAULT)))
    files = b"".join(file.read_bytes() for file in path.parent.iterdir())
    left = [secret for secret in SECRETS if secret not in living and secret.encode() in files]
    memory.store.close()
    assert left == []


def take_step(memory: Memory, step: str, number: int, *, secrets: Callable[[], str]) -> None:
    name = f"e{number}"
    if step == "create":
        entities.upsert(memory, [EntityDraft(name, "thing", (secrets(),))], by=ME)
    elif step == "add" and entities.open_named(memory, [name]).entities:
        facts.add(memory, [FactAddition(name, (secrets(),))], by=ME, skip_repeats=False)
    elif step == "remove" and (found := entities.open_named(memory, [name]).entities):
        facts.remove(memory, [(name, found[0].texts[:1])], by=ME)
    elif step == "delete":
        entities.delete(memory, [name], by=ME)
    elif step == "note":
        notes.commit(memory, Note(name, secrets(), tags=(secrets(),)), by=ME)
    elif step == "prune":
        notes.prune(memory, [VAULT], key=name, by=ME)
    elif step == "link":
        relations.create(memory, [Relation(name, secrets(), "r")], by=ME)
        relations.delete(memory, relations_of(memory, name), by=ME)
    elif step == "restore" and (items := trash.items(memory)):
        try:
            trash.restore(memory, items[number % len(items)].id, by=ME)
        except BadInput:
            pass  # its name is in use again, or its entity is deleted too


def relations_of(memory: Memory, name: str) -> list[Relation]:
    with memory.reading() as read:
        return read.relations([name])[:1]
