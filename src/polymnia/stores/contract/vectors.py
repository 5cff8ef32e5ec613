"""Keep vectors of passages and find the nearest ones.

A vector is made from a passage's text in one perspective by one model. A passage's text never changes under its id, so
a vector never becomes stale. Vectors cross this boundary as little-endian float32.
"""

from collections.abc import Collection, Sequence
from typing import Protocol

from polymnia.model import EmbeddingModel, Within

# The perspective that embeds a passage's own text.
TEXT = "text"


class VectorReader(Protocol):
    """Vectors as one snapshot sees them."""

    def models(self) -> list[EmbeddingModel]:
        """Return the models with vectors, oldest first."""

    def nearest(
        self, model: int, vector: bytes, k: int, within: Within | None = None, *, perspective: str = TEXT
    ) -> dict[int, float]:
        """Return the ids of the k nearest living passages with their cosines, best first."""

    def vectors(self, model: int, passages: Collection[int], *, perspective: str = TEXT) -> dict[int, bytes]:
        """Return the vectors of those of the passages that have one."""

    def pending(
        self, model: int, limit: int, *, above: int = 0, below: int | None = None, perspective: str = TEXT
    ) -> list[tuple[int, str]]:
        """Return living passages with above < id < below and without a vector, newest first, with the text to embed."""

    def last_passage(self) -> int:
        """Return an id that no passage of this snapshot exceeds. Later passages have higher ids."""

    def coverage(self, model: int, *, perspective: str = TEXT) -> tuple[int, int]:
        """Return how many living passages have a vector of the model, and how many should."""


class VectorStore(Protocol):
    """Writes of vectors. Each call is one transaction; safe for several threads and processes."""

    def add_model(self, identity: str, url: str, dimension: int) -> EmbeddingModel:
        """Return the model with that identity, registered from now on."""

    def remove_model(self, model: int, limit: int) -> bool:
        """Delete up to `limit` vectors of a model, and the model with the last of them. Return True when it is gone."""

    def put(self, model: int, vectors: Sequence[tuple[int, bytes]], *, perspective: str = TEXT) -> None:
        """Store the vectors of passages. Ignore passages that no longer live and those that have a vector already."""

    def lease(self, name: str, seconds: float) -> bool:
        """Take or renew a named lease for this server. Return False while another server holds it."""

    def release(self, name: str) -> None:
        """Give up a lease that this server holds."""
