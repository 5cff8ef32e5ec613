"""Agents: who writes to this memory, what others corrected, and how to take it back."""

from collections.abc import Iterable
from datetime import date, datetime, timedelta

from markupsafe import Markup
from msgspec import Struct
from starlette.responses import Response

from polymnia.engine.facts.candidates import UNCONFIRMED, Candidate, list_candidates
from polymnia.engine.history import changes as history
from polymnia.engine.history.agents import Agent, Correction, agents, corrections
from polymnia.errors import BadInput
from polymnia.model import split_actor
from polymnia.web.changes import ChangeRow, change_rows, compare
from polymnia.web.page import Page, get

# Days of the chart.
_DAYS = 30
_MAX_CHANGES = 20


class Day(Struct, frozen=True):
    """A day of the chart: changes made, and facts of the agent that others corrected."""

    day: date
    written: int
    corrected: int


@get("/agents")
def show_all(page: Page) -> Response:
    """Show who writes to the workspace."""
    everyone = agents(page.memory)
    rows = [(agent, _days(agent, {})) for agent in everyone]
    return page.render(
        "agents/page.html", rows=rows, most=_most(day for _, days in rows for day in days)
    )


@get("/agents/agent")
def show(page: Page) -> Response:
    """Show one agent: activity by day, corrections by others, its latest changes."""
    client = page.query["client"]
    agent = next((agent for agent in agents(page.memory) if agent.client == client), None)
    if agent is None:
        raise BadInput(f"no agent {client[:60]} has written to this workspace")
    found = corrections(page.memory, client)
    by_day: dict[date, int] = {}
    for correction in found:
        day = datetime.fromtimestamp(correction.change.at / 1_000_000).astimezone().date()
        by_day[day] = by_day.get(day, 0) + 1
    days = _days(agent, by_day)
    # Most agents are never corrected: their pages open on what they wrote.
    tab = page.query.get("show") or ("corrected" if found else "wrote")
    waiting = _candidates(page, client)
    return page.render(
        "agents/agent.html",
        agent=agent,
        days=days,
        most=_most(days),
        corrections=[(item, *_sides(item)) for item in found],
        corrected=len(found),
        tab=tab,
        waiting=waiting,
        changes=_changes(page, client) if tab == "wrote" else [],
    )


def _candidates(page: Page, client: str) -> list[Candidate]:
    """Return the candidate facts of a client that nobody has decided on."""
    memory = page.memory
    with memory.reading() as read:
        holders = read.outlines(kind=UNCONFIRMED)
    if not holders:
        return []
    name = holders[0].name
    candidates = list_candidates(memory)
    written = history.authors(memory, [(name, candidate.ordinal) for candidate in candidates])
    own = []
    for candidate in candidates:
        author = written.get((name, candidate.ordinal))
        if author is not None and split_actor(author.actor)[0] == client:
            own.append(candidate)
    return own


def _sides(item: Correction) -> tuple[Markup, Markup]:
    return compare(item.difference.before or "", item.difference.after or "")


def _days(agent: Agent, corrected: dict[date, int]) -> list[Day]:
    today = datetime.now().astimezone().date()
    days = []
    for ago in range(_DAYS - 1, -1, -1):
        day = today - timedelta(days=ago)
        days.append(Day(day, agent.days.get(day, 0), corrected.get(day, 0)))
    return days


def _most(days: Iterable[Day]) -> int:
    """Return the highest count, for the bars."""
    return max([1, *(max(day.written, day.corrected) for day in days)])


def _changes(page: Page, client: str) -> list[ChangeRow]:
    actors = [name for name in history.all_actors(page.memory) if split_actor(name)[0] == client]
    latest = history.latest(
        page.memory, actors=actors, limit=_MAX_CHANGES, max_rows=history.MAX_WHOLE_ROWS
    )
    return change_rows(page.memory, latest, limit=2)
