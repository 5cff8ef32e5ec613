"""`polymnia migrate-schema`: create or upgrade the tables of a database, apart from the servers."""

import argparse

from polymnia.cli.common import (
    Subparsers,
    add_result_arguments,
    print_result,
)
from polymnia.errors import BadInput
from polymnia.settings import Settings
from polymnia.stores.open import migrate_schema


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
