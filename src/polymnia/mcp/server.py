"""What all conversations share: the dialect, the workspaces, and who hears of their changes."""

import logging
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from threading import Lock
from typing import Protocol

from polymnia.dialects.base import Call, Client, Dialect
from polymnia.engine.workspaces import DEFAULT, Workspaces
from polymnia.errors import PolymniaError, StoreError
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
        self._listeners: dict[Listener, None] = {}
        # Those of them that have asked to hear of changes.
        self._attending: dict[Listener, None] = {}
        self.untidy = False
        workspaces.on_change(self._tell)

    def join(self, listener: Listener) -> Callable[[], None]:
        """A conversation begins; call what is returned when it ends."""
        with self._lock:
            self._listeners[listener] = None
        return lambda: self._leave(listener)

    def attend(self, listener: Listener) -> None:
        """Let a conversation hear of changes, whichever process makes them."""
        with self._lock:
            if listener not in self._listeners:
                return
            self._attending[listener] = None
        self.workspaces.follow(self._tell_of_others, self._is_attended)

    def ignore(self, listener: Listener) -> None:
        """A conversation wants to hear of nothing any more."""
        with self._lock:
            self._attending.pop(listener, None)

    def log(self, level: str, logger: str, text: str) -> None:
        """Tell every conversation that wants to know."""
        with self._lock:
            present = list(self._listeners)
        for listener in present:
            listener.log(level, logger, text)

    def check(self) -> None:
        """Raises when the memory of clients that name no workspace cannot be read, or what workspaces there are."""
        if self.workspace is None:
            self.workspaces.listed("active")
            return
        with self.workspaces.memory(self.workspace).reading() as read:
            read.known(())

    def start(self) -> None:
        """Let the dialect see to what earlier runs left. Raises PolymniaError when it cannot work on this store."""
        if self.dialect.started is not None and self.workspace is not None:
            self.dialect.started(Call(self.workspaces, Client(workspace=self.workspace), "polymnia"))

    def stop(self) -> None:
        """Let the dialect see to what must not outlast the server."""
        if self.dialect.stopped is not None:
            with _logged("stopping"):
                self.dialect.stopped()

    def left(self, client: Client) -> None:
        """A lasting conversation is over."""
        if self.dialect.left is not None:
            with _logged("the end of a conversation"):
                self.dialect.left(client)

    def rest(self) -> None:
        """Nobody asks for anything: do a little of what makes later answers quicker."""
        try:
            self.workspaces.apply_retention()
            self.untidy = False
        except StoreError as exc:
            logger.info("housekeeping was put off: %s", exc)
            self.untidy = False

    def _tell(self, workspace: str, change: Change) -> None:
        self.untidy = True
        self._tell_of_others(workspace, change)

    def _tell_of_others(self, workspace: str, change: Change) -> None:
        """Whoever makes a change tidies up after it."""
        with self._lock:
            attending = list(self._attending)
        for listener in attending:
            listener.changed(workspace, change)

    def _is_attended(self) -> bool:
        return bool(self._attending)

    def _leave(self, listener: Listener) -> None:
        with self._lock:
            self._listeners.pop(listener, None)
            self._attending.pop(listener, None)


@contextmanager
def _logged(what: str) -> Iterator[None]:
    """A block that nobody waits for: what goes wrong in it is told in the log."""
    try:
        yield
    except PolymniaError as exc:
        logger.warning("%s: %s", what, exc)
