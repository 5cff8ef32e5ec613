"""A connection to PostgreSQL in libpq's pipeline mode.

Statements are sent together, and a transaction ends with a sync. A transaction that only reads
needs no BEGIN and no COMMIT: without a sync between them, statements share a transaction, and
`repeatable read` makes it one snapshot. So a read of one statement is one round trip. psycopg's own
pipeline costs more than the statement it runs, so its wrapper of libpq is used directly.
"""

import re
import selectors
from collections import deque
from collections.abc import Iterable, KeysView, Mapping, Sequence
from contextlib import suppress
from pathlib import Path
from secrets import token_hex
from time import monotonic
from typing import Any, Literal

import psycopg
from psycopg import pq
from psycopg.adapt import Transformer
from psycopg.errors import error_from_result

from polymnia.stores.contract import cancellation, is_cancelled
from polymnia.stores.sql import load_queries

QUERIES = {name: text.encode() for name, text in load_queries(Path(__file__).parent).items()}
Row = tuple[Any, ...]

_Selector = getattr(selectors, "PollSelector", selectors.SelectSelector)
_Step = tuple[Literal["prepare", "setup", "query", "sync"], str]
_BINARY = 1
# How often a read that takes long looks whether somebody still waits for it.
_CANCEL_CHECK_S = 0.1
_CANCEL_TIMEOUT_S = 1.0
_STORED_NOWHERE = f"\ufffe{token_hex(8)}"
_SURROGATES = re.compile("[\ud800-\udfff]")
_COLLECTIONS = (list, tuple, set, frozenset, dict, KeysView)
_GOOD = (pq.ExecStatus.COMMAND_OK, pq.ExecStatus.TUPLES_OK)


class Connection(psycopg.Connection[Row]):
    """A pooled connection, the statements that are prepared on it, and what waits for answers."""

    def __init__(self, pgconn: pq.abc.PGconn) -> None:
        super().__init__(pgconn)
        self.prepared: set[str] = set()
        self.answers = _Selector()
        self.answers.register(pgconn.socket, selectors.EVENT_READ)


def apply_settings(connection: psycopg.Connection[Row], settings: Mapping[str, str]) -> None:
    """Give a connection its settings, which poolers refuse to take with the login.

    Raise psycopg.Error.
    """
    connection.execute(QUERIES["apply_settings"], [list(settings), list(settings.values())])


class ConnectionLost(psycopg.OperationalError):
    """The connection ended, or the server did not answer in time."""


class CommitLost(ConnectionLost):
    """The connection ended during a commit, and nobody knows whether it took place."""


class Pipeline:
    """The statements of one transaction.

    Results arrive in the order in which statements were sent.
    """

    def __init__(self, connection: Connection, timeout: float, *, write: bool = False) -> None:
        """Start a transaction.

        Wait for each result at most `timeout` seconds, or until nobody wants it.
        A transaction that writes is not cancelled.
        """
        self._connection = connection
        self._prepared = connection.prepared
        self._pgconn = connection.pgconn
        self._transformer = Transformer(connection)
        self._timeout = timeout
        self._write = write
        self._steps: deque[_Step] = deque()  # what was sent and not answered
        self.is_lost = False
        self._pgconn.enter_pipeline_mode()

    def send(self, query: str, values: Sequence[object] = (), *, has_rows: bool = True) -> None:
        """Send a named query. Its rows, if they are wanted, come with the next `fetch`."""
        name = query.encode()
        if query not in self._prepared:
            self._pgconn.send_prepare(name, QUERIES[query])
            self._steps.append(("prepare", query))
            self._prepared.add(query)
        self._pgconn.send_query_prepared(
            name, [_encode(value) for value in values], result_format=_BINARY
        )
        self._steps.append(("query" if has_rows else "setup", query))

    def fetch(self) -> list[list[Row]]:
        """Return the rows of every query sent since the last call. Raise psycopg.Error."""
        self._pgconn.send_flush_request()
        return self._receive_all()

    def end(self) -> list[list[Row]]:
        """End the transaction; return the rows that were not fetched. Raise psycopg.Error."""
        self._pgconn.pipeline_sync()
        self._steps.append(("sync", ""))
        try:
            return self._receive_all()
        finally:
            if self._pgconn.status == pq.ConnStatus.OK and not self._steps:
                self._pgconn.exit_pipeline_mode()

    def _receive_all(self) -> list[list[Row]]:
        """Receive all results. Raise the first error when nothing more is to come."""
        self._flush()
        found: list[list[Row]] = []
        problem: psycopg.Error | None = None
        while self._steps:
            result = self._receive()
            step, query = self._steps.popleft()
            if step == "sync":
                continue
            if result is None or result.status not in _GOOD:
                problem = problem or _problem(result)
                if step == "prepare":
                    self._prepared.discard(query)
            elif step == "query":
                self._transformer.set_pgresult(result)
                found.append(self._transformer.load_rows(0, result.ntuples, tuple))
            if result is not None:
                self._receive()  # nothing: the end of the statement
        if problem is not None:
            raise problem
        return found

    def _flush(self) -> None:
        """Send what is buffered.

        Receive meanwhile: the server may not read on before its results are taken.
        """
        while self._pgconn.flush():
            with _Selector() as selector:
                selector.register(self._pgconn.socket, selectors.EVENT_READ | selectors.EVENT_WRITE)
                self._wait(selector)
            self._consume()

    def _receive(self) -> pq.abc.PGresult | None:
        while self._pgconn.is_busy():
            self._wait(self._connection.answers)
            self._consume()
        return self._pgconn.get_result()

    def _consume(self) -> None:
        try:
            self._pgconn.consume_input()
        except psycopg.OperationalError as exc:
            self.is_lost = True
            raise ConnectionLost(str(exc)) from exc

    def _wait(self, selector: selectors.BaseSelector) -> None:
        deadline = monotonic() + self._timeout
        while not selector.select(min(self._timeout, _CANCEL_CHECK_S)):
            if not self._write and is_cancelled():
                self._cancel()
                raise cancellation()
            if monotonic() < deadline:
                continue
            self.is_lost = True
            raise ConnectionLost(f"the server did not answer within {self._timeout:g} seconds")

    def _cancel(self) -> None:
        """End the statement on the server.

        The connection is given up: its results are not worth the wait.
        """
        self.is_lost = True
        with suppress(psycopg.Error):
            self._connection.cancel_safe(timeout=_CANCEL_TIMEOUT_S)


def _problem(result: pq.abc.PGresult | None) -> psycopg.Error | None:
    """Return what went wrong; None for a statement that was skipped because of an earlier error."""
    if result is None:
        return ConnectionLost("the connection ended")
    if result.status == pq.ExecStatus.PIPELINE_ABORTED:
        return None
    return error_from_result(result)


def _encode(value: object) -> bytes | None:
    """Return a value in PostgreSQL's text format; the query says which type it has."""
    if value is None:
        return None
    if isinstance(value, str):
        return _encode_text(value)
    if isinstance(value, _COLLECTIONS):
        return _encode_text(array_literal(value))
    return f"\\x{value.hex()}".encode() if isinstance(value, bytes) else str(value).encode()


def array_literal(values: Iterable[object]) -> str:
    """Return values as the literal of an array."""
    return "{" + ",".join([_item(value) for value in values]) + "}"


def _item(value: object) -> str:
    """Return a value as it stands in the literal of an array."""
    if isinstance(value, str):
        return '"' + value.replace("\\", "\\\\").replace('"', '\\"') + '"'
    if isinstance(value, bytes):
        return f'"\\\\x{value.hex()}"'
    return "NULL" if value is None else str(value)


def _encode_text(text: str) -> bytes:
    """Return a text in UTF-8.

    No row has a text that cannot be stored, so a search for one must find nothing.
    """
    try:
        encoded = text.encode()
    except UnicodeEncodeError:
        encoded = _SURROGATES.sub(_STORED_NOWHERE, text).encode()
    return encoded.replace(b"\x00", _STORED_NOWHERE.encode()) if b"\x00" in encoded else encoded
