"""Connections to PostgreSQL: named statements, and waits that end.

A transaction sends its statements through psycopg's pipeline, so that those which are sent together
are one round trip. On a direct connection they are prepared, and the connection has our settings.
Behind a pooler each transaction may reach another backend: there statements are not prepared, and
every transaction brings the settings along.
"""

import re
from collections.abc import Iterable, KeysView, Mapping
from contextlib import suppress
from pathlib import Path
from secrets import token_hex
from time import monotonic
from typing import Any

import psycopg
from psycopg.abc import RV, PQGen, PQGenConn

from polymnia.stores.contract import cancellation, is_cancelled
from polymnia.stores.sql import load_queries

QUERIES = {name: text.encode() for name, text in load_queries(Path(__file__).parent).items()}
Row = tuple[Any, ...]

# What stands for characters that no row can have: a search for one must find nothing.
_STORED_NOWHERE = f"\ufffe{token_hex(8)}"
_COLLECTIONS = (list, tuple, set, frozenset, dict, KeysView)


class ConnectionLost(psycopg.OperationalError):
    """The connection ended, or the server did not answer in time."""


class CommitLost(ConnectionLost):
    """The connection ended during a commit, and it is unknown whether it took place."""


class PooledConnection(psycopg.Connection[Row]):
    """A pooled connection. No wait for the server is longer than `patience` seconds."""

    patience: float | None = None
    is_cancellable = False  # while it reads, and the client may lose interest

    def wait(self, gen: PQGen[RV] | PQGenConn[RV], *args: Any, **kwargs: Any) -> RV:
        """Run an operation of the connection. Raise ConnectionLost, Cancelled."""
        bounded: PQGen[RV] = self._bounded(gen)
        return super().wait(bounded, *args, **kwargs)

    def _bounded(self, gen: Any) -> Any:
        """Pass on what the operation waits for, several times a second while nothing happens."""
        patience = self.patience
        deadline = None if patience is None else monotonic() + patience
        try:
            state = next(gen)
            while True:
                ready = yield state
                if not ready and self.is_cancellable and is_cancelled():
                    self._give_up()
                    raise cancellation()
                if not ready and deadline is not None and monotonic() > deadline:
                    self._give_up()
                    raise ConnectionLost(f"the server did not answer within {patience:g} seconds")
                state = gen.send(ready)
        except StopIteration as done:
            return done.value

    def _give_up(self) -> None:
        """End the statement on the server. Its results are not worth the wait."""
        self.patience, self.is_cancellable = None, False
        with suppress(psycopg.Error):
            self.cancel_safe(timeout=1.0)
        self.pgconn.finish()


def apply_settings(
    connection: psycopg.Connection[Row], settings: Mapping[str, str], *, local: bool = False
) -> None:
    """Give a connection its settings, or its transaction. Poolers refuse them with the login.

    Raise psycopg.Error.
    """
    connection.execute(QUERIES["apply_settings"], [list(settings), list(settings.values()), local])


def encode(value: object) -> str | None:
    """Return a value in PostgreSQL's text format; the query says which type it has."""
    if value is None:
        return None
    if isinstance(value, str):
        return _storable(value)
    if isinstance(value, _COLLECTIONS):
        return _storable(array_literal(value))
    return f"\\x{value.hex()}" if isinstance(value, bytes) else str(value)


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


def _storable(text: str) -> str:
    """Return the text without characters that PostgreSQL cannot store, so that it finds nothing."""
    if not text.isascii():
        text = re.sub("[\ud800-\udfff]", _STORED_NOWHERE, text)
    return text.replace("\x00", _STORED_NOWHERE)
