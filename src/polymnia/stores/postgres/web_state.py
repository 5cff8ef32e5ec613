"""What the web interface keeps beside each workspace, and its logins, for all servers."""

import time
from collections.abc import Iterator
from contextlib import contextmanager

from polymnia.errors import WorkspaceNotFound
from polymnia.search.terms import fold
from polymnia.stores.contract import WebDocument
from polymnia.stores.postgres.catalogue import open_migrated
from polymnia.stores.postgres.database import Database
from polymnia.stores.postgres.url import parse_url


class WebStateTable:
    """A document for each workspace of a database, and the logins to its servers."""

    def __init__(self, database: Database, only_workspace: str) -> None:
        """A URL may name the only workspace, which the web interface calls by another name."""
        self._database = database
        self._only_workspace = only_workspace

    def read(self, workspace: str) -> str:
        with self._database.transaction(self._find(workspace), once=True) as connection:
            rows = connection.ask("web_state")
        return str(rows[0][0]) if rows else ""

    @contextmanager
    def edit(self, workspace: str) -> Iterator[WebDocument]:
        with self._database.transaction(self._find(workspace), write=True) as connection:
            ((text,),) = connection.ask("lock_web_state")
            document = WebDocument(text)
            yield document
            connection.write("set_web_state", document.text)
            connection.commit()

    def put_session(self, digest: str, principal: str, *, idle_s: int) -> None:
        now = int(time.time())
        self._write("put_web_session", digest, principal, now, now - idle_s)

    def find_session(self, digest: str, *, idle_s: int) -> str | None:
        now = int(time.time())
        rows = self._database.ask("web_session", digest, now - idle_s)
        if not rows:
            return None
        principal, used_at = rows[0]
        # The last use of a login is recorded at most once in this many seconds.
        if now - used_at >= 60:
            self._write("touch_web_session", digest, now)
        return str(principal)

    def delete_session(self, digest: str) -> None:
        self._write("delete_web_session", digest)

    def close(self) -> None:
        self._database.close()

    def _write(self, query: str, *values: object) -> None:
        with self._database.transaction(write=True) as connection:
            connection.write(query, *values)
            connection.commit()

    def _find(self, workspace: str) -> int:
        name = self._only_workspace or workspace
        rows = self._database.ask("workspace_named", fold(name), name)
        if not rows:
            raise WorkspaceNotFound(name, "it was deleted or renamed: choose another one")
        return int(rows[0][6])


def open_web_state(url: str, *, read_only: bool = False) -> WebStateTable:
    """Open the table in the database at a URL. Raise StoreError."""
    database = open_migrated(url, read_only=read_only)
    return WebStateTable(database, parse_url(url).workspace)
