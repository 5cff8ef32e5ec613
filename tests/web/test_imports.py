"""Import and export in a browser."""

import json
import re
from pathlib import Path

import pytest
from playwright.sync_api import Page, expect

from tests.web.browser import Visit
from tests.web.conftest import NewVisit
from tests.web.serving import Ui

HOSTILE = '<script>document.title="ran"</script><img src=x onerror=alert(1)>\u202e\u0007'
LINES = [
    {
        "type": "entity",
        "name": "Harbour",
        "entityType": "customer",
        "observations": ["is written in Python"],
    },
    {
        "type": "entity",
        "name": "Elena",
        "entityType": "person",
        "observations": ["likes tea", HOSTILE],
    },
    {"type": "entity", "name": HOSTILE, "entityType": HOSTILE, "observations": []},
    {"type": "relation", "from": "Elena", "to": "Harbour", "relationType": "knows"},
]


@pytest.fixture
def file(tmp_path: Path) -> Path:
    """A file with new, known, conflicting, hostile and broken lines."""
    path = tmp_path / "memory.jsonl"
    path.write_text("\n".join([*map(json.dumps, LINES), "no JSON"]), encoding="utf-8")
    return path


def upload(page: Page, *files: Path) -> None:
    page.set_input_files("input[name=file]", [str(item) for item in files])
    page.wait_for_url("**/import/report?*")


def test_an_import_is_previewed_run_and_undone(admin: Visit, file: Path) -> None:
    page = admin.open("/ui/import")
    upload(page, file)
    expect(page.locator(".file")).to_contain_text(
        "memory.json or memory.jsonl of the reference server"
    )
    expect(page.locator(".sums a")).to_have_text(["3new", "1extended", "1in conflict", "1skipped"])
    expect(page.locator("#skipped")).to_contain_text("line 5")
    admin.audit()
    page.get_by_role("button", name="Import", exact=True).click()
    expect(page.locator("#report")).to_contain_text("2 new entities")
    assert "Elena" in names(page)
    page.get_by_role("button", name="Undo the import").click()
    expect(page.locator("#report")).to_contain_text("Taken back")
    assert "Elena" not in names(page)


def test_a_conflict_keeps_what_the_memory_has(admin: Visit, file: Path) -> None:
    page = admin.open("/ui/import")
    upload(page, file)
    expect(page.locator("#conflicts tbody tr")).to_contain_text("type of Harbour")
    page.get_by_role("button", name="Import", exact=True).click()
    page.get_by_role("button", name="Undo the import").wait_for()
    assert types(page)["Harbour"] == "project"
    page.get_by_role("button", name="Undo the import").click()
    expect(page.locator("#report")).to_contain_text("Taken back")
    assert types(page)["Harbour"] == "project"


def test_an_earlier_import_can_be_undone(admin: Visit, file: Path) -> None:
    page = admin.open("/ui/import")
    upload(page, file)
    page.get_by_role("button", name="Import", exact=True).click()
    page.get_by_role("button", name="Undo the import").wait_for()
    admin.open("/ui/import").locator(".chgs li").first.get_by_role("button", name="Undo").click()
    expect(page.locator(".toast")).to_contain_text("Undone")
    assert "Elena" not in names(page)


def test_hostile_content_and_names_are_text(admin: Visit, tmp_path: Path) -> None:
    path = tmp_path / "<img src=x onerror=alert(1)>.jsonl"
    path.write_text("\n".join(map(json.dumps, LINES)), encoding="utf-8")
    page = admin.open("/ui/import")
    upload(page, path)
    expect(page.locator(".file b").first).to_have_text("<img src=x onerror=alert(1)>.jsonl")
    expect(page.locator("#new")).to_contain_text("<script>document.title=")
    assert page.title() == "Import and export · Polymnia"


def test_a_file_that_cannot_be_read_says_why(admin: Visit, tmp_path: Path) -> None:
    path = tmp_path / "notes.pdf"
    path.write_bytes(b"%PDF-1.7 nothing to see")
    page = admin.open("/ui/import")
    upload(page, path)
    expect(page.locator("#report [role=alert]")).to_contain_text("notes.pdf: unknown format")
    assert str(tmp_path) not in page.content()
    page.get_by_role("button", name="Remove").click()
    expect(page.locator(".toast")).to_contain_text("Removed notes.pdf")


def test_another_format_can_be_chosen(admin: Visit, file: Path) -> None:
    page = admin.open("/ui/import")
    upload(page, file)
    page.select_option("#kind", "mem0")
    page.get_by_role("button", name="Check again").click()
    expect(page.locator(".file")).to_contain_text("read as mem0 list of memories")
    page.select_option("#kind", "")
    page.get_by_role("button", name="Check again").click()
    expect(page.locator(".file")).to_contain_text("taken for memory.json or memory.jsonl")


def test_an_upload_without_script_shows_the_same_report(
    ui: Ui, admin_token: str, visit: NewVisit, file: Path
) -> None:
    plain = visit(ui.origin, java_script_enabled=False)
    plain.log_in(admin_token)
    page = plain.open("/ui/import")
    page.set_input_files("input[name=file]", str(file))
    page.get_by_role("button", name="Check", exact=True).click()
    expect(page.locator(".sums")).to_contain_text("3new")


@pytest.mark.parametrize(("label", "ending"), [("JSON document", "json"), ("JSON lines", "jsonl")])
def test_the_memory_is_saved_in_every_format(admin: Visit, label: str, ending: str) -> None:
    page = admin.open("/ui/import")
    with page.expect_download() as download:
        page.get_by_role("link", name=f"Save as {label}").click()
    name = download.value.suggested_filename
    assert re.fullmatch(rf"polymnia-harbour-\d{{4}}-\d\d-\d\d\.{ending}", name)
    assert "Mara Lindqvist" in download.value.path().read_text("utf-8")


def test_markdown_is_saved_as_an_archive_that_can_be_imported(admin: Visit, tmp_path: Path) -> None:
    page = admin.open("/ui/import")
    with page.expect_download() as download:
        page.get_by_role("link", name="Save as Markdown").click()
    archive = tmp_path / download.value.suggested_filename
    download.value.save_as(archive)
    upload(page, archive)
    expect(page.locator(".file")).to_contain_text("Markdown")
    expect(page.locator(".sums a").first).to_have_text("0new")


def test_a_reader_may_only_export(ui: Ui, visit: NewVisit) -> None:
    reader = visit(ui.origin)
    reader.log_in(ui.token("reader", "read"))
    page = reader.open("/ui/import")
    expect(page.locator("#export tbody tr").first).to_be_visible()
    assert page.locator("form#drop").count() == 0
    reader.audit()


def test_a_report_fits_a_phone(admin: Visit, file: Path) -> None:
    upload(admin.open("/ui/import"), file)
    admin.page.locator(".sums").wait_for()
    admin.audit_all()


def types(page: Page) -> dict[str, str]:
    """Return the types of the entities in the memory by name."""
    text = page.request.get(page.url.partition("/ui/")[0] + "/ui/export?format=jsonl").text()
    lines = [json.loads(line) for line in text.splitlines()]
    return {line["name"]: line["entityType"] for line in lines if line["type"] == "entity"}


def names(page: Page) -> set[str]:
    return set(types(page))
