"""A real Chromium, and visits to a server's pages that record everything a page must not do."""

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from types import TracebackType
from typing import Any, Literal, Self
from urllib.parse import urlsplit

from playwright.sync_api import (
    Browser,
    ConsoleMessage,
    Error,
    Page,
    Request,
    Response,
    StorageState,
    ViewportSize,
    expect,
    sync_playwright,
)

# Milliseconds after which a wait fails its test. It is generous because the machine may be busy.
TIMEOUT_MS = 60_000
DESK, PHONE = ViewportSize(width=1280, height=800), ViewportSize(width=390, height=844)
Theme = Literal["light", "dark"]

_FLAGS = (
    "--disable-background-networking",
    "--disable-gpu",
    # Grey pixels at the edges of letters make smaller pictures than coloured ones.
    "--disable-lcd-text",
    # Names of other hosts do not resolve, so that a request to one fails and is recorded.
    "--host-resolver-rules=MAP * ~NOTFOUND, EXCLUDE 127.0.0.1",
    # WebGL on the CPU.
    "--use-angle=swiftshader",
    "--enable-unsafe-swiftshader",
)
# The console repeats every response that failed; the visit records the response itself.
_REPEATED = "Failed to load resource: the server responded"
# WebGL on the CPU is slow at telling which node is under the pointer, and says so.
_SLOW_WEBGL = "GL Driver Message (OpenGL, Performance"
_SERIOUS = ("serious", "critical")


@contextmanager
def chromium(program: str) -> Iterator[Browser]:
    """Start Chromium with a new profile for the block."""
    expect.set_options(timeout=TIMEOUT_MS)
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(
            executable_path=program, args=_FLAGS, timeout=2 * TIMEOUT_MS
        )
        try:
            yield browser
        finally:
            browser.close()


class Visit:
    """One visitor with cookies of its own and one open page.

    Leaving the block fails if the page did wrong.
    """

    def __init__(
        self,
        browser: Browser,
        origin: str,
        *,
        axe: Path,
        theme: Theme = "light",
        viewport: ViewportSize = DESK,
        java_script_enabled: bool = True,
        session: StorageState | None = None,
    ) -> None:
        """`axe` is the script of axe-core, `session` what `log_in` returned in an earlier visit."""
        self.origin = origin
        self.problems: list[str] = []
        # Statuses of failed responses that the test expects.
        self.expected: set[int] = set()
        self._axe = axe
        self._context = browser.new_context(
            color_scheme=theme,
            viewport=viewport,
            reduced_motion="reduce",
            java_script_enabled=java_script_enabled,
            storage_state=session,
        )
        self._context.set_default_timeout(TIMEOUT_MS)
        self._context.on("page", self._watch)
        self.page = self._context.new_page()

    def open(self, path: str, *, status: int = 200) -> Page:
        """Open a page of the server, check the status of its response, and return it."""
        if status >= 400:
            self.expected.add(status)
        response = self.page.goto(self.origin + path)
        assert response is not None
        assert response.status == status, (
            f"{path} answers {response.status}: {response.text()[:500]}"
        )
        return self.page

    def log_in(self, token: str) -> StorageState:
        """Log in with a token, and return what continues the session in other visits."""
        page = self.open("/ui/login")
        if page.locator("summary").count():  # people with passwords come first
            page.click("summary")
        page.fill("#token", token)
        page.press("#token", "Enter")
        page.wait_for_selector("header.top")
        return self._context.storage_state()

    def audit_all(self) -> None:
        """Fail if the page as it is has a serious violation in light, in dark or on a phone, or
        does not fit there.
        """
        self.audit()
        self.page.emulate_media(color_scheme="dark")
        # Some elements keep the inherited colour of the other theme until they are laid out anew: a
        # fault of Chromium.
        self.page.evaluate(
            "() => { for (const gone of [true, false]) { document.body.hidden = gone; "
            "document.body.offsetWidth; } }"
        )
        self.audit()
        self.page.set_viewport_size(PHONE)
        self.audit()
        self.fits()

    def audit(self, within: str = "body") -> None:
        """Fail if axe-core finds a serious violation on the page, with open dialogs and parts that
        load later.
        """
        expect(self.page.locator("[hx-trigger=load]")).to_have_count(0)
        # A page whose contents are still being computed reloads itself.
        expect(self.page.locator("meta[http-equiv=refresh]")).to_have_count(0)
        cdp = self._context.new_cdp_session(
            self.page
        )  # unlike a script element, not subject to the page's policy
        _evaluate(cdp, self._axe.read_text(encoding="utf-8") + "; 0")
        found = _evaluate(cdp, f"axe.run({within!r}).then(found => found.violations)")
        cdp.detach()
        serious = [_describe(item) for item in found if item["impact"] in _SERIOUS]
        assert not serious, "\n".join([self.page.url, *serious])

    def fits(self) -> None:
        """Fail if the page is wider than the window."""
        sizes = self.page.evaluate(
            "() => [document.documentElement.scrollWidth, window.innerWidth]"
        )
        assert sizes[0] <= sizes[1], (
            f"{self.page.url} is {sizes[0]} pixels wide in a window of {sizes[1]}"
        )

    def close(self) -> None:
        self._context.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, exc: BaseException | None, tb: TracebackType | None
    ) -> None:
        self.close()
        if exc is None:
            assert not self.problems, "\n".join(self.problems)

    def _watch(self, page: Page) -> None:
        page.on("console", self._record_message)
        page.on("pageerror", self._record_error)
        page.on("request", self._record_request)
        page.on("response", self._record_response)

    def _record_message(self, message: ConsoleMessage) -> None:
        is_known = message.text.startswith(_REPEATED) or _SLOW_WEBGL in message.text
        if message.type in ("error", "warning") and not is_known:
            self.problems.append(f"console {message.type}: {message.text}")

    def _record_error(self, error: Error) -> None:
        self.problems.append(f"error in a script: {error}")

    def _record_request(self, request: Request) -> None:
        if urlsplit(request.url).scheme not in ("data", "blob") and not request.url.startswith(
            f"{self.origin}/"
        ):
            self.problems.append(f"request to another host: {request.url}")

    def _record_response(self, response: Response) -> None:
        if response.status >= 400 and response.status not in self.expected:
            self.problems.append(
                f"status {response.status}: {response.request.method} {response.url}"
            )


def _evaluate(cdp: Any, expression: str) -> Any:
    """Return the value of a script's expression, or of its promise."""
    found = cdp.send(
        "Runtime.evaluate", {"expression": expression, "awaitPromise": True, "returnByValue": True}
    )
    assert "exceptionDetails" not in found, found
    return found["result"].get("value")


def _describe(violation: dict[str, Any]) -> str:
    """Return a violation with the first elements that have it."""
    places = [
        f"  {' '.join(map(str, node['target']))}: {node['html'][:200]}: "
        f"{node.get('failureSummary', '')[:300]}"
        for node in violation["nodes"][:5]
    ]
    return "\n".join([f"{violation['impact']}: {violation['help']} ({violation['id']})", *places])
