"""`polymnia workspace`: list, make, put away, bring back, rename and delete the workspaces of a data directory."""

import argparse
import json
import sys

from msgspec import to_builtins

from polymnia.app import configure_logging, opened_workspaces
from polymnia.cli.missing import refuse_missing
from polymnia.dialects.times import iso_time
from polymnia.engine.workspaces import Workspaces
from polymnia.errors import BadInput
from polymnia.model import Workspace
from polymnia.settings import Settings

_DONE = {"create": "created", "archive": "archived", "restore": "restored", "delete": "deleted"}


def workspace(settings: Settings, options: argparse.Namespace) -> int:
    """Do what the command says. Raises BadInput."""
    configure_logging(settings.log_level)
    if options.action != "create":
        refuse_missing(settings.store)
    with opened_workspaces(settings.store) as workspaces:
        if options.action == "list":
            return _list(workspaces, status=options.status, as_json=options.json)
        if options.action == "rename":
            changed = workspaces.rename(options.name, options.new)
            print(f"renamed {options.name} to {changed.name}")
            return 0
        changed = _change(workspaces, options)
    print(f"{_DONE[options.action]} {changed.name}")
    return 0


def _change(workspaces: Workspaces, options: argparse.Namespace) -> Workspace:
    if options.action == "create":
        return workspaces.create(options.name, options.description)
    if options.action == "archive":
        return workspaces.archive(options.name)
    if options.action == "restore":
        return workspaces.restore(options.name)
    found = workspaces.find(options.name)
    _confirm(found.name, sure=options.yes)
    return workspaces.delete(found.name)


def _confirm(name: str, *, sure: bool) -> None:
    """Raises BadInput unless somebody has said that they mean it."""
    if sure:
        return
    if not sys.stdin.isatty():
        raise BadInput(f"deleting {name} cannot be undone; say --yes, or use `polymnia workspace archive {name}`")
    if input(f"All of {name} will be gone for good. Type its name to go on: ") != name:
        raise BadInput("nothing was deleted")


def _list(workspaces: Workspaces, *, status: str, as_json: bool) -> int:
    found = [each for each in workspaces.listed() if status in ("all", each.status)]
    if as_json:
        times = [{"created_at": iso_time(each.created_at), "updated_at": iso_time(each.updated_at)} for each in found]
        shown = [{**to_builtins(each), **time} for each, time in zip(found, times, strict=True)]
        print(json.dumps(shown, indent=2, ensure_ascii=False))
        return 0
    width = max([len(each.name) for each in found], default=0)
    for each in found:
        changed = (iso_time(each.updated_at) or "")[:10]
        print(f"{each.name.ljust(width)}  {each.status.ljust(8)}  {changed.ljust(10)}  {each.description}".rstrip())
    return 0
