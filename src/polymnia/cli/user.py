"""`polymnia user`: invite people to the server, and say what they may do."""

import argparse
from contextlib import closing
from urllib.parse import urlencode

from polymnia.auth.authenticator import tokens_of
from polymnia.auth.people import INVITATION_S, People
from polymnia.cli.common import (
    Subparsers,
    add_json_argument,
    add_store_arguments,
    add_tokens_argument,
    format_seconds,
    print_json,
    print_result,
    print_table,
)
from polymnia.cli.token import add_keep_argument, choose_workspaces
from polymnia.errors import BadInput
from polymnia.model import CAPABILITIES
from polymnia.settings import Settings


def add_user(commands: Subparsers) -> None:
    parser = commands.add_parser(
        "user", help="invite people, who log in with a password, and say what they may do"
    )
    actions = parser.add_subparsers(
        dest="action", metavar="ACTION", required=True, prog="polymnia user"
    )
    invite = actions.add_parser(
        "invite", help="create accounts, and print the links with which their people log in"
    )
    assign = actions.add_parser(
        "assign", help="change what a person may do, and in which workspaces"
    )
    reset = actions.add_parser(
        "reset", help="forget a person's password, end their logins, and print a new link"
    )
    remove = actions.add_parser(
        "remove", help="remove a person: their logins and programs are refused at once"
    )
    listing = actions.add_parser("list", help="list the people and where they are logged in")
    invite.add_argument("names", metavar="NAME", nargs="+")
    add_keep_argument(invite)
    for action in (assign, reset, remove):
        action.add_argument("name", metavar="NAME")
    for action in (invite, assign):
        action.add_argument(
            "--can",
            choices=CAPABILITIES,
            default="write" if action is invite else None,
            help="what they may do"
            + (" (default: %(default)s)" if action is invite else " (default: as before)"),
        )
        action.add_argument(
            "--workspace",
            dest="workspaces",
            action="append",
            metavar="NAME",
            help="a workspace they may use, besides one of their own (repeatable"
            + (")" if action is invite else "; default: as before)"),
        )
        action.add_argument(
            "--all-workspaces",
            action="store_true",
            help="let them use every workspace, also new ones",
        )
    for action in (invite, assign, reset, remove, listing):
        add_json_argument(action)
        add_tokens_argument(action)
        add_store_arguments(action)


def run_user(settings: Settings, options: argparse.Namespace) -> int:
    """Carry out the action. Raise BadInput, StoreError."""
    action, name = options.action, getattr(options, "name", "")
    tokens = tokens_of(settings.store, settings.tokens, read_only=action == "list")
    if tokens is None:
        raise BadInput(f"{settings.store} is not stored anywhere: name a token file with --tokens")
    with closing(tokens):
        people = People(tokens)
        if action == "list":
            _list(people, as_json=options.json)
            return 0
        if action == "remove":
            people.remove(name)
            print_result(f"removed {name}", {"removed": name}, as_json=options.json)
            return 0
        if action == "reset":
            _print_links(settings, {name: people.reset(name)}, as_json=options.json)
            return 0
        if options.all_workspaces and options.workspaces:
            raise BadInput("--all-workspaces: leave out --workspace")
        if action == "assign":
            workspaces = None
            if options.workspaces:
                workspaces = choose_workspaces(settings, name, options.workspaces, keeps=True)
            everywhere = options.all_workspaces
            people.assign(name, can=options.can, workspaces=workspaces, is_everywhere=everywhere)
            print_result(f"changed {name}", {"changed": name}, as_json=options.json)
            return 0
        codes = {}
        for person in options.names:
            workspaces = None
            if not options.all_workspaces:
                keeps = options.keep_workspace or tokens.has_name(person)
                named = options.workspaces or ()
                workspaces = choose_workspaces(settings, person, named, keeps=keeps)
            codes[person] = people.invite(person, can=options.can, workspaces=workspaces)
    _print_links(settings, codes, as_json=options.json)
    return 0


def _print_links(settings: Settings, codes: dict[str, str], *, as_json: bool) -> None:
    base = settings.public_url.rstrip("/") or f"http://{settings.address}"
    links = {name: f"{base}/ui/join?{urlencode({'code': code})}" for name, code in codes.items()}
    lines = [f"{name}: {link}" for name, link in links.items()]
    lines.append(f"Each link works once, for {INVITATION_S // 86_400} days.")
    shapes = [{"name": name, "link": link} for name, link in links.items()]
    print_result("\n".join(lines), shapes, as_json=as_json)


def _list(people: People, *, as_json: bool) -> None:
    shapes = []
    rows: list[tuple[str, ...]] = [("name", "can", "workspaces", "state", "since", "logged in")]
    for user in people.all():
        account = user.account
        state = "invited" if account is not None and account.invitation else "active"
        logins = people.logins(user)
        programs = [login.grant.client for login in logins if login.grant is not None]
        browsers = sum(login.kind == "session" for login in logins)
        shapes.append(
            {
                "name": user.name,
                "can": user.can,
                "workspaces": user.workspaces,
                "state": state,
                "created_at": user.created_at,
                "browsers": browsers,
                "programs": programs,
            }
        )
        where = "all" if user.workspaces is None else ", ".join(user.workspaces)
        named = [f"{browsers} in a browser"] if browsers else []
        since = format_seconds(user.created_at)
        rows.append((user.name, user.can, where, state, since, ", ".join([*named, *programs])))
    if as_json:
        print_json(shapes)
    else:
        print_table(rows, cut_column=2)
