"""Agents, Go to and Add in a browser, by keys and on a phone."""

import re

from playwright.sync_api import expect

from tests.web.browser import Visit


def test_go_to_opens_an_entity_of_another_workspace_by_keys(admin: Visit) -> None:
    page = admin.open("/ui/history")
    page.keyboard.press("Control+k")
    expect(page.get_by_role("option").first).to_be_visible()
    admin.audit()
    page.keyboard.type("harmonic tide")
    expect(page.get_by_role("option", name="harmonic tide models")).to_be_visible()
    page.keyboard.press("Enter")
    expect(page).to_have_url(re.compile("w=research-notes"))
    expect(page.get_by_role("heading", name="harmonic tide models")).to_be_visible()


def test_an_agent_and_the_form_to_add_fit_a_phone(admin: Visit) -> None:
    page = admin.open("/ui/agents")
    page.get_by_role("link", name="cursor").click()
    expect(page.get_by_role("heading", name="cursor")).to_be_visible()
    admin.audit_all()
    page.set_viewport_size({"width": 320, "height": 640})
    admin.fits()
    admin.open("/ui/new")
    admin.audit()
    admin.fits()
