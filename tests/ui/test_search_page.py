"""The search page without a browser.

Hits, filters, what hides them, editing, deleting, and several at once.
"""

import re
from unittest.mock import patch

import pytest

from polymnia.engine.facts.revise import Edit, Revision, revise
from polymnia.engine.graph.entities import open_named
from polymnia.engine.memory import Memory
from polymnia.engine.recall.passages import RecallResult
from polymnia.model import Hit, Passage, Signals
from polymnia.web.pages.search import SearchFilters, search
from tests.behaviour.graphs import texts
from tests.ui.client import Visitor
from tests.ui.pages import HOSTILE

FACT = {"kind": "fact", "name": "billing-worker", "n": "2", "view": "hit"}


def stamp_of(visitor: Visitor, fact: dict[str, str]) -> str:
    shown = visitor.get("/ui/fact/edit?kind={kind}&name={name}&n={n}&view={view}".format(**fact))
    return shown.text.split('name="stamp" value="')[1].split('"')[0]


def test_an_empty_box_shows_the_latest_changes(visitor: Visitor) -> None:
    shown = visitor.get("/ui/")
    assert "Latest changes" in shown.words
    assert "codex related Mara Lindqvist owns billing-worker" in shown.words
    assert "cursor wrote the note runbook/queue" in shown.words


def test_hits_have_marks_fits_and_authors(visitor: Visitor) -> None:
    shown = visitor.get("/ui/?q=who+moved+off+redis")
    assert "<mark>moved</mark>" in shown.text
    assert "strong" in shown.words or "good" in shown.words
    assert "by claude-code" in shown.words
    assert "runbook/queue" in shown.words


def test_typing_gets_the_results_only(visitor: Visitor) -> None:
    shown = visitor.get("/ui/?q=redis", HX_Request="true")
    assert "<html" not in shown.text
    assert 'id="results"' in shown.text
    assert 'hx-swap-oob="true"' in shown.text


def test_why_a_hit_is_here_unfolds_in_place(visitor: Visitor) -> None:
    shown = visitor.get("/ui/?q=who+moved+off+redis")
    assert "/ui/why?q=who+moved+off+redis&amp;kind=fact&amp;name=billing-worker" in shown.text
    fields = "q=who+moved+off+redis&kind=fact&name=billing-worker&n=1"
    reason = visitor.get(f"/ui/why?{fields}", HX_Request="true")
    assert "<html" not in reason.text
    assert re.search(r"words \d+\.\d .*= \d+\.\d", reason.words)


def test_why_something_is_not_here_is_told(visitor: Visitor) -> None:
    assert "Missing something?" in visitor.get("/ui/?q=redis").words
    reason = visitor.get("/ui/why?q=redis&wanted=works+from")
    assert "works from Malmö" in reason.words
    assert "There is no entity nobody" in visitor.get("/ui/why?q=redis&wanted=nobody").words


def test_names_that_begin_as_typed_come_first(visitor: Visitor) -> None:
    shown = visitor.get("/ui/?q=lindq")
    assert "Mara Lindqvist" in shown.words.split("Type")[0]
    assert "Nothing" not in shown.words
    assert 'class="named"' not in visitor.get("/ui/?q=who+moved+off+redis").text


def test_the_facts_of_an_entity_are_one_card(visitor: Visitor) -> None:
    shown = visitor.get("/ui/?q=billing-worker+queue+Redis+Postgres+runs+replicas&weak=1")
    first, *others = shown.text.split("data-open-row><bdi>billing-worker</bdi>")
    assert others
    assert 'class="folded"' not in first
    assert "more fact" in shown.words


def test_filters_are_in_the_address(visitor: Visitor) -> None:
    assert "Harbour API" not in visitor.get("/ui/?q=redis&type=note").words
    assert "billing-worker" not in visitor.get("/ui/?q=redis&client=codex").words
    assert "runbook/queue" in visitor.get("/ui/?q=redis&tag=ops").words
    assert "Nothing was found" in visitor.get("/ui/?q=redis&since=2099-01-01").words


def test_no_hits_say_what_hides_them(visitor: Visitor) -> None:
    assert "Search without filters" in visitor.get("/ui/?q=redis&type=nothing").words
    assert "Search without filters" not in visitor.get("/ui/?q=zzqqxx").words


def test_the_entities_of_a_type_are_listed(visitor: Visitor) -> None:
    shown = visitor.get("/ui/?type=person")
    assert "Mara Lindqvist" in shown.words
    assert "Harbour API" not in shown.words
    assert "person" in visitor.get("/ui/types", HX_Request="true").words


def test_hostile_text_is_text(visitor: Visitor) -> None:
    for path in (
        "/ui/",
        "/ui/?q=markdown",
        "/ui/?q=long",
        f"/ui/entity?name={HOSTILE}".replace(" ", "+"),
    ):
        shown = visitor.get(path)
        assert shown.status == 200
        assert "<script>alert" not in shown.text
        assert "<img" not in shown.text
        assert "\u202e" not in shown.text
        assert "\x1b" not in shown.text
        assert len(shown.text) < 100_000


def test_a_long_text_is_shown_whole_on_request(visitor: Visitor) -> None:
    shown = visitor.get("/ui/fact/text?kind=fact&name=%3Cscript%3Ealert(%22x%22)%3C/script%3E&n=2")
    assert len(shown.text) > 10**6


def test_a_text_is_edited_and_the_edit_undone(visitor: Visitor, memory: Memory) -> None:
    shown = visitor.post(
        "/ui/fact/edit", **FACT, stamp=stamp_of(visitor, FACT), text="runs four\r\nreplicas"
    )
    assert texts(memory, "billing-worker")[1] == "runs four\nreplicas"
    assert "Changed a fact of billing-worker" in shown.words
    number = shown.text.split('name="change" value="')[1].split('"')[0]
    assert "Undone" in visitor.post("/ui/undo", change=number).words
    assert texts(memory, "billing-worker")[1] == "runs three replicas"


def test_a_text_that_somebody_else_changed_is_not_overwritten(
    visitor: Visitor, memory: Memory
) -> None:
    stamp = stamp_of(visitor, FACT)
    revise(memory, "billing-worker", Revision(replace=(Edit(2, "runs five replicas"),)), by="codex")
    shown = visitor.post("/ui/fact/edit", **FACT, stamp=stamp, text="runs four replicas")
    assert "Nothing was overwritten" in shown.words
    assert "<del>five</del>" in shown.text
    assert "runs four replicas" in shown.text
    assert texts(memory, "billing-worker")[1] == "runs five replicas"
    again = shown.text.split('name="stamp" value="')[1].split('"')[0]
    visitor.post("/ui/fact/edit", **FACT, stamp=again, text="runs three replicas")
    assert texts(memory, "billing-worker")[1] == "runs three replicas"


def test_a_blank_text_is_refused_in_place(visitor: Visitor, memory: Memory) -> None:
    shown = visitor.post("/ui/fact/edit", **FACT, stamp=stamp_of(visitor, FACT), text="  ")
    assert "The text is blank" in shown.words
    assert texts(memory, "billing-worker")[1] == "runs three replicas"


def test_a_fact_is_deleted_at_once_and_comes_back(visitor: Visitor, memory: Memory) -> None:
    shown = visitor.post("/ui/fact/delete", kind="fact", name="Mara Lindqvist", n="2")
    assert texts(memory, "Mara Lindqvist") == ("prefers small pull requests",)
    assert "Deleted a fact of Mara Lindqvist" in shown.words
    visitor.post("/ui/undo")
    assert texts(memory, "Mara Lindqvist") == ("prefers small pull requests", "works from Malmö")


def test_several_are_previewed_and_deleted_as_one_change(visitor: Visitor, memory: Memory) -> None:
    pick = "entity\t0\tHarbour API"
    shown = visitor.post("/ui/selection", action="delete", pick=pick)
    assert "This deletes 1 entity and 1 fact, as one change" in shown.words
    assert texts(memory, "Harbour API")
    visitor.post("/ui/selection/apply", action="delete", pick=pick)
    assert open_named(memory, ["Harbour API"]).entities == []
    visitor.post("/ui/undo")
    assert texts(memory, "Harbour API")


def test_several_are_moved_and_tagged(visitor: Visitor, memory: Memory) -> None:
    pick = "fact\t1\tHarbour API"
    shown = visitor.post(
        "/ui/selection/apply", action="move", pick=pick, target="Limits", type="concept"
    )
    assert "Moved 1 fact to Limits" in shown.words
    assert texts(memory, "Limits") == ("rate limits are in Redis",)
    visitor.post("/ui/selection/apply", action="tag", pick=pick, tags="api, public")
    assert open_named(memory, ["Harbour API"]).entities[0].tags == ("api", "public")
    visitor.post("/ui/undo")
    assert open_named(memory, ["Harbour API"]).entities[0].tags == ()


@pytest.mark.parametrize(
    "back", ["https://elsewhere.example/", "/ui\\elsewhere", "/ui/\nset-cookie: stolen=1"]
)
def test_an_action_leads_back_to_no_other_site(visitor: Visitor, back: str) -> None:
    pick = "fact\t1\tHarbour API"
    shown = visitor.post_once("/ui/selection/apply", action="tag", pick=pick, tags="api", back=back)
    assert (shown.status, shown.headers["location"].partition("?")[0]) == (303, "/ui/")
    assert "stolen" not in shown.headers.get("set-cookie", "")


def test_a_selection_of_nothing_is_refused(visitor: Visitor) -> None:
    for fields in (
        {"action": "delete"},
        {"action": "delete", "pick": "x"},
        {"action": "burn", "pick": "note\t0\tx"},
    ):
        assert visitor.post("/ui/selection", **fields).status == 400


def test_weak_hits_are_shown_only_to_those_who_ask(memory: Memory) -> None:
    passage = Passage("billing-worker", "service", 1, "moved its queue")
    weak = Hit(passage, 0.4, "meaning", Signals(), is_weak=True)
    with patch("polymnia.web.pages.search.recall", return_value=RecallResult(hits=[weak, weak])):
        found = search(memory, "zzqqxx", SearchFilters())
        assert (len(found.hits), len(found.weak)) == (0, 2)
        found = search(memory, "zzqqxx", SearchFilters(weak=True))
        assert (len(found.hits), len(found.weak)) == (2, 0)


def test_a_search_for_nothing_says_so_and_shows_the_nearest(
    visitor: Visitor, memory: Memory
) -> None:
    shown = visitor.get("/ui/?q=billing+blorfing+zzqqxx+wibbling+snorkel")
    assert "Nothing good found" in shown.words
    assert "probably not what you mean" in shown.words
    assert "billing-worker" in shown.words
    assert "Show all" in shown.words
    assert 'name="pick"' not in shown.text  # they are no hits
