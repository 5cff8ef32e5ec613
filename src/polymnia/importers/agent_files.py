"""What agents read and write: memory folders of Claude and of Letta, and instructions."""

import re
from collections.abc import Iterator
from pathlib import PurePosixPath

from polymnia.engine.transfer.intake import Item
from polymnia.importers.base import Importer, Report, drop_fields
from polymnia.importers.obsidian import is_vault
from polymnia.importers.prose import (
    LinkedNames,
    ProsePage,
    blocks,
    first_pages,
    page_entity,
    pages,
    without_code,
)
from polymnia.importers.source import Source, replace_unstorable

_INDEX = "MEMORY"


def recognizes_claude(source: Source) -> bool:
    """Return True if the index is there."""
    index = f"{_INDEX}.md"
    return source.path.name == index if source.is_file else bool(source.find(index))


def read_claude(source: Source, report: Report) -> Iterator[Item]:
    """Yield an entity for each memory. What the index says itself is an entity of its own."""
    known = ("name", "description", "type", "metadata.type", "tags")
    names = LinkedNames()
    for page in pages(source):
        names.add(_name(page), page.stem)
    for page in pages(source, report):
        name = _name(page)
        page_blocks = list(blocks(page.body))
        if page.stem == _INDEX:
            # Lines that link to the other files repeat them.
            page_blocks = [block for block in page_blocks if "](" not in block.text]
        if not page_blocks and not page.properties:
            reason = "lists other files only" if page.stem == _INDEX else "without content"
            report.drop_part(page.path, reason)
            continue
        drop_fields(page.properties, known, report, page.path)
        yield page_entity(
            page,
            name,
            page.text("metadata.type", "type") or "memory",
            [block.text for block in page_blocks],
            report,
            tags=page.texts("tags"),
            summary=page.text("description"),
        )
        yield from names.links(name, without_code(page_blocks))


def _name(page: ProsePage) -> str:
    return page.text("name") or ("Claude memory" if page.stem == _INDEX else page.stem)


CLAUDE_MEMORY = Importer("claude-memory", "memory folder of Claude", recognizes_claude, read_claude)


_SYSTEM = "system"


def recognizes_letta(source: Source) -> bool:
    """Return True if there is a folder `system` with a file that has a description."""
    return any(_is_system(page) and page.text("description") for page in first_pages(source))


def read_letta(source: Source, report: Report) -> Iterator[Item]:
    """Yield an entity for each block. Its name is its path, as agents know it."""
    names = LinkedNames()
    for page in pages(source):
        names.add(page.path.removesuffix(".md"), page.stem)
    for page in pages(source, report):
        name = page.path.removesuffix(".md")
        summary = page.text("description")
        page_blocks = list(blocks(page.body))
        if not page_blocks and not summary:
            report.drop_part(page.path, "without content")
            continue
        drop_fields(page.properties, ("description",), report, page.path)
        texts = [block.text for block in page_blocks]
        tags = [_SYSTEM] if _is_system(page) else []
        yield page_entity(page, name, "memory block", texts, report, tags=tags, summary=summary)
        yield from names.links(name, without_code(page_blocks))


def _is_system(page: ProsePage) -> bool:
    return _SYSTEM in page.path.split("/")[:-1]


LETTA = Importer("letta", "memory folder of a Letta agent", recognizes_letta, read_letta)


_INSTRUCTIONS = {
    "CLAUDE.md",
    "CLAUDE.local.md",
    "AGENTS.md",
    "AGENTS.override.md",
    "GEMINI.md",
}
TYPE = "rules"
# How instructions name another file that is read with them.
_IMPORT = re.compile(r"(?:^|(?<=\s))@([\w./~-]{1,400}\.md)\b")


def recognizes_instructions(source: Source) -> bool:
    """Return True if there is such a file, and the folder is not a vault that also has one."""
    names = (PurePosixPath(name).name for name in source.names)
    return not _INSTRUCTIONS.isdisjoint(names) and not is_vault(source)


def read_instructions(source: Source, report: Report) -> Iterator[Item]:
    """Yield an entity for each project and part of it. A fact begins with its heading."""
    for page in pages(source, report):
        if PurePosixPath(page.path).name not in _INSTRUCTIONS and not source.is_file:
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


INSTRUCTIONS = Importer(
    "instructions",
    "CLAUDE.md, AGENTS.md or a project with such files",
    recognizes_instructions,
    read_instructions,
)
