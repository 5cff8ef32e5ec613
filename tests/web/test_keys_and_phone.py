"""Keys that lead through search and undo, pages on a phone, and a session that ends while one
writes.
"""

import pytest
from playwright.sync_api import expect

from polymnia.engine.graph import facts
from polymnia.engine.memory import Memory
from polymnia.model import FactAddition
from tests.behaviour.graphs import texts
from tests.ui.client import make_token
from tests.ui.pages import harbour
from tests.web.browser import PHONE, Visit
from tests.web.conftest import NewVisit
from tests.web.serving import Ui

ENTITY = "/ui/entity?name=billing-worker"


def test_u_walks_back_and_shift_u_does_it_again(user: Visit, memory: Memory) -> None:
    before = texts(memory, "billing-worker")
    page = user.open(ENTITY)
    for text in ("first thought", "second thought"):
        page.locator("#add").fill(text)
        page.keyboard.press("Enter")
        expect(page.locator("#facts")).to_contain_text(text)
    page.locator("h1").click()
    page.keyboard.press("u")
    expect(page.locator(".toast")).to_contain_text("Undone")
    expect(page.locator(".toast button").first).to_contain_text("Redo")
    assert texts(memory, "billing-worker") == (*before, "first thought")
    page.keyboard.press("u")
    expect(page.locator("#facts")).not_to_contain_text("first thought")
    assert texts(memory, "billing-worker") == before
    page.keyboard.press("Shift+U")
    expect(page.locator(".toast")).to_contain_text("Done again")
    assert texts(memory, "billing-worker") == (*before, "first thought")


def test_escape_keeps_the_words_and_down_leads_to_the_hits(user: Visit) -> None:
    page = user.open("/ui/")
    page.keyboard.press("/")
    page.keyboard.type("redis")
    expect(page.locator("#hits .hit")).not_to_have_count(0)
    page.keyboard.press("Escape")
    expect(page.locator("#q")).to_have_value("redis")
    expect(page.locator("#q")).not_to_be_focused()
    page.keyboard.press("/")
    page.keyboard.press("ArrowDown")
    expect(page.locator("#hits .hit").first).to_have_class("hit cursor")
    page.keyboard.press("j")
    expect(page.locator("#hits .hit").nth(1)).to_have_class("hit cursor")


def test_a_burst_of_changes_is_readable_on_a_phone(
    site: tuple[str, Memory], visit: NewVisit
) -> None:
    origin, memory = site
    for number in range(8):
        name = "billing-worker" if number % 2 else "Harbour API"
        draft = FactAddition(name, (f"thought {number}",))
        facts.add(memory, [draft], by="codex", skip_repeats=True)
    phone = visit(origin, viewport=PHONE)
    for path in ("/ui/", "/ui/history"):
        page = phone.open(path)
        expect(page.locator(".chg.burst summary").first).to_contain_text("also to Harbour API")
        box = page.locator(".chg.burst details").first.bounding_box()
        assert box is not None
        assert box["width"] > 200
        assert box["height"] < 200
        phone.fits()


def test_a_phone_shows_the_workspace_and_fits_a_search(ui: Ui, visit: NewVisit) -> None:
    for width in (390, 320):
        phone = visit(ui.origin, viewport={"width": width, "height": 844})
        phone.log_in(ui.token(f"phone-{width}"))
        page = phone.open("/ui/?q=harbour")
        phone.fits()
        expect(page.locator(".wsline")).to_contain_text("harbour")


def test_what_is_written_outlives_the_session(
    tmp_path_factory: pytest.TempPathFactory, visit: NewVisit
) -> None:
    with harbour(tmp_path_factory.mktemp("ended")) as (running, memory):
        store = memory.store.url
        make_token(store, "first", "admin")
        token = make_token(store, "laptop", "write")
        user = visit(f"http://127.0.0.1:{running.port}")
        user.log_in(token)
        page = user.open(ENTITY)
        page.locator("#add").fill("written for an hour")
        page.context.clear_cookies()
        user.expected.add(401)
        page.keyboard.press("Enter")
        expect(page.locator("main")).to_contain_text("Your session has ended")
        page.fill("#token", token)
        page.click("main button[type=submit]")
        expect(page.locator("main")).to_contain_text("written for an hour")
        user.audit()
        page.get_by_role("button", name="Send it now").click()
        expect(page.locator(".toast")).to_contain_text("Added a fact")
        assert "written for an hour" in texts(memory, "billing-worker")


def test_a_merge_keeps_the_richer_entity_and_lists_what_moves(user: Visit) -> None:
    page = user.open("/ui/entity/merge?name=mara.lindqvist&target=Mara+Lindqvist")
    choices = page.locator(".choice")
    expect(choices.first).to_contain_text("Mara Lindqvist")
    expect(choices.first.locator("input")).to_be_checked()
    expect(choices.first).to_contain_text("her chat name is mara")


def test_an_unknown_page_offers_a_way_back(user: Visit) -> None:
    page = user.open("/ui/nothing", status=404)
    expect(page.locator("h1")).to_be_visible()
    page.get_by_role("link", name="Back to the search").click()
    expect(page).to_have_url(f"{user.origin}/ui/")
