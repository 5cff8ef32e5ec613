"""`polymnia install --list`: the clients, their configuration files, and who has the server."""

from pathlib import Path

from polymnia.cli.common import print_json, print_table
from polymnia.clients.connect import inspect_client
from polymnia.clients.table import CLIENTS, SCOPES
from polymnia.settings import client_roots


def list_clients(*, as_json: bool) -> None:
    """Print the user's file of every client, and the project's if it exists."""
    roots = client_roots()
    columns = ("client", "scope", "state", "file")
    rows = []
    for client in CLIENTS.values():
        user_file = client.path("user", roots, Path.cwd())
        for scope in SCOPES:
            path = client.path(scope, roots, Path.cwd())
            if path is None or (scope == "project" and (path == user_file or not path.exists())):
                continue
            state = inspect_client(client, path, roots).state
            rows.append((client.name, scope, state, str(path)))
    if as_json:
        print_json([dict(zip(columns, row, strict=True)) for row in rows])
    else:
        print_table([columns, *rows])
