"""Markdown that people and agents wrote: what the importers of such folders share."""

import re
import unicodedata
from collections.abc import Iterable, Iterator
from pathlib import PurePosixPath
from urllib.parse import unquote

from msgspec import Struct

from polymnia.importers.base import Report, make_entity, make_observations, time_of
from polymnia.importers.source import Source
from polymnia.markdown.properties import Value, split_file
from polymnia.model import Entity, Relation
from polymnia.search.terms import fold

LINKS_TO = "links_to"
_LINK = re.compile(
    r"(?<!!)\[\[([^\[\]|#^\n]{1,400})(?:[#^][^\[\]|\n]{0,400})?(?:\|[^\[\]\n]{0,400})?\]\]"
)
# Links to other files, as people write them who do not use [[links]].
_FILE_LINK = re.compile(
    r"(?<!!)\[[^\[\]\n]{0,400}\]\(<?([^()<>:\n]{1,400}?)\.md(?:#[^()<>\n]{0,400})?>?\)"
)
_CODE = re.compile(r"(?<!`)(`{1,8})(?!`).*?(?<!`)\1(?!`)", re.DOTALL)
_TAG = re.compile(r"(?:^|(?<=\s))#([^\W\d][\w/-]*)")
_HEADING = re.compile(r"(#{1,6})\s(.*)", re.DOTALL)
_ITEM = re.compile(r"(?:[-*+]|\d{1,9}[.)])(?:\s+(.*))?", re.DOTALL)
_FENCE = re.compile(r"\s{0,3}(`{3,}|~{3,})")
# Folders of Obsidian's own, which an archive of a vault has.
_OBSIDIAN_FOLDERS = {".obsidian", ".trash"}
_CREATED = ("created", "created_at", "date", "date created")
_UPDATED = ("modified", "updated", "updated_at", "last_modified", "date modified")
# The properties that become something else than facts.
_OWN_PROPERTIES = {"type", "tags", "tag", *_CREATED, *_UPDATED}


class ProsePage(Struct, frozen=True):
    """A Markdown file: its path in the source, its properties, and the text after them."""

    path: str
    properties: dict[str, Value]
    body: str

    @property
    def stem(self) -> str:
        """The name of the file without its ending."""
        return stem_of(self.path)

    def text(self, *names: str) -> str:
        """Return the first of these properties that is a text; empty if there is none."""
        for name in names:
            value = self.properties.get(name)
            if isinstance(value, str) and value.strip():
                return value.strip()
        return ""

    def texts(self, *names: str) -> list[str]:
        """Return the texts of these properties: lists, and texts with commas between them."""
        texts: list[str] = []
        for name in names:
            value = self.properties.get(name, [])
            texts += value.split(",") if isinstance(value, str) else value
        return [text.strip() for text in texts if text.strip()]


class ProseBlock(Struct, frozen=True):
    """A paragraph, an item of a list or a block of code, and the headings that it is under."""

    headings: tuple[str, ...]
    text: str
    is_item: bool = False


def pages(source: Source, report: Report | None = None) -> Iterator[ProsePage]:
    """Yield the Markdown files. A report counts them."""
    paths = _paths(source)
    for path in report.count_parts(paths) if report else paths:
        yield ProsePage(path, *split_file(source.read(path)))


def first_pages(source: Source, limit: int = 200) -> Iterator[ProsePage]:
    """Yield how the first Markdown files begin, to recognize a format by."""
    return (ProsePage(path, *split_file(source.head(path))) for path in _paths(source)[:limit])


def _paths(source: Source) -> list[str]:
    """Return the Markdown files."""
    names = [path for path in source.names if path.endswith((".md", ".markdown"))]
    return [path for path in names if _OBSIDIAN_FOLDERS.isdisjoint(path.split("/"))]


def stem_of(path: str) -> str:
    """Return the name of a file without its ending."""
    return unicodedata.normalize("NFC", PurePosixPath(path).stem)


def blocks(body: str) -> Iterator[ProseBlock]:
    """Yield the paragraphs, list items and code blocks of a text, with the headings above them."""
    headings: list[str] = []
    lines: list[str] = []
    fence = ""
    for line in [*body.split("\n"), ""]:
        mark = _FENCE.match(line)
        if fence or mark:
            if not fence and mark:
                fence = mark[1]
            elif mark and mark[1].startswith(fence):
                fence = ""
            lines.append(line)
            continue
        heading = _HEADING.fullmatch(line)
        if heading or _starts_block(lines, line):
            yield from _block(headings, lines)
            lines = []
        if heading:
            level = len(heading[1])
            headings = [*headings[: level - 1], heading[2].strip(" #")]
        elif line.strip() or lines:
            lines.append(line)
    yield from _block(headings, lines)


def _starts_block(lines: list[str], line: str) -> bool:
    """Return True if a line ends the block of the lines before it."""
    if _ITEM.fullmatch(line):
        return True
    if not lines:
        return False
    if not line.strip():
        # An item goes on after a blank line if the next one is indented.
        return not _ITEM.fullmatch(lines[0])
    return not line[0].isspace() and not lines[-1].strip()


def page_entity(
    page: ProsePage,
    name: str,
    kind: str,
    texts: Iterable[str],
    report: Report,
    *,
    tags: Iterable[str] = (),
    summary: str = "",
) -> Entity:
    """Return the entity of a page, with the texts as facts from the page."""
    not_utf_8 = "bytes that are not UTF-8, which became U+FFFD"
    if "\ufffd" in page.body:
        report.drop_part(page.path, not_utf_8)
    created_at = _time_in(page, _CREATED)
    screened = dict.fromkeys(report.screen(page.path, text) for text in texts)
    return make_entity(
        name,
        kind,
        make_observations(screened, page.path, created_at),
        summary=summary or None,
        tags=tuple(dict.fromkeys(tags)),
        created_at=created_at,
        updated_at=_time_in(page, _UPDATED),
    )


def _time_in(page: ProsePage, names: Iterable[str]) -> int:
    """Return the first time in these properties, or 0. A date before 1970 is of an old event."""
    times = (time_of(page.properties.get(name)) for name in names)
    return next((at for at in times if at > 0), 0)


def property_texts(page: ProsePage, *known: str) -> list[str]:
    """Return the properties as sentences, but for the known ones."""
    texts = []
    for name, value in page.properties.items():
        text = value if isinstance(value, str) else ", ".join(value)
        if text.strip() and name not in _OWN_PROPERTIES and name not in known:
            texts.append(f"{name}: {text.strip()}")
    return texts


def without_code(page_blocks: Iterable[ProseBlock]) -> str:
    """Return the texts in which links and tags count."""
    prose = [block.text for block in page_blocks if not _FENCE.match(block.text)]
    return "\n".join(_CODE.sub(" ", text) for text in prose)


def inline_tags(body: str) -> list[str]:
    """Return the #tags in a text."""
    return _TAG.findall(body)


def link_targets(text: str) -> list[str]:
    """Return the targets of [[links]] and [links](to.md) in a text, but not of embedded files."""
    file_links = [unquote(target) for target in _FILE_LINK.findall(text)]
    return [target.strip() for target in [*_LINK.findall(text), *file_links]]


class LinkedNames:
    """The names that links mean: by path, file name, title or alias, regardless of case."""

    def __init__(self) -> None:
        self._names: dict[str, str] = {}

    def add(self, name: str, *others: str) -> None:
        """Let links to any of these mean the name, unless they mean another one already."""
        for other in (name, *others):
            self._names.setdefault(_key(other), name)

    def resolve(self, target: str) -> str:
        """Return the name that a link means; the target itself if there is no such page."""
        file_name = PurePosixPath(target).name
        return self._names.get(_key(target)) or self._names.get(_key(file_name)) or target

    def links(self, name: str, body: str) -> list[Relation]:
        """Return a relation for each page that a text links to."""
        targets = dict.fromkeys(self.resolve(target) for target in link_targets(body))
        return [Relation(name, target, LINKS_TO) for target in targets if target != name]


def _key(target: str) -> str:
    return fold(unicodedata.normalize("NFC", target.strip().removesuffix(".md")))


def _block(headings: list[str], lines: list[str]) -> Iterator[ProseBlock]:
    text = "\n".join(lines).strip()
    item = _ITEM.fullmatch(text)
    content = (item[1] or "").strip() if item else text
    if content and not re.fullmatch(r"\s*(?:[-*_]\s*){3,}", text[:200]):
        yield ProseBlock(tuple(filter(None, headings)), content, item is not None)
