"""The entity page without a browser: editing, relations, merging, and names that are gone."""

import re
from pathlib import Path
from urllib.parse import quote

from polymnia.engine.graph.entities import open_named
from polymnia.engine.memory import Memory
from tests.behaviour.graphs import keys, texts
from tests.ui.client import Visitor, make_token, serve
from tests.ui.pages import harbour


def at(name: str) -> str:
    return f"/ui/entity?name={quote(name)}"


def test_an_entity_has_its_facts_relations_and_history(visitor: Visitor) -> None:
    shown = visitor.get(at("billing-worker"))
    assert "runs three replicas" in shown.words
    assert "← owns" in shown.words
    assert "claude-code added 3 entities, 6 facts" in shown.words


def test_an_fact_is_added_once(visitor: Visitor, memory: Memory) -> None:
    shown = visitor.post("/ui/entity/observe", name="billing-worker", text="alerts go to billing")
    assert "Added a fact" in shown.words
    again = visitor.post("/ui/entity/observe", name="billing-worker", text="Alerts go to billing")
    assert "It is known already" in again.words
    assert texts(memory, "billing-worker")[2:] == ("alerts go to billing",)
    visitor.post("/ui/undo")
    assert texts(memory, "billing-worker")[2:] == ()


def test_the_card_is_edited_as_one_change(visitor: Visitor, memory: Memory) -> None:
    fields = {
        "name": "Harbour API",
        "new_name": "Public API",
        "type": "system",
        "tags": "api, core",
        "summary": "Doors.",
    }
    shown = visitor.post("/ui/entity/edit", **fields)
    assert "Public API" in shown.words
    (entity,) = open_named(memory, ["Public API"]).entities
    assert (entity.type, entity.tags, entity.summary) == ("system", ("api", "core"), "Doors.")
    gone = visitor.get(at("Harbour API"))
    assert gone.status == 404
    assert "It is called Public API now" in gone.words
    visitor.post("/ui/undo")
    assert visitor.get(at("Harbour API")).status == 200


def test_a_relation_is_added_and_deleted(visitor: Visitor, memory: Memory) -> None:
    fields = {"name": "billing-worker", "target": "Harbour API", "relation": "calls"}
    visitor.post("/ui/entity/relate", **fields)
    assert ("billing-worker", "Harbour API", "calls") in keys(
        open_named(memory, ["billing-worker"])
    )
    visitor.post("/ui/entity/unrelate", source="billing-worker", **fields)
    assert ("billing-worker", "Harbour API", "calls") not in keys(
        open_named(memory, ["billing-worker"])
    )


def test_a_relation_to_nothing_is_refused_unless_a_type_is_given(
    visitor: Visitor, memory: Memory
) -> None:
    fields = {"name": "billing-worker", "target": "batch-1", "relation": "runs on"}
    assert "There is no entity batch-1" in visitor.post("/ui/entity/relate", **fields).words
    visitor.post("/ui/entity/relate", **fields, type="host", direction="in")
    assert ("batch-1", "billing-worker", "runs on") in keys(open_named(memory, ["batch-1"]))


def test_names_are_suggested(visitor: Visitor) -> None:
    assert 'value="Harbour API"' in visitor.get("/ui/names?target=harb").text


def test_similar_names_are_merged_after_a_preview(visitor: Visitor, memory: Memory) -> None:
    assert (
        "mara.lindqvist"
        in visitor.get(
            f"/ui/entity/similar?name={quote('Mara Lindqvist')}", HX_Request="true"
        ).words
    )
    shown = visitor.get(f"/ui/entity/merge?name={quote('Mara Lindqvist')}&target=mara.lindqvist")
    assert "1 fact and 0 relations move here from mara.lindqvist ; 1 it has already" in shown.words
    done = visitor.post(
        "/ui/entity/merge", name="Mara Lindqvist", target="mara.lindqvist", keep="Mara Lindqvist"
    )
    assert "Merged mara.lindqvist into Mara Lindqvist" in done.words
    assert texts(memory, "Mara Lindqvist")[2:] == ("her chat name is mara",)
    gone = visitor.get(at("mara.lindqvist"))
    assert "It was merged into Mara Lindqvist" in gone.words
    visitor.post("/ui/undo")
    assert texts(memory, "mara.lindqvist") == (
        "prefers small pull requests",
        "her chat name is mara",
    )


def test_a_deleted_name_says_who_deleted_it(visitor: Visitor, memory: Memory) -> None:
    visitor.post("/ui/entity/observe", name="Harbour API", text="has two doors")
    visitor.post("/ui/fact/delete", kind="entity", name="Harbour API")
    gone = visitor.get(at("Harbour API"))
    assert "polymnia ui deleted it" in gone.words
    visitor.post("/ui/undo")
    assert "has two doors" in texts(memory, "Harbour API")


def test_an_unknown_name_shows_similar_ones(visitor: Visitor) -> None:
    shown = visitor.get(at("billing-wroker"))
    assert shown.status == 404
    assert "No entity ever had this name" in shown.words
    assert "billing-worker is spelled alike" in shown.words


def test_a_note_is_shown_and_edited(visitor: Visitor) -> None:
    assert "drain the queue" in visitor.get("/ui/note?key=runbook/queue").words
    form = visitor.get("/ui/fact/edit?kind=note&name=runbook/queue&view=obs")
    stamp = form.text.split('name="stamp" value="')[1].split('"')[0]
    fields = {
        "kind": "note",
        "name": "runbook/queue",
        "view": "obs",
        "stamp": stamp,
        "text": "drain it",
    }
    assert "drain it" in visitor.post("/ui/fact/edit", **fields).words


def test_a_reader_sees_no_controls_that_write(tmp_path: Path) -> None:
    with harbour(tmp_path) as (_, _):
        pass
    store = str(tmp_path / "memory.db")
    token = make_token(store, "reader", "read")
    with serve(store) as running:
        visitor = Visitor(running.port)
        visitor.log_in(token)
        for path in ("/ui/", "/ui/?q=redis", at("billing-worker"), "/ui/note?key=runbook/queue"):
            shown = visitor.get(path)
            assert shown.status == 200
            forms = set(re.findall(r'<form[^>]*action="([^"?]*)', shown.text))
            assert forms <= {"/ui/", "/ui/logout", "/ui/selection", "/ui/why"}
            assert "Delete" not in shown.text.replace("Delete, with Undo", "").replace(
                "<kbd>Delete</kbd>", ""
            )
        assert visitor.get("/ui/fact/edit?kind=fact&name=billing-worker&n=1").status == 403


def test_a_file_without_history_can_be_searched_and_edited(tmp_path: Path) -> None:
    with serve(str(tmp_path / "memory.jsonl")) as running:
        visitor = Visitor(running.port)
        assert "keeps no history" in visitor.get("/ui/").words
        assert visitor.get("/ui/?q=redis").status == 200
        assert visitor.get(at("nothing")).status == 404
