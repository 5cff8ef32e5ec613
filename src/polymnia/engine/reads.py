"""Which facts clients read: an audit that the setting `audit_days` turns on.

A call of a tool collects the facts that its reply shows. Their entities and numbers are recorded in
their workspace before the client gets the reply. No text is recorded, nor what was asked.
"""

from collections import Counter
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from contextvars import ContextVar

from msgspec import Struct

from polymnia.engine.memory import Memory
from polymnia.errors import BadInput
from polymnia.model import Entity
from polymnia.model.changes import FactRead
from polymnia.stores.clock import now_us

_DAY_US = 86_400_000_000

# The facts of each memory that the current call has shown. None without an audit.
_SHOWN: ContextVar[dict[Memory, dict[tuple[str, int], None]] | None] = ContextVar(
    "shown_facts", default=None
)


class FactUse(Struct, frozen=True):
    """How often a fact was read, and when last."""

    entity: str
    ordinal: int
    count: int
    last_at: int


@contextmanager
def audited_reads(days: int, *, by: str, tool: str) -> Iterator[None]:
    """Record the facts that the block shows, and keep them for so many days; 0 records nothing.

    Raise StoreError if they cannot be recorded: then the client must not get them.
    """
    if not days:
        yield
        return
    shown: dict[Memory, dict[tuple[str, int], None]] = {}
    token = _SHOWN.set(shown)
    try:
        yield
    finally:
        _SHOWN.reset(token)
    now = now_us()
    for memory, facts in shown.items():
        memory.store.record_reads(
            facts.keys(), at=now, actor=by, tool=tool, since=now - days * _DAY_US
        )


def note_facts(memory: Memory, facts: Iterable[tuple[str, int]]) -> None:
    """Note that a reply shows facts, by entity and number; 0 is the entity itself."""
    shown = _SHOWN.get()
    if shown is not None:
        shown.setdefault(memory, {}).update(dict.fromkeys(facts))


def note_entities(memory: Memory, entities: Iterable[Entity]) -> None:
    """Note that a reply shows whole entities."""
    if _SHOWN.get() is not None:
        for entity in entities:
            note_facts(memory, [(entity.name, 0)])
            note_facts(memory, [(entity.name, fact.ordinal) for fact in entity.facts])


def reads_since(memory: Memory, since: int, *, entity: str = "") -> list[FactRead]:
    """Return the recorded reads, newest first. Raise BadInput for a store without history."""
    if not memory.store.capabilities.history:
        raise BadInput("this store records no reads: it needs SQLite or PostgreSQL")
    with memory.reading() as read:
        reads = read.history.reads(since)
    return [one for one in reads if entity in ("", one.entity)]


def count_uses(reads: Iterable[FactRead]) -> list[FactUse]:
    """Return how often each fact was read, the most frequent first."""
    counts: Counter[tuple[str, int]] = Counter()
    last: dict[tuple[str, int], int] = {}
    for one in reads:
        key = (one.entity, one.ordinal)
        counts[key] += 1
        last[key] = max(one.at, last.get(key, 0))
    return [FactUse(*key, count, last[key]) for key, count in counts.most_common()]
