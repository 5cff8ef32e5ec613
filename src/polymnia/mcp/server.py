"""What all conversations share: the dialect, the workspaces, and who hears of their changes."""

import logging
from collections.abc import Callable
from threading import Lock
from typing import Protocol

from polymnia.dialects.base import Dialect
from polymnia.engine.workspaces import DEFAULT, Workspaces
from polymnia.errors import StoreError
from polymnia.model import Change

logger = logging.getLogger(__name__)


class Listener(Protocol):
    """A conversation, as far as the server pushes anything into it."""

    def changed(self, workspace: str, change: Change) -> None:
        """A workspace's memory has changed."""

    def log(self, level: str, logger: str, text: str) -> None:
        """Something the client may want to show."""


class Server:
    """One dialect over the workspaces of a store, and the conversations that are open on it."""

    def __init__(self, dialect: Dialect, workspaces: Workspaces, *, workspace: str | None = DEFAULT) -> None:
        """`workspace` is the one of clients that do not name theirs."""
        self.dialect = dialect
        self.workspaces = workspaces
        self.workspace = workspace
        self._lock = Lock()
        self._listeners: list[Listener] = []
        self.untidy = False
        workspaces.on_change(self._tell)

    def join(self, listener: Listener) -> Callable[[], None]:
        """Let a conversation hear of changes; call what is returned when it ends."""
        with self._lock:
            self._listeners.append(listener)
        return lambda: self._leave(listener)

    def log(self, level: str, logger: str, text: str) -> None:
        """Tell every conversation that wants to know."""
        for listener in self._present():
            listener.log(level, logger, text)

    def check(self) -> None:
        """Raises when the memory of clients that name no workspace cannot be read, or what workspaces there are."""
        if self.workspace is None:
            self.workspaces.listed("active")
            return
        with self.workspaces.memory(self.workspace).reading() as read:
            read.known(())

    def rest(self) -> None:
        """Nobody asks for anything: do a little of what makes later answers quicker."""
        try:
            self.untidy = self.workspaces.tidy()
        except StoreError as exc:
            logger.info("housekeeping was put off: %s", exc)
            self.untidy = False

    def _tell(self, workspace: str, change: Change) -> None:
        self.untidy = True
        for listener in self._present():
            listener.changed(workspace, change)

    def _present(self) -> list[Listener]:
        with self._lock:
            return list(self._listeners)

    def _leave(self, listener: Listener) -> None:
        with self._lock:
            if listener in self._listeners:
                self._listeners.remove(listener)
