"""The graph in a browser.

The best connected entities, expanding, paths, the table, exports, and browsers without WebGL.
"""

import re
from pathlib import Path

from playwright.sync_api import Page, expect

from tests.web.browser import PHONE, Visit
from tests.web.conftest import NewVisit
from tests.web.serving import Ui

# One entity alone, in the middle of the canvas.
ALONE = "/ui/graph?name=Harbour&exact=1"


def drawn(visit: Visit, path: str, count: int) -> Page:
    """Open a graph and wait until so many entities are drawn."""
    page = visit.open(path)
    expect_drawn(page, count)
    return page


def expect_drawn(page: Page, count: int) -> None:
    expect(page.locator("#graph-status")).to_have_text(
        re.compile(rf"^{count} of \d+ entities on screen")
    )


def as_table(page: Page) -> Page:
    page.get_by_role("button", name="Table").click()
    return page


def test_the_best_connected_are_drawn_and_used_by_keys_alone(admin: Visit) -> None:
    page = admin.open("/ui/graph")
    expect(page.locator("#graph-status")).to_contain_text("entities on screen")
    admin.audit()
    page.fill("#fly-to", "Harbour")
    page.keyboard.press("Enter")
    expect(page.locator("#graph-status")).to_contain_text("Harbour, project, 6 relations")
    expect(page.locator("#selected h2")).to_have_text("Harbour")
    page.locator("#canvas").focus()
    page.keyboard.press("ArrowRight")
    expect(page.locator("#hover")).to_be_visible()
    expect(page.locator("#graph-status")).not_to_contain_text("Harbour, project")
    page.keyboard.press("Enter")
    expect(page.locator("#selected h2")).not_to_have_text("Harbour")
    page.keyboard.press("Escape")
    expect(page.locator("#selected")).to_be_hidden()
    as_table(page)
    expect(page.locator("#graph-rows")).to_contain_text("tide-forecast")
    admin.audit()


def test_the_panel_covers_nothing(admin: Visit) -> None:
    page = admin.open("/ui/graph")
    expect(page.locator("#graph-status")).to_contain_text("entities on screen")
    canvas, rail = page.locator("#canvas").bounding_box(), page.locator(".grail").bounding_box()
    assert canvas and rail
    assert canvas["x"] + canvas["width"] <= rail["x"] + 1


def test_a_click_selects_and_the_panel_acts(admin: Visit) -> None:
    page = drawn(admin, ALONE, 1)
    expect(page.locator("#selected")).to_contain_text(
        "plans berths for small ports", ignore_case=True
    )
    page.get_by_role("button", name="Close").click()
    expect(page.locator("#selected")).to_be_hidden()
    page.locator("#canvas").click()
    expect(page.locator("#selected h2")).to_have_text("Harbour")
    admin.audit()
    page.get_by_role("button", name="More around it").click()
    expect_drawn(page, 7)
    page.get_by_role("button", name="Hide").click()
    expect_drawn(page, 6)


def test_a_double_click_expands(admin: Visit) -> None:
    page = drawn(admin, ALONE, 1)
    page.locator("#canvas").dblclick()
    expect_drawn(page, 7)


def test_the_table_expands_too(admin: Visit) -> None:
    page = as_table(drawn(admin, ALONE, 1))
    page.get_by_role("button", name="Expand Harbour").click()
    expect(page.locator("#graph-rows tr")).to_have_count(7)
    admin.audit()


def test_a_path_to_another_entity_is_added(admin: Visit) -> None:
    page = drawn(admin, ALONE, 1)
    page.fill("#path-to", "PostgreSQL 17")
    page.get_by_role("button", name="Show", exact=True).click()
    expect(page.locator("#path li").first).to_have_text("Harbour")
    expect(page.locator("#path li").last).to_have_text("PostgreSQL 17")


def test_relations_of_some_types_can_be_left_out(admin: Visit) -> None:
    page = as_table(drawn(admin, "/ui/graph?name=Harbour", 7))
    page.get_by_text("Relations", exact=True).click()
    with page.expect_response("**/graph/data") as answered:
        page.get_by_role("checkbox", name="has_service").uncheck()
    assert "has_service" not in answered.value.json()["kinds"]
    expect(page.locator("#graph")).not_to_have_class("graph drawn as-table busy")


def test_the_picture_has_the_nodes_in_it(admin: Visit) -> None:
    page = drawn(admin, "/ui/graph?name=Harbour", 7)
    with page.expect_download() as saving:
        page.get_by_role("button", name="Save picture").click()
    assert saving.value.suggested_filename == "graph.png"
    # A picture of nothing but the background is packed to less.
    assert Path(saving.value.path()).stat().st_size > 15_000


def test_on_a_phone_the_graph_fits(ui: Ui, admin_token: str, visit: NewVisit) -> None:
    phone = visit(ui.origin, viewport=PHONE, theme="dark")
    phone.log_in(admin_token)
    drawn(phone, "/ui/graph?name=Harbour", 7)
    phone.fits()
    phone.audit()


def test_without_webgl_the_page_says_so_and_shows_the_table(admin: Visit) -> None:
    admin.page.add_init_script("HTMLCanvasElement.prototype.getContext = () => null")
    page = admin.open("/ui/graph?name=Harbour")
    expect(page.locator("#no-webgl")).to_contain_text("This browser has no WebGL 2")
    expect(page.locator("#graph-rows tr")).to_have_count(7)
    admin.audit()


def test_the_entity_page_shows_what_is_around_it(admin: Visit) -> None:
    page = admin.open("/ui/entity?name=Harbour")
    expect(page.locator(".minigraph circle")).to_have_count(8)
    page.get_by_role("link", name="Open in the graph").click()
    expect_drawn(page, 7)
