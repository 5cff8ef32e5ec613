"""`polymnia stats`: how much a memory holds, of which types, and how much of it can be searched by meaning."""

import argparse
from typing import TYPE_CHECKING, Any

from polymnia.app import open_workspace_store
from polymnia.cli.common import (
    add_json_argument,
    add_store_arguments,
    add_workspace_argument,
    format_time,
    print_json,
    print_table,
    require_store,
)
from polymnia.model import VAULT, TypeCount
from polymnia.settings import Settings
from polymnia.stores import hide_passwords
from polymnia.stores.contract import Reader, Store
from polymnia.stores.size import file_bytes

if TYPE_CHECKING:
    from polymnia.cli.common import Subparsers

_MAX_TYPES = 10


def add_parser(commands: "Subparsers") -> argparse.ArgumentParser:
    parser = commands.add_parser("stats", help="show how much a memory holds")
    add_json_argument(parser)
    add_store_arguments(parser)
    add_workspace_argument(parser)
    return parser


def run(settings: Settings, options: argparse.Namespace) -> int:
    """Print the numbers of the store of the settings. Raise BadInput."""
    require_store(settings.store)
    with open_workspace_store(settings, read_only=True) as store, store.reading() as read:
        numbers = {
            "store": hide_passwords(settings.store),
            "bytes": file_bytes(store.url),
            **_numbers(store, read),
        }
    if options.json:
        print_json(numbers)
    else:
        print_table([(name.replace("_", " "), _show(value)) for name, value in numbers.items()])
    return 0


def _numbers(store: Store, read: Reader) -> dict[str, Any]:
    counts, capabilities = read.counts(), store.capabilities
    numbers: dict[str, Any] = {
        "entities": counts.entities,
        "observations": counts.observations,
        "relations": counts.relations,
        "entity_types": _by_type(read.entity_types()),
        "relation_types": _by_type(read.relation_types()),
    }
    if capabilities.notes:
        numbers["notes"] = read.notes.count(VAULT, ())
    if capabilities.vectors:
        models = read.vectors.models()
        numbers["embedded"] = {
            each.identity: list(read.vectors.coverage(each.number)) for each in models
        }
    latest = read.recent(0, 1)
    return {**numbers, "last_update": format_time(latest[0].updated_at) if latest else ""}


def _by_type(types: list[TypeCount]) -> dict[str, int]:
    return {each.type: each.count for each in types}


def _show(value: Any) -> str:
    if isinstance(value, dict):
        first = [f"{name} {_show(each)}" for name, each in list(value.items())[:_MAX_TYPES]]
        more = len(value) - _MAX_TYPES
        return ", ".join([*first, f"{more} more"] if more > 0 else first)
    if isinstance(value, list):
        return " of ".join(f"{each:,}" for each in value)
    return f"{value:,}" if isinstance(value, int) else str("" if value is None else value)
