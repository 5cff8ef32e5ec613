"""A session of the OpenAI Agents SDK: each item of the conversation is a note.

The notes are `sessions/SESSION/NUMBER`, so that a person can read and delete the conversation.
"""

import time
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any
from urllib.parse import quote

from msgspec import json

from polymnia_frameworks.memory import AnyMemory, missing, run

try:
    from agents.memory import SessionSettings
except ImportError as exc:
    raise missing("openai-agents") from exc

if TYPE_CHECKING:
    from agents.items import TResponseInputItem

_TAG = "openai-agents"


class PolymniaSession:
    """A session for `Runner.run(…, session=…)`. Several processes may share it."""

    def __init__(
        self,
        memory: AnyMemory,
        session_id: str,
        *,
        session_settings: SessionSettings | None = None,
    ) -> None:
        self.session_id = session_id
        self.session_settings = session_settings or SessionSettings()
        self._memory = memory
        self._prefix = f"sessions/{quote(session_id, safe='')}/"

    async def get_items(self, limit: int | None = None) -> list["TResponseInputItem"]:
        """Return the items, or the latest ones, oldest first."""
        if limit is None:
            limit = self.session_settings.limit
        return await run(lambda: self._items(self._latest_keys(limit)))

    async def add_items(self, items: list["TResponseInputItem"]) -> None:
        """Append items."""
        await run(lambda: self._add(items))

    async def pop_item(self) -> "TResponseInputItem | None":
        """Remove the latest item and return it; None if there is none."""
        return await run(self._pop)

    async def clear_session(self) -> None:
        """Delete all items."""
        await run(self._clear)

    def _latest_keys(self, limit: int | None) -> list[str]:
        keys = self._memory.notes.keys(self._prefix)
        if limit is None:
            return keys
        return keys[max(0, len(keys) - limit) :]

    def _items(self, keys: Sequence[str]) -> list[Any]:
        return [json.decode(note.content) for note in self._memory.notes.read(keys)]

    def _add(self, items: Sequence[Any]) -> None:
        # Time first, so that the keys of several processes sort in the order of the conversation.
        moment = time.time_ns()
        for number, item in enumerate(items):
            key = f"{self._prefix}{moment:020d}-{number:04d}"
            self._memory.notes.put(key, json.encode(item).decode(), tags=[_TAG])

    def _pop(self) -> Any:
        keys = self._latest_keys(1)
        items = self._items(keys)
        if not items:
            return None
        self._memory.notes.delete(keys[0])
        return items[0]

    def _clear(self) -> None:
        for key in self._memory.notes.keys(self._prefix):
            self._memory.notes.delete(key)
