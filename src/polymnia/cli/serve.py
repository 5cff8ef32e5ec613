"""`polymnia serve` and `ui`: start the server, or its web interface on this machine."""

import argparse
from typing import TYPE_CHECKING

from msgspec.structs import replace

from polymnia.cli.common import (
    Subparsers,
    add_embedder_argument,
    add_store_arguments,
    add_tokens_argument,
    add_workspace_argument,
)
from polymnia.dialects.registry import DEFAULT_DIALECT, DEFAULT_PORT, DIALECTS, STORE_FLAGS
from polymnia.model import LINK_OWNER
from polymnia.settings import Settings

if TYPE_CHECKING:
    from polymnia.auth.people import WebSessions


def add_serve(commands: Subparsers) -> None:
    stores = []
    for name in sorted(DIALECTS):
        spec = DIALECTS[name]
        store = spec.store or "your data directory"
        if spec.store and spec.store_variable:
            store += f", or the file in {spec.store_variable}"
        stores.append(f"  {name:<10} {store}\n")
    parser = commands.add_parser(
        "serve",
        help="start the server, for an MCP client to talk to",
        description=f"""\
Start the server. By default it talks to an MCP client on standard input and
output, the memory is in your data directory, with a workspace for each project
and a personal one, and the tools are those of the {DEFAULT_DIALECT} dialect.

With --dialect, the memory is where that dialect's clients expect it:
{"".join(stores)}""",
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument(
        "--dialect",
        metavar="NAME",
        choices=sorted(DIALECTS),
        help=f"the tool catalogue to serve: {', '.join(sorted(DIALECTS))} "
        f"(default: {DEFAULT_DIALECT})",
    )
    add_store_arguments(parser)
    for name, flag in STORE_FLAGS.items():
        if flag.scheme is None:
            parser.add_argument(*flag.names, dest=name, metavar=flag.metavar, help=flag.help)
    parser.add_argument(
        "--transport", choices=("stdio", "tcp", "http"), help="how clients connect (default: stdio)"
    )
    parser.add_argument("--read-only", action="store_true", default=None, help="reject all writes")
    parser.add_argument(
        "--toolsets",
        action="append",
        metavar="NAME",
        help=f"further tools of the {DEFAULT_DIALECT} dialect: "
        "notes, admin, search-fetch, or all (repeatable)",
    )
    parser.add_argument(
        "--log-format", choices=("text", "json"), help="the format of log lines (default: text)"
    )
    parser.add_argument(
        "--workspace",
        metavar="NAME",
        help="workspace of clients that name none "
        "(default: the project's, or what the dialect says)",
    )
    parser.add_argument(
        "--traces",
        action="store_true",
        default=None,
        help="send OpenTelemetry traces to the collector in OTEL_EXPORTER_OTLP_ENDPOINT",
    )
    add_embedder_argument(parser)
    _add_network_arguments(parser)


def run_serve(settings: Settings, options: argparse.Namespace) -> int:
    """Serve until the client disconnects or a signal arrives."""
    from polymnia.app import serve

    serve(settings)
    return 0


def add_ui(commands: Subparsers) -> None:
    parser = commands.add_parser(
        "ui",
        help="open the web interface in the browser",
        description="Serve the web interface on this machine until Ctrl-C, and open it by a link "
        "that works once.",
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


def run_ui(settings: Settings, options: argparse.Namespace) -> int:
    """Serve until a signal arrives."""
    serve_ui(settings, port=options.port or 0, opens_browser=not options.no_browser)
    return 0


def serve_ui(settings: Settings, *, port: int = 0, opens_browser: bool) -> None:
    """Serve the web interface on this machine and print a link to it.

    Only the link, or a token, opens the memory: other users share this machine.
    """
    from polymnia.app import serve

    local = replace(settings, transport="http", bind="127.0.0.1", port=port, public_url="")

    def open_link(base: str, sessions: "WebSessions") -> None:
        principal = LINK_OWNER.restrict("read") if settings.read_only else LINK_OWNER
        link = f"{base}/ui/login?link={sessions.make_link(principal)}"
        print(f"{link}\nThe link works once, within ten minutes. Press Ctrl-C to stop.", flush=True)
        if opens_browser:
            _open_browser(link)

    serve(local, open_link, requires_login=True)


def _open_browser(url: str) -> None:
    import webbrowser  # starts programs to find the browsers, and a server needs none

    try:
        browser = webbrowser.get()
    except webbrowser.Error:
        return
    # A browser in this terminal would hide the server's messages.
    if isinstance(browser, webbrowser.BackgroundBrowser) or not isinstance(
        browser, webbrowser.GenericBrowser
    ):
        browser.open(url)


def _add_network_arguments(parser: argparse.ArgumentParser) -> None:
    group = parser.add_argument_group("TCP and HTTP")
    ports = ", ".join(
        f"{name} {spec.port}" for name, spec in DIALECTS.items() if spec.port != DEFAULT_PORT
    )
    group.add_argument(
        "--bind", metavar="HOST[:PORT]", help="address to listen on (default: 127.0.0.1)"
    )
    group.add_argument(
        "--port",
        type=int,
        metavar="N",
        help=f"port to listen on (default: {ports}, else {DEFAULT_PORT})",
    )
    add_tokens_argument(group)
    group.add_argument(
        "--insecure",
        action="store_true",
        default=None,
        help="admit other machines without authentication",
    )
    group = parser.add_argument_group("HTTP")
    group.add_argument(
        "--reuse-port",
        action="store_true",
        default=None,
        help="let several servers listen on one port, for clients without sessions",
    )
    group.add_argument(
        "--also",
        dest="dialects",
        action="append",
        metavar="DIALECT",
        help="serve this dialect too, at /DIALECT/mcp, or all of them with `all` (repeatable)",
    )
    group.add_argument(
        "--allow-host",
        dest="allow_hosts",
        action="append",
        metavar="NAME",
        help="host name by which clients reach the server (repeatable)",
    )
    group.add_argument(
        "--allow-origin",
        dest="allow_origins",
        action="append",
        metavar="URL",
        help="origin of web pages that may use the server, "
        "e.g. https://app.example.com (repeatable)",
    )
    group.add_argument(
        "--trusted-proxy",
        dest="trusted_proxies",
        action="append",
        metavar="ADDRESS",
        help="proxy whose X-Forwarded-For names the client: an address or a network (repeatable)",
    )
    group.add_argument(
        "--metrics", action="store_true", default=None, help="serve Prometheus metrics at /metrics"
    )
