"""What adapters need of a memory, and how they name what is missing."""

import asyncio
from collections.abc import Callable, Sequence
from typing import TypeVar

from polymnia.api.memory import LocalMemory
from polymnia.api.records import SearchHit
from polymnia.api.remote import RemoteMemory

AnyMemory = LocalMemory | RemoteMemory
Result = TypeVar("Result")

# Beside hits that belong to somebody else there must be room for those that are asked for.
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
        if hit.kind == "observation" and hit.name.startswith(prefix):
            hits.append(hit)
    return hits[:limit]
