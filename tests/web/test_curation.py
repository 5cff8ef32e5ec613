"""Curation in a browser: each action in place, with Undo."""

from contextlib import closing

import pytest
from playwright.sync_api import expect

from polymnia.cli.demo import MAIN
from polymnia.engine.graph import entities
from polymnia.engine.workspaces.workspaces import open_workspaces
from polymnia.model import EntityDraft
from tests.web.browser import PHONE, Visit
from tests.web.conftest import NewVisit
from tests.web.serving import Ui


def test_a_summary_is_saved_and_undone(admin: Visit) -> None:
    page = admin.open("/ui/curation?kind=summaries")
    admin.audit()
    page.get_by_label("Summary of Tomas Berg").fill("Owns the tide forecast.")
    page.get_by_role("button", name="Save the summary of Tomas Berg").click()
    expect(page.locator(".finding.gone")).to_contain_text("Summary of Tomas Berg saved")
    page.get_by_role("button", name="Undo").click()
    expect(page.locator(".toast")).to_contain_text("Undone")
    expect(page.get_by_label("Summary of Tomas Berg")).to_be_visible()


def test_a_gap_is_closed_and_undone(admin: Visit) -> None:
    page = admin.open("/ui/curation?kind=gaps")
    admin.audit()
    page.get_by_role("button", name="Relate lost invoices to Redis").click()
    expect(page.locator(".finding.gone")).to_contain_text("Related lost invoices to Redis")
    page.get_by_role("button", name="Undo").click()
    expect(page.get_by_role("button", name="Relate lost invoices to Redis")).to_be_visible()


def test_an_orphan_is_deleted_and_undone(admin: Visit) -> None:
    page = admin.open("/ui/curation?kind=orphans")
    admin.audit()
    page.get_by_role("button", name="Delete (map tiles)").click()
    expect(page.locator(".finding.gone")).to_contain_text("Deleted map tiles")
    page.get_by_role("button", name="Undo").click()
    expect(page.get_by_role("button", name="Delete (map tiles)")).to_be_visible()


def test_duplicates_are_merged_and_undone(ui: Ui, admin: Visit) -> None:
    with closing(open_workspaces(ui.store)) as workspaces:
        twin = EntityDraft("Tide Forecast", "service", ("has a twin",))
        entities.create(workspaces.memory(MAIN), [twin], by="codex-cli")
    page = admin.open("/ui/curation?kind=duplicates")
    admin.audit()
    page.get_by_role("button", name="Merge into tide-forecast").click()
    expect(page.locator(".finding.gone")).to_contain_text("Merged Tide Forecast into tide-forecast")
    page.get_by_role("button", name="Undo").click()
    expect(page.get_by_role("button", name="Merge into tide-forecast")).to_be_visible()


def test_a_cluster_is_tagged_and_untagged(admin: Visit) -> None:
    page = admin.open("/ui/curation?kind=clusters")
    admin.audit()
    tag = page.locator(".finding input[name=tag]").first
    tag.fill("first-cluster")
    page.locator(".finding .btn", has_text="Tag all").first.click()
    expect(page.locator(".toast")).to_contain_text("Tagged")
    page.get_by_role("button", name="Undo").click()
    expect(page.locator(".toast")).to_contain_text("Undone")


def test_a_finding_is_dismissed_and_brought_back(admin: Visit) -> None:
    page = admin.open("/ui/curation?kind=orphans")
    page.get_by_role("button", name="Dismiss (map tiles)").click()
    page.locator(".finding.gone").get_by_role("button", name="Bring back").click()
    expect(page.locator(".finding.gone")).to_contain_text("Brought back")
    admin.open("/ui/curation?kind=orphans")
    expect(page.get_by_role("button", name="Dismiss (map tiles)")).to_be_visible()


@pytest.mark.parametrize(
    "kind", ["duplicates", "gaps", "similar", "summaries", "orphans", "clusters"]
)
def test_a_reader_sees_every_kind_without_actions(ui: Ui, visit: NewVisit, kind: str) -> None:
    reader = visit(ui.origin, viewport=PHONE, theme="dark")
    reader.log_in(ui.token(f"reader of {kind}", "read"))
    page = reader.open(f"/ui/curation?kind={kind}")
    expect(page.get_by_role("heading", name="Curation")).to_be_visible()
    reader.audit()
    assert page.locator("main form").count() == 0
    reader.fits()
