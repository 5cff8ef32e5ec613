"""`polymnia index`: embed what has no vector yet, so that searches find it by meaning."""

import argparse
from typing import TYPE_CHECKING

from polymnia.app import open_workspace_memory
from polymnia.cli.common import (
    add_embedder_argument,
    add_json_argument,
    add_store_arguments,
    add_workspace_argument,
    print_result,
    progress_bar,
    require_store,
)
from polymnia.errors import BadInput
from polymnia.search.text import count_noun
from polymnia.settings import Settings
from polymnia.stores import hide_passwords

if TYPE_CHECKING:
    from polymnia.cli.common import Subparsers


def add_parser(commands: "Subparsers") -> argparse.ArgumentParser:
    parser = commands.add_parser(
        "index", help="embed what has no vector yet, for search by meaning"
    )
    add_embedder_argument(parser)
    add_json_argument(parser)
    add_store_arguments(parser)
    add_workspace_argument(parser)
    return parser


def run(settings: Settings, options: argparse.Namespace) -> int:
    """Embed everything that has no vector of the embedder's model. A running server does the same by itself."""
    require_store(settings.store)
    with open_workspace_memory(settings) as memory:
        if memory.meaning is None:
            raise BadInput(
                "nothing to index with: the embedder is `none`, or this kind of store has no vectors"
            )
        count = memory.meaning.index(memory.store, progress_bar)
    result = {"store": hide_passwords(settings.store), "embedded": count}
    print_result(
        f"{hide_passwords(settings.store)}: {count_noun(count, 'passage')} embedded",
        result,
        as_json=options.json,
    )
    return 0
