"""A memory service for Google ADK: a session is a conversation whose events are dated facts."""

from collections.abc import Mapping, Sequence
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any
from urllib.parse import urlsplit

import polymnia
from polymnia import SearchHit
from polymnia_frameworks.memory import CONVERSATION, AnyMemory, hits_within, missing, run

try:
    from google.adk.memory.base_memory_service import BaseMemoryService, SearchMemoryResponse
    from google.adk.memory.memory_entry import MemoryEntry
    from google.genai.types import Content, Part
except ImportError as exc:
    raise missing("google-adk") from exc

if TYPE_CHECKING:
    from google.adk.events.event import Event
    from google.adk.sessions.session import Session

_SOURCE = "google-adk"
_MAX_RESULTS = 20
# Memories that were added without a session.
_EXPLICIT = "memories"


class PolymniaMemoryService(BaseMemoryService):
    """A memory service for `Runner(memory_service=…)`.

    A text that a session has already is not stored again, so a session may be added repeatedly.
    """

    def __init__(self, memory: AnyMemory) -> None:
        self._memory = memory

    async def add_session_to_memory(self, session: "Session") -> None:
        """Store what was said in the session."""
        await self.add_events_to_memory(
            app_name=session.app_name,
            user_id=session.user_id,
            events=session.events,
            session_id=session.id,
        )

    async def add_events_to_memory(
        self,
        *,
        app_name: str,
        user_id: str,
        events: "Sequence[Event]",
        session_id: str | None = None,
        custom_metadata: Mapping[str, object] | None = None,
    ) -> None:
        """Store what was said in these events."""
        name = _scope(app_name, user_id) + (session_id or _EXPLICIT)
        for event in events:
            text = _text(event.content)
            if text:
                moment = datetime.fromtimestamp(event.timestamp, UTC)
                await self._store(name, f"{event.author}: {text}", moment)

    async def add_memory(
        self,
        *,
        app_name: str,
        user_id: str,
        memories: Sequence[MemoryEntry],
        custom_metadata: Mapping[str, object] | None = None,
    ) -> None:
        """Store memories as they are."""
        name = _scope(app_name, user_id) + _EXPLICIT
        for entry in memories:
            text = _text(entry.content)
            if entry.author:
                text = f"{entry.author}: {text}"
            moment = None
            if entry.timestamp:
                moment = datetime.fromisoformat(entry.timestamp)
            await self._store(name, text, moment)

    async def search_memory(
        self, *, app_name: str, user_id: str, query: str
    ) -> SearchMemoryResponse:
        """Return what this user's sessions of the application know about the query."""
        scope = _scope(app_name, user_id)
        hits = await run(lambda: hits_within(self._memory, query, scope, _MAX_RESULTS))
        return SearchMemoryResponse(memories=[_entry(hit) for hit in hits])

    async def delete_memory(
        self, *, app_name: str, user_id: str, memory_id: str | None = None
    ) -> None:
        """Delete a memory that a search returned."""
        name, _, number = (memory_id or "").rpartition("#")
        if not name.startswith(_scope(app_name, user_id)) or not number.isdecimal():
            raise ValueError(f"{memory_id!r} is not the id of a memory of this user")
        await run(lambda: self._memory.forget(facts={name: [int(number)]}))

    async def _store(self, name: str, text: str, moment: datetime | None) -> None:
        await run(
            lambda: self._memory.remember(
                name, text, type=CONVERSATION, valid_at=moment, source=f"{_SOURCE}:{name}"
            )
        )


def register(memory: AnyMemory | None = None) -> None:
    """Let `adk web --memory_service_uri polymnia:///path/to/memory.db` find the service.

    With a memory, every URI means that one. Call it in the `services.py` of the agents' directory.
    """
    from google.adk.cli.service_registry import get_service_registry

    def make(uri: str, **options: Any) -> BaseMemoryService:
        if memory is not None:
            return PolymniaMemoryService(memory)
        return PolymniaMemoryService(polymnia.open(urlsplit(uri).path or None, by=_SOURCE))

    get_service_registry().register_memory_service("polymnia", make)


def _scope(app_name: str, user_id: str) -> str:
    return f"{app_name}/{user_id}/"


def _text(content: Content | None) -> str:
    """Return what was said, without function calls and thoughts."""
    texts = []
    for part in (content and content.parts) or ():
        if part.text and not part.thought:
            texts.append(part.text)
    return "\n".join(texts)


def _entry(hit: SearchHit) -> MemoryEntry:
    author, separator, text = hit.text.partition(": ")
    if not separator:
        author, text = "", hit.text
    return MemoryEntry(
        id=f"{hit.name}#{hit.ordinal}",
        author=author or None,
        content=Content(role="user", parts=[Part(text=text)]),
        timestamp=hit.at.isoformat() if hit.at else None,
    )
