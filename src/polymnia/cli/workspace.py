"""`polymnia workspace`: list, create, archive, restore, rename and delete workspaces."""

import argparse
import sys
from contextlib import closing

from msgspec import to_builtins

from polymnia.cli.common import (
    Subparsers,
    add_result_arguments,
    positive,
    print_json,
    print_result,
    print_table,
    printable,
)
from polymnia.engine.workspaces import Workspaces, open_workspaces
from polymnia.errors import BadInput
from polymnia.search.times import iso_time
from polymnia.settings import Settings
from polymnia.workspace_choice import require_store

# Lists for people; --json has no limit.
MAX_LISTED = 1_000
_HELP = {
    "create": "create a workspace",
    "archive": "archive a workspace: it cannot be used until it is restored",
    "restore": "restore an archived workspace",
    "delete": "delete a workspace permanently",
    "rename": "rename a workspace",
}


def add_workspace(commands: Subparsers) -> None:
    parser = commands.add_parser(
        "workspace", help="list, create, archive, restore, rename and delete workspaces"
    )
    actions = parser.add_subparsers(
        dest="action", metavar="ACTION", required=True, prog="polymnia workspace"
    )
    listing = actions.add_parser("list", help="list the workspaces")
    listing.add_argument(
        "--status",
        choices=("active", "archived", "all"),
        default="all",
        help="(default: %(default)s)",
    )
    listing.add_argument(
        "--limit",
        type=positive,
        metavar="N",
        help=f"at most this many (default: {MAX_LISTED}, with --json all)",
    )
    add_result_arguments(listing)
    for action, text in _HELP.items():
        changer = actions.add_parser(action, help=text)
        changer.add_argument("name", metavar="NAME")
        add_result_arguments(changer)
    actions.choices["create"].add_argument(
        "--description", metavar="TEXT", default="", help="what it is for"
    )
    actions.choices["delete"].add_argument(
        "--yes", action="store_true", help="do not ask for confirmation"
    )
    actions.choices["rename"].add_argument("new", metavar="NEW", help="the new name")


def run_workspace(settings: Settings, options: argparse.Namespace) -> int:
    """Carry out the action. Raise BadInput."""
    if options.action != "create":
        require_store(settings.store)
    with closing(open_workspaces(settings.store, read_only=options.action == "list")) as workspaces:
        if options.action == "list":
            _list(workspaces, options)
        else:
            result = {"action": options.action, "name": options.name}
            print_result(printable(_change(workspaces, options)), result, as_json=options.json)
    return 0


def _change(workspaces: Workspaces, options: argparse.Namespace) -> str:
    """Change a workspace and return what was done."""
    name = options.name
    if options.action == "create":
        return f"created {workspaces.create(name, options.description).name}"
    if options.action == "archive":
        return f"archived {workspaces.archive(name).name}"
    if options.action == "restore":
        return f"restored {workspaces.restore(name).name}"
    if options.action == "rename":
        return f"renamed {name} to {workspaces.rename(name, options.new).name}"
    name = workspaces.find(name).name
    if not options.yes and not sys.stdin.isatty():
        raise BadInput(
            f"deleting {name} cannot be undone: "
            f"add --yes, or use `polymnia workspace archive {name}`"
        )
    question = f"This deletes {name} permanently. Type its name to continue: "
    if not options.yes and input(question) != name:
        raise BadInput("nothing was deleted")
    return f"deleted {workspaces.delete(name).name}"


def _list(workspaces: Workspaces, options: argparse.Namespace) -> None:
    limit = options.limit or (None if options.json else MAX_LISTED)
    status = None if options.status == "all" else options.status
    found = workspaces.find_all(status, limit=None if limit is None else limit + 1)
    if limit is not None and len(found) > limit:
        del found[limit:]
        print(f"there are more than these {limit}: --limit N shows more", file=sys.stderr)
    if options.json:
        shapes = []
        for workspace in found:
            updated = {"updated_at": iso_time(workspace.updated_at)}
            times = {"created_at": iso_time(workspace.created_at), **updated}
            shapes.append({**to_builtins(workspace), **times})
        print_json(shapes)
        return
    rows = []
    for workspace in found:
        day = (iso_time(workspace.updated_at) or "")[:10]
        rows.append((workspace.name, workspace.status, day, workspace.description))
    print_table(rows)
