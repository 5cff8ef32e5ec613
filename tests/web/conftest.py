"""The browser that the tests of a worker process share, and visits to pages."""

from collections.abc import Callable, Iterator
from contextlib import ExitStack
from pathlib import Path
from typing import Any

import pytest
from playwright.sync_api import Browser, StorageState

from polymnia.engine.memory import Memory
from tests.interop import install
from tests.ui.pages import harbour
from tests.web.browser import Visit, chromium
from tests.web.serving import Ui, demo_server

NewVisit = Callable[..., Visit]


# Its event loop runs in this thread until the browser is closed, so it must be closed before tests
# outside this package run a loop of their own.
@pytest.fixture(scope="package")
def browser() -> Iterator[Browser]:
    with chromium(install.program("chromium", "chromium-browser", "google-chrome")) as browser:
        yield browser


@pytest.fixture(scope="session")
def axe(pytestconfig: pytest.Config) -> Path:
    """Return the script of axe-core."""
    return install.axe(pytestconfig.rootpath / ".test-cache")


@pytest.fixture
def visit(browser: Browser, axe: Path) -> Iterator[NewVisit]:
    """Return a function that begins a visit to an origin.

    At the end of the test it fails if a page did wrong.
    """
    with ExitStack() as stack:

        def begin(origin: str, **options: Any) -> Visit:
            return stack.enter_context(Visit(browser, origin, axe=axe, **options))

        yield begin


@pytest.fixture(scope="module")
def ui(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Ui]:
    """Serve the demo memory to the tests of a module. Tokens are needed."""
    with demo_server(tmp_path_factory.mktemp("ui") / "data") as ui:
        ui.token("first")
        yield ui


@pytest.fixture(scope="module")
def admin_token(ui: Ui) -> str:
    return ui.token("mara-laptop")


@pytest.fixture(scope="module")
def admin_session(browser: Browser, axe: Path, ui: Ui, admin_token: str) -> StorageState:
    with Visit(browser, ui.origin, axe=axe) as found:
        return found.log_in(admin_token)


@pytest.fixture
def admin(ui: Ui, admin_session: StorageState, visit: NewVisit) -> Visit:
    """Return a visit by a user who may do everything and has logged in."""
    return visit(ui.origin, session=admin_session)


@pytest.fixture
def site(tmp_path_factory: pytest.TempPathFactory) -> Iterator[tuple[str, Memory]]:
    """Yield the origin of a server that needs no login, and a second client of its memory."""
    with harbour(tmp_path_factory.mktemp("site")) as (running, memory):
        yield f"http://127.0.0.1:{running.port}", memory


@pytest.fixture
def memory(site: tuple[str, Memory]) -> Memory:
    return site[1]


@pytest.fixture
def user(site: tuple[str, Memory], visit: NewVisit) -> Visit:
    return visit(site[0])
