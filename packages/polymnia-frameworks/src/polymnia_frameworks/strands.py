"""A memory store for Strands Agents: facts under one name, and messages as a conversation."""

from datetime import UTC, datetime
from typing import Any

from polymnia import SearchHit
from polymnia_frameworks.memory import CONVERSATION, AnyMemory, missing, run

try:
    from strands.memory.types import AddMessagesContext, MemoryEntry, SearchOptions
    from strands.types.content import Message
except ImportError as exc:
    raise missing("strands-agents") from exc

_SOURCE = "strands"
_MAX_RESULTS = 10


class PolymniaMemoryStore:
    """A store for `Agent(memory_manager=MemoryManager(stores=[…]))`.

    `entity` is the name under which facts are stored. Searches see all facts of the memory. A text
    that is stored already is not stored again, so a repeated write does no harm.
    """

    def __init__(
        self,
        memory: AnyMemory,
        *,
        name: str = "polymnia",
        entity: str = "user",
        description: str = "Long-term memory of facts and earlier conversations",
        max_search_results: int = _MAX_RESULTS,
        writable: bool = True,
        extraction: Any = None,
    ) -> None:
        self.name = name
        self.description = description
        self.max_search_results = max_search_results
        self.writable = writable
        self.extraction = extraction
        self._memory = memory
        self._entity = entity
        started = datetime.now(UTC)
        self._conversation = f"conversation of {started:%Y-%m-%d %H:%M:%S}"

    async def search(self, query: str, options: SearchOptions | None = None) -> list[MemoryEntry]:
        """Return what answers the query, best first."""
        limit = (options or {}).get("max_search_results") or self.max_search_results
        hits = await run(lambda: self._memory.recall(query, limit=limit))
        return [_entry(hit) for hit in hits if hit.kind == "fact"]

    async def add(self, content: str, metadata: dict[str, Any] | None = None) -> None:
        """Store a fact. The metadata may name its `entity` and its `source`."""
        details = metadata or {}
        name = str(details.get("entity") or self._entity)
        source = str(details.get("source") or _SOURCE)
        await run(lambda: self._memory.remember(name, content, source=source))

    async def add_messages(
        self, messages: list[Message], context: AddMessagesContext | None = None
    ) -> None:
        """Store messages as turns of a conversation, without calls of tools and their results."""
        for message in messages:
            texts = [block["text"] for block in message["content"] if block.get("text")]
            if texts:
                await self._store_turn(f"{message['role']}: " + "\n".join(texts))

    async def _store_turn(self, text: str) -> None:
        now = datetime.now(UTC)
        source = f"{_SOURCE}:{self._conversation}"
        await run(
            lambda: self._memory.remember(
                self._conversation, text, type=CONVERSATION, valid_at=now, source=source
            )
        )


def _entry(hit: SearchHit) -> MemoryEntry:
    metadata: dict[str, Any] = {"entity": hit.name, "type": hit.type, "is_weak": hit.is_weak}
    if hit.at:
        metadata["at"] = hit.at.isoformat()
    return MemoryEntry(content=f"{hit.name}: {hit.text}", metadata=metadata)
