"""`history` and `review`: who changed what, and what in the memory needs attention."""

import heapq

from msgspec.structs import replace

from polymnia.dialects.base import Call, Reply, tool
from polymnia.dialects.native.budget import Item, bounded_reply, fitting_items, offset_of
from polymnia.dialects.native.lines import change_item
from polymnia.dialects.native.scope import Place, places
from polymnia.dialects.native.shapes import History, Items, Review
from polymnia.dialects.times import parse_moment
from polymnia.engine import history as histories
from polymnia.errors import BadInput, Cancelled, PolymniaError
from polymnia.model import Change


@tool(History, needs="read", returns=Items, brief=True)
def history(call: Call, arguments: History) -> Reply:
    """List changes, newest first, with author and differences: of an entity, of an actor, or since a time."""
    read = places(call, arguments.workspace)
    if not read:
        return bounded_reply(
            [], max_tokens=arguments.max_tokens, note="Nothing was ever changed here."
        )
    reached = _parse_cursor(arguments.cursor, len(read))
    pages = [_page(place, arguments, before) for place, before in zip(read, reached, strict=True)]
    # Each workspace counts its own changes, so that only their times put them in one order.
    told = [
        [(place, change) for change in page.changes]
        for place, page in zip(read, pages, strict=True)
    ]
    newest = list(heapq.merge(*told, key=lambda each: -each[1].at))[: arguments.limit]
    items = [
        change_item(change, place.name, _differences(place, change, arguments.name))
        for place, change in newest
    ]
    where = " and ".join([each.name for each in read])
    note = f"Changes in {where}." if items else f"No such changes in {where}."
    shown = newest[: len(fitting_items(items, arguments.max_tokens, note))]
    is_more = len(shown) < sum(len(each) for each in told) or any(page.next for page in pages)
    cursor = _cursor(read, reached, shown) if is_more else ""
    return bounded_reply(
        items[: len(shown)], max_tokens=arguments.max_tokens, note=note, next_cursor=cursor
    )


def _page(place: Place, arguments: History, before: int) -> histories.ChangePage:
    return histories.latest(
        place.memory,
        limit=arguments.limit,
        before=before or None,
        actor=arguments.actor or None,
        names=[arguments.name] if arguments.name else None,
        since=parse_moment(arguments.since, "since") if arguments.since else None,
    )


def _differences(place: Place, change: Change, name: str) -> list[histories.Difference]:
    return histories.differences(change, histories.names_of(place.memory, name) if name else None)


def _parse_cursor(cursor: str, workspaces: int) -> list[int]:
    """Return the id of the last change shown of each workspace, 0 if none was. Raise BadInput."""
    parts = [offset_of(each) for each in cursor.split(".")] if cursor else [0] * workspaces
    if len(parts) != workspaces:
        raise BadInput(f"cursor: {cursor!r} is of other workspaces; leave it out to begin anew")
    return parts


def _cursor(read: list[Place], reached: list[int], shown: list[tuple[Place, Change]]) -> str:
    """Return the ids of the last changes shown, by which newer changes do not move a page."""
    last = {place.name: change.id for place, change in shown}
    return ".".join(
        [str(last.get(place.name, before)) for place, before in zip(read, reached, strict=True)]
    )


@tool(Review, needs="read", returns=Items, brief=True)
def review(call: Call, arguments: Review) -> Reply:
    """Find what needs care: duplicate names, gaps between entities, orphans, stale summaries, similar entities."""
    # The first call loads the verbs of curation.
    from polymnia.dialects.native.findings import FINDERS
    from polymnia.engine.curation.scan import part_of

    items: list[Item] = []
    notes: list[str] = []
    kinds = arguments.kinds or ("duplicates", "gaps", "summaries", "orphans")
    steps = [(place, kind) for place in places(call, arguments.workspace) for kind in kinds]
    for number, (place, kind) in enumerate(steps):
        call.check()
        share = part_of(call.progress, 100 * number / len(steps), 100 * (number + 1) / len(steps))
        try:
            items += FINDERS[kind](replace(call, progress=share), place, arguments.limit)
        except PolymniaError as exc:
            if isinstance(exc, Cancelled) or (arguments.kinds and not isinstance(exc, BadInput)):
                raise
            notes.append(f"{kind}: {exc.public}")
    offset = offset_of(arguments.cursor)
    note = "; ".join(notes) if items or notes else "Nothing needs attention."
    return bounded_reply(
        items[offset : offset + arguments.limit],
        max_tokens=arguments.max_tokens,
        offset=offset,
        total=len(items),
        note=note,
    )
