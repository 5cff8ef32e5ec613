"""History over the native dialect: names that entities have or had, and its lines."""

import re
from collections.abc import Iterator

import pytest

from polymnia.engine.graph import entities
from polymnia.engine.memory import Memory
from polymnia.model import EntityDraft
from polymnia.stores import open_store
from tests.dialects.conversation import Client


@pytest.fixture
def memory(versioned_url: str) -> Iterator[Memory]:
    store = open_store(versioned_url)
    yield Memory(store)
    store.close()


@pytest.fixture
def client(memory: Memory) -> Client:
    client = Client("native", memory)
    client.text("remember", {"name": "queue choice", "facts": ["Uses PostgreSQL"]})
    client.text("remember", {"name": "ADR 9", "facts": ["Batches have 500 jobs"]})
    client.text("revise", {"name": "ADR 9", "merge": ["queue choice"]})
    client.text("remember", {"name": "ADR 9", "facts": ["Decided in May"]})
    return client


@pytest.mark.parametrize("name", ["queue choice", "Queue Choice", "adr 9"])
def test_the_history_of_an_alias_is_that_of_its_entity(client: Client, name: str) -> None:
    assert "+ fact ADR 9 #3: Decided in May" in client.text("history", {"name": name})


def test_the_history_of_a_merged_name_shows_how_it_began(client: Client) -> None:
    assert "+ entity queue choice" in client.text("history", {"name": "queue choice"})


def test_a_history_says_which_entity_a_name_was_taken_for(client: Client) -> None:
    assert '"adr 9" was taken as ADR 9.' in client.text("history", {"name": "adr 9"})


def test_a_change_is_shown_with_its_weekday_and_without_a_version(client: Client) -> None:
    line = r"- default:4, \w{3} \d+ \w{3}( \d\d:\d\d)?, test, remember: "
    assert re.search(line, client.text("history"))


def test_a_large_change_is_counted_instead_of_read(client: Client, memory: Memory) -> None:
    drafts = [EntityDraft(f"Part {number}", "part", ("is spare",)) for number in range(600)]
    entities.create(memory, drafts, by="import")
    shown = client.text("history", {"limit": 1})
    assert "import, create_entities: + 600 entities, 600 facts\n" in shown
    of_one = client.text("history", {"name": "Part 7"})
    assert "+ fact Part 7 #1: is spare" in of_one
    assert "Part 8" not in of_one
