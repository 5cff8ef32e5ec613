"""Moments in a browser: an entity as it was, by slider and by keys."""

from datetime import date, timedelta

from playwright.sync_api import expect

from tests.web.browser import Visit


def test_an_earlier_version_is_shown_by_keys(admin: Visit) -> None:
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


def test_pages_fit_the_narrowest_phone(admin: Visit) -> None:
    admin.page.set_viewport_size({"width": 320, "height": 640})
    day = (date.today() - timedelta(days=5)).isoformat()
    for path in (
        "/ui/",
        "/ui/?q=tide",
        "/ui/entity?name=tide-forecast",
        f"/ui/entity?name=tide-forecast&at={day}",
        "/ui/entities",
        "/ui/entities?sort=said",
        "/ui/history",
        "/ui/graph",
        "/ui/start",
        "/ui/more",
        "/ui/import",
        "/ui/access",
        "/ui/health",
        "/ui/why?q=tide&wanted=Harbour",
        "/ui/curation",
        "/ui/new",
    ):
        admin.open(path)
        admin.fits()
