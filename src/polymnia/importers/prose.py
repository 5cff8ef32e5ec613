"""Markdown that people and agents wrote: what the readers of such folders share."""

import re
import unicodedata
from collections.abc import Iterable, Iterator
from pathlib import PurePosixPath
from urllib.parse import unquote

from msgspec import Struct

from polymnia.folders.front_matter import Value, split_file
from polymnia.importers.base import Report, time_of
from polymnia.importers.source import Source
from polymnia.model import Entity, Observation, Relation
from polymnia.search.text import fold

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
_RULE = re.compile(r"\s*(?:[-*_]\s*){3,}")
# Folders of Obsidian's own, which an archive of a vault has.
_OBSIDIAN_FOLDERS = {".obsidian", ".trash"}
_CREATED = ("created", "created_at", "date", "date created")
_UPDATED = ("modified", "updated", "updated_at", "last_modified", "date modified")
# The properties that become something else than facts.
_OWN_PROPERTIES = {"type", "tags", "tag", *_CREATED, *_UPDATED}
_NOT_UTF_8 = "bytes that are not UTF-8, which became U+FFFD"


class Page(Struct, frozen=True):
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
        found = [
            value
            for name in names
            if isinstance(value := self.properties.get(name), str) and value.strip()
        ]
        return found[0].strip() if found else ""

    def texts(self, *names: str) -> list[str]:
        """Return the texts of these properties: of lists, and of texts with commas between them."""
        values = [self.properties.get(name, []) for name in names]
        listed = [value.split(",") if isinstance(value, str) else value for value in values]
        return [each.strip() for part in listed for each in part if each.strip()]


class Block(Struct, frozen=True):
    """A paragraph, an item of a list or a block of code, and the headings that it is under."""

    headings: tuple[str, ...]
    text: str
    is_item: bool = False


def pages(source: Source) -> Iterator[Page]:
    """Yield the Markdown files."""
    for path in _paths(source):
        yield Page(path, *split_file(source.read(path)))


def first_pages(source: Source, limit: int = 200) -> Iterator[Page]:
    """Yield how the first Markdown files begin, to recognize a format by."""
    return (Page(path, *split_file(source.head(path))) for path in _paths(source)[:limit])


def _paths(source: Source) -> list[str]:
    """Return the Markdown files."""
    names = [path for path in source.names if path.endswith((".md", ".markdown"))]
    return [path for path in names if _OBSIDIAN_FOLDERS.isdisjoint(path.split("/"))]


def stem_of(path: str) -> str:
    """Return the name of a file without its ending."""
    return unicodedata.normalize("NFC", PurePosixPath(path).stem)


def blocks(body: str) -> Iterator[Block]:
    """Yield the paragraphs, list items and blocks of code of a text, with the headings above them."""
    headings: list[str] = []
    lines: list[str] = []
    fence = ""
    for line in [*body.split("\n"), ""]:
        mark = _FENCE.match(line)
        if fence or mark:
            fence = (
                ""
                if fence and mark and mark[1].startswith(fence)
                else fence or (mark[1] if mark else "")
            )
            lines.append(line)
            continue
        found = _HEADING.fullmatch(line)
        starts = found is not None or _ITEM.fullmatch(line) is not None
        if (
            starts
            or (not line.strip() and lines and not _ITEM.fullmatch(lines[0]))
            or _ends_item(lines, line)
        ):
            yield from _block(headings, lines)
            lines = []
        if found is not None:
            headings = [*headings[: len(found[1]) - 1], found[2].strip(" #")]
        elif line.strip() or lines:
            lines.append(line)
    yield from _block(headings, lines)


def entity_of(
    page: Page,
    name: str,
    kind: str,
    texts: Iterable[str],
    report: Report,
    *,
    tags: Iterable[str] = (),
    summary: str = "",
) -> Entity:
    """Return the entity of a page, each text as an observation with the page as its source."""
    created_at, updated_at = _time_in(page, _CREATED), _time_in(page, _UPDATED)
    if "\ufffd" in page.body:
        report.skip(page.path, _NOT_UTF_8)
    said = dict.fromkeys([report.screen(page.path, each) for each in texts])
    observations = [
        Observation(number, text, created_at, 0, page.path) for number, text in enumerate(said, 1)
    ]
    return Entity(
        name,
        kind,
        tuple(observations),
        "",
        len(observations) + 1,
        summary or None,
        tags=tuple(dict.fromkeys(tags)),
        created_at=created_at,
        updated_at=updated_at,
    )


def _time_in(page: Page, names: Iterable[str]) -> int:
    """Return the first time in these properties; 0 if there is none. A date before 1970 is that of an old event."""
    return next((at for each in names if (at := time_of(page.properties.get(each))) > 0), 0)


def property_texts(page: Page, *known: str) -> list[str]:
    """Return the properties as sentences, without those that become something else and the known ones."""
    listed = {
        name: [value] if isinstance(value, str) else value
        for name, value in page.properties.items()
    }
    texts = {name: ", ".join(value).strip() for name, value in listed.items()}
    return [
        f"{name}: {text}"
        for name, text in texts.items()
        if text and name not in {*_OWN_PROPERTIES, *known}
    ]


def without_code(found: Iterable[Block]) -> str:
    """Return the texts in which links and tags count."""
    return "\n".join([_CODE.sub(" ", each.text) for each in found if not _FENCE.match(each.text)])


def inline_tags(body: str) -> list[str]:
    """Return the #tags in a text."""
    return _TAG.findall(body)


def link_targets(text: str) -> list[str]:
    """Return the targets of [[links]] and of [links](to.md) in a text, without those that embed a file."""
    return [
        each.strip() for each in (*_LINK.findall(text), *map(unquote, _FILE_LINK.findall(text)))
    ]


class LinkedNames:
    """The names that links mean: a page is found by its path, file name, title or alias, whatever the case."""

    def __init__(self) -> None:
        self._names: dict[str, str] = {}

    def add(self, name: str, *others: str) -> None:
        """Let links to any of these mean the name, unless they mean another one already."""
        for each in (name, *others):
            self._names.setdefault(_key(each), name)

    def resolve(self, target: str) -> str:
        """Return the name that a link means; the target itself if there is no such page."""
        return (
            self._names.get(_key(target))
            or self._names.get(_key(PurePosixPath(target).name))
            or target
        )

    def links(self, name: str, body: str) -> list[Relation]:
        """Return a relation for each page that a text links to."""
        found = dict.fromkeys([self.resolve(target) for target in link_targets(body)])
        return [Relation(name, target, LINKS_TO) for target in found if target != name]


def _key(target: str) -> str:
    return fold(unicodedata.normalize("NFC", target.strip().removesuffix(".md")))


def _ends_item(lines: list[str], line: str) -> bool:
    """Return True for a line after a blank one that is not indented, and so no longer belongs to the item."""
    return bool(lines and line.strip() and not line[0].isspace() and not lines[-1].strip())


def _block(headings: list[str], lines: list[str]) -> Iterator[Block]:
    text = "\n".join(lines).strip()
    item = _ITEM.fullmatch(text)
    shown = (item[1] or "").strip() if item else text
    if shown and not _RULE.fullmatch(text[:200]):
        yield Block(tuple([each for each in headings if each]), shown, item is not None)
