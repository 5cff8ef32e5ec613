"""Search, Entity, History and Live in a browser.

Typing, editing, deleting, undoing, merging, following and keys.
"""

from playwright.sync_api import Page, Route, expect

from polymnia.engine.facts.revise import Edit, Revision, revise
from polymnia.engine.graph import facts
from polymnia.engine.graph.entities import open_named
from polymnia.engine.memory import Memory
from polymnia.model import FactAddition
from tests.behaviour.graphs import texts
from tests.web.browser import Visit
from tests.web.conftest import NewVisit

ENTITY = "/ui/entity?name=billing-worker"


def rows(page: Page) -> list[str]:
    return page.locator("#hits .who a").all_inner_texts()


def test_a_page_is_printed_on_white_without_controls(
    site: tuple[str, Memory], visit: NewVisit
) -> None:
    page = visit(site[0], theme="dark").open(ENTITY)
    page.emulate_media(media="print")
    expect(page.locator("body")).to_have_css("background-color", "rgb(253, 253, 252)")
    expect(page.locator("main h1")).to_be_visible()
    controls = page.locator("button, .btn, input, select, textarea").filter(visible=True)
    expect(controls).to_have_count(0)


def test_typing_searches_and_changes_the_address(user: Visit) -> None:
    page = user.open("/ui/")
    page.keyboard.press("/")
    page.keyboard.type("redis")
    expect(page.locator(".bar")).to_contain_text("hits")
    expect(page).to_have_url(f"{user.origin}/ui/?q=redis")
    assert "billing-worker" in rows(page)
    page.locator("#filters").get_by_role("link", name="note").click()
    expect(page.locator("#hits .who a")).to_have_text(["runbook/queue"])
    page.get_by_role("link", name="type: note").click()
    expect(page.locator("#hits .hit")).not_to_have_count(1)
    page.go_back()
    page.go_back()
    expect(page.locator("#q")).to_have_value("redis")


def test_typing_on_before_the_answer_is_no_error(user: Visit) -> None:
    page = user.open("/ui/")
    page.evaluate(
        """() => {
            const data = document.body.dataset;
            const count = () => { data.asked = Number(data.asked || 0) + 1; };
            document.querySelector("#q").addEventListener("htmx:trigger", count);
        }"""
    )
    held: list[Route] = []
    page.route("**/ui/?q=post", lambda route: held.append(route))
    with page.expect_request("**/ui/?q=post"):
        page.fill("#q", "post")
    page.fill("#q", "redis")
    page.locator("body[data-asked='2']").wait_for()
    held[0].continue_()
    expect(page).to_have_url(f"{user.origin}/ui/?q=redis")
    assert "billing-worker" in rows(page)


def test_a_text_is_edited_in_place_with_the_keyboard(user: Visit, memory: Memory) -> None:
    page = user.open("/ui/?q=replicas")
    page.keyboard.press("j")
    page.keyboard.press("e")
    area = page.locator("#edit-text")
    expect(area).to_be_focused()
    area.fill("runs four replicas")
    user.audit()
    page.keyboard.press("Enter")
    expect(page.locator("#hits")).to_contain_text("runs four replicas")
    assert texts(memory, "billing-worker")[1] == "runs four replicas"
    page.locator(".hit.cursor").wait_for()
    page.keyboard.press("e")
    page.locator("#edit-text").fill("nonsense")
    page.keyboard.press("Escape")
    expect(page.locator("#hits")).to_contain_text("runs four replicas")


def test_a_form_can_be_cancelled_as_soon_as_it_appears(user: Visit) -> None:
    page = user.open("/ui/?q=replicas")
    page.evaluate(
        """() => {
            const click = () => document.querySelector("[data-cancel]")?.click();
            new MutationObserver(click).observe(document.body, { childList: true, subtree: true });
        }"""
    )
    page.keyboard.press("j")
    with page.expect_response(lambda response: "/ui/fact?" in response.url):
        page.keyboard.press("e")
    expect(page.locator("#hits")).to_contain_text("runs three replicas")


def test_a_text_that_changed_meanwhile_is_shown_beside_mine(user: Visit, memory: Memory) -> None:
    page = user.open(ENTITY)
    page.locator("#o2").hover()
    page.locator("#o2 [data-key=e]").click()
    page.locator("#edit-text").wait_for()
    revise(memory, "billing-worker", Revision(replace=(Edit(2, "runs nine replicas"),)), by="codex")
    page.locator("#edit-text").fill("runs four replicas")
    page.keyboard.press("Enter")
    expect(page.locator(".notice.warn")).to_contain_text("Nothing was overwritten")
    expect(page.locator("del")).to_have_text("nine")
    user.audit()
    page.get_by_role("link", name="Keep theirs").click()
    expect(page.locator("#o2")).to_contain_text("runs nine replicas")


def test_a_deleted_fact_comes_back_by_the_toast(user: Visit, memory: Memory) -> None:
    page = user.open("/ui/?q=replicas")
    page.keyboard.press("j")
    page.keyboard.press("Delete")
    expect(page.locator(".toast")).to_contain_text("Deleted a fact of billing-worker")
    expect(page.locator(".hit.gone")).to_have_count(1)
    assert texts(memory, "billing-worker") == ("moved its queue off Redis to Postgres",)
    user.audit()
    page.keyboard.press("u")
    expect(page.locator(".toast")).to_contain_text("Undone")
    assert texts(memory, "billing-worker")[1] == "runs three replicas"
    expect(page.locator("#hits")).to_contain_text("runs three replicas")


def test_several_hits_are_deleted_after_a_preview(user: Visit, memory: Memory) -> None:
    page = user.open("/ui/?q=redis")
    expect(page.locator(".selbar")).to_be_hidden()
    page.keyboard.press("j")
    page.keyboard.press("x")
    page.keyboard.press("j")
    page.keyboard.press("x")
    expect(page.locator(".selbar")).to_contain_text("2 selected")
    page.locator(".selbar").get_by_role("button", name="Delete").click()
    dialog = page.locator("dialog[open]")
    expect(dialog).to_contain_text("as one change")
    expect(dialog.get_by_role("link", name="Cancel")).to_be_focused()
    user.audit()
    page.keyboard.press("Escape")
    expect(page.locator("dialog[open]")).to_have_count(0)
    page.locator(".selbar").get_by_role("button", name="Tag").click()
    page.locator("#tags").fill("cache")
    user.audit()
    page.locator("dialog[open]").get_by_role("button", name="Tag", exact=True).click()
    expect(page.locator(".toast")).to_contain_text("Tagged")


def test_an_fact_is_added_moved_and_undone(user: Visit, memory: Memory) -> None:
    page = user.open(ENTITY)
    page.locator("#add").fill("alerts go to billing")
    page.keyboard.press("Enter")
    expect(page.locator("#facts")).to_contain_text("alerts go to billing")
    expect(page.locator("#add")).to_have_value("")
    page.locator("#o3").hover()
    page.get_by_role("button", name="Move fact 3").click()
    page.locator("#target").fill("Harbour API")
    user.audit()
    page.locator("dialog[open]").get_by_role("button", name="Move", exact=True).click()
    expect(page.locator(".toast")).to_contain_text("Moved 1 fact to Harbour API")
    assert "alerts go to billing" in texts(memory, "Harbour API")


def test_similar_names_are_merged_and_separated(user: Visit, memory: Memory) -> None:
    page = user.open("/ui/entity?name=Mara+Lindqvist")
    page.get_by_role("link", name="Merge with mara.lindqvist").click()
    dialog = page.locator("dialog[open]")
    expect(dialog).to_contain_text("1 fact and 0 relations move here")
    user.audit()
    dialog.get_by_role("button", name="Merge").click()
    expect(page.locator(".toast")).to_contain_text("Merged mara.lindqvist into Mara Lindqvist")
    expect(page.locator("#facts")).to_contain_text("her chat name is mara")
    user.open("/ui/entity?name=mara.lindqvist", status=404)
    expect(page.locator("main")).to_contain_text("It was merged into Mara Lindqvist")
    user.audit()
    user.open("/ui/entity?name=Mara+Lindqvist")
    page.keyboard.press("u")
    expect(page.locator(".toast")).to_contain_text("Undone")
    assert open_named(memory, ["mara.lindqvist"]).entities


def test_a_relation_is_added_by_typing(user: Visit) -> None:
    page = user.open(ENTITY)
    page.locator("#relation").fill("calls")
    page.locator("#other").press_sequentially("harb")
    expect(page.locator("#other-names option")).to_have_attribute("value", "Harbour API")
    page.locator("#other").fill("Harbour API")
    page.get_by_role("button", name="Relate").click()
    expect(page.locator("#relations")).to_contain_text("Harbour API")


def test_an_undo_with_conflicts_gives_a_choice(user: Visit, memory: Memory) -> None:
    one = revise(
        memory, "billing-worker", Revision(replace=(Edit(2, "runs four replicas"),)), by="codex"
    ).change
    revise(
        memory, "billing-worker", Revision(replace=(Edit(2, "runs five replicas"),)), by="cursor"
    )
    page = user.open("/ui/history")
    page.get_by_role("button", name=f"Undo change {one}").click()
    expect(page.locator("main")).to_contain_text("Keep it as it is")
    user.audit()
    page.get_by_text("Undo it anyway").click()
    page.get_by_role("button", name="Undo 1 change").click()
    expect(page.locator(".toast")).to_contain_text("Undid 1 change")
    assert texts(memory, "billing-worker")[1] == "runs three replicas"


def test_what_the_filters_show_is_undone_after_a_preview(user: Visit) -> None:
    page = user.open("/ui/history")
    expect(page.get_by_role("link", name="Undo these")).to_have_count(0)
    page.get_by_role("link", name="codex", exact=True).click()
    page.get_by_role("link", name="Undo these").click()
    expect(page.locator("main")).to_contain_text("client: codex")
    user.audit()


def test_changes_of_a_second_client_appear_while_following(user: Visit, memory: Memory) -> None:
    def observe(text: str) -> None:
        facts.add(memory, [FactAddition("billing-worker", (text,))], by="second", skip_repeats=True)

    page = user.open("/ui/history")
    page.get_by_role("button", name="Follow").click()
    page.mouse.move(0, 0)
    observe("first news")
    expect(page.locator("#fresh li").first).to_contain_text("first news")
    user.audit()
    page.locator("#fresh li").first.hover()
    observe("second news")
    expect(page.locator("#news")).to_be_visible()
    expect(page.locator("#fresh")).not_to_contain_text("second news")
    page.locator("#news").click()
    expect(page.locator("#fresh li").first).to_contain_text("second news")
    expect(page.locator("#fresh li")).to_have_count(2)


def test_the_reason_of_a_hit_unfolds_and_names_come_first(user: Visit) -> None:
    page = user.open("/ui/?q=redis")
    page.keyboard.press("j")
    page.keyboard.press("w")
    expect(page.locator(".reason").first).to_contain_text("words")
    user.audit()
    page.fill("#missing-q", "works from")
    page.get_by_role("button", name="Why not here?").click()
    expect(page.locator("#missing")).to_contain_text("Mara Lindqvist")
    page.keyboard.press("Control+k")
    expect(page.locator("#q")).to_be_focused()
    page.keyboard.type("lindq")
    expect(page.locator("#results")).to_contain_text("Mara Lindqvist")


def test_counts_and_history_follow_a_fact_that_is_added(user: Visit) -> None:
    page = user.open(ENTITY)
    expect(page.locator("#fact-count")).to_have_text("2")
    page.locator("#add").fill("has a new owner")
    page.keyboard.press("Enter")
    expect(page.locator("#fact-count")).to_have_text("3")
    expect(page.locator("#entity-history")).to_contain_text("has a new owner")


def test_keys_can_be_turned_off_and_are_not_taken_while_typing(user: Visit) -> None:
    page = user.open("/ui/?q=redis")
    page.locator("#q").focus()
    page.keyboard.press("End")
    page.keyboard.type("jx?")
    expect(page.locator("#q")).to_have_value("redisjx?")
    user.open("/ui/?q=redis")
    page.keyboard.press("?")
    expect(page.locator("#keys")).to_be_visible()
    user.audit()
    page.locator("#single-keys").uncheck()
    page.keyboard.press("Escape")
    page.keyboard.press("j")
    assert page.locator(".hit.cursor").count() == 0
    page.reload()
    page.keyboard.press("?")
    expect(page.locator("#keys")).to_be_hidden()
