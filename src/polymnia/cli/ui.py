"""`polymnia ui`: serve the web interface on this machine, and open it in the browser by a one-time link."""

import argparse
import webbrowser
from typing import TYPE_CHECKING

from msgspec.structs import replace

from polymnia.cli.common import (
    add_embedder_argument,
    add_store_arguments,
    add_tokens_argument,
    add_workspace_argument,
)
from polymnia.model import LINK_OWNER
from polymnia.settings import Settings

if TYPE_CHECKING:
    from polymnia.cli.common import Subparsers
    from polymnia.web.login import WebSessions


def add_parser(commands: "Subparsers") -> argparse.ArgumentParser:
    parser = commands.add_parser(
        "ui",
        help="open the web interface in the browser",
        description="Serve the web interface on this machine until Ctrl-C, and open it by a link that works once.",
    )
    add_store_arguments(parser)
    add_workspace_argument(parser)
    add_embedder_argument(parser)
    add_tokens_argument(parser)
    parser.add_argument(
        "--port", type=int, metavar="N", help="port to listen on (default: a free one)"
    )
    parser.add_argument("--read-only", action="store_true", default=None, help="reject all writes")
    parser.add_argument("--no-browser", action="store_true", help="only print the link")
    return parser


def run(settings: Settings, options: argparse.Namespace) -> int:
    """Serve until a signal arrives. Only the link, or a token, opens the memory: other users share this machine."""
    from polymnia.app import serve

    here = replace(
        settings, transport="http", bind="127.0.0.1", port=options.port or 0, public_url=""
    )

    def open_link(base: str, sessions: "WebSessions") -> None:
        principal = LINK_OWNER.restrict("read") if settings.read_only else LINK_OWNER
        link = f"{base}/ui/login?link={sessions.make_link(principal)}"
        print(f"{link}\nThe link works once, within ten minutes. Press Ctrl-C to stop.", flush=True)
        if not options.no_browser:
            _open_browser(link)

    serve(here, open_link, requires_login=True)
    return 0


def _open_browser(url: str) -> None:
    try:
        browser = webbrowser.get()
    except webbrowser.Error:
        return
    is_console = isinstance(browser, webbrowser.GenericBrowser) and not isinstance(
        browser, webbrowser.BackgroundBrowser
    )
    if not is_console:  # a browser in this terminal would hide the server's messages
        browser.open(url)
