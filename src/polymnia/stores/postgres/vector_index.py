"""Tables of near vectors, one for each workspace, model and template that has many.

They are built in the background. Each has an HNSW index. One index for all workspaces would find
next to nothing for a small one: it returns the nearest vectors of all, and few of them belong to
the workspace. The functions of the database that make these tables run as their owner, so that any
server can call them.
"""

import logging
from threading import Lock, Thread

import psycopg

from polymnia.errors import StoreError
from polymnia.stores.postgres.connection import QUERIES, Row
from polymnia.stores.postgres.database import Database

logger = logging.getLogger(__name__)

# Up to this many vectors of one model and template are compared one by one.
INDEXED_FROM = 30_000
# pgvector has no index for vectors with more dimensions.
MAX_INDEXED_DIMENSION = 4_000
# A process looks whether an index is needed once after this many vectors, not after every few.
_CHECK_EVERY = 1_000


class NearVectors:
    """The indexes of one workspace."""

    def __init__(
        self, database: Database, workspace: int, *, indexed_from: int = INDEXED_FROM
    ) -> None:
        self._database = database
        self._workspace = workspace
        self.indexed_from = indexed_from
        self._lock = Lock()
        self._written: dict[tuple[int, int], int] = {}
        self._builder: Thread | None = None

    def after_writing(self, model: int, template: int, count: int, dimension: int) -> None:
        """Build an index in the background if vectors have become many."""
        with self._lock:
            # A process looks when it first writes: another may have stopped before it built one.
            written = self._written.get((model, template), _CHECK_EVERY) + count
            self._written[model, template] = written % _CHECK_EVERY
            if (
                written < _CHECK_EVERY
                or dimension > MAX_INDEXED_DIMENSION
                or (self._builder is not None and self._builder.is_alive())
            ):
                return
            if not self._database.server.listens:
                return  # a build holds a lock for minutes, and so needs a direct connection
            self._builder = Thread(
                target=self._build, args=(model, template, dimension), daemon=True
            )
            self._builder.start()

    def wait(self) -> None:
        """Wait until nothing is being built."""
        if self._builder is not None:
            self._builder.join()

    def build(self, model: int, template: int, dimension: int) -> None:
        """Build the table of a model and template if it is needed and missing.

        Do nothing while another server builds it. Raise StoreError.
        """
        key = (self._workspace, model, template)
        # The graph of some 100,000 vectors fits into this. Building it is much slower otherwise.
        memory = {"maintenance_work_mem": "512MB"}
        workspace = {"polymnia.workspace": str(self._workspace)}  # for row-level security
        with self._database.maintenance(memory | workspace) as connection:
            ((is_ours,),) = _run(connection, "lock_near_vectors", *key)
            if not is_ours or not _run(connection, "has_many_vectors", *key, self.indexed_from):
                return
            ((is_complete,),) = _run(connection, "has_near_vectors", *key)
            if is_complete:
                return
            logger.info("indexing the vectors of workspace %s, model %s, template %s", *key)
            _run(connection, "build_near_vectors", *key, dimension)
            # Twice, because writers wait the second time: then there is little left to add.
            _run(connection, "refresh_near_vectors", *key)
            _run(connection, "complete_near_vectors", *key)

    def drop(self, *, model: int | None = None, template: int | None = None) -> None:
        """Drop the tables of a model or a template. One that remains is empty and does no harm."""
        try:
            with self._database.transaction(self._workspace, write=True) as connection:
                connection.write("drop_near_vectors", model, template)
                connection.commit()
        except StoreError as exc:
            logger.warning("cannot drop the vector index of workspace %s: %s", self._workspace, exc)

    def _build(self, model: int, template: int, dimension: int) -> None:
        try:
            self.build(model, template, dimension)
        except StoreError as exc:
            # Searches stay right without it; they take longer.
            logger.warning("cannot index the vectors of workspace %s: %s", self._workspace, exc)


def _run(connection: psycopg.Connection[Row], query: str, *values: object) -> list[Row]:
    return connection.execute(QUERIES[query], values).fetchall()
