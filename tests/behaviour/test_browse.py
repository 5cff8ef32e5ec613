"""Looking around in stores with a history.

Hits with authors, bounded pages of changes, and names that are gone.
"""

from collections.abc import Iterator
from pathlib import Path

import pytest

from polymnia.engine import notes
from polymnia.engine.facts.forget import Unwanted, forget
from polymnia.engine.facts.merge import merge
from polymnia.engine.facts.revise import Revision, revise
from polymnia.engine.history import changes as history
from polymnia.engine.history.changes import find_former
from polymnia.engine.memory import Memory
from polymnia.engine.recall.names import names_starting
from polymnia.errors import BadInput, TextChanged
from polymnia.model import (
    ChangeSize,
    EntityDraft,
    Note,
    RowCounts,
    join_actor,
    split_actor,
)
from polymnia.stores import open_store
from polymnia.web.pages.search import SearchFilters, search
from tests.behaviour.graphs import ME, create, link
from tests.conftest import STORES


@pytest.fixture(params=("sqlite", "postgres"))
def memory(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Memory]:
    store = open_store(STORES[request.param](tmp_path))
    yield Memory(store)
    store.close()


def test_hits_are_counted_by_type_client_and_tag(memory: Memory) -> None:
    create(
        memory,
        EntityDraft("Ada", "person", ("sails boats",), None, ("crew",)),
        by="cursor (token ci)",
    )
    create(memory, EntityDraft("Sloop", "boat", ("boats need wind",)), by="codex")
    found = search(memory, "boats", SearchFilters())
    assert {name for name, _ in found.clients} == {"cursor", "codex"}
    assert dict(found.types)["person"] == 1
    assert dict(found.tags) == {"crew": 1}
    assert found.ages[0][1] == len(found.hits)
    only = search(memory, "boats", SearchFilters(client="cursor"))
    assert {hit.actor for hit in only.hits} == {"cursor (token ci)"}


def test_names_are_suggested_by_the_beginning_of_a_word(memory: Memory) -> None:
    create(memory, *(EntityDraft(name, "boat") for name in ("Sloop", "The old sloop", "Ketch")))
    found = [item.name for item in names_starting(memory, "SLO")]
    assert found == ["Sloop", "The old sloop"]
    assert [item.name for item in names_starting(memory, "old slo")] == ["The old sloop"]
    assert names_starting(memory, " ") == names_starting(memory, "loop") == []


def test_a_large_change_is_counted_and_a_small_one_read(memory: Memory) -> None:
    create(memory, *(EntityDraft(f"e{number}", "x", ("fact",)) for number in range(9)))
    create(memory, EntityDraft("small", "x"))
    page = history.latest(memory, limit=2, max_rows=8)
    small, large = page.changes
    assert [entity.name for entity in small.after.entities] == ["small"]
    assert not large.after
    assert page.sizes == {large.id: ChangeSize(RowCounts(), RowCounts(9, 9))}


def test_a_page_of_changes_names_the_next_one(memory: Memory) -> None:
    for number in range(5):
        create(memory, EntityDraft(f"{number}", "x"))
    page = history.latest(memory, limit=3, max_rows=100)
    assert ([change.id for change in page.changes], page.next) == ([5, 4, 3], 3)
    rest = history.latest(memory, limit=3, before=page.next, max_rows=100)
    assert ([change.id for change in rest.changes], rest.next) == ([2, 1], None)


def test_a_large_change_is_read_as_far_as_it_concerns_an_entity(memory: Memory) -> None:
    create(memory, *(EntityDraft(f"e{number}", "x", ("old",)) for number in range(9)))
    link(memory, ("e1", "e2", "knows"))
    forget(memory, Unwanted(entities=tuple(f"e{number}" for number in range(2, 9))), by=ME)
    page = history.latest(memory, names=["e1"], max_rows=8)
    deleted, linked, created = page.changes
    assert [entity.texts for entity in created.after.entities] == [("old",)]
    assert [relation.key for relation in linked.after.relations] == [("e1", "e2", "knows")]
    assert [relation.key for relation in deleted.before.relations] == [("e1", "e2", "knows")]
    assert not (created.before or deleted.before.entities or deleted.after)


def test_a_renamed_and_then_merged_name_is_found(memory: Memory) -> None:
    create(
        memory, EntityDraft("Ann", "person", ("sings",)), EntityDraft("Anna", "person", ("rows",))
    )
    revise(memory, "Ann", Revision(name="Annie"), by=ME)
    assert (found := find_former(memory, "Ann")) is not None
    assert (found.how, found.now, found.change) == ("renamed", "Annie", 2)
    merge(memory, ["Annie"], "Anna", by=ME)
    for name, how in (("Ann", "renamed"), ("Annie", "merged")):
        assert (found := find_former(memory, name)) is not None
        assert (found.how, found.now) == (how, "Anna")


def test_a_merge_of_relations_alone_tells_its_target(memory: Memory) -> None:
    create(
        memory,
        EntityDraft("Ann", "person"),
        EntityDraft("Anna", "person"),
        EntityDraft("Boat", "thing"),
    )
    link(memory, ("Ann", "Boat", "owns"))
    merge(memory, ["Ann"], "Anna", by=ME)
    assert (found := find_former(memory, "Ann")) is not None
    assert (found.how, found.now) == ("merged", "Anna")


def test_a_deleted_name_is_found_and_an_unknown_one_is_not(memory: Memory) -> None:
    create(memory, EntityDraft("Ann", "person"))
    forget(memory, Unwanted(entities=("Ann",)), by=ME)
    assert (found := find_former(memory, "Ann")) is not None
    assert (found.how, found.now, found.actor) == ("deleted", "", ME)
    assert find_former(memory, "Bob") is None


@pytest.mark.parametrize("memory", ["sqlite", "postgres"], indirect=True)
def test_a_note_is_rewritten_only_as_expected(memory: Memory) -> None:
    notes.commit(memory, Note("key", "old", ("tag",)), by=ME)
    change = notes.rewrite(memory, "key", "new", expected="old", by=ME)
    assert change == 2
    assert notes.rewrite(memory, "key", "new", expected="new", by=ME) == 0
    with pytest.raises(TextChanged) as caught:
        notes.rewrite(memory, "key", "newer", expected="old", by=ME)
    assert caught.value.text == "new"
    with pytest.raises(BadInput):
        notes.rewrite(memory, "key", " ", expected="new", by=ME)
    assert (note := notes.in_vault(memory, "key")) is not None
    assert (note.content, note.tags) == ("new", ("tag",))


def test_an_actor_is_a_client_and_perhaps_a_token() -> None:
    for client, token in (("cursor", ""), ("cursor", "ci"), ("odd (token x", "a (b)")):
        assert split_actor(join_actor(client, token)) == (client, token)
    assert split_actor("cursor (token") == ("cursor (token", "")
