"""`polymnia token`: create, list, rotate and revoke tokens."""

import argparse
import re
import sys
import time
from collections.abc import Sequence
from contextlib import closing
from typing import TYPE_CHECKING

from msgspec import to_builtins

from polymnia.auth.authenticator import tokens_of
from polymnia.auth.tokens import Tokens
from polymnia.cli.common import (
    add_json_argument,
    add_store_arguments,
    add_tokens_argument,
    format_seconds,
    print_json,
    print_result,
    print_table,
    printable,
)
from polymnia.engine.workspaces.workspaces import open_workspaces
from polymnia.errors import BadInput
from polymnia.model import CAPABILITIES, Token
from polymnia.settings import Settings
from polymnia.stores.open import hide_passwords, store_exists

if TYPE_CHECKING:
    from polymnia.cli.common import Subparsers

_UNIT_SECONDS = {"m": 60, "h": 3600, "d": 86400}
_COLUMNS = ("name", "can", "workspaces", "state", "created", "expires", "last used")


def add_token(commands: "Subparsers") -> argparse.ArgumentParser:
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
    create.add_argument(
        "--workspace",
        dest="workspaces",
        action="append",
        metavar="NAME",
        help="limit it to this workspace (repeatable; default: all)",
    )
    listing = actions.add_parser("list", help="list the tokens without their secrets")
    rotate = actions.add_parser(
        "rotate", help="replace a token by a new one with the same name and rights"
    )
    rotate.add_argument("name", metavar="NAME")
    rotate.add_argument(
        "--overlap",
        metavar="TIME",
        help="keep the old token valid for this long, e.g. 1h (default: revoke it at once)",
    )
    revoke = actions.add_parser("revoke", help="revoke a token immediately")
    revoke.add_argument("name", metavar="NAME")
    for action in (create, rotate):
        action.add_argument(
            "--expires", metavar="TIME", help="lifetime, e.g. 30d, 12h or 45m (default: unlimited)"
        )
    for action in (create, listing, rotate, revoke):
        add_json_argument(action)
        add_tokens_argument(action)
        add_store_arguments(action)
    return parser


def run_token(settings: Settings, options: argparse.Namespace) -> int:
    """Carry out the action. Raise BadInput, StoreError."""
    is_listing = options.action == "list"
    tokens = tokens_of(settings.store, settings.tokens, read_only=is_listing)
    if tokens is None:
        raise BadInput(f"{settings.store} is not stored anywhere: name a token file with --tokens")
    with closing(tokens):
        if is_listing:
            _list(tokens, as_json=options.json)
        else:
            _ACTIONS[options.action](settings, options, tokens)
    return 0


def _create(settings: Settings, options: argparse.Namespace, tokens: Tokens) -> None:
    _warn_of_missing_workspaces(settings, options.workspaces or ())
    lifetime = _seconds("--expires", options.expires)
    text = tokens.create(
        options.name, can=options.can, workspaces=options.workspaces, lifetime=lifetime
    )
    _print_token(options, text)


def _rotate(settings: Settings, options: argparse.Namespace, tokens: Tokens) -> None:
    lifetime = _seconds("--expires", options.expires)
    overlap = _seconds("--overlap", options.overlap) or 0
    _print_token(options, tokens.rotate(options.name, lifetime=lifetime, overlap=overlap))


def _revoke(settings: Settings, options: argparse.Namespace, tokens: Tokens) -> None:
    tokens.revoke(options.name)
    print_result(f"revoked {options.name}", {"revoked": options.name}, as_json=options.json)


_ACTIONS = {"create": _create, "rotate": _rotate, "revoke": _revoke}


def _warn_of_missing_workspaces(settings: Settings, names: Sequence[str]) -> None:
    """Say which workspaces do not exist: a token for them alone can read nothing."""
    if not names or not store_exists(settings.store):
        return
    with closing(open_workspaces(settings.store, settings.workspace, read_only=True)) as workspaces:
        known = [workspace.name for workspace in workspaces.find_all()]
    for name in names:
        if name not in known:
            store = hide_passwords(settings.store)
            print(
                printable(f"there is no workspace {name!r} in {store} yet: {', '.join(known)}"),
                file=sys.stderr,
            )


def _print_token(options: argparse.Namespace, token: str) -> None:
    print_result(token, {"name": options.name, "token": token}, as_json=options.json)


def _list(tokens: Tokens, *, as_json: bool) -> None:
    now = time.time()
    if as_json:
        print_json([_token_json(tokens, token, now) for token in tokens.all()])
        return
    rows = [
        (
            token.name,
            token.can,
            "all" if token.workspaces is None else ", ".join(token.workspaces),
            token.state(now),
            format_seconds(token.created_at),
            format_seconds(token.expires_at),
            format_seconds(tokens.last_used(token.id)),
        )
        for token in tokens.all()
    ]
    print_table([_COLUMNS, *rows], cut_column=_COLUMNS.index("workspaces"))


def _token_json(tokens: Tokens, token: Token, now: float) -> dict[str, object]:
    shown = {key: value for key, value in to_builtins(token).items() if key != "hash"}
    return {**shown, "state": token.state(now), "last_used_at": tokens.last_used(token.id)}


def _seconds(flag: str, text: str | None) -> int | None:
    if text is None:
        return None
    found = re.fullmatch(r"([1-9][0-9]{0,5})([mhd])", text)
    if not found:
        raise BadInput(f"{flag}: invalid duration {text!r}: use e.g. 30d, 12h or 45m")
    return int(found[1]) * _UNIT_SECONDS[found[2]]
