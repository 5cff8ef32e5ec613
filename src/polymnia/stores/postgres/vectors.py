"""Vectors in PostgreSQL with pgvector, compared one by one, or by an index where there are many."""

from collections.abc import Collection, Sequence

from polymnia.model import Within
from polymnia.search.embedding import cosine, length, unpack_vector
from polymnia.search.relevance import Scores
from polymnia.stores.postgres.port import PostgresPort, pack_half, pack_text, unpack_binary
from polymnia.stores.versioned.write import CLIENT_MODEL


class PostgresVectors:
    """The vectors of a workspace, as a transaction sees them."""

    def __init__(self, port: PostgresPort) -> None:
        self._port = port

    def nearest(
        self, model: int, template: int, vector: bytes, k: int, within: Within | None
    ) -> Scores:
        near = (model, template, pack_text(vector), k)
        if within is None:
            return dict(self._port.run("nearest_vectors", *near))
        bounds = (within.names, within.types, within.since, within.until, within.tags)
        return dict(self._port.run("nearest_within", *near, *bounds))

    def nearest_notes(
        self, model: int, vector: bytes, k: int, allowed: Collection[int] | None
    ) -> Scores:
        ids = None if allowed is None else list(allowed)
        # Fetch extra: candidates are ranked in half precision.
        rows = self._port.run("nearest_notes", model, pack_half(vector), 2 * k + 20, ids)
        own, norm = unpack_vector(vector), length(vector)
        scores = {passage: cosine(own, norm, raw, length(raw)) for passage, raw in rows}
        best = sorted(scores, key=lambda passage: -scores[passage])
        return {passage: scores[passage] for passage in best[:k]}

    def vectors(self, model: int, template: int, passages: Collection[int]) -> dict[int, bytes]:
        rows = self._port.run("vectors_by_passage", model, template, list(passages))
        return {passage: unpack_binary(vector) for passage, vector in rows}

    def means(self, model: int, template: int) -> dict[str, bytes]:
        rows = self._port.run("mean_vectors", model, template)
        return {name: unpack_binary(vector) for name, vector in rows}

    def coverage(self, model: int, template: int) -> tuple[int, int]:
        ((embedded, total),) = self._port.run("vector_coverage", model, template)
        return embedded, total

    def put(self, model: int, template: int, vectors: Sequence[tuple[int, bytes]]) -> None:
        passages = [passage for passage, _ in vectors]
        packed = [pack_half(vector) for _, vector in vectors]
        self._port.run("insert_vectors", model, template, passages, packed)

    def put_client_vector(self, identity: str, passage: int, vector: bytes) -> None:
        self._port.write("add_client_model", identity, CLIENT_MODEL, len(vector) // 4)
        self._port.write("insert_client_vector", identity, passage, vector, pack_half(vector))
