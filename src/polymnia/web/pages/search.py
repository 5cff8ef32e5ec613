"""Search: the first page. One box; an empty one shows the latest changes."""

from functools import partial
from time import time
from typing import Any

from msgspec import Struct

from polymnia.dialects.times import parse_moment
from polymnia.engine import entities, history
from polymnia.engine.browse import MAX_HITS, Found, find, outlines, suggest
from polymnia.engine.memory import Memory
from polymnia.model import Change, Within
from polymnia.search.question import content_words
from polymnia.search.terms import terms_of
from polymnia.web.changes import ChangeRow, change_row, names_in
from polymnia.web.facts import FactKey, FactRow, hit_row
from polymnia.web.forms import Fields
from polymnia.web.page import ROWS, Page
from polymnia.web.response import Response
from polymnia.web.routes import Route
from polymnia.web.text import client_name

# A page of changes ends early after this many rows.
MAX_ROWS_READ = 2_000
# Other workspaces that a search without hits looks into.
_MAX_OTHERS = 8
_MAX_TYPES = 12


class Filters(Struct, frozen=True):
    """The filters in the address: types, tags and client by name, and since when, as an age such as 7d."""

    types: tuple[str, ...] = ()
    tags: tuple[str, ...] = ()
    client: str = ""
    since: str = ""

    @classmethod
    def of(cls, fields: Fields) -> "Filters":
        """Return the filters in some fields."""
        return cls(
            tuple(fields.all("type")),
            tuple(fields.all("tag")),
            fields.get("client"),
            fields.get("since"),
        )

    def __bool__(self) -> bool:
        return bool(self.types or self.tags or self.client or self.since)

    @property
    def within(self) -> Within | None:
        """The filters that a search takes, which is all but the client. Raise BadInput."""
        if not (self.types or self.tags or self.since):
            return None
        since = parse_moment(self.since, "since") if self.since else None
        return Within(types=self.types or None, tags=self.tags or None, since=since)

    @property
    def fields(self) -> dict[str, Any]:
        """The filters as fields of an address."""
        return {"type": self.types, "tag": self.tags, "client": self.client, "since": self.since}


def show(page: Page) -> Response:
    """Show hits or, without a question, the entities of a type or the latest changes."""
    question, filters = page.query.get("q").strip(), Filters.of(page.query)
    if question:
        return _show_hits(page, question, filters)
    if filters.types:
        return _show_type(page, filters)
    return _show_latest(page)


def search(memory: Memory, question: str, filters: Filters) -> Found:
    """Return what a search with these filters finds."""
    return find(memory, question, within=filters.within, client=filters.client)


def change_rows(memory: Memory, changes: tuple[Change, ...], **options: Any) -> list[ChangeRow]:
    """Return rows for changes, with the types of the entities in them."""
    types = {name: each.type for name, each in outlines(memory, names_in(changes)).items()}
    return [change_row(each, types, **options) for each in changes]


def _show_hits(page: Page, question: str, filters: Filters) -> Response:
    started = time()
    found = search(page.memory, question, filters)
    start = min(page.query.number("from") or 0, MAX_HITS)
    best = max((each.hit.score for each in found.hits), default=0.0)
    rows = [hit_row(each, best) for each in found.hits[start : start + ROWS]]
    return _render(
        page,
        "hits",
        question=question,
        filters=filters,
        found=found,
        rows=rows,
        terms=frozenset(
            terms_of(" ".join([*content_words(question), *found.corrections.values()]))
        ),
        start=start,
        next=start + ROWS if start + ROWS < len(found.hits) else None,
        hidden={} if found.hits else _count_hidden(page, question, filters),
        took_ms=int((time() - started) * 1000),
    )


def _count_hidden(page: Page, question: str, filters: Filters) -> dict[str, Any]:
    """Return how many hits there are without the filters, and in which other workspaces."""
    count = partial(_count_hits, page, question)
    others = [name for name in page.workspaces if name != page.workspace][:_MAX_OTHERS]
    return {
        "unfiltered": count(page.workspace) if filters else 0,
        "others": [(name, number) for name in others if (number := count(name))],
    }


def _count_hits(page: Page, question: str, workspace: str) -> int:
    return len(find(page.memory_of(workspace), question).hits)


def _show_type(page: Page, filters: Filters) -> Response:
    """Show the entities of a type, oldest first."""
    start = page.query.number("from") or 0
    found = entities.page(page.memory, kind=filters.types[0], offset=start, limit=ROWS + 1).entities
    rows = [
        FactRow(
            key=FactKey("entity", each.name),
            type=each.type,
            text=each.summary or next(iter(each.texts), ""),
            shown=each.summary or next(iter(each.texts), ""),
            at=each.updated_at,
            tags=each.tags,
        )
        for each in found[:ROWS]
    ]
    more = start + ROWS if len(found) > ROWS else None
    return _render(
        page, "type", filters=filters, rows=rows, terms=frozenset(), start=start, next=more
    )


def _show_latest(page: Page) -> Response:
    memory = page.memory
    if not memory.store.capabilities.history:
        return _render(
            page, "latest", days=[], older=None, has_history=False, is_empty=False, clients=[]
        )
    found = history.latest(
        memory, limit=ROWS, before=page.query.number("before"), max_rows=MAX_ROWS_READ
    )
    rows = change_rows(memory, found.changes)
    clients: dict[str, int] = {}
    for row in rows:
        clients[client_name(row.actor)] = clients.get(client_name(row.actor), 0) + 1
    return _render(
        page,
        "latest",
        days=rows,
        older=found.next,
        has_history=True,
        is_empty=not rows and "before" not in page.query,
        clients=list(clients.items()),
    )


def _render(page: Page, kind: str, **values: Any) -> Response:
    empty = {"question": "", "filters": Filters(), "found": None, "hidden": {}}
    return page.render(
        "search/page.html", fragment="search/fragment.html", **{**empty, **values, "kind": kind}
    )


def show_types(page: Page) -> Response:
    """Show the types of entities with their counts: a part of the first page that is loaded later."""
    found = entities.types(page.memory)
    return page.render(
        "search/types_page.html",
        fragment="search/types.html",
        types=found[:_MAX_TYPES],
        others=len(found) - _MAX_TYPES,
    )


def show_names(page: Page) -> Response:
    """Show names of entities that contain what is typed in a field, as its suggestions."""
    typed = next(
        (page.query.get(each) for each in ("target", "source", "to", "name") if each in page.query),
        "",
    )
    return page.render("search/names.html", found=suggest(page.memory, typed))


ROUTES = (
    Route("GET", "/", show),
    Route("GET", "/types", show_types),
    Route("GET", "/names", show_names),
)
