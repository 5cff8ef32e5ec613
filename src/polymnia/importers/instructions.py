"""Instructions for coding agents: `CLAUDE.md`, `AGENTS.md` and others, alone or in a project."""

import re
from collections.abc import Iterator
from pathlib import PurePosixPath

from polymnia.engine.transfer.intake import Item
from polymnia.importers.base import Importer, Report
from polymnia.importers.obsidian import is_vault
from polymnia.importers.prose import blocks, page_entity, pages
from polymnia.importers.source import Source, replace_unstorable

_FILES = {"CLAUDE.md", "CLAUDE.local.md", "AGENTS.md", "AGENTS.override.md", "GEMINI.md"}
TYPE = "rules"
# How instructions name another file that is read with them.
_IMPORT = re.compile(r"(?:^|(?<=\s))@([\w./~-]{1,400}\.md)\b")


def recognizes(source: Source) -> bool:
    """Return True if there is such a file, and the folder is not a vault that also has one."""
    return any(PurePosixPath(name).name in _FILES for name in source.names) and not is_vault(source)


def read(source: Source, report: Report) -> Iterator[Item]:
    """Yield an entity for each project and part of it. A fact begins with its heading."""
    for page in pages(source, report):
        if PurePosixPath(page.path).name not in _FILES and not source.is_file:
            report.drop_part(page.path, "no instructions for agents")
            continue
        for path in _IMPORT.findall(page.body):
            place = f"{page.path}: @{path}"
            report.drop_part(place, "imported by the instructions; import that file too")
        texts = [": ".join([*block.headings[-1:], block.text]) for block in blocks(page.body)]
        if texts:
            top = source.path.resolve()
            if source.is_file:
                project = top.parent.name
            elif source.is_archive:
                project = top.stem
            else:
                project = top.name
            folders = [
                part for part in PurePosixPath(page.path).parts[:-1] if part not in ("..", "/")
            ]
            yield page_entity(
                page,
                replace_unstorable(f"{'/'.join([project, *folders])}: rules"),
                TYPE,
                texts,
                report,
            )
        else:
            report.drop_part(page.path, "without content")


IMPORTER = Importer(
    "instructions", "CLAUDE.md, AGENTS.md or a project with such files", recognizes, read
)
