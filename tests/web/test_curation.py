"""Curation in a browser: decided by keys, undone, on a phone and in the dark."""

from contextlib import closing

import pytest
from playwright.sync_api import expect

from polymnia.cli.demo import MAIN
from polymnia.engine.graph import entities, facts
from polymnia.engine.workspaces import open_workspaces
from polymnia.model import EntityDraft, FactAddition
from tests.web.browser import Visit
from tests.web.serving import Ui


@pytest.fixture(scope="module")
def twins(ui: Ui) -> None:
    """Add an entity with a twin, and facts that contradict each other."""
    with closing(open_workspaces(ui.store)) as workspaces:
        memory = workspaces.memory(MAIN)
        twin = EntityDraft("Tide Forecast", "service", ("has a twin",))
        entities.create(memory, [twin], by="codex-cli")
        addition = FactAddition("Harbour", ("has 42 ports", "has 45 ports"))
        facts.add(memory, [addition], by="cursor", skip_repeats=False)


@pytest.mark.usefixtures("twins")
def test_findings_are_decided_by_keys_alone(admin: Visit) -> None:
    page = admin.open("/ui/curation?kind=contradictions")
    expect(page.locator(".qi[aria-current]")).to_contain_text("has 42 ports / has 45 ports")
    admin.audit()
    page.keyboard.press("1")
    expect(page.get_by_role("radio", name="has 42 ports")).to_be_checked()
    page.keyboard.press("a")
    expect(page.locator(".toast")).to_contain_text("Kept one fact of Harbour")
    page.keyboard.press("u")
    expect(page.locator(".toast")).to_contain_text("Undone")
    page.goto(f"{admin.origin}/ui/curation?kind=duplicates")
    heading = page.locator(".focus .versus")
    before = heading.inner_text()
    page.keyboard.press("j")
    expect(heading).not_to_have_text(before, use_inner_text=True)
    page.keyboard.press("k")
    expect(heading).to_have_text(before, use_inner_text=True)
    page.keyboard.press("d")
    expect(page.locator(".toast")).to_contain_text("Dismissed")


@pytest.mark.usefixtures("twins")
def test_a_merge_shows_what_moves_for_the_chosen_side(admin: Visit) -> None:
    page = admin.open("/ui/curation?kind=duplicates")
    page.locator(".qi", has_text="Tide Forecast, tide-forecast").click()
    expect(page.get_by_role("radio", name="tide-forecast")).to_be_checked()
    expect(page.get_by_text("has a twin")).to_be_visible()
    page.keyboard.press("2")
    expect(page.get_by_role("heading", name="What moves to Tide Forecast")).to_be_visible()
    expect(page.get_by_text("has a twin")).to_be_hidden()
    page.keyboard.press("1")
    page.keyboard.press("a")
    expect(page.locator(".toast")).to_contain_text("Merged Tide Forecast into tide-forecast")
    page.keyboard.press("u")
    expect(page.locator(".toast")).to_contain_text("Undone")
