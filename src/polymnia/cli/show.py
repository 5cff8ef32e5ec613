"""`polymnia show`, `list` and `stats`: print one entity, the latest ones, or how many there are."""

import argparse
from typing import Any

from polymnia.cli.common import (
    Subparsers,
    add_limit_argument,
    add_memory_arguments,
    format_time,
    print_json,
    print_lines,
    print_table,
    unknown_name,
    workspace_label,
)
from polymnia.engine import notes
from polymnia.engine.graph import entities
from polymnia.engine.recall.names import similar_names
from polymnia.model import Entity, Graph, Note, TypeCount
from polymnia.search.terms import count_noun
from polymnia.settings import Settings
from polymnia.stores import hide_passwords
from polymnia.stores.contract import Reader, Store
from polymnia.stores.open import file_bytes
from polymnia.workspace_choice import (
    OpenedWorkspace,
    open_workspaces_to_read,
)

_MAX_TYPES = 10


def add_show(commands: Subparsers) -> None:
    parser = commands.add_parser("show", help="print one entity with its facts and relations")
    parser.add_argument(
        "words", metavar="NAME", nargs="+", help="the entity's name, or the key of a note"
    )
    add_memory_arguments(parser)


def add_list(commands: Subparsers) -> None:
    parser = commands.add_parser("list", help="list the entities that changed last")
    parser.add_argument("--type", help="only entities of this type")
    add_limit_argument(parser, 20, "at most this many")
    add_memory_arguments(parser)


def add_stats(commands: Subparsers) -> None:
    parser = commands.add_parser("stats", help="show how much a memory holds")
    add_memory_arguments(parser)


def run_show(settings: Settings, options: argparse.Namespace) -> int:
    """Print the entity and the note. Raise BadInput if there is neither."""
    name = " ".join(options.words)
    documents: list[dict[str, object]] = []
    lines: list[str] = []
    with open_workspaces_to_read(settings) as workspaces:
        name = _find_spelling(workspaces, name)
        for workspace in workspaces:
            graph = entities.open_named(workspace.memory, [name])
            note = notes.in_vault(workspace.memory, name)
            if graph.entities or note is not None:
                where = workspace_label(settings, workspace)
                documents.append({"workspace": where, **_document(graph, note)})
                lines += _lines(graph, note, where)
        if not documents:
            raise unknown_name(settings, workspaces, name, "entity and no note")
    if options.json:
        # The same name in the project and in the personal workspace: the project's goes first.
        others = {"also": documents[1:]} if len(documents) > 1 else {}
        print_json({**documents[0], **others})
    else:
        print_lines(lines)
    return 0


def _find_spelling(workspaces: list[OpenedWorkspace], name: str) -> str:
    """Return the name, or one that differs only in upper and lower case if there is no such."""
    others: list[str] = []
    for workspace in workspaces:
        with workspace.memory.reading() as read:
            if read.outlines([name]):
                return name
        near = similar_names(workspace.memory, name)
        others += [other for other in near if other.casefold() == name.casefold()]
    return others[0] if others else name


def _document(graph: Graph, note: Note | None) -> dict[str, object]:
    document: dict[str, object] = {}
    for entity in graph.entities:
        facts = []
        for fact in entity.facts:
            time = format_time(fact.valid_at or fact.created_at)
            facts.append({"ordinal": fact.ordinal, "text": fact.text, "time": time})
        relations = []
        for relation in graph.relations:
            ends = {"from": relation.source, "to": relation.target}
            relations.append({**ends, "type": relation.type})
        document = {
            "name": entity.name,
            "type": entity.type,
            "summary": entity.summary,
            "tags": entity.tags,
            "facts": facts,
            "relations": relations,
            "created": format_time(entity.created_at),
            "updated": format_time(entity.updated_at),
        }
    if note is not None:
        document["note"] = {
            "key": note.key,
            "content": note.content,
            "tags": note.tags,
            "created": format_time(note.created_at),
            "updated": format_time(note.updated_at),
        }
    return document


def _lines(graph: Graph, note: Note | None, where: str) -> list[str]:
    lines: list[str] = []
    for entity in graph.entities:
        lines.append(f"{entity.name} [{entity.type}] in {where}")
        if entity.summary:
            lines.append(f"      {entity.summary}")
        lines += _tag_lines(entity.tags)
        for fact in entity.facts:
            # A text of several lines is shown as it was written.
            first, *rest = fact.text.split("\n")
            lines += [f"{fact.ordinal:4}  {first}", *(f"      {line}" for line in rest)]
    for relation in graph.relations:
        lines.append(f"      {relation.source} -[{relation.type}]-> {relation.target}")
    if note is not None:
        lines += [f"note {note.key} in {where}", *_tag_lines(note.tags)]
        lines += [f"      {line}" for line in note.content.split("\n")]
    return lines


def _tag_lines(tags: tuple[str, ...]) -> list[str]:
    return [f"      tags: {', '.join(tags)}"] if tags else []


def run_list(settings: Settings, options: argparse.Namespace) -> int:
    """Print the entities, the latest first. Return 0 if there are any, 1 if not."""
    kind, limit = options.type, options.limit
    listed: list[tuple[OpenedWorkspace, Entity, int]] = []
    total = 0
    with open_workspaces_to_read(settings) as workspaces:
        for workspace in workspaces:
            with workspace.memory.reading() as read:
                if kind is None:
                    latest, count = read.outlines(latest=limit), read.counts().entities
                else:
                    outlines = read.outlines(kind=kind)
                    latest = sorted(outlines, key=lambda entity: -entity.updated_at)[:limit]
                    count = len(outlines)
                counts = read.fact_counts([entity.name for entity in latest])
            total += count
            listed += [(workspace, entity, counts.get(entity.name, 0)) for entity in latest]
    listed.sort(key=lambda row: -row[1].updated_at)
    rows, cells = [], []
    for workspace, entity, facts in listed[:limit]:
        updated, label = format_time(entity.updated_at), workspace_label(settings, workspace)
        shape = {"name": entity.name, "type": entity.type, "facts": facts, "updated": updated}
        rows.append({**shape, "workspace": label})
        row = [entity.name, entity.type, count_noun(facts, "fact"), updated]
        cells.append([*row, label] if len(workspaces) > 1 else row)
    where = " and ".join(workspace_label(settings, workspace) for workspace in workspaces)
    if options.json:
        print_json({"entities": rows, "total": total})
        return 0 if rows else 1
    print_table(cells, cut_column=0)
    if len(rows) < total:
        print(f"the latest {len(rows)} of {count_noun(total, 'entity')} in {where}")
    else:
        print(f"{count_noun(total, 'entity')} in {where}")
    return 0 if rows else 1


def run_stats(settings: Settings, options: argparse.Namespace) -> int:
    """Print the numbers of each workspace. Raise BadInput."""
    numbers: list[dict[str, Any]] = []
    with open_workspaces_to_read(settings) as workspaces:
        for workspace in workspaces:
            store = workspace.memory.store
            with store.reading() as read:
                numbers.append(
                    {
                        "workspace": workspace.name,
                        "store": hide_passwords(settings.store),
                        "bytes": file_bytes(store.url),
                        **_numbers(store, read),
                    }
                )
    if options.json:
        others = {"also": numbers[1:]} if len(numbers) > 1 else {}
        print_json({**numbers[0], **others})
        return 0
    for workspace, table in zip(workspaces, numbers, strict=True):
        if workspace.is_sole:
            del table["workspace"]  # the store says it
        rows = [(name.replace("_", " "), _show(value)) for name, value in table.items()]
        if table is not numbers[0]:
            print()
        print_table(rows)
    return 0


def _numbers(store: Store, read: Reader) -> dict[str, Any]:
    counts, capabilities = read.counts(), store.capabilities
    numbers: dict[str, Any] = {
        "entities": counts.entities,
        "facts": counts.facts,
        "relations": counts.relations,
        "entity_types": _by_type(read.type_counts("entities")),
        "relation_types": _by_type(read.type_counts("relations")),
    }
    if capabilities.notes:
        numbers["notes"] = counts.notes
    if capabilities.vectors:
        models = read.vectors.models()
        numbers["embedded"] = {
            # Its identity also has parts that may be empty.
            "/".join(filter(None, model.identity.split("/"))): list(
                read.vectors.coverage(model.number)
            )
            for model in models
        }
    latest = read.outlines(latest=1)
    return {**numbers, "last_update": format_time(latest[0].updated_at) if latest else ""}


def _by_type(types: list[TypeCount]) -> dict[str, int]:
    return {row.type: row.count for row in types}


def _show(value: Any) -> str:
    if isinstance(value, dict):
        shown = [f"{name} {_show(part)}" for name, part in list(value.items())[:_MAX_TYPES]]
        more = len(value) - _MAX_TYPES
        if more > 0:
            shown.append(f"{more} more")
        return ", ".join(shown)
    if isinstance(value, list):
        return " of ".join(f"{number:,}" for number in value)
    if isinstance(value, int):
        return f"{value:,}"
    return "" if value is None else str(value)
