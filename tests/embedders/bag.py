"""A small embedder for tests.

Each word has its own vector, and the vector of a text is the sum of its words.
"""

from collections.abc import Sequence
from zlib import crc32

import numpy as np
from numpy.typing import NDArray

from polymnia.search.terms import terms_of

# Synonyms have the same vector.
_SAME = {"dog": "puppi", "job": "nurs", "work": "nurs"}


class BagEmbedder:
    """Embed texts as bags of words, with vectors of `dimension` numbers."""

    batch_size = 32

    def __init__(self, dimension: int = 64, name: str = "bag") -> None:
        self.dimension = dimension
        self.identity = f"{name}/{dimension}"

    def embed(self, texts: Sequence[str], *, asking: bool = False) -> NDArray[np.float32]:
        rows = [
            sum([self._word(term) for term in terms_of(text)], np.zeros(self.dimension))
            for text in texts
        ]
        found = np.array(rows, np.float32).reshape(len(texts), self.dimension)
        return np.asarray(
            found / np.maximum(np.linalg.norm(found, axis=1, keepdims=True), 1e-9), np.float32
        )

    def _word(self, term: str) -> NDArray[np.float64]:
        return np.random.default_rng(crc32(_SAME.get(term, term).encode())).normal(
            size=self.dimension
        )
