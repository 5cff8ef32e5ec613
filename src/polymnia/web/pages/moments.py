"""Moments: the strip of an entity, and the entity as it was at an earlier time."""

from msgspec import Struct
from starlette.responses import Response

from polymnia.engine.history.versions import compare, versions
from polymnia.model import Change
from polymnia.search.times import parse_moment
from polymnia.web.changes import compare as compare_words
from polymnia.web.page import Fields, Page
from polymnia.web.text import moment


class Stop(Struct, frozen=True):
    """A moment that the slider snaps to, and how much happened in the workspace before it."""

    at: int
    title: str
    url: str
    count: int
    change: Change | None = None


class Strip(Struct, frozen=True):
    """The stops of a slider, the last one being now, and the place of the one that is shown."""

    stops: list[Stop]
    place: int

    @property
    def is_past(self) -> bool:
        return self.place < len(self.stops) - 1

    @property
    def here(self) -> Stop:
        return self.stops[self.place]

    @property
    def ticks(self) -> list[int]:
        """The places of stops whose titles stand below the strip."""
        last = len(self.stops) - 1
        # A strip with more stops has a title in the middle too.
        return sorted({0, last // 2, last} if last > 7 else {0, last})

    @property
    def most(self) -> int:
        """The highest count, for the bars."""
        return max([1, *(stop.count for stop in self.stops)])


def parse_at(fields: Fields) -> int | None:
    """Return the moment in the address as microseconds, None for now. Raise BadInput."""
    text = fields.get("at").strip()
    if not text:
        return None
    # Digits that tell microseconds since 1970 from a year.
    if text.isascii() and text.isdigit() and 12 <= len(text) < 19:
        return int(text)
    return parse_moment(text, "at")


def entity_strip(page: Page, name: str, at: int | None) -> Strip | None:
    """Return the strip of an entity; None if it never changed or the store has no history."""
    if not page.memory.store.capabilities.history:
        return None
    heads = versions(page.memory, name)
    if len(heads) < 2 and at is None:
        return None
    stops: list[Stop] = []
    last = heads[0].id if heads else 0
    for head in heads[:-1]:
        url = page.url("/entity", name=name, at=head.at)
        stops.append(Stop(head.at, _title(head.at), url, head.id - last, head))
        last = head.id
    now = heads[-1] if heads else None
    stops.append(Stop(0, "Now", page.url("/entity", name=name), now.id - last if now else 0, now))
    place = len(stops) - 1
    if at is not None:
        earlier = [number for number, stop in enumerate(stops[:-1]) if stop.at <= at]
        place = earlier[-1] if earlier else 0
    return Strip(stops, place)


def _title(at: int) -> str:
    then = moment(at)
    return f"{then.day} {then:%b %H:%M}"


def show_then(page: Page, name: str, at: int) -> Response:
    """Show an entity as it was, with the differences to now."""
    comparison = compare(page.memory, name, at)
    strip = entity_strip(page, name, at)
    if comparison is None:
        heads = versions(page.memory, name)
        first = heads[0].at if heads else 0
        return page.render(
            "entity/not_yet.html", status=404, name=name, first=first, strip=strip, at=at
        )
    counts = (
        (comparison.count("changed"), "changed"),
        (comparison.count("gone"), "gone since"),
        (comparison.count("came"), "came later"),
    )
    # The two texts of changed facts, with the words that differ.
    parts = {}
    for fact in comparison.facts:
        if fact.how == "changed" and fact.then and fact.now:
            parts[fact.ordinal] = compare_words(fact.then.text, fact.now.text)
    return page.render(
        "entity/then.html",
        name=name,
        at=at,
        comparison=comparison,
        strip=strip,
        facts=comparison.facts[::-1],
        relations=comparison.relations,
        is_plain=page.query.get("show") == "plain",
        sums=[(count, text) for count, text in counts if count],
        words=parts,
    )
