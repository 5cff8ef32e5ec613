"""Moments in a browser: an entity and the graph as they were, by slider and by keys."""

import re

from playwright.sync_api import expect

from tests.web.browser import Visit


def test_an_earlier_version_is_shown_and_brought_back_by_keys(admin: Visit) -> None:
    page = admin.open("/ui/entity?name=tide-forecast")
    for _ in range(3):
        address = page.url
        page.keyboard.press("[")
        expect(page).not_to_have_url(address)
    expect(page.locator(".timebar.past")).to_be_visible()
    expect(page.locator(".then.mod")).to_contain_text("03:10")
    expect(page.locator(".then.mod .cause")).to_contain_text("change #28")
    assert page.locator("#add").count() == 0  # nothing is written in the past
    admin.audit_all()
    page.get_by_role("link", name="Restore this version").click()
    expect(page.get_by_role("dialog")).to_contain_text("the station of Bodø moved by 40 m")
    admin.audit()
    page.get_by_role("button", name="Restore this version").click()
    expect(page.locator(".toast")).to_contain_text("Brought back tide-forecast")
    page.keyboard.press("u")
    expect(page.locator(".toast")).to_contain_text("Undone")


def test_the_slider_snaps_to_days_of_the_graph(admin: Visit) -> None:
    page = admin.open("/ui/graph")
    expect(page.locator("#graph-status")).to_contain_text("on screen")
    page.get_by_label("Moment").focus()
    page.keyboard.press("Home")
    expect(page).to_have_url(re.compile(r"at=\d+"))
    expect(page.locator("#graph-status")).to_contain_text("on screen")
    expect(page.locator(".timebar.past")).to_be_visible()
    page.keyboard.press("Escape")
    expect(page.locator(".timebar.past")).to_have_count(0)
