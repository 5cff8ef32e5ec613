"""Health in a browser: counts, checks and backups."""

from pathlib import Path

from playwright.sync_api import expect

from polymnia.stores.backup import find_backups
from tests.transports.running import Running
from tests.web.browser import Visit
from tests.web.conftest import NewVisit
from tests.web.serving import Ui


def test_the_page_shows_what_the_memory_holds(admin: Visit) -> None:
    page = admin.open("/ui/health")
    expect(page.locator(".sums div")).to_have_text(
        ["25entities", "52facts", "17relations", "1note"]
    )
    expect(page.locator("main")).to_contain_text("by claude-code")
    admin.audit()


def test_a_check_says_that_the_store_is_sound(admin: Visit) -> None:
    page = admin.open("/ui/health")
    page.get_by_role("button", name="Check now").click()
    expect(page.locator("#findings")).to_contain_text("No problems found in 4 workspaces")
    admin.audit()


def test_a_check_lists_problems_as_text(ui: Ui, admin: Visit) -> None:
    stray = Path(ui.store) / "projects" / "<b>stray<b>.db"
    stray.write_bytes(b"not a database")
    page = admin.open("/ui/health")
    page.get_by_role("button", name="Check now").click()
    expect(page.locator("#findings")).to_contain_text("<b>stray<b>.db belongs to no workspace")
    stray.unlink()


def test_a_backup_is_made_and_listed(ui: Ui, admin: Visit) -> None:
    page = admin.open("/ui/health")
    page.get_by_role("button", name="Back up now").click()
    expect(page.locator(".toast")).to_contain_text("Backed up to")
    (made,) = find_backups(ui.store)
    expect(page.locator("#backups tbody tr td").first).to_have_text(made.name)


def test_a_reader_sees_counts_and_no_paths_or_buttons(ui: Ui, visit: NewVisit) -> None:
    reader = visit(ui.origin)
    reader.log_in(ui.token("reader", "read"))
    page = reader.open("/ui/health")
    expect(page.locator(".sums")).to_contain_text("25entities")
    assert page.locator("main button").count() == 0
    assert ui.store not in page.content()
    reader.audit()


def test_an_admin_of_one_workspace_checks_only_that_one(ui: Ui, visit: NewVisit) -> None:
    limited = visit(ui.origin)
    limited.log_in(ui.token("librarian", "admin", only=("research-notes",)))
    page = limited.open("/ui/health")
    assert page.locator("#backups").count() == 0
    page.get_by_role("button", name="Check now").click()
    expect(page.locator("#findings")).to_contain_text("No problems found in 1 workspace.")


def test_an_empty_server_says_how_to_begin(tmp_path: Path, visit: NewVisit) -> None:
    with Running(f"{tmp_path}/data/", dialect="native") as server:
        first = visit(f"http://127.0.0.1:{server.port}")
        page = first.open("/ui/")
        expect(page.locator("#connect")).to_have_text(
            f"polymnia install claude-code --http http://127.0.0.1:{server.port}/mcp"
        )
        first.audit()
        page.get_by_role("link", name="Choose a file or folder").click()
        expect(page.locator("h1")).to_have_text("Import and export")
        page.wait_for_load_state()
        file = tmp_path / "memory.jsonl"
        file.write_text('{"type":"entity","name":"Elena","entityType":"person","observations":[]}')
        page.set_input_files("input[name=file]", str(file))
        page.get_by_role("button", name="Import", exact=True).click()
        page.get_by_role("link", name="Look at the memory").click()
        expect(page.locator("main")).to_contain_text("Elena")
