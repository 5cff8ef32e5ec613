"""Take the pictures of the web interface in docs/images/ui/: `python -m docs.screenshots [NAME…]`.

Each page is shown with the memory of `polymnia demo`, some also dark. It needs Chromium.
"""

import json
import shutil
import sys
from collections.abc import Callable, Sequence
from contextlib import chdir
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import get_args

from playwright.sync_api import FilePayload, Page

from polymnia.cli.demo import MAIN
from polymnia.cli.main import main as polymnia
from tests.web.browser import Theme, Visit, chromium
from tests.web.serving import Ui, demo_server

IMAGES = Path(__file__).parent / "images" / "ui"


def _import_report(page: Page, ui: Ui) -> None:
    new = (
        ("Harbour", "product", "has 42 ports"),
        ("berth-map", "service", "draws the berths of a port"),
        ("Oslo office", "place", "is on the fourth floor"),
    )
    lines: list[dict[str, object]] = [
        {"type": "entity", "name": name, "entityType": kind, "observations": [fact]}
        for name, kind, fact in new
    ]
    lines.append(
        {"type": "relation", "from": "berth-map", "to": "Harbour", "relationType": "part_of"}
    )
    content = "\n".join([*map(json.dumps, lines), "{broken"]).encode()
    upload = FilePayload(name="memory.jsonl", mimeType="application/jsonl", buffer=content)
    page.set_input_files("input[name=file]", upload)
    page.wait_for_selector(".sums")


def _new_token(page: Page, ui: Ui) -> None:
    page.fill("#tn", "nightly-agent")
    page.get_by_role("button", name="Create token").click()
    page.wait_for_selector("#made")


def _with_meaning(page: Page, ui: Ui) -> None:
    """Ask until the embedding model is loaded, and once more, as usual questions are."""
    while page.get_by_text("did not answer in time").count():
        page.reload()
    page.reload()


def _drawn(page: Page, ui: Ui) -> None:
    """Wait until the graph is drawn and has come to rest."""
    page.wait_for_selector("canvas")
    page.wait_for_timeout(3_000)


def _at_rest(page: Page, ui: Ui) -> None:
    """Wait for the parts that come later."""
    page.wait_for_load_state("networkidle")


def _in_the_past(page: Page, ui: Ui) -> None:
    """Go back three versions."""
    for _ in range(3):
        with page.expect_navigation():
            page.keyboard.press("[")
    _at_rest(page, ui)


SHOTS: dict[str, tuple[str, Callable[[Page, Ui], None]]] = {
    "home": ("/ui/", _at_rest),
    "search": ("/ui/?q=who+owns+the+tide+forecast", _with_meaning),
    "nothing": ("/ui/?q=kubernetes+ingress+timeout", _with_meaning),
    "entity": ("/ui/entity?name=tide-forecast", _at_rest),
    "then": ("/ui/entity?name=tide-forecast", _in_the_past),
    "history": ("/ui/history", _at_rest),
    "graph": ("/ui/graph", _drawn),
    "curation": ("/ui/curation?kind=duplicates", _at_rest),
    "import": ("/ui/import", _import_report),
    "access": ("/ui/access", _new_token),
    "health": ("/ui/health", _at_rest),
}


# Pages that are also shown dark: every picture stays in the history of the repository for good.
DARK = ("home", "graph")


def main(wanted: Sequence[str]) -> int:
    """Take the pictures with these names, or all."""
    program = (
        shutil.which("chromium")
        or shutil.which("google-chrome")
        or sys.exit("chromium is not on the PATH")
    )
    IMAGES.mkdir(parents=True, exist_ok=True)
    with TemporaryDirectory() as folder, chromium(program) as browser:
        for theme in get_args(Theme):
            (place := Path(folder) / theme).mkdir()
            with (
                chdir(place),  # so that no picture shows a path of this machine
                demo_server(Path("workspaces"), prepare=_index) as ui,
                Visit(browser, ui.origin, axe=Path(), theme=theme) as visit,
            ):
                visit.log_in(ui.token("mara-laptop"))
                for name in wanted or SHOTS:
                    if theme == "dark" and name not in DARK:
                        continue
                    path, act = SHOTS[name]
                    act(visit.open(path), ui)
                    visit.page.screenshot(path=IMAGES / f"{name}-{theme}.png")
    return 0


def _index(store: str) -> None:
    """Embed everything, so that the pictures show a memory at rest."""
    polymnia(["index", "--store", store, "--workspace", MAIN])


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
