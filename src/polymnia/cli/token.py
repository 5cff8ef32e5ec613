"""`polymnia token`: make, list and revoke the tokens that let others in."""

import argparse
import json
import re
import time

from msgspec import to_builtins

from polymnia.auth.open import tokens_of
from polymnia.auth.tokens import Tokens, shown_time
from polymnia.errors import BadInput
from polymnia.settings import Settings

_UNITS = {"m": 60, "h": 3600, "d": 86400}
_COLUMNS = ("name", "can", "workspaces", "state", "created", "expires")


def token(settings: Settings, options: argparse.Namespace) -> int:
    """Do what the command says. Raises BadInput."""
    tokens = tokens_of(settings.store, settings.tokens)
    if tokens is None:
        raise BadInput(f"{settings.store} has no place for tokens; name a file with --tokens")
    if options.action == "create":
        return _create(tokens, options)
    if options.action == "revoke":
        tokens.revoke(options.name)
        print(f"revoked {options.name}")
        return 0
    return _list(tokens, as_json=options.json)


def _create(tokens: Tokens, options: argparse.Namespace) -> int:
    lifetime = None if options.expires is None else _seconds(options.expires)
    text = tokens.create(options.name, can=options.can, workspaces=options.workspaces, lifetime=lifetime)
    print(text)
    return 0


def _list(tokens: Tokens, *, as_json: bool) -> int:
    now = time.time()
    if as_json:
        shown = [{**to_builtins(each), "state": each.state(now)} for each in tokens.all()]
        kept = [{key: value for key, value in each.items() if key != "hash"} for each in shown]
        print(json.dumps(kept, indent=2, ensure_ascii=False))
        return 0
    rows = [
        {
            "name": each.name,
            "can": each.can,
            "workspaces": "all" if each.workspaces is None else ", ".join(each.workspaces),
            "state": each.state(now),
            "created": shown_time(each.created_at),
            "expires": shown_time(each.expires_at),
        }
        for each in tokens.all()
    ]
    widths = {column: max(len(column), *(len(row[column]) for row in rows), 0) for column in _COLUMNS}
    for row in [dict(zip(_COLUMNS, _COLUMNS, strict=True)), *rows]:
        print("  ".join(row[column].ljust(widths[column]) for column in _COLUMNS).rstrip())
    return 0


def _seconds(text: str) -> int:
    found = re.fullmatch(r"([1-9][0-9]{0,5})([mhd])", text)
    if not found:
        raise BadInput(f"--expires: {text!r} is no length of time; say 30d, 12h or 45m")
    return int(found[1]) * _UNITS[found[2]]
