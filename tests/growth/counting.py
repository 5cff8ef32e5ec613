"""Memories of two sizes, and how many steps SQLite's virtual machine takes for a call."""

import re
import shutil
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from random import Random
from typing import Any

import apsw

from polymnia.dialects import open_dialect
from polymnia.engine.workspaces import open_workspaces
from polymnia.mcp.server import Server
from tests.dialects.conversation import Client
from tests.growth.calls import UNDO_LAST

BATCH = 25
STEPS_PER_TICK = 10
SYLLABLES = ("lan", "mor", "tik", "ves", "rud", "nop")
WORDS = [a + b + c for a in "bdfgklmnprst" for b in "aeiou" for c in SYLLABLES]


class Steps:
    """The steps that all connections opened in a block have taken."""

    def __init__(self) -> None:
        self.count = 0

    def tick(self) -> bool:
        self.count += STEPS_PER_TICK
        return False  # go on

    def watch(self, connection: apsw.Connection) -> None:
        connection.set_progress_handler(self.tick, STEPS_PER_TICK, id="growth")


@contextmanager
def counted_steps() -> Iterator[Steps]:
    steps = Steps()
    apsw.connection_hooks.append(steps.watch)
    yield steps
    apsw.connection_hooks.remove(steps.watch)


@contextmanager
def client_of(dialect: str, url: str) -> Iterator[Client]:
    workspaces = open_workspaces(url)
    server = Server(open_dialect(dialect), workspaces, workspace=workspaces.sole)
    client = Client(dialect, server)
    yield client
    client.session.close()
    server.stop()
    workspaces.close()


def fill(url: str, size: int) -> None:
    """Create a store with ten known entities and `size` others.

    Each has three facts and two relations, and there is a note for every ten. They are written in
    batches, so that the history grows, too.
    """
    random = Random(7)
    with client_of("reference", url) as client:
        for start in range(0, size, BATCH):
            numbers = range(start, min(start + BATCH, size))
            things = [
                entity(f"thing {n}", [" ".join(random.choices(WORDS, k=7)) for _ in range(3)])
                for n in numbers
            ]
            client.call("create_entities", {"entities": things})
            relations = [
                relation(f"thing {n}", f"thing {random.randrange(start + BATCH)}", kind)
                for n in numbers
                for kind in ("needs", "uses")
            ]
            client.call("create_relations", {"relations": relations})
        known = [
            entity(f"Known {n}", [f"keeps the qx{n}jw register {fact}" for fact in range(3)])
            for n in range(10)
        ]
        client.call("create_entities", {"entities": known})
        pairs = [relation(f"Known {n}", f"Known {n + 1}", "knows") for n in range(9)]
        client.call("create_relations", {"relations": pairs})
    with client_of("vault", url) as client:
        for number in range(size // 10):
            content = " ".join(random.choices(WORDS, k=7))
            client.call(
                "commit_memory", {"scope": "vault", "key": f"note {number}", "content": content}
            )
        note = {"scope": "vault", "key": "known", "content": "keeps the qx4jw register"}
        client.call("commit_memory", note)


def entity(name: str, facts: list[str]) -> dict[str, Any]:
    kind = "keeper" if name.startswith("Known") else "thing"
    return {"name": name, "entityType": kind, "observations": facts}


def relation(source: str, target: str, kind: str) -> dict[str, str]:
    return {"from": source, "to": target, "relationType": kind}


def count_steps(
    dialect: str, filled: Path, directory: Path, calls: tuple[tuple[str, dict[str, Any]], ...]
) -> list[int]:
    """Return the steps of each call on a copy of a filled store. Every call must succeed."""
    url = place_copy(dialect, filled, directory)
    counts = []
    last_change = 0
    with counted_steps() as steps, client_of(dialect, url) as client:
        if dialect == "project":
            client.call("switch_project", {"name": "filled"})
        for tool, arguments in calls:
            if arguments == UNDO_LAST:
                arguments = {"changes": [last_change]}
            before = steps.count
            result = client.call(tool, arguments)
            counts.append(steps.count - before)
            assert not result.get("isError"), result
            label = re.match(r"(?:\w+:|#)?(\d+) ", result["content"][0].get("text", ""))
            last_change = int(label[1]) if label else last_change
    return counts


def place_copy(dialect: str, filled: Path, directory: Path) -> str:
    """Copy a filled store, for `project` into a directory of projects, and return the URL."""
    copy = directory / filled.name
    url = str(copy)
    if dialect == "project":
        url = f"{directory}/{filled.stem}/"
        with client_of("project", url) as client:
            project = client.json("create_project", {"name": "filled"})
        copy = Path(url, "projects", f"{project['id']}.db")
    shutil.copyfile(filled, copy)
    return url
