"""Search: the first page. One box; an empty one shows the latest changes."""

from collections import Counter
from collections.abc import Iterable
from time import time
from typing import Any

from msgspec import Struct
from msgspec.structs import replace
from starlette.responses import Response

from polymnia.engine.graph import entities
from polymnia.engine.history import changes as history
from polymnia.engine.memory import Memory
from polymnia.engine.recall.names import names_containing
from polymnia.engine.recall.passages import recall
from polymnia.model import Hit, Within, split_actor
from polymnia.search.hits import Fit, fit_of
from polymnia.search.question import content_words
from polymnia.search.terms import terms_of
from polymnia.search.times import parse_moment
from polymnia.web.changes import change_rows
from polymnia.web.page import ROWS, Fields, Page, get
from polymnia.web.pages.facts import FactKey, FactRow, hit_row
from polymnia.web.pages.start import show_start
from polymnia.web.text import client_name

# Hits that are found and counted: more than anybody reads.
MAX_HITS = 200
# Other workspaces that a search without hits looks into.
_MAX_OTHERS = 8
_MAX_TYPES = 12
# Hits of each workspace in a search over all.
_MAX_HITS_EACH = 20
# Turns of a conversation that come with a hit, before and after it.
_CONTEXT = 2
# Weak hits that are shown if there is no better one.
_MAX_NEAREST = 3
# Ages for the counts, in days.
_AGES_D = (7, 30, 365)
_DAY_US = 86_400_000_000

Count = tuple[str, int]


class Filters(Struct, frozen=True):
    """The filters in the address. `since` is an age such as 7d; `weak` shows weak hits too."""

    types: tuple[str, ...] = ()
    tags: tuple[str, ...] = ()
    client: str = ""
    since: str = ""
    weak: bool = False

    @classmethod
    def of(cls, fields: Fields) -> "Filters":
        """Return the filters in some fields."""
        types, tags = tuple(fields.getlist("type")), tuple(fields.getlist("tag"))
        return cls(types, tags, fields.get("client"), fields.get("since"), "weak" in fields)

    def __bool__(self) -> bool:
        return bool(self.types or self.tags or self.client or self.since)

    @property
    def within(self) -> Within | None:
        """The filters that a recall takes, which is all but the client. Raise BadInput."""
        if not (self.types or self.tags or self.since):
            return None
        since = parse_moment(self.since, "since") if self.since else None
        return Within(types=self.types or None, tags=self.tags or None, since=since)


class SignedHit(Struct, frozen=True):
    """A hit, who wrote it first, and how well it answers.

    The actor is empty in a store without history.
    """

    hit: Hit
    actor: str
    fit: Fit

    @property
    def row(self) -> FactRow:
        return hit_row(self.hit, self.actor, self.fit)


class SearchResult(Struct, frozen=True):
    """Hits, best first, with counts by type, client, tag and age in days.

    `note`, `corrections` and `unknown` are those of a recall. `weak` are the hits that were left
    out because they hardly fit, and `has_more` is True if only the first MAX_HITS were counted.
    """

    hits: list[SignedHit]
    types: list[Count]
    clients: list[Count]
    tags: list[Count]
    ages: list[tuple[int, int]]
    note: str
    corrections: dict[str, str]
    unknown: tuple[str, ...]
    weak: list[SignedHit]
    has_more: bool


def search(memory: Memory, question: str, filters: Filters) -> SearchResult:
    """Return what a search with these filters finds."""
    result = recall(memory, question, limit=MAX_HITS, within=filters.within, context=_CONTEXT)
    authors = history.authors(memory, [hit.passage.key for hit in result.hits])
    hits: list[SignedHit] = []
    weak: list[SignedHit] = []
    for hit in result.hits:
        author = authors.get(hit.passage.key)
        actor = author.actor if author else ""
        if filters.client and client_name(actor) != filters.client:
            continue
        signed = SignedHit(hit, actor, fit_of(hit, result.match))
        # With vectors every passage is a little like every question, so weak hits are no answer.
        if signed.fit == "weak" and not filters.weak:
            weak.append(signed)
        else:
            hits.append(signed)
    return SearchResult(
        hits,
        types=_count(signed.hit.passage.type for signed in hits),
        clients=_count(split_actor(signed.actor)[0] for signed in hits if signed.actor),
        tags=_count(tag for signed in hits for tag in signed.hit.passage.tags),
        ages=_count_ages(hits),
        note=result.note,
        corrections=result.corrections,
        unknown=result.unknown,
        weak=weak,
        has_more=len(result.hits) == MAX_HITS and not weak,
    )


def _count(values: Iterable[str]) -> list[Count]:
    return Counter(values).most_common()


def _count_ages(hits: list[SignedHit]) -> list[tuple[int, int]]:
    times = [signed.hit.passage.valid_at or signed.hit.passage.created_at for signed in hits]
    now = int(time() * 1_000_000)
    return [(days, sum(at >= now - days * _DAY_US for at in times)) for days in _AGES_D]


@get("/")
def show(page: Page) -> Response:
    """Show hits or, without a question, the entities of a type or the latest changes."""
    question, filters = page.query.get("q").strip(), Filters.of(page.query)
    if question and "all" in page.query:
        return _show_all(page, question, filters)
    if question:
        return _show_hits(page, question, filters)
    if filters.types:
        return _show_type(page, filters)
    return _show_latest(page)


def _show_hits(page: Page, question: str, filters: Filters) -> Response:
    started = time()
    result = search(page.memory, question, filters)
    start = min(page.query.number("from") or 0, MAX_HITS)
    end = start + ROWS
    rows = _group([signed.row for signed in result.hits[start:end]])
    words = [*content_words(question), *result.corrections.values()]
    return _render(
        page,
        "hits",
        question=question,
        filters=filters,
        found=result,
        rows=rows,
        terms=frozenset(terms_of(" ".join(words))),
        start=start,
        next=end if end < len(result.hits) else None,
        nearest=[] if result.hits else [signed.row for signed in result.weak[:_MAX_NEAREST]],
        hidden={} if result.hits else _count_hidden(page, question, filters),
        took_ms=int((time() - started) * 1000),
    )


def _group(rows: list[FactRow]) -> list[FactRow]:
    """Return the rows with all of an entity together, in the order of its best one."""
    groups: dict[tuple[str, str], list[FactRow]] = {}
    for row in rows:
        groups.setdefault((row.workspace, row.key.name), []).append(row)
    ordered = []
    for group in groups.values():
        ordered.append(group[0])
        ordered += [replace(row, is_more=True) for row in group[1:]]
    return ordered


def _show_all(page: Page, question: str, filters: Filters) -> Response:
    """Show the best hits of every workspace that the user may enter."""
    started = time()
    others = [name for name in page.workspaces if name != page.chosen]
    names = [page.chosen, *others[:_MAX_OTHERS]] if page.chosen else others[:_MAX_OTHERS]
    found: list[tuple[str, SignedHit]] = []
    weak = 0
    for name in names:
        result = search(page.memory_of(name), question, filters)
        found += [(name, signed) for signed in result.hits[:_MAX_HITS_EACH]]
        weak += len(result.weak)
    found.sort(key=lambda pair: -pair[1].hit.score)
    rows = [replace(signed.row, workspace=name) for name, signed in found[:ROWS]]
    return page.render(
        "search/everywhere.html",
        question=question,
        rows=_group(rows),
        weak=weak,
        count=len(names),
        terms=frozenset(terms_of(" ".join(content_words(question)))),
        took_ms=int((time() - started) * 1000),
    )


def _count_hidden(page: Page, question: str, filters: Filters) -> dict[str, Any]:
    """Return how many hits there are without the filters, and in which other workspaces."""

    def count(workspace: str) -> int:
        return len(search(page.memory_of(workspace), question, Filters()).hits)

    others = [name for name in page.workspaces if name != page.workspace]
    counts = [(name, count(name)) for name in others[:_MAX_OTHERS]]
    return {
        "unfiltered": count(page.workspace) if filters else 0,
        "others": [(name, number) for name, number in counts if number],
    }


def _show_type(page: Page, filters: Filters) -> Response:
    """Show the entities of a type, oldest first."""
    start = page.query.number("from") or 0
    kind = filters.types[0]
    members = entities.page(page.memory, kind=kind, offset=start, limit=ROWS + 1).entities
    rows = []
    for entity in members[:ROWS]:
        text = entity.summary or next(iter(entity.texts), "")
        key = FactKey("entity", entity.name)
        row = FactRow(key=key, type=entity.type, text=text, shown=text, at=entity.updated_at)
        rows.append(row)
    more = start + ROWS if len(members) > ROWS else None
    return _render(page, "type", filters=filters, rows=rows, terms=(), start=start, next=more)


def _show_latest(page: Page) -> Response:
    memory, before = page.memory, page.query.number("before")
    page.site.overviews.prepare(memory)
    shown: dict[str, Any] = {"days": [], "older": None, "clients": []}
    has_history = memory.store.capabilities.history
    if has_history:
        latest = history.latest(memory, limit=ROWS, before=before, max_rows=history.MAX_WHOLE_ROWS)
        rows = change_rows(memory, latest)
        shown["days"], shown["older"] = rows, latest.next
        if not rows and before is None:
            return show_start(page)
        shown["clients"] = _count(client_name(row.actor) for row in rows)
    return _render(page, "latest", has_history=has_history, **shown)


def _render(page: Page, kind: str, **values: Any) -> Response:
    values = {
        "question": "",
        "filters": Filters(),
        "found": None,
        "hidden": {},
        **values,
    }
    return page.render("search/page.html", fragment="search/fragment.html", kind=kind, **values)


@get("/types")
def show_types(page: Page) -> Response:
    """Show the types of entities with their counts: a part of the first page, loaded later."""
    types = entities.types(page.memory)
    return page.render(
        "search/types_page.html",
        fragment="search/types.html",
        types=types[:_MAX_TYPES],
        others=len(types) - _MAX_TYPES,
    )


@get("/names")
def show_names(page: Page) -> Response:
    """Show names of entities that contain what is typed in a field, as its suggestions."""
    typed = ""
    for field in ("name", "to", "source", "target", "into"):
        typed = page.query.get(field, typed)
    return page.render("search/names.html", found=names_containing(page.memory, typed))
