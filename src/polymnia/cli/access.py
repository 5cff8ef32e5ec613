"""`polymnia token` and `user`: the tokens of programs, and the accounts of people."""

import argparse
import re
import sys
from collections.abc import Iterator, Sequence
from contextlib import closing, contextmanager
from urllib.parse import urlencode

from msgspec import to_builtins

from polymnia.auth.authenticator import tokens_of
from polymnia.auth.people import INVITATION_S, People
from polymnia.auth.tokens import Tokens, check_token_name
from polymnia.cli.common import (
    Subparsers,
    add_json_argument,
    add_store_arguments,
    add_tokens_argument,
    format_seconds,
    print_json,
    print_result,
    print_table,
    printable,
)
from polymnia.engine.workspaces import DEFAULT, new_rights, open_workspaces
from polymnia.errors import BadInput
from polymnia.model import CAPABILITIES
from polymnia.settings import Settings
from polymnia.stores.open import hide_passwords, store_exists, store_kind


def add_token(commands: Subparsers) -> None:
    parser = commands.add_parser(
        "token", help="create, list, rotate and revoke the tokens of remote clients"
    )
    actions = parser.add_subparsers(
        dest="action", metavar="ACTION", required=True, prog="polymnia token"
    )
    create = actions.add_parser("create", help="create a token and print it once")
    create.add_argument("name", metavar="NAME", help="who uses it; the change log shows this name")
    create.add_argument(
        "--can", choices=CAPABILITIES, default="read", help="what it allows (default: %(default)s)"
    )
    _add_workspaces(
        create,
        "a workspace it may use, besides one of its own (repeatable); personal is that of the "
        "commands on this machine",
    )
    create.add_argument(
        "--all-workspaces", action="store_true", help="let it use every workspace, also new ones"
    )
    assign = actions.add_parser(
        "assign", help="let a token use its own workspace and the named ones, and no others"
    )
    _add_workspaces(assign, "a workspace it may use, besides one of its own (repeatable)")
    listing = actions.add_parser("list", help="list the tokens without their secrets")
    rotate = actions.add_parser(
        "rotate", help="replace a token by a new one with the same name and rights"
    )
    rotate.add_argument(
        "--overlap",
        metavar="TIME",
        help="keep the old token valid for this long, e.g. 1h (default: revoke it at once)",
    )
    limit = actions.add_parser(
        "limit", help="limit the calls of a token; without numbers, remove its limits"
    )
    revoke = actions.add_parser("revoke", help="revoke a token immediately")
    for action in (assign, rotate, limit, revoke):
        action.add_argument("name", metavar="NAME")
    for action in (create, limit):
        for kind in ("requests", "writes"):
            action.add_argument(
                f"--{kind}",
                type=int,
                metavar="N",
                help=f"{kind} a minute; 0 is unlimited (default: the server's setting)",
            )
    _add_keep_argument(create)
    for action in (create, rotate):
        action.add_argument(
            "--expires", metavar="TIME", help="lifetime, e.g. 30d, 12h or 45m (default: unlimited)"
        )
    for action in (create, assign, listing, limit, rotate, revoke):
        _add_shared(action)


def run_token(settings: Settings, options: argparse.Namespace) -> int:
    """Carry out the action. Raise BadInput, StoreError."""
    action, name = options.action, getattr(options, "name", "")
    with _open_tokens(settings, read_only=action == "list") as tokens:
        if action == "list":
            _list_tokens(tokens, as_json=options.json)
            return 0
        if action == "revoke":
            tokens.revoke(name)
            print_result(f"revoked {name}", {"revoked": name}, as_json=options.json)
            return 0
        if action == "assign":
            workspaces = _choose_workspaces(settings, name, options.workspaces or (), keeps=True)
            if workspaces is None:
                raise BadInput(f"{settings.store} holds one workspace: there is nothing to choose")
            tokens.assign(name, workspaces)
            text = f"{name} may use {', '.join(workspaces)}"
            print_result(text, {"name": name, "workspaces": workspaces}, as_json=options.json)
            return 0
        requests, writes = getattr(options, "requests", None), getattr(options, "writes", None)
        if min(requests or 0, writes or 0) < 0:
            raise BadInput("--requests and --writes: use 0 or a greater number")
        if action == "limit":
            tokens.limit(name, requests=requests, writes=writes)
            shape = {"limited": name, "requests": requests, "writes": writes}
            print_result(f"limited {name}", shape, as_json=options.json)
            return 0
        lifetime = _seconds("--expires", options.expires)
        if action == "create":
            if options.all_workspaces and options.workspaces:
                raise BadInput("--all-workspaces: leave out --workspace")
            workspaces = None
            if not options.all_workspaces:
                keeps = options.keep_workspace or tokens.has_name(name)
                named = options.workspaces or ()
                workspaces = _choose_workspaces(settings, name, named, keeps=keeps)
            text = tokens.create(
                name,
                can=options.can,
                workspaces=workspaces,
                lifetime=lifetime,
                requests=requests,
                writes=writes,
            )
        else:
            overlap = _seconds("--overlap", options.overlap) or 0
            text = tokens.rotate(name, lifetime=lifetime, overlap=overlap)
        print_result(text, {"name": name, "token": text}, as_json=options.json)
    return 0


def _add_keep_argument(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "--keep-workspace",
        action="store_true",
        help="give the new one the workspace of a former one of the same name, with its memory",
    )


def _add_workspaces(action: argparse.ArgumentParser, meaning: str) -> None:
    action.add_argument(
        "--workspace", dest="workspaces", action="append", metavar="NAME", help=meaning
    )


def _add_shared(action: argparse.ArgumentParser) -> None:
    add_json_argument(action)
    add_tokens_argument(action)
    add_store_arguments(action)


@contextmanager
def _open_tokens(settings: Settings, *, read_only: bool) -> Iterator[Tokens]:
    tokens = tokens_of(settings.store, settings.tokens, read_only=read_only)
    if tokens is None:
        raise BadInput(f"{settings.store} is not stored anywhere: name a token file with --tokens")
    with closing(tokens):
        yield tokens


def _choose_workspaces(
    settings: Settings, name: str, named: Sequence[str], *, keeps: bool
) -> tuple[str, ...] | None:
    """Return the workspaces of a new token or person; None for the only one of a store.

    Create one of their own, or take the one of that name if it `keeps` it. Say which others do not
    exist, and what the new one may use.
    """
    check_token_name(name)
    is_single = store_kind(settings.store)[0] not in ("directory", "postgres")
    rights: tuple[str, ...] | None = tuple(named) or None
    if is_single and set(named) - {DEFAULT}:
        raise BadInput(f"{settings.store} holds one workspace: leave out --workspace")
    if is_single and (rights is None or not store_exists(settings.store)):
        return rights
    only = settings.workspace if is_single else ""
    with closing(open_workspaces(settings.store, only, read_only=is_single)) as workspaces:
        if not is_single:
            rights = new_rights(workspaces, name, named, keeps=keeps)
        known = [workspace.name for workspace in workspaces.find_all()]
    store = hide_passwords(settings.store)
    for missing in named:
        if missing not in known:
            text = f"there is no workspace {missing!r} in {store} yet; there are {', '.join(known)}"
            print(printable(text), file=sys.stderr)
    if not named:
        text = f"{name} may use only {rights and rights[0]}, a workspace of its own"
        print(printable(f"{text}; --workspace adds others"), file=sys.stderr)
    return rights


def _list_tokens(tokens: Tokens, *, as_json: bool) -> None:
    shapes = []
    heads = ("name", "can", "workspaces", "state", "created", "expires", "last used", "a minute")
    rows: list[tuple[str, ...]] = [heads]
    # People and their logins are in `polymnia user list`.
    for token in tokens.all("token", "grant"):
        state, last_used = tokens.state(token), tokens.last_used(token.id)
        shape = to_builtins(token)
        for secret in ("hash", "grant"):
            shape.pop(secret, None)
        shapes.append({**shape, "state": state, "last_used_at": last_used})
        workspaces = "all" if token.workspaces is None else ", ".join(token.workspaces)
        times = map(format_seconds, (token.created_at, token.expires_at, last_used))
        limits = [
            f"{number} {kind}"
            for number, kind in ((token.requests, "requests"), (token.writes, "writes"))
            if number is not None
        ]
        rows.append((token.name, token.can, workspaces, state, *times, ", ".join(limits)))
    if as_json:
        print_json(shapes)
    else:
        print_table(rows, cut_column=2)


def _seconds(flag: str, text: str | None) -> int | None:
    if text is None:
        return None
    duration = re.fullmatch(r"([1-9][0-9]{0,5})([mhd])", text)
    if duration is None:
        raise BadInput(f"{flag}: invalid duration {text!r}: use e.g. 30d, 12h or 45m")
    return int(duration[1]) * {"m": 60, "h": 3600, "d": 86400}[duration[2]]


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
    _add_keep_argument(invite)
    for action in (assign, reset, remove):
        action.add_argument("name", metavar="NAME")
    invite.add_argument(
        "--can",
        choices=CAPABILITIES,
        default="write",
        help="what they may do (default: %(default)s)",
    )
    assign.add_argument("--can", choices=CAPABILITIES, help="what they may do (default: as before)")
    own = "a workspace they may use, besides one of their own (repeatable"
    _add_workspaces(invite, f"{own})")
    _add_workspaces(assign, f"{own}; default: as before)")
    for action in (invite, assign):
        action.add_argument(
            "--all-workspaces",
            action="store_true",
            help="let them use every workspace, also new ones",
        )
    for action in (invite, assign, reset, remove, listing):
        _add_shared(action)


def run_user(settings: Settings, options: argparse.Namespace) -> int:
    """Carry out the action. Raise BadInput, StoreError."""
    action, name = options.action, getattr(options, "name", "")
    with _open_tokens(settings, read_only=action == "list") as tokens:
        people = People(tokens)
        if action == "list":
            _list_people(people, as_json=options.json)
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
                workspaces = _choose_workspaces(settings, name, options.workspaces, keeps=True)
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
                workspaces = _choose_workspaces(settings, person, named, keeps=keeps)
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


def _list_people(people: People, *, as_json: bool) -> None:
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
