"""`polymnia import` and `polymnia export`: carry a memory from one place to another."""

import sys
from collections.abc import Iterable
from pathlib import Path

from msgspec import DecodeError
from msgspec.json import decode

from polymnia.app import configure_logging, opened
from polymnia.cli.missing import refuse_missing
from polymnia.cli.progress import progress_bar
from polymnia.dialects import camel
from polymnia.dialects.base import indented
from polymnia.engine import entities
from polymnia.engine.memory import Memory
from polymnia.engine.transfer import absorb
from polymnia.model import Entity, Graph, Observation
from polymnia.settings import Settings
from polymnia.stores.files.jsonl_lines import encode_lines
from polymnia.stores.files.replace import replace_file


def import_file(settings: Settings, file: str) -> int:
    """Take every entity, observation and relation of the file that the store does not have yet."""
    configure_logging(settings.log_level)
    graph = _read(file)
    with opened(settings.store, settings.workspace) as store:
        new_entities, new_relations = absorb(Memory(store), graph, by="polymnia import", progress=progress_bar)
        store.compact()
    print(
        f"{file}: {len(graph.entities)} entities ({new_entities} new) and {len(graph.relations)} relations "
        f"({new_relations} new) are in {settings.store}"
    )
    return 0


def export(settings: Settings, form: str, output: str | None) -> int:
    """Write the whole memory as one JSON document, or as JSON lines."""
    configure_logging(settings.log_level)
    refuse_missing(settings.store)
    with opened(settings.store, settings.workspace) as store:
        graph = entities.read_all(Memory(store))
    pieces = [_json(graph)] if form == "json" else encode_lines(graph.entities, graph.relations)
    if output is None:
        _print(pieces)
    else:
        replace_file(Path(output), pieces)
        print(f"{output}: {len(graph.entities)} entities, {len(graph.relations)} relations", file=sys.stderr)
    return 0


def _read(file: str) -> Graph:
    refuse_missing(file)
    if file.endswith(".json"):
        document = _document(Path(file).read_bytes())
        if document is not None:
            return document
    with opened(file) as store:
        return entities.read_all(Memory(store))


def _document(data: bytes) -> Graph | None:
    """The graph of an exported document; None when it is not one, but perhaps JSON lines."""
    try:
        document = decode(data, type=camel.GraphShape)
    except (DecodeError, UnicodeDecodeError):
        return None
    drafts = [camel.draft(each) for each in document.entities]
    found = [
        Entity(
            draft.name,
            draft.type,
            tuple([Observation(place, text) for place, text in enumerate(draft.observations, 1)]),
            next_ordinal=len(draft.observations) + 1,
        )
        for draft in drafts
    ]
    return Graph(found, [camel.relation(each) for each in document.relations])


def _json(graph: Graph) -> bytes:
    return indented(camel.graph_shape(graph)).encode() + b"\n"


def _print(pieces: Iterable[bytes]) -> None:
    for piece in pieces:
        sys.stdout.buffer.write(piece)
    sys.stdout.buffer.write(b"\n")
    sys.stdout.buffer.flush()
