"""Stores of this program: a SQLite file, a binary log, a directory of workspaces, a database."""

from collections.abc import Iterator
from pathlib import Path

from polymnia.engine.graph import entities
from polymnia.engine.notes import vault_notes
from polymnia.engine.transfer.intake import Item
from polymnia.engine.workspaces.projects import existing_default
from polymnia.engine.workspaces.workspaces import open_workspaces
from polymnia.errors import BadInput
from polymnia.importers.base import Importer, Report
from polymnia.importers.source import Source
from polymnia.stores.open import holds_a_store


def recognizes(source: Source) -> bool:
    """Return True for a file or directory that one of our stores can read."""
    return holds_a_store(str(source.path))


def read(source: Source, report: Report) -> Iterator[Item]:
    """Yield the living entities, relations and vault notes."""
    yield from read_store(str(source.path), report, source.workspace)


def read_store(url: str, report: Report, workspace: str = "") -> Iterator[Item]:
    """Yield what a store holds, or one workspace of it.

    Raise BadInput if it has several, StoreError.
    """
    workspaces = open_workspaces(url, read_only=True)
    try:
        name = workspace or workspaces.sole or existing_default(workspaces, Path.cwd())
        if name is None:
            active = workspaces.find_all("active")
            names = ", ".join(workspace.name for workspace in active) or "none"
            raise BadInput(
                f"{url} holds several workspaces ({names}); choose one with --from-workspace"
            )
        memory = workspaces.memory(name)
        graph = entities.read_all(memory)
        yield from report.count_parts(graph.entities)
        yield from report.count_parts(graph.relations)
        yield from vault_notes(memory)
    finally:
        workspaces.close()


IMPORTER = Importer(
    "store", "another store of Polymnia (.db, .mcpmem, a directory)", recognizes, read
)
