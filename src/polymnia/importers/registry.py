"""The importers in the order in which they look at a source, and how a source is imported."""

from collections.abc import Callable, Iterable, Iterator
from itertools import chain

from polymnia.engine import notes
from polymnia.engine.memory import Memory
from polymnia.engine.transfer.intake import IntakeReceipt, Item, take_in
from polymnia.errors import BadInput, NotSupported
from polymnia.importers import (
    agent_files,
    basic_memory,
    chatgpt,
    claude,
    claude_code,
    codex,
    copilot,
    gemini,
    graphiti,
    mem0,
    memory_service,
    mempalace,
    obsidian,
    own_files,
    reference,
)
from polymnia.importers.base import Importer, Report
from polymnia.importers.source import Source
from polymnia.model import Note

# The most specific come first: the reference format is recognized by little.
IMPORTERS: tuple[Importer, ...] = (
    # Before stores: like a directory of workspaces, its folder has a subfolder `projects`.
    claude_code.IMPORTER,
    codex.IMPORTER,
    copilot.IMPORTER,
    gemini.IMPORTER,
    own_files.STORE,
    own_files.DOCUMENT,
    own_files.MARKDOWN,
    memory_service.FILE,
    mempalace.IMPORTER,
    memory_service.EXPORT,
    chatgpt.IMPORTER,
    claude.IMPORTER,
    graphiti.IMPORTER,
    mem0.IMPORTER,
    basic_memory.IMPORTER,
    agent_files.LETTA,
    agent_files.CLAUDE_MEMORY,
    agent_files.INSTRUCTIONS,
    obsidian.IMPORTER,
    reference.IMPORTER,
)
KINDS = tuple(importer.kind for importer in IMPORTERS)


def find_importer(source: Source, kind: str | None = None) -> Importer:
    """Return the importer of that kind, or the first that recognizes the source.

    Raise BadInput if there is none.
    """
    for importer in IMPORTERS:
        if importer.kind == kind or (kind is None and importer.recognizes(source)):
            return importer
    if kind is None and all(name.endswith(".md") for name in source.names) and source.names:
        return obsidian.IMPORTER  # it reads any folder of Markdown files
    if kind is not None:
        raise BadInput(f"there is no importer {kind!r}; use one of {', '.join(KINDS)}")
    if not source.is_file and any(name.endswith(".zip") for name in source.names):
        raise BadInput(
            f"{source.path} holds zip archives, which are not opened here; import each by itself"
        )
    if source.is_file and not source.path.stat().st_size:
        raise BadInput(f"{source.path} is empty")
    raise BadInput(
        f"{source.path}: unknown format; `polymnia import --help` lists the formats, "
        "and --from KIND skips the detection"
    )


def open_source(
    source: Source, kind: str | None, report: Report
) -> tuple[Importer, Iterator[Item]]:
    """Return the importer of a source and its items, which are read lazily.

    It is the importer of that kind, or the one that recognizes the source. Raise BadInput.
    """
    importer = find_importer(source, kind)
    for place, reason in source.skipped:
        report.drop_part(place, reason)
    items = require_some(importer.read(source, report), source.path.name, report)
    return importer, items


def require_some(items: Iterator[Item], name: str, report: Report) -> Iterator[Item]:
    """Return the items. Raise BadInput if there are none because all were dropped."""
    first = next(items, None)
    if first is None and report.dropped_parts:
        raise BadInput(f"{name}: nothing to import; {report.dropped_parts[0].sentence()}")
    return items if first is None else chain((first,), items)


def import_items(
    memory: Memory,
    items: Iterable[Item],
    report: Report,
    *,
    by: str,
    dry_run: bool = False,
    progress: Callable[[int], None] | None = None,
) -> IntakeReceipt:
    """Add what the memory can hold, as `take_in` does. Report the rest, and what may be secret."""
    refusal = ""
    try:
        notes.require(memory)
    except NotSupported as exc:
        refusal = str(exc)

    def storable_items() -> Iterator[Item]:
        for item in items:
            if refusal and isinstance(item, Note):
                report.drop_part(f"the note {item.key}", refusal)
            else:
                yield item

    return take_in(
        memory,
        report.screen_items(storable_items()),
        by=by,
        dry_run=dry_run,
        progress=progress,
    )
