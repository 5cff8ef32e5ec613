"""The invented memory of a small team, with which the pictures in docs/ui.md and the browser tests are made."""

import tomllib
from collections.abc import Callable, Iterator
from contextlib import closing, contextmanager
from datetime import UTC, datetime, timedelta
from functools import partial
from pathlib import Path
from typing import Any
from unittest.mock import patch

from polymnia.engine import entities, notes, observations, relations
from polymnia.engine.intake import take_in
from polymnia.engine.memory import Memory
from polymnia.engine.revise import Edit, Revision, revise
from polymnia.engine.workspaces import open_workspaces
from polymnia.model import Entity, EntityDraft, Note, Observation, ObservationDraft, Relation

MAIN = "harbour"
_CLAUDE, _CURSOR, _CODEX = (
    "claude-code (token mara-laptop)",
    "cursor (token tomas)",
    "codex-cli (token ci-agent)",
)

_Changes = Iterator[tuple[float, Callable[[], object]]]


def fill(directory: Path) -> None:
    """Create the workspaces of the demo in a data directory."""
    content = tomllib.loads(Path(__file__).with_suffix(".toml").read_text("utf-8"))
    with closing(open_workspaces(f"{directory}/")) as workspaces:
        workspaces.create(MAIN, "what the agents of the Harbour team remember")
        memory = workspaces.memory(MAIN)
        for hours, change in sorted(
            [*_facts(memory, content), *_corrections(memory)], key=lambda each: -each[0]
        ):
            with _hours_ago(hours):
                change()
        for name, titles in content["small"].items():
            workspaces.create(name)
            _fill_small(workspaces.memory(name), titles)
        workspaces.archive("old-site")


def _facts(memory: Memory, content: dict[str, Any]) -> _Changes:
    """Yield how many hours ago each fact was written, and what writes it."""
    for group in content["entities"]:
        for number, each in enumerate(group["named"]):
            draft = EntityDraft(
                each["name"], each["type"], tuple(each["facts"]), tags=tuple(each["tags"])
            )
            yield (
                group["hours"] - number / 60,
                partial(entities.create, memory, [draft], by=group["by"]),
            )
    for group in content["relations"]:
        found = [Relation(*key) for key in group["keys"]]
        yield group["hours"], partial(relations.create, memory, found, by=group["by"])
    for each in content["additions"]:
        added = [ObservationDraft(each["entity"], (each["fact"],))]
        yield (
            each["hours"],
            partial(observations.add, memory, added, by=each["by"], skip_repeats=True),
        )
    pages = [
        Entity(name, "page", (Observation(1, text),), "", 2)
        for name, text in content["wiki"].items()
    ]
    yield 160, partial(take_in, memory, pages, by="polymnia import")


def _corrections(memory: Memory) -> _Changes:
    """Yield changes of other kinds, so that the history has all of them."""
    summary = "Plans berths for small ports; the backend is Python on PostgreSQL."
    yield 200, partial(revise, memory, "Harbour", Revision(summary=summary), by=_CLAUDE)
    edit = Edit(
        "its cache is filled at 03:10 UTC",
        "its cache is filled at 02:40 UTC, before the billing run",
    )
    yield 30, partial(revise, memory, "tide-forecast", Revision(replace=(edit,)), by=_CURSOR)
    yield (
        28.1,
        partial(
            entities.create,
            memory,
            [EntityDraft("tmp scratch", "concept", ("delete me",))],
            by=_CODEX,
        ),
    )
    yield 28, partial(entities.delete, memory, ["tmp scratch"], by=_CODEX)
    text = "Drain: pause billing-worker, wait until the queue is empty, then migrate."
    yield (
        27,
        partial(
            notes.commit, memory, Note("runbook/billing-queue", text, tags=("runbook",)), by=_CURSOR
        ),
    )


def _fill_small(memory: Memory, titles: list[str]) -> None:
    for number, title in enumerate(titles):
        with _hours_ago(300 - 50 * number):
            entities.create(
                memory,
                [EntityDraft(title, "concept", (f"the note number {number + 1}",))],
                by=_CLAUDE,
            )


@contextmanager
def _hours_ago(hours: float) -> Iterator[None]:
    """Let changes in the block happen so many hours ago."""
    moment = datetime.now(UTC) - timedelta(hours=hours)
    with patch(
        "polymnia.stores.sqlite.reader.time_ns", lambda: int(moment.timestamp() * 1_000_000_000)
    ):
        yield
