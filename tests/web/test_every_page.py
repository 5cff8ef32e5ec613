"""What holds for every page in the table of pages.

Accessibility, both themes, phones, rights and hostile text.
"""

from collections.abc import Iterator
from contextlib import closing
from importlib import import_module
from pathlib import Path
from urllib.parse import quote, urlsplit

import pytest
from playwright.sync_api import Browser, Page, StorageState

from polymnia.engine import notes
from polymnia.engine.graph import entities, relations
from polymnia.engine.workspaces import open_workspaces
from polymnia.model import CAPABILITIES, EntityDraft, Note, Relation
from polymnia.web.page import HANDLERS
from polymnia.web.pages import MODULES, PAGES
from tests.web.browser import Visit
from tests.web.conftest import NewVisit
from tests.web.serving import Ui, demo_server

ATTACK = '<script>document.title="ran"</script><img src=x onerror=alert(1)>'
# Markup, Markdown, template syntax, a change of direction, control characters.
HOSTILE = f"{ATTACK} [link](javascript:alert(1)) {{{{7*7}}}} \u202eabc\u202c \x1b[31m \x07 \u200b"
LONG = "<b>" + "x" * 999_997

# The paths of pages that need no more than the rights to see them, and an entity that each may
# name.
PATHS = [spec.path for spec in PAGES if spec.group] + [
    "/entity?name={name}",
    "/entity?name={name}&at=2100-01-01",
    "/entities",
    "/graph?name={name}",
    "/?q=tide",
    "/entities?sort=said",
    "/history?trash=1",
    "/why?q=tide&wanted=Harbour",
    "/start",
    "/more",
]
for module in MODULES:
    import_module(f"polymnia.web.pages.{module}")
NEEDS = {(handler.method, f"/ui{handler.path}"): handler.needs for handler in HANDLERS}


@pytest.fixture(scope="module")
def ui(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Ui]:
    """Serve the demo memory and a workspace full of hostile text."""
    with demo_server(tmp_path_factory.mktemp("ui") / "data", prepare=_add_hostile) as ui:
        ui.token("first")
        yield ui


@pytest.fixture(params=PATHS)
def path(request: pytest.FixtureRequest) -> str:
    return f"/ui{request.param}"


def test_a_page_is_accessible_in_both_themes_and_on_a_phone(admin: Visit, path: str) -> None:
    page = admin.open(path.format(name=quote("Harbour")))
    page.wait_for_load_state("load")
    assert page.locator("h1").count() == 1
    admin.audit_all()


def test_a_page_shows_hostile_text_as_text(ui: Ui, admin: Visit, path: str) -> None:
    sign = "&" if "?" in path else "?"
    page = admin.open(f"{path.format(name=quote(HOSTILE))}{sign}w=hostile")
    page.on("dialog", lambda dialog: pytest.fail(f"a script ran: {dialog.message}"))
    page.wait_for_load_state("load")
    assert page.title() != "ran"
    assert page.locator("main img, main script, main b b, main a[href^='javascript:']").count() == 0
    assert "\u202e" not in page.locator("main").inner_text()
    admin.audit()


def test_a_reader_gets_nothing_that_writes(
    ui: Ui, visit: NewVisit, reader_session: StorageState, path: str
) -> None:
    needed = NEEDS["GET", path.partition("?")[0]]
    if needed != "read":
        pytest.skip(f"only who may {needed} sees it")
    reader = visit(ui.origin, session=reader_session)
    page = reader.open(path.format(name=quote("Harbour")))
    page.wait_for_load_state("load")
    writing = [action for action in _actions(page) if NEEDS["POST", action] != CAPABILITIES[0]]
    assert writing == []


@pytest.fixture(scope="module")
def reader_session(browser: Browser, axe: Path, ui: Ui) -> StorageState:
    with Visit(browser, ui.origin, axe=axe) as found:
        return found.log_in(ui.token("reader", "read"))


def _actions(page: Page) -> set[str]:
    """Return the paths to which the page may send something."""
    found = page.locator("form[method=post], [hx-post], [formaction]").all()
    names = ("action", "hx-post", "formaction")
    urls = {url for item in found for name in names if (url := item.get_attribute(name))}
    return {urlsplit(url).path for url in urls}


def _add_hostile(store: str) -> None:
    with closing(open_workspaces(store)) as workspaces:
        workspaces.create("hostile", HOSTILE.replace("\x07", "").replace("\x1b", ""))
        memory = workspaces.memory("hostile")
        draft = EntityDraft(HOSTILE, HOSTILE, (HOSTILE, LONG), tags=(HOSTILE,), summary=HOSTILE)
        others = [EntityDraft(f"{HOSTILE} {number}", HOSTILE, (HOSTILE,)) for number in range(3)]
        entities.create(memory, [draft, *others], by=HOSTILE)
        relations.create(
            memory, [Relation(HOSTILE, other.name, HOSTILE) for other in others], by=HOSTILE
        )
        notes.commit(memory, Note(HOSTILE, HOSTILE, tags=(HOSTILE,)), by=HOSTILE)
        entities.delete(memory, [others[0].name], by=HOSTILE)
