"""What all conversations share: the dialect, the memory, and who hears of its changes."""

import logging
from collections.abc import Callable
from threading import Lock
from typing import Protocol

from polymnia.dialects.base import Dialect
from polymnia.engine.memory import Memory
from polymnia.errors import StoreError
from polymnia.model import Change

logger = logging.getLogger(__name__)


class Listener(Protocol):
    """A conversation, as far as the server pushes anything into it."""

    def changed(self, change: Change) -> None:
        """The memory has changed."""

    def log(self, level: str, logger: str, text: str) -> None:
        """Something the client may want to show."""


class Server:
    """One dialect over one memory, and the conversations that are open on it."""

    def __init__(self, dialect: Dialect, memory: Memory) -> None:
        self.dialect = dialect
        self.memory = memory
        self._lock = Lock()
        self._listeners: list[Listener] = []
        self.untidy = False
        memory.on_change(self._tell)

    def join(self, listener: Listener) -> Callable[[], None]:
        """Let a conversation hear of changes; call what is returned when it ends."""
        with self._lock:
            self._listeners.append(listener)
        return lambda: self._leave(listener)

    def log(self, level: str, logger: str, text: str) -> None:
        """Tell every conversation that wants to know."""
        for listener in self._present():
            listener.log(level, logger, text)

    def rest(self) -> None:
        """Nobody asks for anything: do a little of what makes later answers quicker."""
        try:
            self.untidy = self.memory.store.tidy()
        except StoreError as exc:
            logger.info("housekeeping was put off: %s", exc)
            self.untidy = False

    def _tell(self, change: Change) -> None:
        self.untidy = True
        for listener in self._present():
            listener.changed(change)

    def _present(self) -> list[Listener]:
        with self._lock:
            return list(self._listeners)

    def _leave(self, listener: Listener) -> None:
        with self._lock:
            if listener in self._listeners:
                self._listeners.remove(listener)
