"""To-dos, lists without a question, erasure and old names, as an agent sees them."""

import re
from collections.abc import Iterator
from contextlib import closing
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest
from msgspec.json import decode

from polymnia.engine.facts import remember as facts
from polymnia.engine.facts.remember import EntityFacts, FactDraft
from polymnia.engine.memory import Memory
from polymnia.search.tokens import estimate_tokens
from polymnia.stores import open_store
from tests.dialects.conversation import Client

# Made up for this test: the right shape with no account behind it.
SECRET = "PGPASSWORD=Xk9-made-up"


@pytest.fixture
def client(versioned_url: str) -> Iterator[Client]:
    store = open_store(versioned_url)
    yield Client("native", Memory(store))
    store.close()


def remember(client: Client, name: str, *facts: object, **more: Any) -> str:
    return client.text("remember", {"entities": [{"name": name, "facts": list(facts), **more}]})


def test_open_to_dos_are_listed_by_due_date_and_overdue_ones_first(client: Client) -> None:
    remember(client, "index", "Add an index", type="todo", due="2999-11-20")
    remember(client, "docs", "Owner Deniz", type="todo", due="2020-11-13")
    remember(client, "logo", "Draw it", type="todo")
    remember(client, "old", "Was done", type="todo", status="done")
    lines = client.text("recall", {"types": ["todo"], "status": "open"}).splitlines()
    assert lines[1] == "docs (todo, OVERDUE since Fri 13 Nov 2020)"
    assert lines[2].startswith("  #1 Owner Deniz [noted ")
    assert lines[3] == "index (todo, due Wed 20 Nov 2999)"
    assert lines[5] == "logo (todo, open)"
    assert len(lines) == 7
    assert "docs" in client.text("recall", {"status": "overdue"})
    assert "index" not in client.text("recall", {"status": "overdue"})


def test_a_to_do_is_closed(client: Client) -> None:
    remember(client, "docs", "Owner Deniz", type="todo", due="2020-11-13")
    assert "status done" in client.text("revise", {"name": "docs", "status": "done"})
    assert "OVERDUE" not in client.text("recall", {"types": ["todo"]})
    assert client.text("recall", {"status": "done"}).splitlines()[1].startswith("docs (todo")
    assert "Nothing" in client.text("recall", {"status": "open"})


def test_a_question_may_be_asked_of_open_entities_only(client: Client) -> None:
    remember(client, "docs", "Describe the heartbeat", type="todo")
    remember(client, "old docs", "Describe the heartbeat again", type="todo", status="done")
    text = client.text("recall", {"query": "heartbeat", "status": "open"})
    assert "docs (todo" in text
    assert "again" not in text


def test_an_unknown_type_is_answered_with_those_in_use(client: Client) -> None:
    remember(client, "docs", "Owner Deniz", type="todo")
    expected = "No entity has the type task. Types in use: todo 1."
    assert client.text("recall", {"types": ["task"]}) == expected


def test_open_shows_when_a_to_do_is_due_and_whether_it_is_done(client: Client) -> None:
    remember(client, "pay the fee", "to the port", type="todo", due="2999-11-20")
    opened = client.text("open", {"names": ["pay the fee"]})
    assert "pay the fee (todo, due Wed 20 Nov 2999)\n" in opened
    client.text("revise", {"name": "pay the fee", "status": "done"})
    opened = client.text("open", {"names": ["pay the fee"]})
    assert "pay the fee (todo, due Wed 20 Nov 2999, done)\n" in opened


def test_if_nothing_is_overdue_the_open_to_dos_are_shown(client: Client) -> None:
    remember(client, "pay the fee", "to the port", type="todo", due="2999-11-20")
    text = client.text("recall", {"query": "Which to-dos are overdue?"})
    assert "pay the fee (todo, due Wed 20 Nov 2999)" in text
    assert "not stored" not in text


def test_to_dos_that_share_an_entity_are_all_listed(client: Client) -> None:
    steps = [f"paint wall {number}" for number in range(6)]
    remember(client, "open tasks", *steps, type="todo")
    for call in ({"query": "What is still on the to-do list?"}, {"types": ["todo"]}):
        text = client.text("recall", call)
        assert [step for step in steps if step in text] == steps


def test_a_list_counts_the_facts_that_it_leaves_out(client: Client) -> None:
    for name in "abcdefgh":
        remember(client, name, *(f"{name} step {number}" for number in range(5)), type="howto")
    text = client.text("recall", {"types": ["howto"]})
    assert "a (howto), 2 earlier facts: open shows all" in text
    assert "a step 2" in text
    assert "a step 1" not in text


def test_a_list_is_limited_to_a_period(client: Client) -> None:
    remember(client, "ADR-1", "Use SQLite", type="decision", when="2020-01-01")
    remember(client, "ADR-2", "Use PostgreSQL", type="decision", when="yesterday")
    text = client.text("recall", {"types": ["decision"], "since": "last week"})
    assert "ADR-2" in text
    assert "ADR-1" not in text


def test_an_expired_fact_is_not_recalled_but_opened(client: Client) -> None:
    fact = {"text": "The office is closed", "expires": "2020-01-01"}
    remember(client, "office", fact, "The office is in Lund")
    assert "closed" not in client.text("recall", {"query": "office"})
    assert "closed" in client.text("open", {"names": ["office"]})


def test_a_secret_is_erased_from_facts_history_and_search(client: Client) -> None:
    receipt = remember(client, "production database", SECRET, "Runs on db1")
    assert '"erase":true' in receipt
    call: dict[str, Any] = {"name": "production database", "facts": ["#1"], "erase": True}
    refused = client.error("forget", call)
    assert "confirm" in refused
    assert SECRET not in refused
    reply = client.text("forget", {**call, "confirm": True})
    assert "Erased production database #1" in reply
    assert "Backups" in reply
    for tool, arguments in (
        ("history", {"name": "production database"}),
        ("recall", {"query": "PGPASSWORD"}),
        ("open", {"names": ["production database"], "superseded": True}),
    ):
        assert SECRET not in client.text(tool, arguments)
    assert "(erased)" in client.text("history", {"name": "production database"})
    assert "Runs on db1" in client.text("open", {"names": ["production database"]})


def test_the_call_that_a_secret_warning_gives_works_as_it_is(client: Client) -> None:
    receipt = remember(client, "production database", SECRET)
    call = receipt[receipt.index("forget {") + len("forget ") :]
    assert "Erased production database #1" in client.text("forget", decode(call))


def test_an_erasure_speaks_of_the_store_that_it_concerns(
    client: Client, versioned_url: str
) -> None:
    remember(client, "production database", SECRET)
    call = {"name": "production database", "facts": ["#1"], "erase": True, "confirm": True}
    is_server = versioned_url.startswith("postgresql:")
    assert ("VACUUM" in client.text("forget", call)) == is_server


def test_an_erased_entity_leaves_no_byte_in_the_file(tmp_path: Path) -> None:
    path = tmp_path / "memory.db"
    with closing(open_store(str(path))) as store:
        client = Client("native", Memory(store))
        remember(client, "Zebedee Quux", "Lives in Xanadu street 17", tags=["customer-xyzzy"])
        edit = {"old": "#1", "new": "Moved to Erewhon"}
        client.text("revise", {"name": "Zebedee Quux", "facts": [edit]})
        call = {"name": "Zebedee Quux", "whole": True, "erase": True, "confirm": True}
        client.text("forget", call)
    content = b"".join(file.read_bytes() for file in tmp_path.iterdir())
    for word in (b"Zebedee", b"Erewhon", b"xyzzy", b"Xanadu"):
        assert word not in content


def test_a_whole_entity_needs_confirmation(client: Client) -> None:
    remember(client, "Worker", "Runs", "Stops")
    refused = client.error("forget", {"name": "Worker", "whole": True})
    assert refused == "Forgetting Worker deletes 2 facts. Ask the user, then pass confirm: true."


def test_old_and_partial_names_work(client: Client) -> None:
    remember(client, "Deniz Aydin", "Is on leave", type="person")
    client.text("revise", {"name": "Deniz Aydin", "rename": "Deniz Kaya"})
    opened = client.text("open", {"names": ["deniz aydin"]})
    assert "Is on leave" in opened
    assert '"deniz aydin" was taken as Deniz Kaya.' in opened
    revised = client.text("revise", {"name": "Deniz", "status": "done"})
    assert '"Deniz" was taken as Deniz Kaya.' in revised
    assert "Deniz Kaya" in client.text("explore", {"name": "Deniz Aydin"})


def test_open_answers_for_what_was_true_on_a_day(client: Client) -> None:
    remember(client, "release", "Due 27 Nov", when="2026-11-10")
    edit = {"old": "#1", "new": "Due 4 Dec", "when": "2026-11-13"}
    client.text("revise", {"name": "release", "facts": [edit]})
    then = client.text("open", {"names": ["release"], "true_on": "2026-11-12"})
    assert "Due 27 Nov" in then
    assert "Due 4 Dec" not in then
    now = client.text("open", {"names": ["release"], "true_on": "2026-11-14"})
    assert "Due 4 Dec" in now
    assert "Due 27 Nov" not in now


def test_a_briefing_says_what_matters(client: Client, versioned_url: str) -> None:
    remember(client, "user", "Lives in Lund", "Prefers short answers", type="person")
    remember(client, "merge rule", "Never merge to main on Fridays", type="rule")
    remember(client, "index", "Add an index", type="todo", due="2999-11-20")
    remember(client, "docs", "Owner Deniz", type="todo", due="2020-11-13")
    remember(client, "CI", "CI moved to Forgejo", type="decision", when="yesterday")
    remember(client, "old", "Use RabbitMQ", type="decision", when="2020-01-01")
    remember(client, "glossary", "A job is a row", tags=["pinned"])
    store = open_store(versioned_url)
    other = [EntityFacts(name="Worker", facts=(FactDraft("Heartbeat is 15 s"),))]
    facts.remember(Memory(store), other, by="codex 2.0")
    store.close()
    lines = client.text("briefing").splitlines()
    assert "Today " in lines[0]
    assert lines[1:9] == [
        "About the user",
        "  Prefers short answers (user)",
        "  Lives in Lund (user)",
        "Rules",
        "  Never merge to main on Fridays (merge rule)",
        "To-dos",
        "  OVERDUE since Fri 13 Nov 2020: docs. Owner Deniz",
        "  due Wed 20 Nov 2999: index. Add an index",
    ]
    assert lines[9] == "Decided in the last two weeks"
    assert lines[10].endswith("CI: CI moved to Forgejo")
    assert lines[11] == "Changed by others since your last write"
    assert lines[12].startswith("  codex: Worker #1 Heartbeat is 15 s (default:")
    assert lines[13:15] == ["Pinned", "  A job is a row (glossary)"]
    assert lines[-1].startswith("In default: 8 entities, ")


def test_a_short_briefing_stays_within_its_budget(client: Client) -> None:
    for number in range(30):
        remember(client, f"rule {number}", f"Never do thing {number} again", type="rule")
    assert estimate_tokens(client.text("briefing", {"max_tokens": 300})) <= 300


def test_a_fact_that_expires_does_not_take_its_entity_along(client: Client) -> None:
    remember(client, "Ines Rocha", "Approves migrations", type="person")
    remember(client, "Ines Rocha", "Is on leave", expires="2020-01-01")
    text = client.text("recall", {"query": "Ines Rocha"})
    assert "Approves migrations" in text
    assert "on leave" not in text


def test_history_has_the_ids_that_undo_takes(client: Client) -> None:
    remember(client, "CI", "CI runs on Forgejo")
    assert "- default:1, " in client.text("history")
    assert client.text("undo", {"changes": ["default:1"]}).startswith("default:2 undid")


@pytest.mark.parametrize("word", ["completed", "Complete", "closed", "finished", "resolved"])
def test_other_words_for_done_close_a_to_do(client: Client, word: str) -> None:
    remember(client, "docs", "Describe it", type="todo")
    assert "status done" in client.text("revise", {"name": "docs", "status": word})
    assert "docs (todo" in client.text("recall", {"status": word})


@pytest.mark.parametrize("word", ["pending", "todo", "active", "in progress", "in_progress"])
def test_other_words_for_open_leave_a_to_do_open(client: Client, word: str) -> None:
    remember(client, "docs", "Describe it", type="todo", status=word)
    assert "docs (todo" in client.text("recall", {"status": "open"})


def test_an_unknown_status_is_refused_with_the_choices(client: Client) -> None:
    remember(client, "docs", "Describe it", type="todo")
    error = client.error("revise", {"name": "docs", "status": "blocked"})
    assert error == "status: 'blocked' is unknown; use open, done, cancelled"
    error = client.error("recall", {"status": "blocked"})
    assert error == "status: 'blocked' is unknown; use open, done, cancelled, overdue"


def test_as_of_a_day_means_its_end(client: Client) -> None:
    remember(client, "Tidepool", "is a project")
    for day in ("today", datetime.now(UTC).date().isoformat()):
        assert "is a project" in client.text("open", {"names": ["Tidepool"], "as_of": day})


@pytest.mark.parametrize("due", ["tomorrow", "in 1 day"])
def test_the_receipt_names_the_day_that_a_relative_due_date_means(client: Client, due: str) -> None:
    tomorrow = datetime.now(UTC) + timedelta(days=1)
    label = f"due {tomorrow:%a} {tomorrow.day} {tomorrow:%b}"
    receipt = client.text("remember", {"name": "docs", "type": "todo", "due": due})
    assert f"docs: {label}" in receipt
    assert "index" in client.text("remember", {"name": "index", "type": "todo"})
    assert label in client.text("revise", {"name": "index", "due": due})


def test_the_receipt_does_not_repeat_a_date(client: Client) -> None:
    call = {"name": "docs", "type": "todo", "due": "2999-11-20"}
    assert "2999" not in client.text("remember", call)


@pytest.mark.parametrize("through", ["remember", "revise"])
def test_a_fact_stays_until_the_one_that_replaces_it_becomes_true(
    client: Client, through: str
) -> None:
    client.text("remember", {"entities": [{"name": "pricing", "facts": ["a call costs 18 cents"]}]})
    day = (datetime.now(UTC) + timedelta(days=20)).date().isoformat()
    if through == "remember":
        fact = {"text": "a call costs 21 cents", "replaces": "#1", "when": day}
        receipt = client.text("remember", {"entities": [{"name": "pricing", "facts": [fact]}]})
        assert "#2 (replaces #1 on " in receipt
    else:
        edit = {"old": "#1", "new": "a call costs 21 cents", "when": day}
        receipt = client.text("revise", {"name": "pricing", "facts": [edit]})
        assert "#1 replaced by #2 on " in receipt
    assert "18 cents [until " in client.text("recall", {"query": "what does a call cost?"})
    assert "18 cents" in client.text("open", {"names": ["pricing"]})
    then = client.text("open", {"names": ["pricing"], "true_on": day})
    assert "21 cents" in then
    assert "18 cents" not in then


def test_a_question_for_what_is_due_lists_all_that_is_open(client: Client) -> None:
    due = {"order locks": "in 3 days", "renew the domain": "in 5 days"}
    for name, day in due.items():
        remember(client, name, f"{name} as agreed", type="milestone", due=day)
    remember(client, "old invoice", "was never sent", type="milestone", due="yesterday")
    for question in ("what must I do by next Friday?", "what is due this month?"):
        text = client.text("recall", {"query": question})
        assert [name for name in due if f"{name} (milestone, due " not in text] == []
    late = client.text("recall", {"query": "which of the open tasks are late?"})
    assert "old invoice (milestone, OVERDUE " in late
    assert "renew the domain" not in late
    by_type = client.text("recall", {"types": ["todo"], "status": "open"})
    assert "order locks (milestone, due " in by_type  # what has a status is a to-do


def test_a_filter_that_selects_a_few_shows_them_all(client: Client) -> None:
    for name in ("book the hall", "call the bank", "fix the rota"):
        remember(client, name, "for the party", type="todo", due="in 3 days")
    link = {"from": "book the hall", "type": "assigned_to", "to": "Ravi"}
    client.text("remember", {"relations": [link]})
    question = {"query": "what is on Ravi's plate?", "types": ["todo"], "status": "open"}
    text = client.text("recall", question)
    assert "relations: this -assigned_to-> Ravi" in text
    assert "call the bank" in text
    assert "fix the rota" in text


def test_an_open_todo_is_listed_by_its_due_day(client: Client) -> None:
    remember(client, "dentist bill", "pay it", type="todo", due="in 2 days")
    remember(client, "tyres", "change them", type="todo", due="in 20 days")
    text = client.text("recall", {"types": ["todo"], "status": "open", "until": "in 5 days"})
    assert "dentist bill" in text
    assert "tyres" not in text


def test_what_was_told_today_is_in_a_list_of_today(client: Client) -> None:
    remember(client, "Fietje", {"text": "died", "when": "2020-11-17"})
    assert "died" in client.text("recall", {"since": "yesterday"})


def test_a_new_text_leaves_the_due_day_and_says_so(client: Client) -> None:
    remember(client, "launch", "The launch is on 26 November", type="milestone", due="2999-11-26")
    edit = {"old": "#1", "new": "The launch is on 27 November"}
    receipt = client.text("revise", {"name": "launch", "facts": [edit]})
    assert "due is still Tue 26 Nov 2999" in receipt


def _day(days: int) -> str:
    return (datetime.now(UTC) + timedelta(days=days)).date().isoformat()


def test_a_stored_plan_that_replaces_a_fact_leaves_it_until_then(client: Client) -> None:
    remember(
        client, "queue", "Our broker is RabbitMQ", {"text": "Our broker is NATS", "when": _day(9)}
    )
    receipt = client.text("revise", {"name": "queue", "facts": [{"old": "#1", "new": "#2"}]})
    assert "#1 replaced by #2 on " in receipt
    recalled = client.text("recall", {"query": "which broker carries our messages?"})
    assert f"~ expires queue #1: none => {_day(9)}" in client.text("history", {})
    assert "#1 Our broker is RabbitMQ [until " in recalled
    assert "was: " not in recalled
    assert "contradiction" not in client.text("review", {})


@pytest.mark.parametrize("through", ["forget", "revise"])
def test_a_fact_stays_when_the_plan_to_replace_it_is_given_up(client: Client, through: str) -> None:
    remember(client, "pricing", "a call costs 18 cents")
    edit = {"old": "#1", "new": "a call costs 21 cents", "when": _day(20)}
    client.text("revise", {"name": "pricing", "facts": [edit]})
    if through == "forget":
        client.text("forget", {"name": "pricing", "facts": ["#2"]})
        assert "expires" not in client.text("open", {"names": ["pricing"]})
    else:
        later = {"old": "#2", "new": "a call costs 22 cents", "when": _day(40)}
        client.text("revise", {"name": "pricing", "facts": [later]})
    then = client.text("open", {"names": ["pricing"], "true_on": _day(30)})
    assert "18 cents" in then
    assert "21 cents" not in then
    assert "22 cents" not in then


def test_a_briefing_says_when_a_decision_begins_and_what_holds_until_then(client: Client) -> None:
    entity = {"name": "pricing", "type": "decision", "facts": ["a call costs 18 cents"]}
    client.text("remember", {"entities": [entity]})
    edit = {"old": "#1", "new": "a call costs 21 cents", "when": _day(20)}
    client.text("revise", {"name": "pricing", "facts": [edit]})
    briefing = client.text("briefing", {})
    assert re.search(r"pricing: a call costs 21 cents \(from \w+ \d", briefing)
    assert "pricing: a call costs 18 cents\n" in briefing


def test_no_call_is_proposed_that_would_lose_a_part_of_a_fact(client: Client) -> None:
    remember(client, "Fietje", "Has diabetes, gets 6 units of insulin")
    receipt = remember(client, "Fietje", "Gets 4 units of insulin")
    assert '#2 may contradict #1 "Has diabetes' in receipt
    assert "correct #1, and keep the rest" in receipt
    assert "revise" not in receipt
    assert "revise" not in client.text("review", {})
