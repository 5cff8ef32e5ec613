"""A clock that was wrong, in either direction.

Order, time travel, purge and retention stay right.
"""

from collections.abc import Iterator

import pytest

from polymnia.engine.facts.revise import Revision, revise
from polymnia.engine.graph import entities, facts, relations
from polymnia.engine.health import check_one
from polymnia.engine.history import changes as history
from polymnia.engine.history import trash, undo
from polymnia.engine.memory import Memory
from polymnia.model import ChangeQuery, Counts, EntityDraft, FactAddition, Relation
from polymnia.stores import open_store
from polymnia.stores.clock import MAX_AHEAD_US
from tests.behaviour.graphs import ME, create, names, texts

_SECOND = 1_000_000
_HOUR = 3_600 * _SECOND
_DAY = 24 * _HOUR


class _Clock:
    """The clock of the machine, which a test sets."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self.now = 1_800_000_000 * _SECOND
        monkeypatch.setattr("polymnia.stores.clock.time_ns", lambda: self.now * 1000)
        monkeypatch.setattr("polymnia.engine.history.trash.time", lambda: self.now / _SECOND)

    def move(self, microseconds: int) -> None:
        self.now += microseconds


@pytest.fixture
def clock(monkeypatch: pytest.MonkeyPatch) -> _Clock:
    return _Clock(monkeypatch)


@pytest.fixture
def memory(versioned_url: str, clock: _Clock) -> Iterator[Memory]:
    store = open_store(versioned_url)
    yield Memory(store)
    store.close()


def _times(memory: Memory) -> list[int]:
    with memory.reading() as read:
        heads = read.history.change_heads(ChangeQuery(limit=None))
    return [head.at for head in reversed(heads)]


def _say(memory: Memory, name: str, text: str) -> None:
    facts.add(memory, [FactAddition(name, (text,))], by=ME, skip_repeats=False)


def _write_ahead(memory: Memory, clock: _Clock, distance: int) -> None:
    """Write something under a clock that is ahead, and set it right."""
    clock.move(distance)
    create(memory, EntityDraft("ahead", "x", ("was written too early",)))
    clock.move(-distance)


def test_a_small_step_back_keeps_the_times_in_order(memory: Memory, clock: _Clock) -> None:
    create(memory, EntityDraft("one", "x"))
    clock.move(-MAX_AHEAD_US // 2)
    create(memory, EntityDraft("two", "x"))
    first, second = _times(memory)
    assert second == first + 1


@pytest.mark.parametrize("distance", [_DAY, 400 * _DAY])
def test_a_change_has_the_time_of_the_clock_after_the_clock_was_ahead(
    memory: Memory, clock: _Clock, distance: int, caplog: pytest.LogCaptureFixture
) -> None:
    _write_ahead(memory, clock, distance)
    assert caplog.text == ""
    create(memory, EntityDraft("later", "x"))
    assert _times(memory) == [clock.now + distance, clock.now]
    assert "ahead of the clock" in caplog.text


@pytest.mark.parametrize("distance", [_HOUR, _DAY, 400 * _DAY])
def test_everything_is_purged_after_the_clock_was_ahead(
    memory: Memory, clock: _Clock, distance: int
) -> None:
    _write_ahead(memory, clock, distance)
    create(memory, EntityDraft("P", "x", ("private",)))
    entities.delete(memory, ["P"], by=ME)
    assert trash.purge(memory, days=0) == Counts(entities=1, facts=1)
    assert trash.items(memory) == []


def test_the_present_can_be_asked_for_after_the_clock_was_ahead(
    memory: Memory, clock: _Clock
) -> None:
    create(memory, EntityDraft("before", "x"))
    clock.move(_HOUR)
    _write_ahead(memory, clock, _DAY)
    assert names(history.as_of(memory, clock.now)) == ["before", "ahead"]
    assert names(history.as_of(memory, clock.now - _HOUR)) == ["before"]
    clock.move(_HOUR)
    create(memory, EntityDraft("after", "x"))
    assert names(history.as_of(memory, clock.now)) == ["before", "ahead", "after"]
    assert names(history.as_of(memory, clock.now - 2 * _HOUR)) == ["before"]


@pytest.mark.parametrize("distance", [_DAY, 20_000 * _DAY])
def test_a_clock_that_was_behind_moves_nothing_into_the_past(
    memory: Memory, clock: _Clock, distance: int
) -> None:
    start = clock.now
    for name in ("one", "two", "three"):
        create(memory, EntityDraft(name, "x"))
        clock.move(_HOUR)
    clock.move(-distance)
    create(memory, EntityDraft("behind", "x"))
    clock.move(distance)
    create(memory, EntityDraft("later", "x"))
    assert names(history.as_of(memory, start - _HOUR)) == []
    assert names(history.as_of(memory, start)) == ["one"]
    assert names(history.as_of(memory, clock.now)) == ["one", "two", "three", "behind", "later"]


@pytest.mark.parametrize("distance", [_DAY, 400 * _DAY])
def test_retention_goes_on_after_the_clock_was_ahead(
    memory: Memory, clock: _Clock, distance: int
) -> None:
    _write_ahead(memory, clock, distance)
    create(memory, EntityDraft("old", "x"))
    entities.delete(memory, ["old"], by=ME)
    clock.move(60 * _DAY)
    create(memory, EntityDraft("new", "x"))
    entities.delete(memory, ["new"], by=ME)
    assert trash.purge(memory, days=30).entities == 1
    assert [item.rows.entities[0].name for item in trash.items(memory)] == ["new"]


def test_a_clock_that_is_behind_purges_nothing_too_early(memory: Memory, clock: _Clock) -> None:
    create(memory, EntityDraft("one", "x"), EntityDraft("two", "x"))
    clock.move(_DAY)
    entities.delete(memory, ["one"], by=ME)
    clock.move(-20_000 * _DAY)  # the battery of the clock is empty
    entities.delete(memory, ["two"], by=ME)
    assert trash.purge(memory, days=30) == Counts()
    clock.move(20_000 * _DAY)
    assert trash.purge(memory, days=30) == Counts()
    assert len(trash.items(memory)) == 2
    assert trash.purge(memory, days=0).entities == 2


@pytest.mark.parametrize("distance", [_DAY, -_DAY, 400 * _DAY, -400 * _DAY])
def test_changes_can_be_undone_and_restored_across_a_jump(
    memory: Memory, clock: _Clock, distance: int
) -> None:
    create(memory, EntityDraft("A", "x", ("one",)), EntityDraft("B", "x"))
    relations.create(memory, [Relation("A", "B", "knows")], by=ME)
    before = entities.read_all(memory)
    clock.move(distance)
    _say(memory, "A", "two")
    clock.move(-distance)
    _say(memory, "A", "three")
    entities.delete(memory, ["B"], by=ME)
    with memory.reading() as read:
        numbers = [head.id for head in read.history.change_heads(ChangeQuery(limit=None))]
    assert numbers == [5, 4, 3, 2, 1]
    trash.restore(memory, "B", by=ME)
    undo.undo(memory, [4], by=ME)
    undo.undo(memory, [3], by=ME)
    after = entities.read_all(memory)
    assert texts(memory, "A") == ("one",)
    assert [relation.key for relation in after.relations] == [
        relation.key for relation in before.relations
    ]


def test_the_doctor_says_that_the_store_is_ahead_of_the_clock(
    memory: Memory, clock: _Clock
) -> None:
    create(memory, EntityDraft("one", "x"))
    url = memory.store.url
    assert check_one(memory.store, url).findings[0].remarks == ()
    _write_ahead(memory, clock, _DAY)
    create(memory, EntityDraft("later", "x"))
    findings = check_one(memory.store, url)
    assert findings.sound
    assert "1 day, 0:00:00 ahead of the clock" in findings.findings[0].remarks[0]


@pytest.mark.parametrize("distance", [_DAY, -_DAY])
def test_a_relation_made_since_keeps_its_entity_whatever_the_clock_said(
    memory: Memory, clock: _Clock, distance: int
) -> None:
    create(memory, EntityDraft("other", "x"))
    clock.move(distance)
    create(memory, EntityDraft("new", "x"))
    clock.move(-distance)
    relations.create(memory, [Relation("new", "other", "knows")], by=ME)
    receipt = undo.undo(memory, [2], by=ME, skip_conflicts=True)
    assert [conflict.reason for conflict in receipt.conflicts] == ["1 relation was added since"]


@pytest.mark.parametrize("distance", [_DAY, -_DAY])
def test_a_relation_follows_an_undone_rename_whatever_the_clock_said(
    memory: Memory, clock: _Clock, distance: int
) -> None:
    create(memory, EntityDraft("old", "x"), EntityDraft("other", "x"))
    clock.move(distance)
    revise(memory, "old", Revision(name="new"), by=ME)
    clock.move(-distance)
    relations.create(memory, [Relation("new", "other", "knows")], by=ME)
    undo.undo(memory, [2], by=ME)
    assert [relation.key for relation in entities.read_all(memory).relations] == [
        ("old", "other", "knows")
    ]


@pytest.mark.parametrize("distance", [_DAY, -_DAY])
def test_a_relation_older_than_its_entity_comes_back_without_it(
    memory: Memory, clock: _Clock, distance: int
) -> None:
    create(memory, EntityDraft("other", "x"))
    clock.move(distance)
    relations.create(memory, [Relation("other", "later", "knows")], by=ME)
    clock.move(-distance)
    create(memory, EntityDraft("later", "x"))
    relations.delete(memory, [Relation("other", "later", "knows")], by=ME)
    receipt = undo.undo(memory, [3, 4], by=ME)
    assert receipt.conflicts == ()
    assert len(entities.read_all(memory).relations) == 1
