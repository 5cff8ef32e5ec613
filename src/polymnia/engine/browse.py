"""Verbs for people who browse: hits with their authors and counts by type, client, tag and age."""

from collections import Counter
from collections.abc import Callable, Iterable
from time import time

from msgspec import Struct

from polymnia.engine.history import authors
from polymnia.engine.memory import Memory
from polymnia.engine.recall import recall
from polymnia.model import Entity, Hit, Within, split_actor

# Hits that are found and counted: more than anybody reads.
MAX_HITS = 200
# Ages for the counts, in days.
AGES_D = (7, 30, 365)
_DAY_US = 86_400_000_000


class SignedHit(Struct, frozen=True):
    """A hit and who wrote it first; empty in a store without history."""

    hit: Hit
    actor: str


class Found(Struct, frozen=True):
    """Hits, best first, with how many there are of each type, client and tag, and since some days ago.

    `note` and `corrections` are those of a recall. `has_more` is True if only the first MAX_HITS were counted.
    """

    hits: tuple[SignedHit, ...]
    types: tuple[tuple[str, int], ...]
    clients: tuple[tuple[str, int], ...]
    tags: tuple[tuple[str, int], ...]
    ages: tuple[tuple[int, int], ...]
    note: str
    corrections: dict[str, str]
    has_more: bool


def find(memory: Memory, question: str, *, within: Within | None = None, client: str = "") -> Found:
    """Return what answers the question; with `client`, only what that client wrote first."""
    result = recall(memory, question, limit=MAX_HITS, within=within)
    written = authors(memory, [hit.passage.key for hit in result.hits])
    actors = {key: author.actor for key, author in written.items()}
    hits = tuple([SignedHit(hit, actors.get(hit.passage.key, "")) for hit in result.hits])
    if client:
        hits = tuple([each for each in hits if split_actor(each.actor)[0] == client])
    times = [each.hit.passage.valid_at or each.hit.passage.created_at for each in hits]
    now = int(time() * 1_000_000)
    return Found(
        hits,
        _count(hits, lambda each: (each.hit.passage.type,)),
        _count(hits, lambda each: (split_actor(each.actor)[0],) if each.actor else ()),
        _count(hits, lambda each: each.hit.passage.tags),
        tuple([(days, sum(at >= now - days * _DAY_US for at in times)) for days in AGES_D]),
        result.note,
        result.corrections,
        len(result.hits) == MAX_HITS,
    )


def outlines(memory: Memory, names: Iterable[str]) -> dict[str, Entity]:
    """Return those of the named entities that exist, by name, without their observations."""
    with memory.reading() as read:
        return {each.name: each for each in read.outlines(set(names))}


def suggest(memory: Memory, start: str, limit: int = 8) -> list[Entity]:
    """Return entities whose names contain the text, those that start with it first, without their observations."""
    folded = start.strip().casefold()
    if not folded:
        return []
    with memory.reading() as read:
        found = [each for each in read.headings(folded) if folded in each.name.casefold()]
        found.sort(
            key=lambda each: (
                not each.name.casefold().startswith(folded),
                len(each.name),
                each.name,
            )
        )
        return read.outlines([each.name for each in found[:limit]]) if found else []


def _count(
    hits: tuple[SignedHit, ...], values: Callable[[SignedHit], tuple[str, ...]]
) -> tuple[tuple[str, int], ...]:
    return tuple(Counter(value for each in hits for value in values(each)).most_common())
