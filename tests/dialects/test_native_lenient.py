"""What native tools accept besides the exact call, and how their replies explain it."""

from collections.abc import Iterator
from datetime import UTC, datetime

import pytest

from polymnia.engine.memory import Memory
from polymnia.stores import open_store
from tests.dialects.conversation import Client


@pytest.fixture
def memory() -> Iterator[Memory]:
    store = open_store(":memory:")
    yield Memory(store)
    store.close()


@pytest.fixture
def client(memory: Memory) -> Client:
    return Client("native", memory)


def test_one_entity_may_be_remembered_without_a_list(client: Client) -> None:
    call = {"name": "Ada", "type": "person", "facts": ["likes tea"], "tags": "pinned"}
    assert "stored Ada #1." in client.text("remember", call)
    assert "Ada (person" in client.text("open", {"names": ["Ada"]})


def test_synonyms_count_where_the_list_is_left_out(client: Client) -> None:
    assert "stored Ada #1." in client.text("remember", {"name": "Ada", "observation": "likes tea"})


def test_a_name_may_be_called_entity(client: Client) -> None:
    call = {"entities": [{"entity": "Ada", "entityType": "person", "facts": ["likes tea"]}]}
    assert "stored Ada #1." in client.text("remember", call)
    edit = {"old": "likes tea", "new": "likes coffee"}
    client.text("revise", {"entity": "Ada", "facts": [edit]})
    assert "likes coffee" in client.text("open", {"names": ["Ada"]})
    client.text("forget", {"entityName": "Ada", "facts": ["likes coffee"]})


def test_the_ends_of_a_relation_may_be_called_source_and_target(client: Client) -> None:
    client.text("remember", {"entities": [{"name": "Ada"}, {"name": "Bob"}]})
    for relation in (
        {"source": "Ada", "relationType": "knows", "target": "Bob"},
        {"from": "Ada", "relation": "likes", "to": "Bob"},
    ):
        client.text("remember", {"relations": [relation]})
    explored = client.text("explore", {"name": "Ada"})
    assert "Ada -knows-> Bob" in explored
    assert "Ada -likes-> Bob" in explored


def test_facts_without_a_name_are_refused_with_what_is_missing(client: Client) -> None:
    assert "entities[0].name: required" in client.error("remember", {"facts": ["likes tea"]})


def test_fields_of_an_entity_beside_a_list_of_entities_are_refused(client: Client) -> None:
    call = {"entities": [{"name": "Ada"}], "facts": ["likes tea"]}
    assert "facts: there is no such argument" in client.error("remember", call)


def test_the_receipt_says_how_a_long_fact_is_searched(client: Client) -> None:
    receipt = client.text("remember", {"name": "log", "facts": ["It rained again. " * 200]})
    size = "has 3,400 characters: stored whole, searched by passages"
    assert f"! log #1 {size}. Short facts are found better." in receipt


def test_an_unknown_end_of_a_relation_gets_similar_names(client: Client) -> None:
    for name in ("Marta Lindqvist", "Marta Olsen"):
        client.text("remember", {"name": name, "type": "person", "facts": ["writes code"]})
    relation = {"from": "Marta", "type": "leads", "to": "Marta Olsen"}
    receipt = client.text("remember", {"relations": [relation]})
    assert '! "Marta" has no entity yet: remember what is known of it.' in receipt
    assert "Similar: Marta Olsen, Marta Lindqvist." in receipt


@pytest.mark.parametrize("name", ["runner", "job runner", "Worker"])
def test_open_resolves_names_also_in_the_past(client: Client, name: str) -> None:
    client.text("remember", {"name": "Worker", "facts": ["runs jobs"]})
    then = datetime.now(UTC).isoformat()
    client.text("revise", {"name": "Worker", "rename": "job runner"})
    text = client.text("open", {"names": [name], "as_of": then})
    assert "runs jobs" in text
    assert (f'"{name}" was taken as Worker.' in text) == (name != "Worker")


def test_open_resolves_a_former_name_after_the_renaming(client: Client) -> None:
    client.text("remember", {"name": "Worker", "facts": ["runs jobs"]})
    client.text("revise", {"name": "Worker", "rename": "job runner"})
    text = client.text("open", {"names": ["Worker"], "as_of": datetime.now(UTC).isoformat()})
    assert '"Worker" was taken as job runner.' in text


def test_steps_that_were_told_together_do_not_outdate_each_other(client: Client) -> None:
    steps = [
        "To deploy, run make deploy on the bastion host",
        "To roll back, run make rollback on the bastion host",
    ]
    client.text("remember", {"name": "releases", "type": "howto", "facts": steps})
    text = client.text("recall", {"query": "what do I run on the bastion host?"})
    assert "#1 To deploy" in text
    assert "newer" not in text


def test_a_fact_that_was_told_later_is_newer(client: Client) -> None:
    for fact in ("The nightly backup runs on host alpha", "The nightly backup runs on host beta"):
        client.text("remember", {"name": "operations", "facts": [fact]})
    text = client.text("recall", {"query": "where does the nightly backup run?"})
    assert "#1 The nightly backup runs on host alpha [newer: #2" in text


def test_a_former_name_that_another_entity_has_now_means_that_one(client: Client) -> None:
    client.text("remember", {"name": "Worker", "facts": ["runs jobs in the cellar"]})
    client.text("revise", {"name": "Worker", "rename": "job runner"})
    client.text("remember", {"name": "novel", "facts": ["is on the top shelf"]})
    client.text("revise", {"name": "novel", "rename": "Worker"})
    assert "instead of" not in client.text("recall", {"query": "where is the Worker?"})


@pytest.fixture
def ada(client: Client) -> Client:
    call = {"name": "Ada", "type": "person", "tags": ["pinned"], "facts": ["likes tea"]}
    client.text("remember", call)
    return client


@pytest.mark.parametrize(
    "filters",
    [
        {"type": "person"},
        {"types": "people"},
        {"types": ["Persons"]},
        {"types": '["person"]'},
        {"tag": "pinned"},
        {"types": ["people"], "query": "tea"},
        {"types": ["persons"], "query": "tea"},
        {"query": "tea", "limit": "1"},
    ],
)
def test_recall_takes_filters_as_models_write_them(ada: Client, filters: dict[str, str]) -> None:
    assert "#1 likes tea" in ada.text("recall", filters)


@pytest.mark.parametrize(
    "call",
    [
        {"entities": '[{"name": "Bob", "facts": ["likes rum"]}]'},
        {"entities": '{"name": "Bob", "facts": ["likes rum"]}'},
        {"name": "Bob", "content": "likes rum"},
        {"entities": [{"name": "Bob", "contents": ["likes rum"]}]},
        {"entities": [{"name": "Bob", "facts": [{"content": "likes rum"}]}]},
        {"entities": [{"name": "Bob", "facts": ["likes rum"], "workspace": "default"}]},
        {"entities": [{"name": "Bob", "facts": ["likes rum"]}], "workspace": "Default"},
    ],
)
def test_remember_takes_entities_as_models_write_them(
    client: Client, call: dict[str, object]
) -> None:
    client.text("remember", call)
    assert "#1 likes rum" in client.text("open", {"names": ["Bob"]})


def test_a_fact_that_begins_like_json_stays_a_text(client: Client) -> None:
    client.text("remember", {"name": "log", "facts": "[draft] likes rum"})
    assert "#1 [draft] likes rum" in client.text("open", {"names": ["log"]})


def test_entities_of_several_workspaces_in_one_call_are_refused(client: Client) -> None:
    entities = [{"name": "Ada", "workspace": "default"}, {"name": "Bob", "workspace": "personal"}]
    error = client.error("remember", {"entities": entities})
    assert "entities[0].workspace: there is no such argument" in error


@pytest.mark.parametrize("change", ["#1", "1", 1, "default:#1", "default:1"])
def test_undo_takes_numbers_of_changes_with_and_without_a_sign(
    ada: Client, change: str | int
) -> None:
    assert "undid default:1" in ada.text("undo", {"changes": change})


def test_review_takes_all_for_every_kind(ada: Client) -> None:
    assert ada.text("review", {"kinds": "all"}) == "Nothing needs attention."


def test_an_error_for_an_unknown_argument_names_the_known_ones(client: Client) -> None:
    error = client.error("briefing", {"foo": 1})
    assert error == "foo: there is no such argument (known: workspace, max_tokens)"
    error = client.error("remember", {"relations": [{"from": "a", "type": "b", "to": "c", "x": 1}]})
    assert error == "relations[0].x: there is no such argument (known: from, type, to)"
