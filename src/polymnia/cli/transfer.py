"""`polymnia import` and `polymnia export`: carry a memory from one place to another."""

import sys
from collections.abc import Iterable
from pathlib import Path

from polymnia.app import configure_logging, opened
from polymnia.cli.missing import refuse_missing
from polymnia.cli.progress import progress_bar
from polymnia.dialects import document
from polymnia.disk.replace import replace_file
from polymnia.engine import entities
from polymnia.engine.memory import Memory
from polymnia.engine.transfer import absorb, absorb_notes, count_notes, vault_notes
from polymnia.errors import BadInput, NoNotes
from polymnia.model import Graph, Note
from polymnia.settings import Settings
from polymnia.stores.files.jsonl_lines import encode_lines

_US = "polymnia import"


def import_file(settings: Settings, file: str) -> int:
    """Take every entity, observation, relation and note of the file that the store does not have yet."""
    configure_logging(settings.log_level)
    graph, notes = _read(file)
    with opened(settings.store, settings.workspace) as store:
        memory = Memory(store)
        new_entities, new_relations = absorb(memory, graph, by=_US, progress=progress_bar)
        told = _import_notes(memory, notes)
        store.compact()
    print(
        f"{file}: {len(graph.entities)} entities ({new_entities} new) and {len(graph.relations)} relations "
        f"({new_relations} new){told} are in {settings.store}"
    )
    return 0


def export(settings: Settings, form: str, output: str | None) -> int:
    """Write the whole memory as one JSON document, or what JSON lines can hold of it."""
    configure_logging(settings.log_level)
    refuse_missing(settings.store)
    as_document = form == "json"
    with opened(settings.store, settings.workspace) as store:
        memory = Memory(store)
        graph, count = entities.read_all(memory), count_notes(memory)
        notes = vault_notes(memory) if as_document else []
    pieces = [document.encode_document(graph, notes)] if as_document else encode_lines(graph.entities, graph.relations)
    if output is None:
        _print(pieces)
    else:
        replace_file(Path(output), pieces)
        kept = f", {len(notes)} notes" if notes else ""
        print(f"{output}: {len(graph.entities)} entities, {len(graph.relations)} relations{kept}", file=sys.stderr)
    if count and not as_document:
        _say_left_out(count, "JSON lines hold none; `--format json` does")
    return 0


def _import_notes(memory: Memory, notes: list[Note]) -> str:
    """Take the notes in; gives what there is to tell of it."""
    if not notes:
        return ""
    try:
        new, renewed = absorb_notes(memory, notes, by=_US, progress=progress_bar)
    except NoNotes as exc:
        _say_left_out(len(notes), str(exc))
        return ""
    return f" and {len(notes)} notes ({new} new, {renewed} renewed)"


def _say_left_out(count: int, why: str) -> None:
    print(f"{count} notes of the vault are left out: {why}", file=sys.stderr)


def _read(file: str) -> tuple[Graph, list[Note]]:
    refuse_missing(file)
    if file.endswith(".json"):
        try:
            found = document.parse_document(Path(file).read_bytes())
        except BadInput as exc:
            raise BadInput(f"{file}: {exc}") from exc
        if found is not None:
            return found
    with opened(file) as store:
        memory = Memory(store)
        return entities.read_all(memory), vault_notes(memory)


def _print(pieces: Iterable[bytes]) -> None:
    for piece in pieces:
        sys.stdout.buffer.write(piece)
    sys.stdout.buffer.write(b"\n")
    sys.stdout.buffer.flush()
