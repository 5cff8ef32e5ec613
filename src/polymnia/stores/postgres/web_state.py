"""What the web interface keeps beside each workspace, for all servers."""

from collections.abc import Iterator
from contextlib import contextmanager

from polymnia.errors import WorkspaceNotFound
from polymnia.search.terms import fold
from polymnia.stores.contract import WebDocument
from polymnia.stores.postgres.catalogue import open_migrated
from polymnia.stores.postgres.database import Database
from polymnia.stores.postgres.url import parse_url


class WebStateTable:
    """A document for each workspace of a database."""

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

    def close(self) -> None:
        self._database.close()

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
