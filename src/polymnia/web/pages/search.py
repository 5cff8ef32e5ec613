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
from polymnia.engine.recall.explanation import explain
from polymnia.engine.recall.names import names_starting
from polymnia.engine.recall.passages import recall
from polymnia.model import NOTE, Hit, PassageKey, Within, split_actor
from polymnia.search.hits import Fit, fit_of
from polymnia.search.question import content_words
from polymnia.search.terms import terms_of
from polymnia.search.times import parse_moment
from polymnia.web.changes import change_rows
from polymnia.web.page import ROWS, Fields, Page, get
from polymnia.web.pages.facts import FactKey, FactView, hit_row, parse_key
from polymnia.web.pages.start import show_start
from polymnia.web.text import client_name

# Hits that are found and counted: more than a person reads.
MAX_HITS = 200
# Other workspaces that a search without hits looks into.
_MAX_OTHERS = 8
# Fits, best first. Hits two steps below the best one are shown only on request.
FITS: tuple[Fit, ...] = ("strong", "good", "fair", "weak")

Count = tuple[str, int]


class SearchFilters(Struct, frozen=True):
    """The filters in the address. `since` is an age such as 7d; `weak` shows weak hits too."""

    types: tuple[str, ...] = ()
    tags: tuple[str, ...] = ()
    client: str = ""
    since: str = ""
    weak: bool = False

    @classmethod
    def of(cls, fields: Fields) -> "SearchFilters":
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
    def row(self) -> FactView:
        return hit_row(self.hit, self.actor, self.fit)


class SearchResult(Struct, frozen=True):
    """Hits, best first, with counts by type, client, tag and age in days.

    `note`, `corrections` and `unknown` are those of a recall. `weak` are the hits that were left
    out because others fit much better, or none fits. `has_more` is True if only the first MAX_HITS
    were counted.
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


def search(memory: Memory, question: str, filters: SearchFilters) -> SearchResult:
    """Return what a search with these filters finds."""
    # Two turns of a conversation come with a hit, before and after it.
    result = recall(memory, question, limit=MAX_HITS, within=filters.within, context=2)
    authors = history.authors(memory, [hit.passage.key for hit in result.hits])
    found: list[SignedHit] = []
    for hit in result.hits:
        author = authors.get(hit.passage.key)
        actor = author.actor if author else ""
        if filters.client in ("", client_name(actor)):
            found.append(SignedHit(hit, actor, fit_of(hit)))
    hits = found
    if not filters.weak:
        # With vectors every passage is a little like every question, so weak hits do not answer it.
        best = min([FITS.index(signed.fit) for signed in found], default=0)
        worst = min(best + 1, FITS.index("fair"))
        hits = [signed for signed in found if FITS.index(signed.fit) <= worst]
    weak = [signed for signed in found if signed not in hits]
    times = [signed.hit.passage.valid_at or signed.hit.passage.created_at for signed in hits]
    now = int(time() * 1_000_000)
    day = 86_400_000_000
    return SearchResult(
        hits,
        types=_count(signed.hit.passage.type for signed in hits),
        clients=_count(split_actor(signed.actor)[0] for signed in hits if signed.actor),
        tags=_count(tag for signed in hits for tag in signed.hit.passage.tags),
        ages=[(days, sum(at >= now - days * day for at in times)) for days in (7, 30, 365)],
        note=result.note,
        corrections=result.corrections,
        unknown=result.unknown,
        weak=weak,
        has_more=len(result.hits) == MAX_HITS and not weak,
    )


def _count(values: Iterable[str]) -> list[Count]:
    return Counter(values).most_common()


@get("/")
def show(page: Page) -> Response:
    """Show hits or, without a question, the entities of a type or the latest changes."""
    question, filters = page.query.get("q").strip(), SearchFilters.of(page.query)
    if question and "all" in page.query:
        return _show_all(page, question, filters)
    if question:
        return _show_hits(page, question, filters)
    if filters.types:
        return _show_type(page, filters)
    return _show_latest(page)


def _show_hits(page: Page, question: str, filters: SearchFilters) -> Response:
    started = time()
    result = search(page.memory, question, filters)
    start = min(page.query.number("from") or 0, MAX_HITS)
    end = start + ROWS
    cards = _cards([signed.row for signed in result.hits[start:end]], {"": page.memory})
    words = [*content_words(question), *result.corrections.values()]
    names = [] if filters or start else names_starting(page.memory, question)
    shown = {card[0].key.name for card in cards}
    return _render(
        page,
        "hits",
        question=question,
        filters=filters,
        found=result,
        cards=cards,
        names=[entity for entity in names if entity.name not in shown],
        terms=frozenset(terms_of(" ".join(words))),
        start=start,
        next=end if end < len(result.hits) else None,
        nearest=[] if result.hits else [signed.row for signed in result.weak[:3]],
        hidden={} if result.hits or names else _count_hidden(page, question, filters),
        took_ms=int((time() - started) * 1000),
    )


def _cards(rows: list[FactView], memories: dict[str, Memory]) -> list[list[FactView]]:
    """Return the rows of each entity, in the order of its best one.

    An entity that was found by its name alone, without a summary, shows its newest fact instead.
    """
    groups: dict[tuple[str, str], list[FactView]] = {}
    for row in rows:
        groups.setdefault((row.workspace, row.key.name), []).append(row)
    cards = []
    for (workspace, name), group in groups.items():
        facts = [row for row in group if row.text or row.key.kind != "entity"]
        if facts:
            cards.append([replace(facts[0], fit=group[0].fit), *facts[1:]])
            continue
        (blank,) = group
        with memories[workspace].reading() as read:
            known = read.entities([name])
        text = known[0].texts[-1] if known and known[0].texts else ""
        cards.append([replace(blank, text=text, shown=text)])
    return cards


def _show_all(page: Page, question: str, filters: SearchFilters) -> Response:
    """Show the best hits of every workspace that the user may enter."""
    started = time()
    others = [name for name in page.workspaces if name != page.chosen]
    names = [page.chosen, *others[:_MAX_OTHERS]] if page.chosen else others[:_MAX_OTHERS]
    memories = {name: page.memory_of(name) for name in names}
    found: list[tuple[str, SignedHit]] = []
    weak = 0
    for name, memory in memories.items():
        result = search(memory, question, filters)
        found += [(name, signed) for signed in result.hits[:20]]
        weak += len(result.weak)
    found.sort(key=lambda pair: -pair[1].hit.score)
    rows = [replace(signed.row, workspace=name) for name, signed in found[:ROWS]]
    return page.render(
        "search/everywhere.html",
        question=question,
        cards=_cards(rows, memories),
        weak=weak,
        count=len(names),
        terms=frozenset(terms_of(" ".join(content_words(question)))),
        took_ms=int((time() - started) * 1000),
    )


def _count_hidden(page: Page, question: str, filters: SearchFilters) -> dict[str, Any]:
    """Return how many hits there are without the filters, and in which other workspaces."""

    def count(workspace: str) -> int:
        return len(search(page.memory_of(workspace), question, SearchFilters()).hits)

    others = [name for name in page.workspaces if name != page.workspace]
    counts = [(name, count(name)) for name in others[:_MAX_OTHERS]]
    return {
        "unfiltered": count(page.workspace) if filters else 0,
        "others": [(name, number) for name, number in counts if number],
    }


def _show_type(page: Page, filters: SearchFilters) -> Response:
    """Show the entities of a type, oldest first."""
    start = page.query.number("from") or 0
    kind = filters.types[0]
    members = entities.page(page.memory, kind=kind, offset=start, limit=ROWS + 1).entities
    cards = []
    for entity in members[:ROWS]:
        text = entity.summary or next(iter(entity.texts), "")
        key = FactKey("entity", entity.name)
        row = FactView(key=key, type=entity.type, text=text, shown=text, at=entity.updated_at)
        cards.append([row])
    more = start + ROWS if len(members) > ROWS else None
    return _render(page, "type", filters=filters, cards=cards, start=start, next=more)


def _show_latest(page: Page) -> Response:
    memory, before = page.memory, page.query.number("before")
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
    shown = {
        "question": "",
        "filters": SearchFilters(),
        "found": None,
        "names": [],
        "terms": (),
        "hidden": {},
        **values,
    }
    return page.render("search/page.html", fragment="search/fragment.html", kind=kind, **shown)


@get("/why")
def why(page: Page) -> Response:
    """Say what adds to the score of a hit, or why something is not among the hits."""
    question = page.query["q"].strip()
    # Either one of the hits, or a name or words that the user misses among them.
    name = page.query.get("wanted").strip()
    wanted: str | PassageKey = name
    is_hit = "kind" in page.query
    if is_hit:
        key = parse_key(page.query)
        name = key.name
        wanted = (name, NOTE if key.kind == "note" else key.ordinal)
    within = SearchFilters.of(page.query).within
    reason = explain(page.memory, question, wanted, within=within)
    signals = []
    for name, value, weight in reason.signals:
        points = value * weight
        if abs(points) >= 0.05:
            signals.append((name.replace("_", " "), points))
    return page.render(
        "search/why_page.html",
        fragment="search/why.html",
        question=question,
        wanted=name,
        is_hit=is_hit,
        reason=reason,
        signals=signals,
    )


@get("/types")
def show_types(page: Page) -> Response:
    """Show the types of entities with their counts: a part of the first page, loaded later."""
    types = entities.types(page.memory)
    return page.render(
        "search/types_page.html",
        fragment="search/types.html",
        types=types[:12],
        others=len(types) - 12,
    )


@get("/names")
def show_names(page: Page) -> Response:
    """Show names with words that begin as typed in a field, as its suggestions."""
    typed = ""
    for field in ("name", "to", "source", "target"):
        typed = page.query.get(field, typed)
    return page.render("search/names.html", found=names_starting(page.memory, typed))
