"""`polymnia backup`, `restore`, `migrate` and `migrate-schema`: copy or upgrade a whole store."""

import argparse
import sys
from pathlib import Path

from polymnia.cli.common import (
    Progress,
    Subparsers,
    add_json_argument,
    add_result_arguments,
    print_json,
    print_result,
    show_work,
)
from polymnia.engine.transfer.migrate import Copy, migrate
from polymnia.errors import BadInput
from polymnia.search.terms import count_noun
from polymnia.settings import Settings
from polymnia.stores import hide_passwords
from polymnia.stores.backup import back_up, back_up_now, restore
from polymnia.stores.open import migrate_schema
from polymnia.workspace_choice import require_store


def add_backup(commands: Subparsers) -> None:
    parser = commands.add_parser(
        "backup", help="copy a memory to a file, even while servers use it"
    )
    parser.add_argument(
        "target",
        metavar="TARGET",
        nargs="?",
        help="the new file, or the new directory for a data directory (default: the time, in the "
        "folder of backups)",
    )
    parser.add_argument("--force", action="store_true", help="overwrite TARGET")
    add_result_arguments(parser)


def add_restore(commands: Subparsers) -> None:
    parser = commands.add_parser(
        "restore", help="replace a memory by a backup; the former one is kept"
    )
    parser.add_argument(
        "source",
        metavar="SOURCE",
        help="what `polymnia backup` wrote, or any store of the same kind",
    )
    add_result_arguments(parser)


def add_migrate(commands: Subparsers) -> None:
    parser = commands.add_parser(
        "migrate",
        help="copy a whole memory to another kind of store",
        description="Copy all workspaces with their history, deleted rows, notes, perspectives and "
        "vectors, and compare each copy with its source. Run it again to continue a copy that was "
        "interrupted.",
    )
    parser.add_argument(
        "source",
        metavar="SOURCE",
        help="the store to copy: a file, a data directory or postgresql://…",
    )
    parser.add_argument(
        "target", metavar="TARGET", help="the store to fill; it is created if it does not exist"
    )
    parser.add_argument(
        "--workspace",
        metavar="NAME",
        help="copy only this one (a single store becomes `default`)",
    )
    add_json_argument(parser)


def run_backup(settings: Settings, options: argparse.Namespace) -> int:
    """Copy the store of the settings. Raise BadInput, StoreError."""
    with show_work("copying and checking the store"):
        if options.target is None:
            target = str(back_up_now(settings.store, settings.backups))
        else:
            target = options.target
            back_up(settings.store, target, overwrite=options.force)
    store = hide_passwords(settings.store)
    result = {"store": store, "target": target}
    print_result(f"backed up {store} to {target}", result, as_json=options.json)
    return 0


def run_restore(settings: Settings, options: argparse.Namespace) -> int:
    """Replace the store of the settings. Raise BadInput, StoreError."""
    if not Path(options.source).exists() and ":" not in options.source:
        raise BadInput(f"there is no file {options.source}")
    require_store(options.source)
    with show_work("copying and checking the backup"):
        former = restore(settings.store, options.source)
    sentence = f"restored {settings.store} from {options.source}"
    if former is not None:
        sentence += f"\nthe former memory is {former}; start running servers again"
    result = {
        "store": settings.store,
        "source": options.source,
        "kept": None if former is None else str(former),
    }
    print_result(sentence, result, as_json=options.json)
    return 0


def run_migrate(settings: Settings, options: argparse.Namespace) -> int:
    """Copy each workspace and say what was copied. Raise BadInput, StoreError."""
    require_store(options.source)
    if options.source == options.target:
        raise BadInput("source and target are the same store")
    copies: list[Copy] = []
    progress = Progress("rows")
    for copy in migrate(options.source, options.target, options.workspace, progress):
        progress.end()
        copies.append(copy)
        if not options.json:
            # The other tables say nothing to a reader; the checksum covers them.
            shown = (
                "changes",
                "entities",
                "facts",
                "observations",
                "relations",
                "notes",
                "vectors",
            )
            counts = ", ".join(
                f"{copy.rows[table]:,} {table.replace('observations', 'facts')}"
                for table in shown
                if copy.rows.get(table)
            )
            print(f"{copy.workspace}: {counts or 'empty'} (sha256 {copy.checksum[:16]})")
            if copy.left_behind:
                left_behind = ", ".join(copy.left_behind)
                print(f"{copy.workspace}: the target cannot hold {left_behind}", file=sys.stderr)
    if options.json:
        print_json(copies)
    else:
        copied = count_noun(len(copies), "workspace")
        print(f"copied {copied}; every copy equals its source")
    return 0


def add_migrate_schema(commands: Subparsers) -> None:
    parser = commands.add_parser(
        "migrate-schema",
        help="create or upgrade the tables of a PostgreSQL database",
        description="Create the tables of a database, or upgrade them, in one transaction. Servers "
        "do it themselves if their role may; after this command they need no such right.",
    )
    parser.add_argument(
        "--grant",
        metavar="ROLE",
        default="",
        help="let this role use the tables, without the right to change them",
    )
    parser.add_argument(
        "--check",
        action="store_true",
        help="change nothing; fail if the tables must be upgraded or this version is too old",
    )
    add_result_arguments(parser)


def run_migrate_schema(settings: Settings, options: argparse.Namespace) -> int:
    """Migrate or check the schema. Raise BadInput, SettingsError, StoreError."""
    if options.check and options.grant:
        raise BadInput("--check changes nothing: omit --grant")
    change = migrate_schema(settings.store, grant_to=options.grant, only_check=options.check)
    is_usable = change.usable_by <= change.known <= change.after
    lines = [f"schema {change.after}; this version works with schema {change.known}"]
    if change.after > change.known:
        lines.append(
            f"a later version made it; it works with programs that know {change.usable_by}"
        )
    if change.before < change.after:
        lines.insert(0, f"migrated from schema {change.before} to {change.after}")
    elif change.after < change.known:
        lines.append("it must be upgraded: run `polymnia migrate-schema`")
    elif not is_usable:
        lines.append("upgrade polymnia")
    value = {
        "before": change.before,
        "schema": change.after,
        "known": change.known,
        "usable_by": change.usable_by,
        "usable": is_usable,
    }
    print_result("\n".join(lines), value, as_json=options.json)
    return 0 if is_usable else 1
