"""A harbour of facts, and a server over it, for tests of pages."""

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from polymnia.engine import notes
from polymnia.engine.graph import entities, relations
from polymnia.engine.memory import Memory
from polymnia.model import EntityDraft, Note, Relation
from polymnia.stores import open_store
from tests.transports.running import Running
from tests.ui.client import serve

HOSTILE = '<script>alert("x")</script>'
HOSTILE_TEXT = (
    "markdown **bold** [link](http://elsewhere.example) \u202egnp.exe \x1b[31m <img src=x "
    "onerror=alert(1)> \"'>"
)


def fill(memory: Memory) -> None:
    """Write some entities, relations and a note, by several clients."""
    drafts = (
        EntityDraft(
            "billing-worker",
            "service",
            ("moved its queue off Redis to Postgres", "runs three replicas"),
        ),
        EntityDraft(
            "Mara Lindqvist", "person", ("prefers small pull requests", "works from Malmö")
        ),
        EntityDraft(
            "mara.lindqvist", "person", ("prefers small pull requests", "her chat name is mara")
        ),
    )
    entities.create(memory, drafts, by="claude-code (token laptop)")
    entities.create(
        memory, [EntityDraft("Harbour API", "service", ("rate limits are in Redis",))], by="codex"
    )
    relations.create(memory, [Relation("Mara Lindqvist", "billing-worker", "owns")], by="codex")
    notes.commit(
        memory, Note("runbook/queue", "drain the queue before Redis stops", ("ops",)), by="cursor"
    )
    long = "long word " * 100_000
    entities.create(
        memory, [EntityDraft(HOSTILE, "<b>type</b>", (HOSTILE_TEXT, long))], by='evil"><script>'
    )


@contextmanager
def harbour(directory: Path) -> Iterator[tuple[Running, Memory]]:
    """Serve a filled memory.

    The second value writes to it from this process, as another client does.
    """
    url = str(directory / "memory.db")
    store = open_store(url)
    memory = Memory(store)
    fill(memory)
    with serve(url) as running:
        yield running, memory
    store.close()
