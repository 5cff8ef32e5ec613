"""How much a memory holds, on every store."""

from polymnia.engine.health import check_one, overview
from polymnia.engine.memory import Memory
from polymnia.model import Counts, EntityDraft
from tests.behaviour.graphs import ME, create, link


def test_an_empty_memory_has_no_last_change(memory: Memory) -> None:
    found = overview(memory)
    assert (found.counts, found.notes, found.changed_at, found.change) == (Counts(0, 0, 0), 0, 0, 0)


def test_an_overview_counts_rows_and_names_the_last_change(memory: Memory) -> None:
    create(memory, EntityDraft("Alice", "person", ("a", "b")), EntityDraft("Bob", "person"))
    link(memory, ("Alice", "Bob", "knows"))
    found = overview(memory)
    assert found.counts == Counts(2, 2, 1)
    if memory.store.capabilities.history:
        assert (found.change, found.changed_by) == (2, ME)
    assert found.changed_at > 0


def test_only_a_store_in_files_has_a_size(memory: Memory) -> None:
    create(memory, EntityDraft("Alice", "person", ("a" * 5_000,)))
    size = overview(memory).bytes
    has_file = memory.store.url.endswith((".jsonl", ".mcpmem", ".db"))
    assert (size is not None and size > 5_000) == has_file


def test_a_sound_memory_has_findings_without_problems(memory: Memory) -> None:
    create(memory, EntityDraft("Alice", "person"))
    found = check_one(memory.store, memory.store.url)
    assert (found.sound, found.advice, found.findings[0].problems) == (True, "", ())
    assert found.findings[0].counts == Counts(1, 0, 0)
