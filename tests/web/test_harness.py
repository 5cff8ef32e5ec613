"""The harness itself: what a visit reports about a page that does wrong."""

from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from threading import Thread

import pytest
from playwright.sync_api import Browser

from tests.web.browser import PHONE, Visit

# A strict policy, as the pages of the server have it.
POLICY = "default-src 'self'; img-src *"
GOOD = '<main><h1>Harbour</h1><label>Name <input id="name"></label></main>'
PAGES = {
    "/good": GOOD,
    "/script": f"{GOOD}<script>document.title = 'ran'</script>",
    "/elsewhere": f'{GOOD}<img alt="" src="http://elsewhere.invalid/picture.png">',
    "/missing": f'{GOOD}<img alt="" src="/picture.png">',
    "/unlabelled": f"{GOOD}<input>",
    "/wide": f"{GOOD}<pre>{'wide ' * 200}</pre>",
}


class Pages(BaseHTTPRequestHandler):
    """Serves PAGES."""

    def do_GET(self) -> None:
        page = PAGES.get(self.path)
        body = _document(page or "<p>Nothing is here.")
        self.send_response(404 if page is None and self.path != "/favicon.ico" else 200)
        self.send_header("Content-Type", "text/html; charset=utf-8")
        self.send_header("Content-Security-Policy", POLICY)
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, format: str, *args: object) -> None:  # noqa: A002 (the name in the base class)
        """Log nothing."""


@pytest.fixture(scope="module")
def origin() -> Iterator[str]:
    server = ThreadingHTTPServer(("127.0.0.1", 0), Pages)
    thread = Thread(target=server.serve_forever)
    thread.start()
    yield f"http://127.0.0.1:{server.server_port}"
    server.shutdown()
    thread.join()
    server.server_close()


@pytest.fixture
def look(browser: Browser, axe: Path, origin: str) -> Iterator[Visit]:
    look = Visit(browser, origin, axe=axe, viewport=PHONE)
    yield look
    look.close()


def test_a_good_page_has_no_problems(look: Visit) -> None:
    look.open("/good")
    look.audit()
    look.fits()
    assert look.problems == []


@pytest.mark.parametrize(
    ("path", "problem"),
    [
        ("/script", "Content Security Policy"),
        ("/elsewhere", "request to another host: http://elsewhere.invalid/picture.png"),
        ("/missing", "status 404: GET"),
    ],
)
def test_a_visit_reports_what_a_page_must_not_do(look: Visit, path: str, problem: str) -> None:
    look.open(path).wait_for_load_state("networkidle")
    assert problem in "\n".join(look.problems)


def test_a_visit_with_problems_fails(browser: Browser, axe: Path, origin: str) -> None:
    with (
        pytest.raises(AssertionError, match="Content Security Policy"),
        Visit(browser, origin, axe=axe) as look,
    ):
        look.open("/script")


def test_an_expected_status_is_no_problem(look: Visit) -> None:
    look.open("/nothing", status=404)
    assert look.problems == []


def test_an_audit_under_a_strict_policy_finds_a_field_without_label(look: Visit) -> None:
    look.open("/unlabelled")
    with pytest.raises(AssertionError, match="critical: Form elements must have labels"):
        look.audit()


def test_a_page_wider_than_a_phone_is_found(look: Visit) -> None:
    look.open("/wide")
    with pytest.raises(AssertionError, match="pixels wide in a window of 390"):
        look.fits()


def _document(body: str) -> bytes:
    head = '<title>Page</title><meta name="viewport" content="width=device-width">'
    return f'<!doctype html><html lang="en">{head}{body}'.encode()
