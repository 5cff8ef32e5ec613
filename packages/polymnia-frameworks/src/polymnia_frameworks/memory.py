"""What the adapters share: a memory, a search in part of it, the error for a missing package."""

import asyncio
from collections.abc import Callable, Sequence
from typing import TypeVar

from polymnia import LocalMemory, SearchHit
from polymnia_frameworks.remote import RemoteMemory

AnyMemory = LocalMemory | RemoteMemory
Result = TypeVar("Result")

# The hits of one search: those of other users leave room for those of the user who asks.
MAX_SEARCHED = 200
CONVERSATION = "conversation"


def missing(package: str) -> ImportError:
    """Return the error for a framework that is not installed."""
    return ImportError(f"this adapter needs the package {package}: run `pip install {package}`")


async def run(function: Callable[[], Result]) -> Result:
    """Run a call of the memory on a thread, and finish it even if the caller is cancelled."""
    return await asyncio.shield(asyncio.to_thread(function))


def hits_within(memory: AnyMemory, question: str, prefix: str, limit: int) -> Sequence[SearchHit]:
    """Return the facts that answer a question, of entities whose names start with the prefix."""
    hits = []
    for hit in memory.recall(question, limit=MAX_SEARCHED, types=[CONVERSATION]):
        if hit.kind == "fact" and hit.name.startswith(prefix):
            hits.append(hit)
    return hits[:limit]
