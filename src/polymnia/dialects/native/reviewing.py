"""`history` and `review`: who changed what, and what in the memory needs attention."""

from polymnia.dialects.base import Call, Reply, tool
from polymnia.dialects.native.budget import Item, bounded_reply, fitting_items, offset_of
from polymnia.dialects.native.lines import change_item
from polymnia.dialects.native.scope import places
from polymnia.dialects.native.shapes import History, Items, Review
from polymnia.dialects.times import parse_moment
from polymnia.engine import history as histories
from polymnia.errors import BadInput, PolymniaError


@tool(History, needs="read", returns=Items, brief=True)
def history(call: Call, arguments: History) -> Reply:
    """List changes, newest first, with author and differences: of an entity, of an actor, or since a time."""
    read = places(call, arguments.workspace)
    if not read:
        return bounded_reply([], max_tokens=arguments.max_tokens, note="Nothing was ever changed here.")
    place = read[0]
    before = offset_of(arguments.cursor) or None
    page = histories.latest(
        place.memory,
        limit=arguments.limit,
        before=before,
        actor=arguments.actor or None,
        names=[arguments.name] if arguments.name else None,
        since=parse_moment(arguments.since, "since") if arguments.since else None,
    )
    names = histories.names_of(place.memory, arguments.name) if arguments.name else None
    items = [change_item(each, histories.differences(each, names)) for each in page.changes]
    note = f"Changes in {place.name}." if items else f"No such changes in {place.name}."
    return _history_reply(page, items, arguments.max_tokens, note)


def _history_reply(page: histories.ChangePage, items: list[Item], max_tokens: int, note: str) -> Reply:
    """Return the changes that fit. The cursor is the id of the last one shown: newer changes do not move a page."""
    fitting = fitting_items(items, max_tokens, note)
    is_cut = len(fitting) < len(items)
    last = page.changes[len(fitting) - 1].id if is_cut else page.next
    return bounded_reply(fitting, max_tokens=max_tokens, note=note, next_cursor=str(last) if last else "")


@tool(Review, needs="read", returns=Items, brief=True)
def review(call: Call, arguments: Review) -> Reply:
    """Find what needs care: duplicate names, gaps between entities, orphans, stale summaries, similar entities."""
    from polymnia.dialects.native.findings import FINDERS  # the first call loads the verbs of curation

    items: list[Item] = []
    notes: list[str] = []
    for place in places(call, arguments.workspace):
        for kind in arguments.kinds or ("duplicates", "gaps", "summaries", "orphans"):
            call.check()
            try:
                items += FINDERS[kind](call, place, arguments.limit)
            except PolymniaError as exc:
                if not isinstance(exc, BadInput) and arguments.kinds:
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
