"""The history page without a browser.

Filters, differences, undo with choices, undo of a client, and the trash.
"""

from polymnia.engine.facts.forget import Unwanted, forget
from polymnia.engine.facts.revise import Edit, Revision, revise
from polymnia.engine.graph import facts
from polymnia.engine.memory import Memory
from polymnia.model import FactAddition
from tests.behaviour.graphs import texts
from tests.ui.client import Visitor


def replace(memory: Memory, ordinal: int, text: str, by: str) -> int:
    return revise(memory, "billing-worker", Revision(replace=(Edit(ordinal, text),)), by=by).change


def test_changes_are_sentences_with_differences(visitor: Visitor, memory: Memory) -> None:
    replace(memory, 2, "runs four replicas", "codex")
    shown = visitor.get("/ui/history")
    assert "codex changed a fact of billing-worker" in shown.words
    assert "<del>three</del>" in shown.text
    assert "<ins>four</ins>" in shown.text
    replace(memory, 2, "runs three replicas", "codex")


def test_new_texts_are_plain_and_replaced_ones_have_signs(visitor: Visitor, memory: Memory) -> None:
    first = visitor.get("/ui/history/change?id=1").text
    assert ("her chat name is mara" in first, 'class="plus"' in first) == (True, False)
    number = replace(memory, 2, "runs five replicas", "codex")
    changed = visitor.get(f"/ui/history/change?id={number}").text
    assert changed.count('class="minus"') == changed.count('class="plus"') == 1
    replace(memory, 2, "runs three replicas", "codex")


def test_filters_select_by_client_token_operation_entity_and_time(visitor: Visitor) -> None:
    assert "claude-code added" in visitor.get("/ui/history?client=claude-code").words
    assert "related" not in visitor.get("/ui/history?token=laptop").words.split("Client")[0]
    assert (
        "codex related Mara Lindqvist owns billing-worker"
        in visitor.get("/ui/history?operation=related").words
    )
    assert "cursor wrote the note" not in visitor.get("/ui/history?name=billing-worker").words
    assert "No change matches" in visitor.get("/ui/history?since=2099-01-01").words
    assert "No change matches" in visitor.get("/ui/history?client=nobody").words
    assert visitor.get("/ui/history?operation=nothing").status == 400


def test_one_change_is_shown_with_everything_it_altered(visitor: Visitor) -> None:
    assert "her chat name is mara" in visitor.get("/ui/history/change?id=1").words
    assert visitor.get("/ui/history/change?id=99999").status == 400


def test_an_undo_with_conflicts_asks_and_keeps_others_work_by_default(
    visitor: Visitor, memory: Memory
) -> None:
    number = replace(memory, 1, "uses Kafka", "codex")
    replace(memory, 1, "uses Postgres", "cursor")
    asked = visitor.post("/ui/undo", change=str(number))
    assert "fact 1 of billing-worker : it was changed since" in asked.words
    assert "Keep it as it is uses Postgres" in asked.words
    assert (
        "nothing left to undo"
        in visitor.post("/ui/history/undo", change=str(number), choice1="").words
    )
    assert texts(memory, "billing-worker")[0] == "uses Postgres"
    key = asked.text.split('name="choice1" value="')[2].split('"')[0]
    done = visitor.post("/ui/history/undo", change=str(number), choice1=key)
    assert "Undid 1 change" in done.words
    assert texts(memory, "billing-worker")[0] == "moved its queue off Redis to Postgres"


def test_there_may_be_nothing_of_mine_to_undo(visitor: Visitor, memory: Memory) -> None:
    for number in range(50):
        replace(memory, 2, f"runs {number} replicas", "codex")
    replace(memory, 2, "runs three replicas", "codex")
    assert "You have changed nothing lately" in visitor.post("/ui/undo").words


def test_undoing_twice_walks_back_two_steps_and_redo_does_the_last_again(
    visitor: Visitor, memory: Memory
) -> None:
    before = texts(memory, "Mara Lindqvist")
    for text in ("likes tea", "likes ferries"):
        visitor.post("/ui/entity/observe", name="Mara Lindqvist", text=text)
    assert "Undone Redo" in visitor.post("/ui/undo").words
    assert texts(memory, "Mara Lindqvist") == (*before, "likes tea")
    shown = visitor.post("/ui/undo")
    assert texts(memory, "Mara Lindqvist") == before
    number = shown.text.split('name="change" value="')[1].split('"')[0]
    assert "Done again" in visitor.post("/ui/undo", change=number, redo="1").words
    assert texts(memory, "Mara Lindqvist") == (*before, "likes tea")
    visitor.post("/ui/undo")
    assert texts(memory, "Mara Lindqvist") == before


def test_the_changes_that_a_filter_shows_are_undone_after_a_preview(
    visitor: Visitor, memory: Memory
) -> None:
    for text in ("one", "two"):
        draft = FactAddition("billing-worker", (text,))
        facts.add(memory, [draft], by="rogue (token r)", skip_repeats=True)
    assert "Undo these" in visitor.get("/ui/history?client=rogue&since=1d").words
    shown = visitor.get("/ui/history/undo?client=rogue&since=1d")
    assert "2 facts go" in shown.words
    assert "Undo 2 changes" in shown.words
    assert texts(memory, "billing-worker")[2:] == ("one", "two")
    visitor.post("/ui/history/undo", client="rogue", since="1d")
    assert texts(memory, "billing-worker")[2:] == ()
    assert visitor.get("/ui/history/undo").status == 400


def test_the_trash_gives_back_what_was_deleted(visitor: Visitor, memory: Memory) -> None:
    forget(memory, Unwanted(entities=("Harbour API",), notes=("runbook/queue",)), by="codex")
    shown = visitor.get("/ui/history?trash=1")
    assert "Harbour API entity with 1 fact" in shown.words
    assert "runbook/queue note" in shown.words
    assert "runbook/queue" not in visitor.get("/ui/history?trash=1&q=rate+limits").words
    for part in shown.text.split('name="id" value="')[1:]:
        visitor.post("/ui/history/restore", id=part.split('"')[0])
    assert texts(memory, "Harbour API") == ("rate limits are in Redis",)
    assert visitor.get("/ui/note?key=runbook/queue").status == 200
