"""`polymnia import`: add the memories in a file to a store."""

import argparse
import sys
from pathlib import Path
from typing import TYPE_CHECKING

from polymnia.app import configure_logging, opened
from polymnia.cli.common import (
    add_json_argument,
    add_store_arguments,
    add_workspace_argument,
    print_result,
    progress_bar,
    require_store,
)
from polymnia.dialects.document import parse_document
from polymnia.engine import entities
from polymnia.engine.memory import Memory
from polymnia.engine.transfer import absorb, absorb_notes, vault_notes
from polymnia.errors import BadInput, NotSupported
from polymnia.model import Graph, Note
from polymnia.settings import Settings

if TYPE_CHECKING:
    from polymnia.cli.common import Subparsers

_ACTOR = "polymnia import"


def add_parser(commands: "Subparsers") -> argparse.ArgumentParser:
    parser = commands.add_parser("import", help="add the memories in a file to a store")
    parser.add_argument("file", metavar="FILE", help="a memory.jsonl, an exported .json, or a .db or .mcpmem store")
    add_json_argument(parser)
    add_store_arguments(parser)
    add_workspace_argument(parser)
    return parser


def run(settings: Settings, options: argparse.Namespace) -> int:
    """Add every entity, observation, relation and note of the file that the store does not have."""
    configure_logging(settings.log_level)
    graph, notes = _read(options.file)
    with opened(settings.store, settings.workspace) as store:
        memory = Memory(store)
        new_entities, new_relations = absorb(memory, graph, by=_ACTOR, progress=progress_bar)
        added = _import_notes(memory, notes)
        store.compact()
    new_notes, renewed = added or (0, 0)
    summary = f" and {len(notes)} notes ({new_notes} new, {renewed} updated)" if added is not None else ""
    print_result(
        f"{options.file}: imported {len(graph.entities)} entities ({new_entities} new) and {len(graph.relations)} "
        f"relations ({new_relations} new){summary} into {settings.store}",
        {
            "file": options.file,
            "store": settings.store,
            "entities": {"read": len(graph.entities), "new": new_entities},
            "relations": {"read": len(graph.relations), "new": new_relations},
            "notes": {"read": len(notes), "new": new_notes, "updated": renewed},
        },
        as_json=options.json,
    )
    return 0


def _import_notes(memory: Memory, notes: list[Note]) -> tuple[int, int] | None:
    """Add the notes and return how many are new and how many were updated; None if there is nothing to add."""
    if not notes:
        return None
    try:
        return absorb_notes(memory, notes, by=_ACTOR, progress=progress_bar)
    except NotSupported as exc:
        print(f"skipped {len(notes)} vault notes: {exc}", file=sys.stderr)
        return None


def _read(file: str) -> tuple[Graph, list[Note]]:
    require_store(file)
    if file.endswith(".json"):
        try:
            found = parse_document(Path(file).read_bytes())
        except BadInput as exc:
            raise BadInput(f"{file}: {exc}") from exc
        if found is not None:
            return found
    with opened(file, read_only=True) as store:
        memory = Memory(store)
        return entities.read_all(memory), vault_notes(memory)
