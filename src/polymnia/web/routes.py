"""How a page is declared: its row in the table of pages, and the paths it answers."""

from collections.abc import Awaitable, Callable
from typing import TYPE_CHECKING, Literal

from msgspec import Struct

from polymnia.model import Capability
from polymnia.web.response import Response

if TYPE_CHECKING:
    from polymnia.transports.http.request import Request
    from polymnia.web.page import Page

Group = Literal["Memory", "Improve", "Run", ""]
Method = Literal["GET", "POST"]


class PageSpec(Struct, frozen=True, kw_only=True):
    """A row of the table of pages. The module `web/pages/KEY.py` has its ROUTES.

    `group` is its place in the navigation; a page without one is reached by links. `needs` is the capability without
    which the page is not shown at all. `in_tabs` puts it into the tab bar of phones.
    """

    key: str
    title: str
    path: str
    icon: str
    group: Group = ""
    needs: Capability = "read"
    in_tabs: bool = False


class Route(Struct, frozen=True):
    """A path below /ui, and the function that answers it on a worker thread.

    A POST needs `write` unless it says otherwise. GET must not change anything. A public route is open to everybody.
    `takes_files` is for a form with files: `page.upload` has them.
    """

    method: Method
    path: str
    run: "Callable[[Page], Response]"
    needs: Capability | None = None
    is_public: bool = False
    takes_files: bool = False

    @property
    def needed(self) -> Capability:
        """The capability that a request needs."""
        return self.needs or ("read" if self.method == "GET" else "write")


class StreamRoute(Struct, frozen=True):
    """A path that answers with events until the client leaves. The function runs on the event loop."""

    path: str
    run: "Callable[[Page, Request], Awaitable[None]]"
    method: Method = "GET"
    needed: Capability = "read"
