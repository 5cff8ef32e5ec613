"""`polymnia show`: print one entity, and the vault note with the same key."""

import argparse
from typing import TYPE_CHECKING

from polymnia.app import open_workspace_memory
from polymnia.cli.common import (
    add_json_argument,
    add_store_arguments,
    add_workspace_argument,
    format_time,
    print_json,
    printable,
    require_store,
)
from polymnia.engine import entities, notes
from polymnia.engine.suggest import similar_names
from polymnia.errors import BadInput
from polymnia.model import Entity, Graph, Note, Observation
from polymnia.settings import Settings

if TYPE_CHECKING:
    from polymnia.cli.common import Subparsers


def add_parser(commands: "Subparsers") -> argparse.ArgumentParser:
    parser = commands.add_parser(
        "show", help="print one entity with its observations and relations"
    )
    parser.add_argument(
        "words", metavar="NAME", nargs="+", help="the entity's name, or the key of a note"
    )
    add_json_argument(parser)
    add_store_arguments(parser)
    add_workspace_argument(parser)
    return parser


def run(settings: Settings, options: argparse.Namespace) -> int:
    """Print the entity and the note. Raise BadInput if there is neither."""
    require_store(settings.store)
    name = " ".join(options.words)
    with open_workspace_memory(settings, read_only=True) as memory:
        graph, note = entities.open_named(memory, [name]), notes.in_vault(memory, name)
        if not graph.entities and note is None:
            raise BadInput(
                f"there is no entity and no note {name!r}{_suggest(similar_names(memory, name))}"
            )
    if options.json:
        print_json(_document(graph, note))
    else:
        print(_table(graph, note))
    return 0


def _document(graph: Graph, note: Note | None) -> dict[str, object]:
    document = _graph_shape(graph) if graph.entities else {}
    if note is not None:
        document["note"] = _note_shape(note)
    return document


def _graph_shape(graph: Graph) -> dict[str, object]:
    (entity,) = graph.entities
    return {
        "name": entity.name,
        "type": entity.type,
        "summary": entity.summary,
        "tags": entity.tags,
        "observations": [_observation_shape(each) for each in entity.observations],
        "relations": [
            {"from": each.source, "to": each.target, "type": each.type} for each in graph.relations
        ],
        "created": format_time(entity.created_at),
        "updated": format_time(entity.updated_at),
    }


def _note_shape(note: Note) -> dict[str, object]:
    return {
        "key": note.key,
        "content": note.content,
        "tags": note.tags,
        "created": format_time(note.created_at),
        "updated": format_time(note.updated_at),
    }


def _observation_shape(observation: Observation) -> dict[str, object]:
    return {
        "ordinal": observation.ordinal,
        "text": observation.text,
        "time": format_time(observation.valid_at or observation.created_at),
    }


def _table(graph: Graph, note: Note | None) -> str:
    lines: list[str] = []
    for entity in graph.entities:
        lines += [f"{entity.name} [{entity.type}]", *_entity_lines(entity)]
        lines += [f"{each.ordinal:4}  {each.text}" for each in entity.observations]
        lines += [f"      {each.source} -[{each.type}]-> {each.target}" for each in graph.relations]
    if note is not None:
        lines += [f"note {note.key}", *_tag_lines(note.tags), f"      {note.content}"]
    return "\n".join(printable(line) for line in lines)


def _suggest(names: list[str]) -> str:
    return f"; did you mean {' or '.join(map(repr, names))}?" if names else ""


def _entity_lines(entity: Entity) -> list[str]:
    lines = [f"      {entity.summary}"] if entity.summary else []
    return lines + _tag_lines(entity.tags)


def _tag_lines(tags: tuple[str, ...]) -> list[str]:
    return [f"      tags: {', '.join(tags)}"] if tags else []
