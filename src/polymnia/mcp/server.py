"""What all sessions share: dialect, workspaces, limits, and the list of sessions to notify."""

import logging
import time
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from threading import Event, Lock, Thread
from typing import Literal, Protocol

from msgspec import Raw, Struct

from polymnia import __version__
from polymnia.dialects.base import Call, Client, Dialect
from polymnia.engine.workspaces import DEFAULT, Workspaces
from polymnia.errors import OverLimit, PolymniaError
from polymnia.mcp.asking import Deadlines, RequestStates
from polymnia.mcp.message import encode
from polymnia.mcp.params import SERVER_INFO
from polymnia.model import Change, Principal

logger = logging.getLogger(__name__)

Kind = Literal["requests", "writes"]
KINDS: tuple[Kind, ...] = ("requests", "writes")
# Names of an identity provider are not bounded by a table of tokens.
_MAX_PRINCIPALS = 10_000


class Listener(Protocol):
    """A session, as the server sees it when it has something to send."""

    def notify_change(self, workspace: str, change: Change) -> None:
        """Queue the notifications that a change leads to."""

    def log(self, level: str, logger: str, text: str) -> None:
        """Queue a log message if the client wants it."""


class _Allowance(Struct):
    """What is left of a minute's calls. It grows back evenly."""

    left: float
    at: float


class RateLimiter:
    """Counts the calls of each principal on this server, so that none crowds others out.

    A principal may make a minute's calls at once, and then one whenever another is due. A client
    without a token is not limited: only its own user can reach such a server. Safe for several
    threads.
    """

    def __init__(self, *, requests: int = 0, writes: int = 0) -> None:
        """Limit principals that have no limit of their own to so many a minute; 0 is unlimited."""
        self._defaults: dict[Kind, int] = {"requests": requests, "writes": writes}
        self._allowances: dict[tuple[str, Kind], _Allowance] = {}
        self._lock = Lock()
        self.refusals: Counter[Kind] = Counter()

    def limit(self, principal: Principal, kind: Kind) -> int:
        """Return how many calls of a kind the principal may make a minute; 0 is unlimited."""
        own = principal.requests if kind == "requests" else principal.writes
        return self._defaults[kind] if own is None else own

    def count(self, principal: Principal, kind: Kind) -> int:
        """Return how many calls of a kind weigh on the principal's limit at the moment."""
        limit = self.limit(principal, kind)
        with self._lock:
            return round(limit - self._left(principal, kind, limit))

    def take(self, principal: Principal, kind: Kind) -> None:
        """Count a call. Raise OverLimit if the principal has made too many."""
        limit = self.limit(principal, kind) if principal.id else 0
        if not limit:
            return
        with self._lock:
            left = self._left(principal, kind, limit)
            if left >= 1:
                self._allowances[principal.id, kind] = _Allowance(left - 1, time.monotonic())
                return
            self.refusals[kind] += 1
        seconds = max(1, round((1 - left) * 60 / limit))
        logger.warning("%s is over its limit of %s %s a minute", principal.title, limit, kind)
        raise OverLimit(
            f"too many {kind}: {principal.title} may make {limit} a minute; nothing was done, "
            f"try again in {seconds} s"
        )

    def _left(self, principal: Principal, kind: Kind, limit: int) -> float:
        now = time.monotonic()
        allowance = self._allowances.get((principal.id, kind))
        if allowance is None:
            if len(self._allowances) >= _MAX_PRINCIPALS:
                self._allowances.clear()
            return float(limit)
        return min(float(limit), allowance.left + (now - allowance.at) * limit / 60)


class Server:
    """One dialect over the workspaces of a store, and the sessions that are open on it."""

    def __init__(
        self,
        dialect: Dialect,
        workspaces: Workspaces,
        *,
        workspace: str | None = DEFAULT,
        limiter: RateLimiter | None = None,
        audit_days: int = 0,
    ) -> None:
        """`workspace` is used by clients that do not name one. `limiter` is shared by servers.

        An audit of reads is kept for `audit_days`.
        """
        self.dialect = dialect
        self.workspaces = workspaces
        self.workspace = workspace
        self.limiter = limiter or RateLimiter()
        self.audit_days = audit_days
        # The catalogue's name and version; the title says which program runs.
        self.info = {
            "name": dialect.server_name,
            "version": dialect.server_version,
            "title": f"Polymnia {__version__}",
        }
        # The `_meta` of every result that a stateless client gets.
        self.result_meta = Raw(encode({SERVER_INFO: self.info}))
        self.deadlines = Deadlines()
        self.states = RequestStates()
        self._lock = Lock()
        self._listeners: dict[Listener, None] = {}
        # The listeners that want changes.
        self._followers: dict[Listener, None] = {}
        self._is_stopped = Event()
        self._cleanup: Thread | None = None
        workspaces.on_change(self._tell)

    def join(self, listener: Listener) -> None:
        """Send log messages to a session until it leaves."""
        with self._lock:
            self._listeners[listener] = None

    def leave(self, listener: Listener) -> None:
        """Stop sending anything to a session."""
        with self._lock:
            self._listeners.pop(listener, None)
            self._followers.pop(listener, None)

    def follow(self, listener: Listener, workspace: str | None = None) -> None:
        """Notify a session of changes in its workspace, made by any process."""
        with self._lock:
            if listener not in self._listeners:
                return
            self._followers[listener] = None
        self.workspaces.follow(self._tell, self._has_followers, workspace or self.workspace)
        for shared in self.dialect.shared_workspaces:
            self.workspaces.follow(self._tell, self._has_followers, shared)

    def unfollow(self, listener: Listener) -> None:
        """Stop notifying a session of changes."""
        with self._lock:
            self._followers.pop(listener, None)

    def log(self, level: str, logger: str, text: str) -> None:
        """Send a log message to every session that wants it."""
        with self._lock:
            present = list(self._listeners)
        for listener in present:
            listener.log(level, logger, text)

    def check(self) -> None:
        """Raise StoreError if the default workspace, or the list of workspaces, cannot be read."""
        if self.workspace is None or self.dialect.find_workspace is not None:
            self.workspaces.find_all("active", limit=1)
            return
        with self.workspaces.memory(self.workspace).reading() as read:
            read.existing_names(())

    def start(self) -> None:
        """Let the dialect prepare the store. Raise PolymniaError if it cannot work on it."""
        if self.dialect.on_start is not None and self.workspace is not None:
            self.dialect.on_start(
                Call(self.workspaces, Client(workspace=self.workspace), "polymnia")
            )
        self._cleanup = Thread(target=self._clean_up_daily, name="polymnia-cleanup", daemon=True)
        self._cleanup.start()

    def stop(self) -> None:
        """Let the dialect remove what must not outlive the server."""
        self._is_stopped.set()
        if self._cleanup is not None:
            self._cleanup.join(10)  # it may be running
        if self.dialect.on_stop is not None:
            with _log_failure("stopping"):
                self.dialect.on_stop()

    def end_session(self, client: Client) -> None:
        """Let the dialect remove what must not outlive a session."""
        if self.dialect.on_session_end is not None:
            with _log_failure("the end of a session"):
                self.dialect.on_session_end(client)

    def _clean_up_daily(self) -> None:
        """Apply the retention of deleted things, some seconds after the start and every day."""
        wait = 10
        while not self._is_stopped.wait(wait):
            with _log_failure("emptying the trash"):
                self.workspaces.apply_retention()
            wait = 86_400

    def _tell(self, workspace: str, change: Change) -> None:
        with self._lock:
            followers = list(self._followers)
        for follower in followers:
            follower.notify_change(workspace, change)

    def _has_followers(self) -> bool:
        return bool(self._followers)


@contextmanager
def _log_failure(what: str) -> Iterator[None]:
    """Log an error of background work."""
    try:
        yield
    except PolymniaError as exc:
        logger.warning("%s: %s", what, exc)
