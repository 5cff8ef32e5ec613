"""Keep vectors on disk between runs: embedding a collection takes minutes, ranking it seconds."""

from collections.abc import Sequence
from hashlib import blake2b
from pathlib import Path
from typing import TYPE_CHECKING

import apsw
import numpy as np

from polymnia.embedders import open_embedder
from polymnia.embedders.base import Embedder

if TYPE_CHECKING:
    from polymnia.embedders.base import Vectors

CACHE = Path(".bench-cache") / "vectors.db"
_BATCH_SIZE = 256


def open_cached(url: str) -> Embedder | None:
    """Load the embedder that a URL names, with vectors of earlier runs. Raise PolymniaError."""
    embedder = open_embedder(url)
    if embedder is None:
        return None
    return CachedEmbedder(embedder, url)


class CachedEmbedder:
    """An embedder that looks up each text in a file before it embeds it."""

    def __init__(self, embedder: Embedder, url: str = "local", path: Path = CACHE) -> None:
        self._embedder = embedder
        self.url = url
        self.identity = embedder.identity
        self.dimension = embedder.dimension
        self.batch_size = _BATCH_SIZE
        self._path = path
        path.parent.mkdir(parents=True, exist_ok=True)
        with self._connect() as connection:
            connection.execute(
                "CREATE TABLE IF NOT EXISTS vectors "
                "(key BLOB PRIMARY KEY, vector BLOB) WITHOUT ROWID"
            )

    def embed(self, texts: Sequence[str], *, asking: bool = False) -> "Vectors":
        """Return one row for each text."""
        keys = [self._key(text, asking) for text in texts]
        known = self._load(keys)
        missing = {key: text for key, text in zip(keys, texts, strict=True) if key not in known}
        if missing:
            vectors = self._embedder.embed(list(missing.values()), asking=asking)
            made = {
                key: row.astype("<f4").tobytes() for key, row in zip(missing, vectors, strict=True)
            }
            self._save(made)
            known |= made
        packed = b"".join(known[key] for key in keys)
        return np.frombuffer(packed, "<f4").reshape(len(keys), self.dimension)

    def _key(self, text: str, asking: bool) -> bytes:
        digest = blake2b(digest_size=16)
        digest.update(f"{self.identity}\n{asking}\n{text}".encode())
        return digest.digest()

    def _load(self, keys: Sequence[bytes]) -> dict[bytes, bytes]:
        known = {}
        with self._connect() as connection:
            for key in keys:
                for (vector,) in connection.execute(
                    "SELECT vector FROM vectors WHERE key = ?", (key,)
                ):
                    known[key] = vector
        return known

    def _save(self, made: dict[bytes, bytes]) -> None:
        with self._connect() as connection:
            connection.executemany("INSERT OR IGNORE INTO vectors VALUES (?, ?)", made.items())

    def _connect(self) -> apsw.Connection:
        # Questions are embedded in a thread of their own.
        connection = apsw.Connection(str(self._path))
        connection.set_busy_timeout(60_000)
        return connection
