"""The consolidation report, and the drafts of a chat model in it."""

from collections.abc import Iterator

import pytest

from polymnia.engine.curation import clusters, similar
from polymnia.engine.curation.report import ConsolidationReport, consolidation_report
from polymnia.engine.graph import entities, facts
from polymnia.engine.memory import Memory
from polymnia.errors import Cancelled
from polymnia.model import ChangeQuery, EntityDraft, FactAddition
from polymnia.stores import open_store
from tests.behaviour.graphs import ME, create, link
from tests.behaviour.vectors import put_vectors


@pytest.fixture
def path(versioned_url: str) -> str:
    return versioned_url


@pytest.fixture
def embedded(path: str) -> Iterator[Memory]:
    """Yield a memory with two similar entities, a third one that is alone, and three that form a
    cluster.
    """
    store = open_store(path)
    memory = Memory(store)
    create(
        memory,
        EntityDraft("Ann", "person", ("drinks tea",)),
        EntityDraft("Ben", "person", ("likes tea",)),
    )
    create(
        memory,
        EntityDraft("Empty", "thing"),
        *[EntityDraft(name, "ship") for name in ("X", "Y", "Z")],
    )
    link(memory, ("X", "Y", "to"), ("Y", "Z", "to"), ("Z", "X", "to"))
    put_vectors(memory, {"drinks tea": (1.0, 0.0), "likes tea": (1.0, 0.2)})
    yield memory
    store.close()


def events(report: ConsolidationReport) -> tuple[int, int, int]:
    return (report.events.creates, report.events.updates, report.events.deletes)


def test_a_report_has_everything_that_needs_attention(embedded: Memory) -> None:
    report = consolidation_report(embedded)
    stale = [(summary.name, summary.facts) for summary in report.stale_summaries]
    assert stale == [("Ann", 1), ("Ben", 1)]
    assert [(pair.a, pair.b) for pair in report.relation_candidates] == [("Ann", "Ben")]
    assert {orphan.name for orphan in report.orphans} == {"Ann", "Ben", "Empty"}
    assert [set(cluster.names) for cluster in report.clusters] == [{"X", "Y", "Z"}]
    assert report.notes == ()


def test_a_report_on_any_store_has_what_the_store_can_tell(memory: Memory) -> None:
    create(memory, EntityDraft("Ann", "person", ("drinks tea",)), EntityDraft("Ben", "person"))
    link(memory, ("Ann", "Ben", "knows"))
    report = consolidation_report(memory)
    assert [summary.name for summary in report.stale_summaries] == ["Ann"]
    assert (report.relation_candidates, report.orphans, report.clusters) == ([], [], [])
    assert events(report) == (3, 0, 0)


def test_events_are_counted_since_the_last_report(embedded: Memory) -> None:
    first = consolidation_report(embedded)
    assert (events(first), first.events.since) == ((9, 0, 0), first.orphans[-1].created_at)
    facts.add(embedded, [FactAddition("Ann", ("likes cake",))], by=ME, skip_repeats=False)
    entities.delete(embedded, ["Empty"], by=ME)
    peek = consolidation_report(embedded, mark=False)
    second = consolidation_report(embedded)
    assert events(peek) == events(second) == (0, 1, 1)
    assert second.events.since == peek.events.since > first.events.since
    assert events(consolidation_report(embedded)) == (0, 0, 0)


def test_the_time_of_the_last_report_is_kept_in_the_store(embedded: Memory, path: str) -> None:
    consolidation_report(embedded)
    other = open_store(path)
    assert events(consolidation_report(Memory(other))) == (0, 0, 0)
    other.close()


def test_a_report_is_no_change(embedded: Memory) -> None:
    with embedded.reading() as read:
        before = len(read.history.changes(ChangeQuery(limit=None)))
    consolidation_report(embedded)
    with embedded.reading() as read:
        assert len(read.history.changes(ChangeQuery(limit=None))) == before


def test_an_empty_memory_has_an_empty_report(memory: Memory) -> None:
    report = consolidation_report(memory)
    assert (report.stale_summaries, report.orphans, events(report), report.events.since) == (
        [],
        [],
        (0, 0, 0),
        0,
    )


def test_what_is_not_installed_is_left_out_and_named(
    embedded: Memory, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(similar, "find_spec", lambda package: None)
    monkeypatch.setattr(clusters, "find_spec", lambda package: None)
    report = consolidation_report(embedded)
    assert report.relation_candidates == []
    (note,) = report.notes
    assert "numpy" in note
    assert len(report.stale_summaries) == 2


def test_the_progress_of_a_report_only_increases_and_ends_below_its_total(embedded: Memory) -> None:
    reports: list[float] = []
    consolidation_report(embedded, progress=lambda done, total, message: reports.append(done))
    assert reports == sorted(set(reports))
    assert 0 < reports[0] < reports[-1] <= 100


def test_a_report_that_is_stopped_marks_nothing(embedded: Memory) -> None:
    calls: list[int] = []

    def stop() -> None:
        calls.append(1)
        if len(calls) == 3:
            raise Cancelled("the client cancelled this call")

    with pytest.raises(Cancelled):
        consolidation_report(embedded, check=stop)
    assert events(consolidation_report(embedded)) == (9, 0, 0)
