"""`polymnia serve`: start the server."""

import argparse
from typing import TYPE_CHECKING

from polymnia.cli.common import add_embedder_argument, add_store_arguments, add_tokens_argument
from polymnia.dialects.registry import DEFAULT_DIALECT, DEFAULT_PORT, DIALECTS, STORE_FLAGS
from polymnia.settings import Settings

if TYPE_CHECKING:
    from polymnia.cli.common import Subparsers


def add_parser(commands: "Subparsers") -> argparse.ArgumentParser:
    parser = commands.add_parser(
        "serve",
        help="start the server, for an MCP client to talk to",
        description=_description(),
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument(
        "--dialect",
        metavar="NAME",
        choices=sorted(DIALECTS),
        help=f"the tool catalogue to serve: {', '.join(sorted(DIALECTS))} (default: {DEFAULT_DIALECT})",
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
        help=f"further tools of the {DEFAULT_DIALECT} dialect: notes, export, admin, search-fetch, or all (repeatable)",
    )
    parser.add_argument(
        "--log-format", choices=("text", "json"), help="the format of log lines (default: text)"
    )
    parser.add_argument(
        "--workspace",
        metavar="NAME",
        help="workspace of clients that name none (default: the project's, or what the dialect says)",
    )
    add_embedder_argument(parser)
    _add_network_arguments(parser.add_argument_group("TCP and HTTP"))
    _add_http_arguments(parser.add_argument_group("HTTP"))
    return parser


def run(settings: Settings, options: argparse.Namespace) -> int:
    """Serve until the client disconnects or a signal arrives."""
    from polymnia.app import serve

    serve(settings)
    return 0


def _add_network_arguments(group: "argparse._ArgumentGroup") -> None:
    ports = ", ".join(
        f"{name} {each.port}" for name, each in DIALECTS.items() if each.port != DEFAULT_PORT
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


def _add_http_arguments(group: "argparse._ArgumentGroup") -> None:
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
        help="origin of web pages that may use the server, e.g. https://app.example.com (repeatable)",
    )
    group.add_argument(
        "--metrics", action="store_true", default=None, help="serve Prometheus metrics at /metrics"
    )


def _description() -> str:
    stores = "\n".join(f"  {name:<10} {_default_store(name)}" for name in sorted(DIALECTS))
    return f"""\
Start the server. By default it talks to an MCP client on standard input and
output, the memory is in your data directory, with a workspace for each project
and a personal one, and the tools are those of the {DEFAULT_DIALECT} dialect.

With --dialect, the memory is where that dialect's clients expect it:
{stores}
"""


def _default_store(name: str) -> str:
    spec = DIALECTS[name]
    if not spec.store:
        return "your data directory"
    return (
        f"{spec.store}, or the file in {spec.store_variable}" if spec.store_variable else spec.store
    )
