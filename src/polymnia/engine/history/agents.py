"""Agents: who writes to a memory, how much each day, and what others corrected of it."""

from collections import Counter
from collections.abc import Iterable
from datetime import date, datetime

from msgspec import Struct

from polymnia.engine.history.changes import Difference, differences, history_of, latest
from polymnia.engine.memory import Memory
from polymnia.model import Change, ChangeQuery, split_actor

# Changes that are counted, and those that are searched for corrections.
MAX_COUNTED = 20_000
MAX_SEARCHED = 200
# A change with more rows is an import or the like, not a correction.
_MAX_ROWS = 500
# Operations that end a fact of somebody because it was wrong or outdated.
_CORRECTIONS = (
    "revise",
    "correct",
    "forget",
    "remember",
    "delete_observations",
    "delete_entities",
)


class Agent(Struct, frozen=True):
    """A client that made changes: with which tokens, how many, and when first and last."""

    client: str
    tokens: tuple[str, ...]
    changes: int
    first_at: int
    last_at: int
    days: dict[date, int]


class Correction(Struct, frozen=True):
    """A fact of one agent that another one changed or removed."""

    change: Change
    difference: Difference
    written_at: int


def agents(memory: Memory) -> list[Agent]:
    """Return the agents of a memory, the last one to write first. Raise NotSupported."""
    with memory.reading() as read:
        heads = history_of(memory, read).change_heads(ChangeQuery(limit=MAX_COUNTED))
    by_client: dict[str, list[Change]] = {}
    for head in heads:
        by_client.setdefault(split_actor(head.actor)[0], []).append(head)
    return [_agent(client, changes) for client, changes in by_client.items()]


def _agent(client: str, changes: list[Change]) -> Agent:
    tokens = dict.fromkeys(split_actor(change.actor)[1] for change in changes)
    days = Counter(_day(change.at) for change in changes)
    return Agent(
        client,
        tuple(token for token in tokens if token),
        len(changes),
        changes[-1].at,
        changes[0].at,
        dict(days),
    )


def _day(at: int) -> date:
    return datetime.fromtimestamp(at / 1_000_000).astimezone().date()


def corrections(memory: Memory, client: str) -> list[Correction]:
    """Return the facts of a client that others changed or removed lately, the latest first."""
    page = latest(memory, limit=MAX_SEARCHED, operations=_CORRECTIONS, max_rows=_MAX_ROWS)
    by_others = [change for change in page.changes if split_actor(change.actor)[0] != client]
    authors = _clients_by_time(memory, by_others)
    found = []
    for change in by_others:
        written = _written_at(change)
        for difference in differences(change):
            at = written.get((difference.name, difference.ordinal), 0)
            is_ended = difference.what == "fact" and difference.before is not None
            if is_ended and authors.get(at) == client:
                found.append(Correction(change, difference, at))
    return found


def _written_at(change: Change) -> dict[tuple[str, int], int]:
    """Return when the facts that a change ended were written."""
    times: dict[tuple[str, int], int] = {}
    for entity in change.before.entities:
        for fact in entity.facts:
            times[entity.name, fact.ordinal] = fact.created_at
    for part in change.before.facts:
        for fact in part.facts:
            times[part.entity, fact.ordinal] = fact.created_at
    return times


def _clients_by_time(memory: Memory, changes: Iterable[Change]) -> dict[int, str]:
    """Return who wrote facts, by the time of the change that created them."""
    if not any(change.before for change in changes):
        return {}
    with memory.reading() as read:
        heads = history_of(memory, read).change_heads(ChangeQuery(limit=MAX_COUNTED))
    return {head.at: split_actor(head.actor)[0] for head in heads}
