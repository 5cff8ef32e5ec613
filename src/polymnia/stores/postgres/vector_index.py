"""HNSW indexes of vectors: one for each workspace, model and template that has many, built in the background.

One index for all workspaces would find next to nothing for a small one: it returns the nearest vectors of all, and few
of them belong to the workspace.
"""

import logging
from threading import Lock, Thread

import psycopg
from psycopg import sql

from polymnia.stores.postgres.connection import QUERIES, Row, apply_settings
from polymnia.stores.postgres.database import Database

logger = logging.getLogger(__name__)

# Up to this many vectors of one model and template are compared one by one.
INDEXED_FROM = 30_000
# pgvector has no index for vectors with more dimensions.
MAX_INDEXED_DIMENSION = 4_000
# A process looks whether an index is needed once after this many vectors, not after every few.
_CHECK_EVERY = 1_000
# The graph of some 100,000 vectors fits into this. Building it is much slower otherwise.
_MEMORY = "512MB"


class VectorIndexes:
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
            # A process looks when it first writes: another one may have stopped before it built the index.
            written = self._written.get((model, template), _CHECK_EVERY) + count
            self._written[model, template] = written % _CHECK_EVERY
            if written < _CHECK_EVERY or dimension > MAX_INDEXED_DIMENSION or self._is_building():
                return
            self._builder = Thread(
                target=self._build, args=(model, template, dimension), daemon=True
            )
            self._builder.start()

    def wait(self) -> None:
        """Wait until nothing is being built."""
        if self._builder is not None:
            self._builder.join()

    def build(self, model: int, template: int, dimension: int) -> None:
        """Build the index of a model and template if it is needed and missing, and no other server builds it."""
        with self._connect() as connection:
            name = self._name(model, template)
            counted = (self._workspace, model, template, self.indexed_from)
            if not _run(connection, "lock_vector_index", name)[0][0] or not _run(
                connection, "has_many_vectors", *counted
            ):
                return
            found = _run(connection, "vector_index_is_valid", name)
            if found == [(True,)]:
                return
            if found:  # its building was interrupted
                self._drop(connection, name)
            logger.info("building the vector index %s", name)
            connection.execute(
                sql.SQL(
                    "CREATE INDEX CONCURRENTLY {name} ON vectors"
                    " USING hnsw ((vector::halfvec({dimension})) halfvec_cosine_ops)"
                    " WHERE workspace_id = {workspace} AND model = {model} AND template = {template}"
                ).format(
                    name=sql.Identifier(name),
                    dimension=sql.Literal(dimension),
                    workspace=sql.Literal(self._workspace),
                    model=sql.Literal(model),
                    template=sql.Literal(template),
                )
            )

    def drop(self, *, model: int | None = None, template: int | None = None) -> None:
        """Drop the indexes of a model or a template, or all. One that remains is empty and does no harm."""
        try:
            with self._connect() as connection:
                for (name,) in _run(
                    connection, "vector_indexes", f"vectors_near_{self._workspace}_"
                ):
                    of_model, of_template = map(int, name.split("_")[-2:])
                    if model in (None, of_model) and template in (None, of_template):
                        self._drop(connection, name)
        except psycopg.Error as exc:
            logger.warning(
                "cannot drop the vector indexes of workspace %s: %s", self._workspace, exc
            )

    def _build(self, model: int, template: int, dimension: int) -> None:
        try:
            self.build(model, template, dimension)
        except psycopg.Error as exc:
            # Searches stay right without it; they take longer.
            logger.warning("cannot index the vectors of workspace %s: %s", self._workspace, exc)

    def _is_building(self) -> bool:
        return self._builder is not None and self._builder.is_alive()

    def _drop(self, connection: psycopg.Connection[Row], name: str) -> None:
        connection.execute(
            sql.SQL("DROP INDEX CONCURRENTLY IF EXISTS {}").format(sql.Identifier(name))
        )

    def _name(self, model: int, template: int) -> str:
        return f"vectors_near_{self._workspace}_{model}_{template}"

    def _connect(self) -> psycopg.Connection[Row]:
        """Return a connection without time limits, outside the pool, whose connections are for requests."""
        settings = {
            "search_path": "polymnia,public",
            "polymnia.workspace": str(self._workspace),  # for row-level security
            "statement_timeout": "0",
            "maintenance_work_mem": _MEMORY,
        }
        conninfo = self._database.url.conninfo
        connection: psycopg.Connection[Row] = psycopg.connect(
            conninfo, autocommit=True, cursor_factory=psycopg.RawCursor
        )
        apply_settings(connection, settings)
        return connection


def _run(connection: psycopg.Connection[Row], query: str, *values: object) -> list[Row]:
    return connection.execute(QUERIES[query], values).fetchall()
