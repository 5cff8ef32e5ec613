"""The playground in a browser: signals, why something is missing, and saved questions."""

from playwright.sync_api import expect

from tests.web.browser import PHONE, Visit
from tests.web.conftest import NewVisit
from tests.web.serving import Ui

QUESTION = "who+moved+the+queue+out+of+Redis"


def test_a_question_in_the_box_is_explained(admin: Visit) -> None:
    page = admin.open("/ui/playground")
    admin.audit()
    page.fill("#q", "who takes jobs with SKIP LOCKED")
    page.press("#q", "Enter")
    expect(page.locator("#signals tbody tr").first).to_contain_text("queue in PostgreSQL")
    expect(page.get_by_role("heading", level=3)).to_have_count(3)
    admin.audit()


def test_why_not_is_answered_in_place(admin: Visit) -> None:
    page = admin.open(f"/ui/playground?q={QUESTION}")
    page.fill("#wanted", "map tiles")
    page.locator(".card form .btn").first.click()
    expect(page.locator("#why")).to_contain_text("was not found by words, names, dates or meaning")
    page.fill("#wanted", "Mara Lindqist")
    page.locator(".card form .btn").first.click()
    expect(page.locator("#why")).to_contain_text("Did you mean Mara Lindqvist?")
    admin.audit()


def test_questions_are_saved_and_asked_again(admin: Visit) -> None:
    page = admin.open(f"/ui/playground?q={QUESTION}")
    page.select_option("#expected", "Redis")
    page.get_by_role("button", name="Save question").click()
    expect(page.locator("#saved li")).to_contain_text("should find Redis")
    expect(page.locator(".toast")).to_contain_text("Question saved")
    page.get_by_role("button", name="Run all 1").click()
    expect(page.locator(".toast")).to_contain_text("1 question asked")
    admin.audit()
    page.get_by_role("button", name="Delete the question").click()
    expect(page.locator("#saved")).to_contain_text("None yet")


def test_a_reader_cannot_save(ui: Ui, visit: NewVisit) -> None:
    reader = visit(ui.origin, viewport=PHONE, theme="dark")
    reader.log_in(ui.token("reader", "read"))
    page = reader.open(f"/ui/playground?q={QUESTION}")
    expect(page.locator("#signals tbody tr").first).to_be_visible()
    assert page.locator("main form[method=post]").count() == 0
    reader.fits()
    reader.audit()
