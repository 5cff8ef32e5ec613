"""What a small store holds, in memory too: point reads that need not ask the file."""

import logging
import sys
import threading
from collections.abc import Callable, Sequence
from contextlib import AbstractContextManager
from typing import TYPE_CHECKING

import apsw
from msgspec import json

from polymnia.errors import StoreError
from polymnia.model import Change, Graph, Rows
from polymnia.stores.sqlite.connection import connect, translated
from polymnia.stores.sqlite.graph import SqliteGraph
from polymnia.stores.sqlite.walindex import Head, head_of, is_next

if TYPE_CHECKING:
    from polymnia.stores.memory import MemoryGraph

logger = logging.getLogger(__name__)

# What a replica may weigh, in bytes: some five thousand entities with three observations and two relations each.
MOST = 8 << 20
# What a row weighs besides its text.
_ROW = 200
# Reads of the file before a replica is thought of: what it takes to find the head is not for servers that ask little.
_FIRST = 32
# Reading so many bytes into a replica takes about as long as answering one request from the file.
_BYTES_PER_READ = 1 << 14
_NEVER = sys.maxsize
_NO_MOMENT = b""


class Replica:
    """The graph as of one moment, of use as long as nobody else commits; own commits are carried over.

    The moment is the head of the write-ahead log's index, which every commit of every process changes. The graph is
    read when requests answered from the file since the last change have taken about as long as that will, so where
    others write all the time requests take about twice the time at worst.
    """

    def __init__(
        self, path: str, reading: Callable[[], AbstractContextManager[SqliteGraph]], *, read_only: bool = False
    ) -> None:
        self._path = path
        self._read_only = read_only
        self._reading = reading
        self._lock = threading.Lock()
        self._making = threading.Lock()
        # The head is memory of this connection, so they come and go together.
        self._connection: apsw.Connection | None = None
        self._head: Head | None = None
        self._graph: MemoryGraph | None = None
        self._moment = _NO_MOMENT
        self._weight = 0
        self._begun = _NO_MOMENT
        self._reads = 0
        self._reads_since = _NO_MOMENT
        self._enough = _FIRST

    def look_up(self, name: str) -> Graph | None:
        """The entity of that name and its relations; None when the file must be asked."""
        if self._graph is None:  # as in all large stores: they need not wait for the lock
            return None
        with self._lock:
            if self._graph is not None and self._head is not None and self._head.tobytes() == self._moment:
                return self._graph.look_up(name)
        return None

    def missed(self) -> None:
        """The file had to be asked; when that has happened often enough since the last change, read all of it."""
        if self._enough == _NEVER:
            return
        with self._lock:
            if self._head is not None and self._head.tobytes() != self._reads_since:
                self._reads_since, self._reads = self._head.tobytes(), 0
            self._reads += 1
            wanted = self._reads >= self._enough
        if wanted and self._making.acquire(blocking=False):
            try:
                self._make()
            finally:
                self._making.release()

    def begun(self) -> None:
        """A transaction of our own has begun to write: until it ends nobody else commits."""
        with self._lock:
            self._begun = _NO_MOMENT if self._head is None else self._head.tobytes()

    def committed(self, changes: Sequence[Change]) -> None:
        """That transaction, of these changes, is on disk: if it alone came since, the replica is of now again."""
        with self._lock:
            if self._graph is None or self._head is None or self._moment != self._begun:
                return
            now = self._head.tobytes()
            if is_next(self._begun, now):
                self._carry_over(self._graph, changes, now)

    @property
    def connections(self) -> tuple[apsw.Connection, ...]:
        """The connection it looks through, if it has one."""
        return () if self._connection is None else (self._connection,)

    def close(self) -> None:
        """Look at nothing any more."""
        with self._lock:
            self._head, self._graph, self._enough = None, None, _NEVER
            if self._connection is not None:
                self._connection.close()  # a connection may be closed twice

    def _carry_over(self, graph: "MemoryGraph", changes: Sequence[Change], now: bytes) -> None:
        self._weight += sum(_weight(change.after) for change in changes)
        if self._weight > MOST:
            self._graph = None
            return
        for change in changes:
            graph.apply(change)
        graph.applied.clear()
        self._moment = now

    def _make(self) -> None:
        try:
            moment = self._now()
            with self._reading() as file:
                weight = file.weight(_ROW, MOST // _ROW + 1)
                if not self._is_worth(weight):
                    return
                entities, relations = file.entities(), file.relations()
        except StoreError as exc:  # what is asked for by name may be sound all the same
            logger.info("there is no replica: %s", exc)
            self._enough = _NEVER
            return
        from polymnia.stores.memory import MemoryGraph  # needed only here

        graph = MemoryGraph()
        graph.fill(entities, relations)
        with self._lock:
            if self._head is not None and self._head.tobytes() == moment:
                self._graph, self._moment, self._weight = graph, moment, weight

    def _now(self) -> bytes:
        """The head, found when it is first asked for. Raises StoreError where there is none."""
        with self._lock:
            if self._head is None:
                self._connection = self._connection or connect(self._path, create=False, read_only=self._read_only)
                with translated(self._path):
                    self._head = head_of(self._connection)
                self._reads_since = self._head.tobytes()
            return self._head.tobytes()

    def _is_worth(self, weight: int) -> bool:
        self._enough = _NEVER if weight > MOST else max(_FIRST, weight // _BYTES_PER_READ)
        return self._reads >= self._enough


def _weight(rows: Rows) -> int:
    own = sum(len(entity.observations) for entity in rows.entities)
    noted = sum(len(noted.observations) for noted in rows.observations)
    return _ROW * (len(rows.entities) + own + noted + len(rows.relations)) + len(json.encode(rows))
