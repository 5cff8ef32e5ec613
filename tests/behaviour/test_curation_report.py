"""The consolidation report, and the drafts of a chat model in it."""

import threading
from collections.abc import Iterator

import pytest

from polymnia.chat import open_chat_model
from polymnia.engine.curation import clusters, drafts, similar
from polymnia.engine.curation.drafts import Drafter, Prompt
from polymnia.engine.curation.report import ConsolidationReport, consolidation_report
from polymnia.engine.graph import entities, facts
from polymnia.engine.memory import Memory
from polymnia.errors import Cancelled, ChatModelError
from polymnia.model import ChangeQuery, EntityDraft, FactAddition
from polymnia.stores import open_store
from tests.behaviour.graphs import ME, create, link
from tests.behaviour.vectors import put_vectors
from tests.chat_server import ChatServer, serve_chat
from tests.processes import TIMEOUT_S


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
    assert [
        (summary.entity.name, summary.entity.facts, summary.draft)
        for summary in report.stale_summaries
    ] == [
        ("Ann", 1, None),
        ("Ben", 1, None),
    ]
    assert [
        (candidate.pair.a, candidate.pair.b, candidate.rationale)
        for candidate in report.relation_candidates
    ] == [("Ann", "Ben", None)]
    assert {orphan.name for orphan in report.orphans} == {"Ann", "Ben", "Empty"}
    assert [set(cluster.names) for cluster in report.clusters] == [{"X", "Y", "Z"}]
    assert report.notes == ()


def test_a_report_on_any_store_has_what_the_store_can_tell(memory: Memory) -> None:
    create(memory, EntityDraft("Ann", "person", ("drinks tea",)), EntityDraft("Ben", "person"))
    link(memory, ("Ann", "Ben", "knows"))
    report = consolidation_report(memory)
    assert [summary.entity.name for summary in report.stale_summaries] == ["Ann"]
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


@pytest.fixture
def server() -> Iterator[ChatServer]:
    with serve_chat() as server:
        yield server


def use_model(memory: Memory, url: str, timeout: float, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(drafts, "DRAFT_TIMEOUT_S", timeout)
    memory.use_drafter(Drafter(open_chat_model(url)))


@pytest.mark.parametrize(("kind", "below"), [("ollama", ""), ("openai", "/v1")])
def test_the_model_drafts_summaries_and_rationales(
    embedded: Memory, server: ChatServer, monkeypatch: pytest.MonkeyPatch, kind: str, below: str
) -> None:
    use_model(embedded, f"{kind}:small@{server.url}{below}", TIMEOUT_S, monkeypatch)
    report = consolidation_report(embedded)
    ann, ben = [summary.draft for summary in report.stale_summaries]
    assert ann == "Draft: Name: Ann\nType: person\nFacts:\n- drinks tea"
    assert "likes tea" in str(ben)
    (candidate,) = report.relation_candidates
    assert "drinks tea" in str(candidate.rationale)
    assert "likes tea" in str(candidate.rationale)


def test_a_slow_model_delays_no_report_and_its_drafts_are_in_the_next_one(
    embedded: Memory, server: ChatServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    use_model(embedded, f"ollama:slow@{server.url}", 0.0, monkeypatch)
    server.released.clear()
    assert [summary.draft for summary in consolidation_report(embedded).stale_summaries] == [
        None,
        None,
    ]
    server.released.set()
    monkeypatch.setattr(drafts, "DRAFT_TIMEOUT_S", TIMEOUT_S)
    assert None not in [summary.draft for summary in consolidation_report(embedded).stale_summaries]
    assert len(server.asked) == 3  # nothing is asked twice


@pytest.mark.parametrize("garbage", [b"", b"[]"])
def test_a_failing_model_fails_no_report_and_is_left_alone_for_a_while(
    embedded: Memory, server: ChatServer, monkeypatch: pytest.MonkeyPatch, garbage: bytes
) -> None:
    server.garbage = garbage
    use_model(embedded, f"ollama:small@{server.url}", TIMEOUT_S, monkeypatch)
    assert [summary.draft for summary in consolidation_report(embedded).stale_summaries] == [
        None,
        None,
    ]
    asked = len(server.asked)
    consolidation_report(embedded)
    assert len(server.asked) == asked


def test_an_unreachable_model_fails_no_report(
    embedded: Memory, monkeypatch: pytest.MonkeyPatch
) -> None:
    use_model(embedded, "ollama:small@http://127.0.0.1:1", TIMEOUT_S, monkeypatch)
    assert [summary.draft for summary in consolidation_report(embedded).stale_summaries] == [
        None,
        None,
    ]


class Recorder:
    """A model that repeats its text, or fails at the text `fail`."""

    def __init__(self) -> None:
        self.asked: list[str] = []
        self.begun = threading.Event()
        self.may_answer = threading.Event()
        self.may_answer.set()

    def complete(self, instructions: str, text: str) -> str:
        self.asked.append(text)
        self.begun.set()
        self.may_answer.wait()
        if text == "fail":
            raise ChatModelError("it failed")
        return text


def ask(*texts: str) -> list[Prompt]:
    return [Prompt("repeat", text) for text in texts]


def test_a_model_that_failed_is_asked_again_after_a_while(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(drafts, "RETRY_AFTER_S", 0.0)
    drafter = Drafter(Recorder())
    drafter.request(ask("fail", "lost"))
    assert drafter.collect(ask("fail"), TIMEOUT_S) == {}
    drafter.request(ask("again"))
    assert list(drafter.collect(ask("again"), TIMEOUT_S).values()) == ["again"]
    drafter.close()


def test_drafts_are_cut_and_old_requests_are_dropped(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(drafts, "_MAX_QUEUED", 2)
    model = Recorder()
    model.may_answer.clear()
    drafter = Drafter(model)
    drafter.request(ask("first"))
    assert model.begun.wait(TIMEOUT_S)
    drafter.request(ask("dropped", "x" * 5_000, "last"))
    model.may_answer.set()
    found = drafter.collect(ask("first", "x" * 5_000, "last"), TIMEOUT_S)
    assert [len(draft) for draft in found.values()] == [5, drafts.MAX_DRAFT_CHARACTERS, 4]
    assert "dropped" not in model.asked
    drafter.close()
    drafter.request(ask("after the end"))
    assert drafter.collect(ask("after the end"), TIMEOUT_S) == {}
