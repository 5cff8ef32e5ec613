"""Due dates, status, expiry, aliases and authors of facts, on every store with history."""

from pathlib import Path
from time import time_ns

import apsw
import pytest
from msgspec.structs import replace

from polymnia.engine.facts.merge import merge
from polymnia.engine.facts.names import find_candidates, guess_entity
from polymnia.engine.facts.revise import Revision, revise
from polymnia.engine.history.changes import authors
from polymnia.engine.history.undo import undo
from polymnia.engine.memory import Memory
from polymnia.engine.recall.passages import recall
from polymnia.engine.transfer.document import encode_document, parse_entity
from polymnia.engine.transfer.intake import take_in
from polymnia.model import Entity, EntityDraft, Fact, Graph
from polymnia.stores import open_store
from polymnia.stores.sql import load_migrations
from polymnia.stores.sqlite import schema
from polymnia.stores.sqlite.connection import APPLICATION_ID
from polymnia.stores.sqlite.salvage import salvage_sqlite
from tests.behaviour.graphs import ME, create
from tests.conftest import VERSIONED

DAY = 86_400_000_000
with_history = pytest.mark.parametrize("memory", VERSIONED, indirect=True)

TODO = Entity(
    "write docs",
    "todo",
    (Fact(1, "Describe the migration", 5, 0, "mail", 2**52, "codex"),),
    id="7f9f3c8e-8a53-4a6b-9a39-0d4b3a3f8f01",
    next_ordinal=2,
    created_at=5,
    updated_at=5,
    aliases=("docs",),
    due=7 * DAY,
    status="open",
    expires=2**52,
)


def entity_named(memory: Memory, name: str) -> Entity:
    with memory.reading() as read:
        (entity,) = read.entities([name])
    return entity


@with_history
def test_due_status_expiry_and_aliases_are_kept(memory: Memory) -> None:
    take_in(memory, [TODO], by=ME)
    assert entity_named(memory, "write docs") == TODO
    with memory.reading() as read:
        assert [entity.name for entity in read.with_status("open")] == ["write docs"]
        assert [entity.name for entity in read.with_status()] == ["write docs"]
        assert read.with_status("done") == []
        assert [entity.aliases for entity in read.aliased()] == [("docs",)]


def test_a_document_has_them_too() -> None:
    line = encode_document(Graph([TODO], []), []).splitlines()[2]
    assert parse_entity(line, "entities[0]") == TODO


@with_history
def test_what_has_expired_is_not_recalled(memory: Memory) -> None:
    now = time_ns() // 1000
    facts = (
        Fact(1, "Lunch is pasta", 5, expires=now - DAY),
        Fact(2, "Lunch is at noon", 5, expires=now + DAY),
    )
    take_in(memory, [Entity("Lunch", "event", facts, next_ordinal=3)], by=ME)
    take_in(memory, [Entity("Lunch club", "event", expires=now - DAY)], by=ME)
    hits = recall(memory, "lunch").hits
    assert {hit.passage.text for hit in hits if hit.passage.ordinal} == {"Lunch is at noon"}
    assert "Lunch club" not in {hit.passage.entity for hit in hits}
    assert len(entity_named(memory, "Lunch").facts) == 2


@with_history
def test_a_former_name_still_finds_the_entity(memory: Memory) -> None:
    create(memory, EntityDraft("Café Zürich", "place"))
    revise(memory, "Café Zürich", Revision(name="Bar Bern"), by=ME)
    assert entity_named(memory, "Bar Bern").aliases == ("Café Zürich",)
    with memory.reading() as read:
        entity = guess_entity("cafe zurich", find_candidates(read, "cafe zurich"))
    assert entity is not None
    assert entity.name == "Bar Bern"


@with_history
def test_a_merge_keeps_names_and_authors(memory: Memory) -> None:
    create(memory, EntityDraft("Marta", "person", ("Leads the team",)), by="codex")
    create(memory, EntityDraft("Marta Lindqvist", "person", ("Is in Lund",)), by="claude")
    written = entity_named(memory, "Marta").facts[0].created_at
    receipt = merge(memory, ["Marta"], "Marta Lindqvist", by="claude")
    merged = entity_named(memory, "Marta Lindqvist")
    assert merged.aliases == ("Marta",)
    if memory.store.capabilities.history:
        by_fact = authors(memory, [("Marta Lindqvist", 1), ("Marta Lindqvist", 2)])
        assert by_fact["Marta Lindqvist", 1].actor == "claude"
        assert by_fact["Marta Lindqvist", 2].actor == "codex"
        assert abs(by_fact["Marta Lindqvist", 2].at - written) < 1_000_000
        undo(memory, [receipt.change], by=ME)
        assert entity_named(memory, "Marta Lindqvist").aliases == ()
        assert entity_named(memory, "Marta").texts == ("Leads the team",)


def make_old_file(path: Path) -> None:
    """Write a file of schema 1 with one entity and one observation."""
    number, statements = load_migrations(Path(schema.__file__).parent)[0]
    connection = apsw.Connection(str(path))
    connection.execute(statements)
    connection.execute(
        "INSERT INTO migrations VALUES (1, '2026-01-01');"
        "INSERT INTO actors VALUES (1, 'ann', 's');"
        "INSERT INTO changes VALUES (1, 10, 1, 'create_entities', 2);"
        "INSERT INTO entities VALUES (1, 'u', 2, 10, 1);"
        "INSERT INTO cards VALUES (1, 1, 'A', 'x', NULL, NULL, NULL, 10, 1, NULL);"
        "INSERT INTO observations VALUES (2, 1, 1, 'old fact', 10, NULL, NULL, 1, NULL);"
    )
    connection.pragma("user_version", number)
    connection.pragma("application_id", APPLICATION_ID)
    connection.close()


def test_a_file_of_schema_1_is_upgraded(tmp_path: Path) -> None:
    path = tmp_path / "old.db"
    make_old_file(path)
    store = open_store(str(path))
    memory = Memory(store)
    assert entity_named(memory, "A").texts == ("old fact",)
    revise(memory, "A", Revision(name="B"), by=ME)
    assert entity_named(memory, "B") == replace(
        entity_named(memory, "B"), aliases=("A",), due=0, status="", expires=0
    )
    store.close()


def test_a_file_of_schema_1_can_be_salvaged(tmp_path: Path) -> None:
    make_old_file(tmp_path / "old.db")
    salvage_sqlite(tmp_path / "old.db", tmp_path / "new.db")
    store = open_store(str(tmp_path / "new.db"))
    assert entity_named(Memory(store), "A").texts == ("old fact",)
    store.close()
