"""The importers, in the order in which they look at a source, and how one is chosen."""

from polymnia.errors import BadInput
from polymnia.importers import (
    basic_memory,
    chatgpt,
    claude,
    claude_code,
    claude_memory,
    codex,
    copilot,
    document,
    gemini,
    graphiti,
    instructions,
    letta,
    markdown,
    mem0,
    memory_service,
    mempalace,
    obsidian,
    reference,
    stores,
)
from polymnia.importers.base import Importer
from polymnia.importers.source import Source

# The most specific come first: the reference format is recognized by little.
IMPORTERS: tuple[Importer, ...] = (
    # Before stores: like a directory of workspaces, its folder has a subfolder `projects`.
    claude_code.IMPORTER,
    codex.IMPORTER,
    copilot.IMPORTER,
    gemini.IMPORTER,
    stores.IMPORTER,
    document.IMPORTER,
    markdown.IMPORTER,
    memory_service.FILE,
    mempalace.IMPORTER,
    memory_service.EXPORT,
    chatgpt.IMPORTER,
    claude.IMPORTER,
    graphiti.IMPORTER,
    mem0.IMPORTER,
    basic_memory.IMPORTER,
    letta.IMPORTER,
    claude_memory.IMPORTER,
    instructions.IMPORTER,
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
