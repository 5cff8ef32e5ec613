"""All entities as a table that sorts, and all facts by when they were said."""

from collections.abc import Callable
from typing import Any

from starlette.responses import Response

from polymnia.errors import BadInput
from polymnia.model import Entity, Passage
from polymnia.web.page import ROWS, Page, get
from polymnia.web.pages.facts import FactKey

# A larger memory is only sorted by the last update and by when facts were said: the store answers
# that without reading all.
MAX_SORTED = 5_000
# Facts that can be paged through; a search finds the rest.
_MAX_SAID = 2_000
# Above every time that a fact may have.
_END_OF_TIME = 1 << 62
_COLUMNS: dict[str, Callable[[Entity], Any]] = {
    "name": lambda entity: entity.name.casefold(),
    "type": lambda entity: (entity.type.casefold(), entity.name.casefold()),
    "created": lambda entity: entity.created_at,
    "updated": lambda entity: entity.updated_at,
}


@get("/entities")
def show(page: Page) -> Response:
    """Show a page of the table."""
    sort = page.query.get("sort") or "updated"
    if sort == "said":
        # Show facts with their entities, the one that was said last first.
        start = min(page.query.number("from") or 0, _MAX_SAID)
        end = start + ROWS
        with page.memory.reading() as read:
            facts: list[Passage] = read.facts_between(0, _END_OF_TIME, end + 1)
        return page.render(
            "entities/said.html",
            rows=[(fact, fact.valid_at or fact.created_at) for fact in facts[start:end]],
            start=start,
            next=end if len(facts) > end and end < _MAX_SAID else None,
        )
    if sort not in _COLUMNS:
        raise BadInput(f"sort: expected one of {', '.join(_COLUMNS)}, said, got {sort[:40]!r}")
    is_down = "down" in page.query
    start = page.query.number("from") or 0
    end = start + ROWS
    with page.memory.reading() as read:
        total = read.counts().entities
        can_sort = total <= MAX_SORTED
        if can_sort:
            entities = read.outlines(kind=page.query.get("type") or None)
            # The last update comes first unless the other direction is asked for.
            is_reversed = is_down != (sort == "updated")
            entities.sort(key=_COLUMNS[sort], reverse=is_reversed)
        else:
            entities = read.outlines(latest=end + 1)
        rows = entities[start:end]
        names = [entity.name for entity in rows]
        counts = read.fact_counts(names) if names else {}
    return page.render(
        "entities/page.html",
        rows=rows,
        picks={entity.name: FactKey("entity", entity.name).value for entity in rows},
        counts=counts,
        total=len(entities) if can_sort else total,
        sort=sort,
        is_down=is_down,
        can_sort=can_sort,
        start=start,
        next=end if len(entities) > end else None,
    )
