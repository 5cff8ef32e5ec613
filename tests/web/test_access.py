"""Tokens and workspaces in a browser."""

import json
from pathlib import Path

from playwright.sync_api import Locator, Page, expect

from polymnia.auth.authenticator import tokens_of
from tests.transports.running import Talk
from tests.web.browser import Visit
from tests.web.conftest import NewVisit
from tests.web.serving import Ui, demo_server


def create_token(page: Page, name: str, can: str = "Write") -> str:
    """Fill in the form and return the token that is shown."""
    page.fill("#tn", name)
    page.get_by_role("radio", name=can).check()
    page.get_by_role("button", name="Create token").click()
    token = page.locator("#secret").inner_text()
    # Tabs and copy buttons need the scripts of the new page.
    page.wait_for_load_state()
    return token


def row(page: Page, name: str) -> Locator:
    return page.locator("tr", has=page.get_by_text(name, exact=True))


def test_a_token_is_shown_once_with_configuration_that_works(ui: Ui, admin: Visit) -> None:
    page = admin.open("/ui/access")
    token = create_token(page, "nightly-agent")
    admin.audit()
    page.get_by_role("tab", name="Cursor").click()
    entry = json.loads(page.locator("[role=tabpanel]:not([hidden]) pre").inner_text())[
        "mcpServers"
    ]["memory"]
    assert entry == {"url": f"{ui.origin}/mcp", "headers": {"Authorization": f"Bearer {token}"}}
    expect(page.locator("#made")).to_contain_text("Waiting for its first call")
    talk = Talk(ui.server.port, entry["headers"]["Authorization"].removeprefix("Bearer "))
    assert talk.ask("tools/list")["result"]["tools"]
    talk.close()
    expect(page.locator("#made")).to_contain_text("The first call has arrived")
    admin.open("/ui/access")
    assert token not in page.content()
    expect(row(page, "nightly-agent")).to_contain_text("write")


def test_a_new_token_fits_a_phone(admin: Visit) -> None:
    create_token(admin.open("/ui/access"), "phone")
    admin.audit_all()


def test_the_token_is_copied(ui: Ui, admin: Visit) -> None:
    page = admin.open("/ui/access")
    page.context.grant_permissions(["clipboard-read", "clipboard-write"], origin=ui.origin)
    token = create_token(page, "copied")
    page.locator("[data-copy='#secret']").click()
    expect(page.locator("[data-copy='#secret']")).to_contain_text("Copied")
    assert page.evaluate("() => navigator.clipboard.readText()") == token


def test_a_token_can_be_limited_and_expires(ui: Ui, admin: Visit) -> None:
    page = admin.open("/ui/access")
    page.get_by_label("One of its own, and these:").check()
    page.get_by_role("checkbox", name="research-notes").check()
    page.select_option("#tx", label="in a week")
    create_token(page, "limited", "Read")
    expect(row(page, "limited")).to_contain_text("research-notes")
    expect(row(page, "limited")).to_contain_text("expires in 6 days")


def test_a_name_that_is_taken_is_refused_at_its_field(admin: Visit) -> None:
    page = admin.open("/ui/access")
    admin.expected.add(400)
    page.fill("#tn", "first")
    page.get_by_role("button", name="Create token").click()
    expect(page.locator("#tn-e")).to_contain_text("There is already a token first")
    admin.audit()


def test_a_revoked_token_is_refused(ui: Ui, admin: Visit, visit: NewVisit) -> None:
    token = ui.token("short-lived", "write")
    other = visit(ui.origin)
    other.log_in(token)
    page = admin.open("/ui/access")
    row(page, "short-lived").get_by_role("link", name="Revoke").click()
    expect(page.locator("#asked dialog")).to_contain_text("Revoke short-lived?")
    admin.audit("#asked dialog")
    page.locator("#asked dialog").get_by_role("button", name="Revoke").click()
    expect(page.locator(".toast")).to_contain_text("Revoked short-lived")
    expect(row(page, "short-lived")).to_have_count(0)
    expect(other.open("/ui/import").locator("h1")).to_have_text("Log in")


def test_a_workspace_is_created_renamed_archived_restored_and_deleted(admin: Visit) -> None:
    page = admin.open("/ui/access")
    page.get_by_label("New workspace").fill("drafts")
    page.get_by_role("button", name="Create", exact=True).click()
    expect(page.locator(".toast")).to_contain_text("Created drafts")
    manage(page, "drafts")
    admin.audit("#asked dialog")
    page.get_by_label("New name").fill("sketches")
    page.get_by_role("button", name="Rename").click()
    expect(page.locator(".toast")).to_contain_text("Renamed drafts to sketches")
    manage(page, "sketches")
    page.get_by_role("button", name="Archive").click()
    expect(row(page, "sketches")).to_contain_text("archived")
    manage(page, "sketches")
    page.get_by_role("button", name="Restore").click()
    expect(row(page, "sketches")).not_to_contain_text("archived")
    manage(page, "sketches")
    page.get_by_label("Type sketches to delete it").fill("sketches")
    page.get_by_role("button", name="Delete").click()
    expect(page.locator(".toast")).to_contain_text("Deleted sketches")
    expect(row(page, "sketches")).to_have_count(0)


def test_a_workspace_is_not_deleted_without_its_name(admin: Visit) -> None:
    page = admin.open("/ui/access")
    admin.expected.add(400)
    manage(page, "personal")
    page.get_by_label("Type personal to delete it").fill("Personal")
    page.get_by_role("button", name="Delete").click()
    expect(page.locator("main [role=alert]").last).to_contain_text("Nothing was deleted")
    admin.open("/ui/access")
    expect(row(page, "personal")).to_have_count(1)


def test_workspaces_show_what_they_hold(admin: Visit) -> None:
    page = admin.open("/ui/access")
    cells = row(page, "harbour").locator("td")
    assert [cells.nth(number).inner_text() for number in (1, 2, 3)] == ["25", "52", "17"]
    expect(row(page, "old-site")).to_contain_text("archived")


def test_an_admin_of_one_workspace_sees_neither_tokens_nor_other_workspaces(
    ui: Ui, visit: NewVisit
) -> None:
    limited = visit(ui.origin)
    limited.log_in(ui.token("librarian", "admin", only=("research-notes",)))
    page = limited.open("/ui/access")
    expect(page.locator("#workspaces tbody tr")).to_have_count(1)
    assert "mara-laptop" not in page.content()
    assert "harbour" not in page.content()
    limited.audit()
    limited.open("/ui/access/tokens/revoke?name=mara-laptop", status=403)
    limited.open("/ui/access/workspaces/manage?name=harbour", status=403)


def test_who_may_only_write_has_no_such_page(ui: Ui, visit: NewVisit) -> None:
    writer = visit(ui.origin)
    writer.log_in(ui.token("writer", "write"))
    assert writer.open("/ui/health").get_by_role("link", name="Access").count() == 0
    writer.open("/ui/access", status=403)


def test_the_first_token_must_be_able_to_manage_the_server_and_keeps_the_user_in(
    tmp_path: Path, visit: NewVisit
) -> None:
    with demo_server(tmp_path / "data") as ui:
        owner = visit(ui.origin)
        page = owner.open("/ui/access")
        expect(page.locator("main")).to_contain_text("No token yet")
        owner.audit()
        owner.expected.add(400)
        page.fill("#tn", "reader")
        page.get_by_label("Read").check()
        page.get_by_role("button", name="Create token").click()
        expect(page.locator("#tn-e")).to_contain_text("must be an admin token for all workspaces")
        create_token(page, "mine", "Admin")
        expect(page.locator(".side footer")).to_contain_text("may administer")
        tokens = tokens_of(ui.store)
        assert tokens is not None
        assert [item.name for item in tokens.all("token")] == ["mine"]
        create_token(page, "second", "Read")
        expect(row(page, "second")).to_have_count(1)


def manage(page: Page, name: str) -> None:
    """Open the dialog of a workspace. Without scripts it would be a page."""
    page.wait_for_load_state()
    row(page, name).get_by_role("link", name=name).last.click()
    page.locator("dialog[open]").wait_for()
