"""The importers, in the order in which they look at a source, and how one is chosen."""

from polymnia.errors import BadInput
from polymnia.importers import (
    basic_memory,
    chatgpt,
    claude,
    claude_code,
    claude_memory,
    codex,
    document,
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
    claude_code.IMPORTER,  # before stores: its folder has a subfolder `projects`, as a directory of workspaces has
    codex.IMPORTER,
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
KINDS = tuple([each.kind for each in IMPORTERS])


def find_importer(source: Source, kind: str | None = None) -> Importer:
    """Return the importer of that kind, or the first that recognizes the source. Raise BadInput if there is none."""
    if kind is not None:
        found = next((each for each in IMPORTERS if each.kind == kind), None)
        if found is None:
            raise BadInput(f"there is no importer {kind!r}; use one of {', '.join(KINDS)}")
        return found
    for importer in IMPORTERS:
        if importer.recognizes(source):
            return importer
    if any(name.endswith(".zip") for name in source.names) and not source.is_file:
        raise BadInput(
            f"{source.path} holds zip archives, which are not opened here; import each of them by itself"
        )
    titles = "; ".join([f"{each.title} ({each.kind})" for each in IMPORTERS])
    raise BadInput(
        f"{source.path}: this format is not known. Known are: {titles}. --from KIND skips the detection"
    )
